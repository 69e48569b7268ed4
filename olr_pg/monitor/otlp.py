"""Sends the appliance's metrics and spans to an OpenTelemetry collector (OTLP over HTTP).

The metrics have the same names as in `/metrics`. OpenTelemetry's own library sends them. It is an
optional dependency: `pip install 'olr-pg[otel]'`. If the collector does not answer, this is logged
once, and no other thread waits for it.
"""

from __future__ import annotations

import importlib.metadata
import logging
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.observability import tracing
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.redaction import mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import CollectorRegistry

_SECONDS: Final = 10.0
"""Time limit of one request."""

_LIBRARY: Final = ("opentelemetry.exporter", "opentelemetry.sdk")
"""The library's loggers, which report every failure. They are disabled, because this module reports
the first failure.
"""

_log = structlog.get_logger(__name__)


class Collector(NamedTuple):
    """The collector for metrics and spans.

    Attributes:
        endpoint: URL of the collector, without ``/v1/metrics``.
        headers: headers of each request; they can contain secrets.
        interval: seconds between exports of the metrics.
        traces: whether to send spans as well.
        name: the name of this instance in the collector.
    """

    endpoint: str
    headers: Mapping[str, str]
    interval: float
    traces: bool
    name: str


@contextmanager
def exported(collector: Collector, registry: CollectorRegistry) -> Iterator[None]:
    """Send metrics and spans while the context is active.

    Raises:
        OlrPgError: 1180, the library is not installed.
    """
    try:
        exporter = _MetricsExporter(collector, registry)
    except ImportError as error:
        raise OlrPgError(Code.OTEL_NOT_INSTALLED, plain_reason(error)) from error
    for name in _LIBRARY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sending = Periodic("olr-otlp", collector.interval, exporter.send, at_once=True)
    ending = _collect_spans(collector) if collector.traces else None
    sending.start()
    try:
        yield
    finally:
        sending.stop()
        exporter.send()
        if ending is not None:
            tracing.end_collecting()
            ending.shutdown()


def _resource(collector: Collector) -> Any:
    from opentelemetry.sdk.resources import Resource

    return Resource.create(
        {
            "service.name": "olr_pg",
            "service.version": importlib.metadata.version("olr-pg"),
            "service.instance.id": collector.name or socket.gethostname(),
        }
    )


def _options(collector: Collector, signal: str) -> dict[str, Any]:
    return {
        "endpoint": f"{collector.endpoint.rstrip('/')}/v1/{signal}",
        "headers": dict(collector.headers),
        "timeout": _SECONDS,
    }


def _collect_spans(collector: Collector) -> Any:
    """Start collecting spans; return an object whose `shutdown` sends the last ones."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(collector), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(**_options(collector, "traces"))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("olr_pg")
    tracing.collect(
        lambda name, attributes: tracer.start_as_current_span(name, attributes=attributes)
    )
    return provider


class _MetricsExporter:
    """Sends the metrics of a registry in OpenTelemetry's form: counters become sums, all other
    metrics become gauges.
    """

    def __init__(self, collector: Collector, registry: CollectorRegistry) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import export
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._kinds: Any = export
        self._scope = InstrumentationScope("olr_pg")
        self._resource = _resource(collector)
        self._exporter = OTLPMetricExporter(**_options(collector, "metrics"))
        self._registry = registry
        self._began = time.time_ns()
        self._endpoint = collector.endpoint
        self._is_failing = False

    def send(self) -> None:
        """Send the current metrics; log only the first of several failures."""
        try:
            sent = self._exporter.export(self._metrics(time.time_ns()))
            is_sent, reason = sent is self._kinds.MetricExportResult.SUCCESS, "the export failed"
        except Exception as error:  # noqa: BLE001 - the library raises what its own libraries do
            is_sent, reason = False, mask(str(error))
        if is_sent == self._is_failing:
            self._is_failing = not is_sent
            if is_sent:
                _log.info("metrics are being sent to the collector again", endpoint=self._endpoint)
            else:
                failure = OlrPgError(Code.OTLP_UNREACHABLE, reason, endpoint=self._endpoint)
                _log.warning("could not send metrics to the collector", error=failure)

    def _metrics(self, at: int) -> Any:
        metrics = []
        for family in self._registry.collect():
            points = [
                self._kinds.NumberDataPoint(
                    attributes=sample.labels,
                    start_time_unix_nano=self._began,
                    time_unix_nano=at,
                    value=float(sample.value),
                )
                for sample in family.samples
            ]
            if not points:
                continue
            name, is_counter = family.name, family.type == "counter"
            data = self._counters(points) if is_counter else self._kinds.Gauge(points)
            name = f"{name}_total" if is_counter else name
            metrics.append(self._kinds.Metric(name, family.documentation, "", data))
        scope = self._kinds.ScopeMetrics(self._scope, metrics, "")
        return self._kinds.MetricsData([self._kinds.ResourceMetrics(self._resource, [scope], "")])

    def _counters(self, points: list[Any]) -> Any:
        cumulative = self._kinds.AggregationTemporality.CUMULATIVE
        return self._kinds.Sum(points, cumulative, is_monotonic=True)
