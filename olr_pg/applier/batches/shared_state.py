"""What the threads of one applier share: requests to end, positions, limits and watches."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING

from olr_pg.applier.target.applied_file import AppliedTables
from olr_pg.applier.target.connection import KeptConnection, Watches
from olr_pg.applier.target.crash_watch import watched
from olr_pg.applier.target.outage import TargetOutage, target_place
from olr_pg.applier.target.statement_watch import StatementWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table
    from olr_pg.errors import OlrPgError


class UnappliedBound:
    """Counts the bytes of waiting changes, and limits them. All methods are thread-safe.

    One table alone can use the whole limit.

    Args:
        bytes_max: the limit; above it, `wait` waits.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0
        self._changed = threading.Condition()

    @property
    def is_short(self) -> bool:
        """Return whether the limit is exceeded. If True, the applier receives nothing more until
        changes are applied.
        """
        return self._used > self._bytes_max

    @property
    def is_tight(self) -> bool:
        """Return whether more than half of the limit is used. If True, waiting changes should be
        applied soon, in smaller batches.
        """
        return self._used > self._bytes_max // 2

    def take(self, size: int) -> None:
        """Add the bytes of changes that begin to wait. This never blocks."""
        with self._changed:
            self._used += size

    def give_back(self, size: int) -> None:
        """Subtract the bytes of changes that no longer wait."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def wait(self, has_stopped: Callable[[], bool]) -> None:
        """Wait until the limit is not exceeded or `has_stopped` returns True, which is checked
        again after each `wake`.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self.is_short or has_stopped())

    def wake(self) -> None:
        """Let the threads in `wait` check their conditions again."""
        with self._changed:
            self._changed.notify_all()


class SharedState:
    """What the threads of one applier share.

    Args:
        tables: the source's tables by ``OWNER.NAME``, if known.

    Attributes:
        settings, tables: see above.
        stop: is set to end at once.
        drain: is set to end after all received changes are applied.
        progress: is set when changes became durable, or an error occurred.
        room: the limit on waiting changes.
        applied: records how far each table is on disk.
        stopped: the errors of the tables that are stopped at the start.
        outage: is informed of errors of the connections.
        watch: watches the connections' statements.
    """

    def __init__(
        self, settings: ApplierSettings, tables: Mapping[str, Table] = MappingProxyType({})
    ) -> None:
        self.settings, self.tables = settings, tables
        self.stop, self.drain = threading.Event(), threading.Event()
        self.progress = threading.Event()
        self.room = UnappliedBound(settings.queue_bytes)
        self.applied = AppliedTables(settings.subscription, settings.applied_file)
        self.stopped: dict[str, OlrPgError] = {}
        self.outage = TargetOutage(target_place(settings.connect_string))
        self.watch = StatementWatch(settings.connect_string, settings.answer_seconds)

    @property
    def is_ending(self) -> bool:
        """Return whether the run should end; thread-safe."""
        return self.stop.is_set() or self.drain.is_set()

    def connection(
        self, check: Callable[[Connection[Any]], None], lost: Callable[[], None] = lambda: None
    ) -> KeptConnection:
        """Return a connection to the target that is watched; see `KeptConnection`."""
        settings = self.settings
        return KeptConnection(
            settings.connect_string,
            lost,
            watched(settings.subscription, check),
            Watches(self.outage, self.watch),
            replica=settings.is_replica,
        )
