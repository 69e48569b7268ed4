"""Starts the status page, the metrics and their exporter, as the configuration asks for them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from olr_pg.appliance.status_observer import Observer
from olr_pg.config.tls import server_context
from olr_pg.monitor.exporter import MetricsTable, PostgresExporter
from olr_pg.monitor.history import FILE_NAME as HISTORY_FILE
from olr_pg.monitor.history import HistoryStore
from olr_pg.monitor.history_recorder import HistoryRecorder
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.service import FILE_NAME, StatusService

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.appliance.status_observer import Parts
    from olr_pg.config.model import Config

_HOUR_SECONDS = 3600.0


@contextmanager
def monitored(config: Config, parts: Sequence[Parts], data: Path) -> Iterator[StatusService | None]:
    """Status page with its history, and exporter, for the span of the context.

    Args:
        parts: of each target.
        data: the directory of `context.data`.

    Yields:
        The status page; None where the configuration wants none.

    Raises:
        OlrPgError: 4009, 4010, 4030, the page cannot be served.
    """
    settings = config.status
    with ExitStack() as stack:
        observers = [stack.enter_context(Observer(one)) for one in parts]
        first = observers[0].status
        targets = {
            one.target.name: observer.status for one, observer in zip(parts, observers, strict=True)
        }
        registry = make_registry(first, targets)
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
        service = None
        if settings.enabled:
            history = HistoryStore(data / HISTORY_FILE)
            stack.enter_context(HistoryRecorder(history, targets))
            service = StatusService(
                first,
                registry,
                address=settings.address,
                tls=server_context(settings.tls) if settings.tls else None,
                allow=settings.allow,
                announcement=data / FILE_NAME,
                targets=targets,
                history=history,
            )
            stack.enter_context(service)
        yield service
