"""The status page of an initial load: shows how much of each table is loaded.

If an appliance runs with the same ``context.data``, the appliance's page shows the load, and this
page is not served. The figures are read from the target every second, like the figures of the
progress bars.
"""

from __future__ import annotations

import importlib.metadata
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg

from olr_pg.appliance.open_source import identity_of
from olr_pg.appliance.status_observer import process_status
from olr_pg.applier.target.ledger import LoadsUnderWay
from olr_pg.config.model import MIB
from olr_pg.config.port_sections import server_context
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import tells_of_full_disk
from olr_pg.load.load_progress import Amount, LoadWatch
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.service import FILE_NAME, ServiceSettings, StatusService
from olr_pg.monitor.status_client import ask_status
from olr_pg.monitor.status_values import LoadStatus, PortStatus, SourceStatus, StageState, Status
from olr_pg.observability.periodic import Periodic, clock_shift, steady_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Database
    from olr_pg.load.table_data import SourceTable

LOADING: Final = "LOADING"
LOOK_SECONDS: Final = 1.0


@contextmanager
def load_page(
    config: Config,
    target: str,
    database: Database,
    targets: Mapping[str, tuple[str, str]],
    work: Sequence[SourceTable],
) -> Iterator[StatusService | None]:
    """Serve the page while the context is active.

    Args:
        config: the configuration; it has only one target.
        targets: ``OWNER.NAME`` → (schema, table) in the target.
        work: the tables to load.

    Yields:
        The page; None if an appliance serves a page already, or if no page is configured.

    Raises:
        OlrPgError: 4009, 4010, 4030 the page cannot be served, 1092 or 1160 its address cannot be
            written to `context.data`.
    """
    settings, announcement = config.status, Path(config.context.data) / FILE_NAME
    if not settings.enabled or config.apply is None or is_served(config):
        yield None
        return
    expected = {one.table.full_name: one.data.rows or 0 for one in work}
    loading = _Loading(config, target, database, targets, expected)
    service = StatusService(
        {"": loading.status},
        make_registry(loading.status),
        ServiceSettings(
            address=settings.address,
            tls=server_context(settings.tls) if settings.tls else None,
            allow=settings.allow,
            announcement=announcement,
            hosts=settings.hosts,
        ),
    )
    looking = Periodic("olr-load-page", LOOK_SECONDS, loading.look, at_once=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(service)
        except OSError as error:  # the address cannot be written to `context.data`
            is_full = tells_of_full_disk(error)
            code = Code.DATA_DISK_FULL if is_full else Code.DATA_DIRECTORY_UNUSABLE
            raise OlrPgError(code, system_reason(error), path=str(announcement.parent)) from error
        stack.enter_context(looking)
        yield service


def is_served(config: Config) -> bool:
    """Return whether a process already serves a page for this configuration."""
    try:
        ask_status(config, page="healthz")
    except OlrPgError as error:
        return error.code != Code.NO_APPLIANCE
    return True


class _Loading:
    """The status of a load; thread-safe.

    Args:
        expected: total number of rows of each table; 0 if unknown.
    """

    def __init__(
        self,
        config: Config,
        target: str,
        database: Database,
        targets: Mapping[str, tuple[str, str]],
        expected: Mapping[str, int],
    ) -> None:
        assert config.apply is not None
        self._target = target
        self._subscription = config.apply.subscription
        self._targets = targets
        self._expected = expected
        self._began = steady_time()
        self._status = Status(
            version=importlib.metadata.version("olr-pg"),
            at=self._began,
            started_at=self._began,
            state=StageState(LOADING, self._began),
            source=SourceStatus(),
            port=PortStatus("none"),
            process=process_status(config.context.memory.max_mb * MIB),
            target=config.name,
            targets=(config.name,) if config.name else (),
            identity=identity_of(config, database, target),
        )

    def status(self) -> Status:
        """Return the status as of the last `look`."""
        return replace(self._status, at=steady_time()).moved(clock_shift())

    def look(self) -> None:
        """Read from the target how many rows are loaded. If the target does not answer, keep the
        last figures.
        """
        looks = LoadsUnderWay(self._subscription)
        try:
            with LoadWatch(self._target, self._subscription, self._targets) as watch:
                looks.look(watch.connection)
                amounts = watch.read()
        except (psycopg.Error, OlrPgError):
            return
        loads = tuple(
            self._with_amount(one, amounts.get(one.table, Amount())) for one in looks.loads
        )
        memory_max = self._status.process.memory_max_bytes
        self._status = replace(self._status, loads=loads, process=process_status(memory_max))

    def _with_amount(self, load: LoadStatus, amount: Amount) -> LoadStatus:
        """Return the load's status with the rows that PostgreSQL is receiving now."""
        rows, size = max(load.rows, amount.rows), max(load.bytes, amount.bytes)
        expected = self._expected.get(load.table) or None
        return replace(load, rows=rows, bytes=size, rows_expected=expected)
