"""The changes and events that wait for a table, and the next batch of them."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.batches import lock_patience
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.table_changes import Selection, join
from olr_pg.applier.target.blockers import Blocked
from olr_pg.observability.steady_time import steady_time
from olr_pg.transactions.schema_event import SchemaEvent
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.batches.batch_applier import BatchApplier
    from olr_pg.applier.batches.locked_tables import LockedTable
    from olr_pg.applier.batches.spool import SpooledChanges
    from olr_pg.applier.batches.table_progress import TableProgress
    from olr_pg.applier.batches.table_writer import Prepared
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.errors import OlrPgError

_ENOUGH: Final = 2
"""While nothing is applied, a batch begins with half of the changes that it may have: the server
should not wait, and while it works there come more."""

_BLOCKED_SECONDS: Final = 2.0
"""How long a batch that somebody holds up is left alone before it is tried again."""

_PATIENT_TRY: Final = 10

_TIGHT: Final = 8
"""So many times sooner a batch is due where memory is tight."""


class QueuedChanges(NamedTuple):
    """Changes of whole transactions.

    Attributes:
        size: bytes of their values.
        held: what they cost the server until they are confirmed.
    """

    selection: Selection
    size: int
    held: int

    @classmethod
    def of(cls, selection: Selection) -> QueuedChanges:
        """Make an entry of these changes."""
        size = selection.value_bytes()
        return cls(selection, size, size + TRANSACTION_BYTES * len(selection.firsts()))


class TableBatch(NamedTuple):
    """The changes or the event that are applied to a table in one target transaction.

    Attributes:
        event: an event of the table's definition; None where it is changes.
        spooled: changes that are in the spool; None where they are here.
        prepared: their statements, where those could be made ahead.
        is_retry: whether it was set aside before, since somebody holds the table up.
    """

    queue: TableQueue
    event: SchemaEvent | None
    queued: Sequence[QueuedChanges] = ()
    selection: Selection | None = None
    prepared: Prepared | None = None
    spooled: SpooledChanges | None = None
    is_retry: bool = False

    @property
    def held(self) -> int:
        """Bytes that the changes cost the server until they are confirmed."""
        return sum(one.held for one in self.queued)

    def extent(self) -> dict[str, int]:
        """Say what of its table it is: how many changes, and the commit SCNs that they are of."""
        if self.selection is None or not len(self.selection):
            return {}
        first, last = self.selection.commit_scn[[0, -1]].tolist()
        return {"changes": len(self.selection), "first_scn": first, "last_scn": last}

    def patience(self, settings: ApplierSettings) -> int:
        """Return the milliseconds that the batch waits for locks."""
        if settings.consistency is not Consistency.TABLE:
            return lock_patience.patience(patient=True)  # nothing is set: what the role has holds
        if self.spooled is not None:
            return int(lock_patience.HOLD_SECONDS * 1000)
        return lock_patience.patience(patient=not self.is_retry or self.queue.waits_patiently)

    def give_back(self) -> None:
        """Free the spool's room: the batch is applied, or will be delivered again."""
        if self.spooled is not None:
            self.spooled.close()

    @property
    def parts(self) -> int:
        """The number of entries that were taken from the queue."""
        return len(self.queued) or 1


class TableQueue:
    """The changes and events that wait for one table; guarded by its worker's condition.

    Where somebody holds a batch up, by a lock say, it is set aside with all that is taken behind
    it, and comes again after a pause: the other tables of the worker go on.

    Attributes:
        name: ``OWNER.NAME``, or `changes_by_table.STREAM`.
        waiting: what no batch has taken: changes, here or in the spool, and events of the table's
            definition.
        waiting_changes: how many changes wait.
        waiting_bytes: of the values of those that are here.
        since: when the oldest of them came (`time.monotonic`).
        pending: the first commit SCN of every entry that is not durable, ascending.
        applier: brings them in.
        blocked: who holds the table up; None where nobody does.
        locked: its changes are held since somebody did so for too long; None where they are not.
    """

    def __init__(self, name: str, applier: BatchApplier) -> None:
        self.name = name
        self.applier = applier
        self.waiting: deque[QueuedChanges | SchemaEvent | SpooledChanges] = deque()
        self.waiting_changes = 0
        self.waiting_bytes = 0
        self.since = 0.0
        self.pending: deque[int] = deque()
        self.blocked: Blocked | None = None
        self.locked: LockedTable | None = None
        self._set_aside: deque[TableBatch] = deque()
        self._tries = 0
        self._again_at = float("inf")

    def append(
        self, part: QueuedChanges | SchemaEvent | SpooledChanges, commit_scn: int, changes: int
    ) -> None:
        """Append changes or an event; `commit_scn` is that of its first transaction."""
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(part)
        self.pending.append(commit_scn)
        self.waiting_changes += changes
        self.waiting_bytes += part.size if isinstance(part, QueuedChanges) else 0

    def progress(self) -> Callable[[], list[TableProgress]]:
        """Return how far the table, or a stream's tables, are; call it without the condition."""
        pending = self.pending[0] if self.pending else None
        waiting = [part.selection for part in self.waiting if isinstance(part, QueuedChanges)]
        aside = sum(len(b.selection) for b in self._set_aside if b.selection is not None)
        return self.applier.progress(waiting, self.waiting_changes + aside, pending)

    # --- what is set aside ---

    def set_aside(self, batch: TableBatch, error: OlrPgError) -> None:
        """Set the first batch aside that somebody holds up; `take` gives it again after a pause.

        Args:
            error: who does (5098).
        """
        since = steady_time() if self.blocked is None else self.blocked.since
        self.blocked = Blocked(self.name, since, error)
        self._set_aside.appendleft(batch._replace(is_retry=True))
        self._tries += 1
        self._again_at = time.monotonic() + _BLOCKED_SECONDS

    @property
    def waits_too_long(self) -> bool:
        """Whether its changes are to wait in the hold, if nobody but a lock keeps them out.

        What does not fit in memory has waited for all that time in its only try.
        """
        first = self._set_aside[0] if self._set_aside else None
        if self.blocked is None or first is None:
            return False
        seconds = steady_time() - self.blocked.since
        return first.spooled is not None or seconds >= lock_patience.HOLD_SECONDS

    def hold_for(self, locked: LockedTable) -> None:
        """Give the set-aside batches again at once: they go to the hold."""
        self.locked = locked
        self._again_at = time.monotonic()

    def put_behind(self, batch: TableBatch) -> None:
        """Keep a batch that was taken behind one that is set aside."""
        self._set_aside.append(batch)

    def passed(self) -> None:
        """Note that a batch went in: nobody holds the table up any more."""
        self.blocked = None
        self._tries = 0

    @property
    def waits_patiently(self) -> bool:
        """Whether the next try may stand in the queue for a lock, as the first one did.

        Most tries are short, since the other tables of the worker wait meanwhile. A long one now
        and then gets its turn among sessions that follow each other, and sees who is in front.
        """
        return self._tries % _PATIENT_TRY == 0

    def forget(self) -> None:
        """Drop everything: it is delivered again."""
        for batch in self._set_aside:
            batch.give_back()
        self._set_aside.clear()
        self.passed()
        self.waiting.clear()
        self.waiting_changes = self.waiting_bytes = 0
        self.pending.clear()
        self.applier.forget()

    def due_in(
        self,
        settings: ApplierSettings,
        *,
        at_once: bool,
        tight: bool = False,
        busy: bool = False,
    ) -> float:
        """Return the seconds until what waits is enough for a batch, 0 or less where it is.

        Args:
            at_once: it is, however little.
            tight: nothing may wait long: what a table with few changes collects keeps everything
                that came since from being confirmed.
            busy: a batch is being applied, so that this one may become as large as it may.
        """
        if self.blocked is not None:
            return self._again_at - time.monotonic()
        if self._set_aside:
            return 0.0
        if not self.waiting:
            return float("inf")
        if at_once or self._is_urgent or self._is_enough(settings, 1 if busy else _ENOUGH):
            return 0.0
        seconds = settings.batch_milliseconds / 1000 / (_TIGHT if tight else 1)
        return self.since + seconds - time.monotonic()

    def _is_enough(self, settings: ApplierSettings, part: int) -> bool:
        """Tell whether 1/`part` of the largest batch waits."""
        return (
            self.waiting_changes * part >= settings.batch_changes
            or self.waiting_bytes * part >= settings.batch_bytes
        )

    @property
    def _is_urgent(self) -> bool:
        """Tell whether something waits that is not collected with others."""
        return any(not isinstance(part, QueuedChanges) for part in self.waiting)

    def take(self, settings: ApplierSettings) -> TableBatch:
        """Return the next changes, or the event that comes before them."""
        if self._set_aside:
            self._again_at = float("inf")  # until its outcome is known
            return self._set_aside.popleft()
        parts: list[QueuedChanges] = []
        changes = size = 0
        while self.waiting and (
            not parts or (changes < settings.batch_changes and size < settings.batch_bytes)
        ):
            part = self.waiting[0]
            if not isinstance(part, QueuedChanges):
                if not parts:
                    self.waiting.popleft()
                    return self._alone(part)
                break
            self.waiting.popleft()
            parts.append(part)
            changes += len(part.selection)
            size += part.size
        self.waiting_changes -= changes
        self.waiting_bytes -= size
        self.since = time.monotonic()
        return TableBatch(self, None, parts, join([part.selection for part in parts]))

    def _alone(self, part: SchemaEvent | SpooledChanges) -> TableBatch:
        if isinstance(part, SchemaEvent):
            return TableBatch(self, part)
        self.waiting_changes -= len(part)
        return TableBatch(self, None, spooled=part)
