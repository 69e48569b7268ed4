"""Exports metrics: to a table in a PostgreSQL database, as OLR does, and to an OpenTelemetry
collector.

`PostgresExporter` periodically writes every metric to a table. The configuration of OLR defines the
schema and the table. olr_pg defines the columns: each row contains a metric at a time, with its
labels as JSON. If the metrics table is missing, the exporter creates it.

`exported` sends the appliance's metrics and spans to an OpenTelemetry collector (OTLP over HTTP).
The metrics have the same names as in `/metrics`. OpenTelemetry's own library sends the metrics and
spans. This library is an optional dependency: `pip install 'olr-pg[otel]'`. A collector that does
not answer is logged once, and no other thread waits for it.
"""

from __future__ import annotations

import importlib.metadata
import logging
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import sql
from psycopg.types.json import Jsonb

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.observability import tracing
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.redaction import mask
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import CollectorRegistry

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS {} (
    at timestamptz NOT NULL DEFAULT now(),
    metric text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{{}}',
    value double precision NOT NULL
)
"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS {} ON {} (metric, at)"
_INSERT: Final = "INSERT INTO {} (metric, labels, value) VALUES (%s, %s, %s)"
_DELETE: Final = "DELETE FROM {} WHERE at < now() - make_interval(secs => %s)"
_ANSWER_SECONDS: Final = 30.0
_DELETE_SECONDS: Final = 3600.0

_log = structlog.get_logger(__name__)


class MetricsTable(NamedTuple):
    """The table for the metrics.

    Attributes:
        interval: seconds between two writes.
        keep: seconds after which a row is deleted.
    """

    connect_string: str
    schema: str
    table: str
    interval: float
    keep: float


class PostgresExporter:
    """Writes the metrics of a registry in a thread, while the context is active.

    If the database is unreachable, the exporter logs this once and retries at the next interval. No
    other thread waits for the exporter.
    """

    def __init__(self, target: MetricsTable, registry: CollectorRegistry) -> None:
        self._target = target
        self._registry = registry
        self._name = sql.Identifier(target.schema, target.table)
        self._connection: BoundedConnection | None = None
        self._deleted_at: float | None = None
        self._failing = False
        self._writing = Periodic("olr-metrics", target.interval, self._try, at_once=True)

    def __enter__(self) -> PostgresExporter:
        self._writing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._writing.stop()
        self._disconnect()

    def _try(self) -> None:
        try:
            self._write()
        except psycopg.Error as error:
            self._disconnect()
            if not self._failing:
                self._failing = True
                reason = mask(error.diag.message_primary or str(error).strip())
                failure = OlrPgError(
                    Code.METRICS_UNWRITABLE,
                    reason,
                    table=f"{self._target.schema}.{self._target.table}",
                )
                _log.warning("could not write metrics", error=failure)
        else:
            if self._failing:
                self._failing = False
                _log.info("metrics can be written again")

    def _write(self) -> None:
        connection = self._connected()
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(sql.SQL(_INSERT).format(self._name), self._samples())
        now = time.monotonic()
        if self._deleted_at is None or now - self._deleted_at >= _DELETE_SECONDS:
            connection.execute(sql.SQL(_DELETE).format(self._name), (self._target.keep,))
            self._deleted_at = now

    def _samples(self) -> list[tuple[str, Jsonb, float]]:
        return [
            (sample.name, Jsonb(sample.labels), float(sample.value))
            for metric in self._registry.collect()
            for sample in metric.samples
        ]

    def _connected(self) -> BoundedConnection:
        if self._connection is None:
            self._connection = BoundedConnection.connect(
                with_timeouts(self._target.connect_string),
                autocommit=True,
                application_name="olr_pg metrics",
            )
            self._connection.answer_seconds = _ANSWER_SECONDS
            self._create(self._connection)
        return self._connection

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        found = connection.execute(
            "SELECT to_regclass(%s)", (self._name.as_string(connection),)
        ).fetchone()
        if found != (None,):
            return  # no CREATE privilege is needed
        index = sql.Identifier(f"{self._target.table}_metric_at")
        with connection.transaction():
            connection.execute(sql.SQL(_CREATE).format(self._name))
            connection.execute(sql.SQL(_INDEX).format(index, self._name))

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_SECONDS: Final = 10.0
"""Time limit of one request."""

_LIBRARY: Final = ("opentelemetry.exporter", "opentelemetry.sdk")
"""The library's loggers, which report every failure. These loggers are disabled, because this
module reports the first failure.
"""


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
