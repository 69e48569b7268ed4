"""Starts the status page, the metrics and the exporter of the metrics, as configured."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import structlog

from olr_pg.appliance.status_observer import Observer
from olr_pg.config.address import LOOPBACK
from olr_pg.config.tls import server_context
from olr_pg.monitor.control import Control
from olr_pg.monitor.exporter import MetricsTable, PostgresExporter
from olr_pg.monitor.history import FILE_NAME as HISTORY_FILE
from olr_pg.monitor.history import HistoryStore
from olr_pg.monitor.history_recorder import HistoryRecorder
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.otlp import Collector, exported
from olr_pg.monitor.service import FILE_NAME, ServiceSettings, StatusService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.appliance.status_observer import Parts
    from olr_pg.config.model import Config

_HOUR_SECONDS = 3600.0

_log = structlog.get_logger(__name__)


def make_control(
    config: Config,
    reload: Callable[[], None] | None,
    withheld: Callable[[], Mapping[str, str]],
) -> Control:
    """Return the object that executes commands over HTTP, if this is configured.

    Args:
        reload: triggers a reload of the configuration; None if a reload is not possible.
        withheld: returns the values that the configuration reads from the environment.

    Raises:
        OlrPgError: 8017, a token is too short.
    """
    settings = config.status
    assert settings.control is not None
    tokens = {name: token.get_secret_value() for name, token in settings.control.tokens.items()}
    host = LOOPBACK if settings.address is None else settings.address.host
    if settings.tls is None and host not in (LOOPBACK, "::1", "localhost"):
        _log.warning(
            "without status.tls, the tokens of status.control are sent unencrypted", host=host
        )
    return Control(tokens, config.file, reload, environ=withheld)


@contextmanager
def monitored(
    config: Config, parts: Sequence[Parts], data: Path, control: Control | None = None
) -> Iterator[StatusService | None]:
    """Serve the status page with its history, and run the exporter, while the context is active.

    Args:
        parts: the parts of each target.
        control: executes the commands of the page; None for a page without commands.
        data: the directory `context.data`.

    Yields:
        The status page; None if no page is configured.

    Raises:
        OlrPgError: 4009, 4010, 4030, the page cannot be served; 1180, OpenTelemetry is missing.
    """
    settings = config.status
    with ExitStack() as stack:
        observers = [stack.enter_context(Observer(one)) for one in parts]
        targets = {
            one.target.name: observer.status for one, observer in zip(parts, observers, strict=True)
        }
        registry = make_registry(observers[0].status, targets)
        postgres = config.metrics.postgres if config.metrics else None
        if postgres is not None:
            table = MetricsTable(
                postgres.connect_string.get_secret_value(),
                postgres.table_scheme,
                postgres.table_name,
                postgres.interval_seconds,
                postgres.keep_hours * _HOUR_SECONDS,
            )
            stack.enter_context(PostgresExporter(table, registry))
        otlp = config.metrics.otlp if config.metrics else None
        if otlp is not None:
            headers = {name: value.get_secret_value() for name, value in otlp.headers.items()}
            collector = Collector(
                otlp.endpoint, headers, otlp.interval_seconds, otlp.traces, settings.name or ""
            )
            stack.enter_context(exported(collector, registry))
        service = None
        if settings.enabled:
            history = HistoryStore(data / HISTORY_FILE)
            stack.enter_context(HistoryRecorder(history, targets))
            service = StatusService(
                targets,
                registry,
                ServiceSettings(
                    settings.address,
                    server_context(settings.tls) if settings.tls else None,
                    settings.allow,
                    data / FILE_NAME,
                ),
                history=history,
                control=control,
            )
            if control is not None:
                stack.callback(control.stop)
            stack.enter_context(service)
        yield service
