"""The queue of changes and events of a table; it forms the table's next batch.

A table that the lock of another session blocks too long is held (`LockedTable`). The ledger records
a locked table as stopped at its position, with a row in ``olr_pg.error`` that names the session
with the lock. The table's later changes go to the hold, as for every stopped table
(`table_applier`). So the confirmation and the checkpoint advance, the other tables continue, and
the changes need no memory. Between batches of its other tables, the table's worker periodically
tries to replay the hold (`replay`), one target transaction at a time. When the lock is released,
the table resumes automatically.

A batch waits only for a limited time for locks of other sessions, so that its worker's other tables
continue. A batch that has waited in PostgreSQL for `_PATIENT_MILLISECONDS` is cancelled and
postponed. The worker then applies batches of its other tables, and retries the postponed batch
periodically. Most retries wait only briefly. After `HOLD_SECONDS` the changes are written to the
hold, so that they need no memory and the confirmation advances. A transaction that does not fit in
memory waits for `HOLD_SECONDS` in a single attempt, because each retry would write all its changes
again. If all tables form one stream, its batches are not postponed, because no other table can
continue meanwhile.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from olr_pg.applier.batches.replay import Replay, Step
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.table_changes import Selection, join
from olr_pg.applier.stopped.pausing import paused_tables
from olr_pg.applier.target.blockers import Blocked
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.postgres.sqlstates import is_locked, plain_words
from olr_pg.transactions.schema_event import SchemaEvent
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import Connection

    from olr_pg.applier.batches.batch_applier import BatchApplier, TableProgress
    from olr_pg.applier.batches.spool import SpooledChanges
    from olr_pg.applier.batches.table_writer import Prepared
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.statement_watch import StatementWatch


T = TypeVar("T")

HOLD_SECONDS: Final = 30.0
"""How many seconds blocked changes wait in memory before they are written to the hold."""

_PATIENCE: Final = "SELECT set_config('lock_timeout', %s, false)"
_RESET: Final = "RESET lock_timeout"
_PATIENT_MILLISECONDS: Final = 5_000
_SHORT_MILLISECONDS: Final = 500


class BlockedError(Exception):
    """Raised if a lock of another session blocks a batch. `error` (5098) names that session."""

    def __init__(self, error: OlrPgError) -> None:
        super().__init__(str(error))
        self.error = error


def wait_briefly(connection: Connection[Any], settings: ApplierSettings) -> None:
    """Set the lock timeout of the first attempt on a new connection, unless it serves a stream."""
    if settings.consistency is Consistency.TABLE:
        _wait_at_most(connection, _PATIENT_MILLISECONDS)


def unless_locked(
    connection: Connection[Any],
    work: Callable[[Connection[Any]], T],
    milliseconds: int,
    last_seen: Callable[[], OlrPgError | None] | None = None,
    *,
    is_brief: bool = True,
) -> T:
    """Run `work` and return its result, unless one of its statements waits too long for a lock.

    Args:
        milliseconds: maximum time that a statement waits.
        last_seen: returns the error (5098) that names the last known blocking session.
        is_brief: whether the connection usually has the timeout of `wait_briefly`. If true, that
            timeout is restored afterwards, else the role's timeout.

    Raises:
        BlockedError: a statement waited too long; the connection stays usable.
        psycopg.Error: any error of `work`.
    """
    is_usual = is_brief and milliseconds == _PATIENT_MILLISECONDS
    if not is_usual:
        _wait_at_most(connection, milliseconds)
    blocked: BlockedError | None = None
    try:
        result = work(connection)
    except psycopg.Error as error:
        if not is_locked(error):
            raise
        seen = None if last_seen is None else last_seen()
        blocked = BlockedError(seen or OlrPgError(Code.STATEMENT_BLOCKED, plain_words(error)))
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
    if not is_brief:
        connection.execute(_RESET)
    elif not is_usual:
        _wait_at_most(connection, _PATIENT_MILLISECONDS)
    if blocked is not None:
        raise blocked
    return result


def patience(*, patient: bool) -> int:
    """Return the lock timeout of an attempt in milliseconds: a long one if `patient`, as for first
    attempts, else a short one.
    """
    return _PATIENT_MILLISECONDS if patient else _SHORT_MILLISECONDS


def _wait_at_most(connection: Connection[Any], milliseconds: int) -> None:
    connection.execute(_PATIENCE, (f"{milliseconds}ms",))


_AGAIN_SECONDS: Final = 2.0


class LockedTable:
    """A table whose changes are held because of a lock. Only the applying thread uses this object.

    Attributes:
        blocked: describes the session that holds the lock. Other threads can read this value,
            because it is replaced and never modified.
    """

    def __init__(self, settings: ApplierSettings, blocked: Blocked) -> None:
        self._settings = settings
        self._tries = 0
        # Do not replay immediately: nothing is held yet, and a replay that finds the hold empty
        # resumes the table.
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._replay: Replay | None = None
        self.blocked = blocked._replace(is_held=True)

    def due_in(self) -> float:
        """Return the seconds until the next attempt; 0 or less if it is due."""
        return self._again_at - time.monotonic()

    def forget(self) -> None:
        """Discard the state of the replay, because the connection was lost."""
        self._replay = None

    def step(self, connection: Connection[Any], watch: StatementWatch | None) -> Step | None:
        """Apply the first held changes in one target transaction.

        Returns:
            The step that was done; None if the lock still blocks it.

        Raises:
            OlrPgError: 5141, the hold cannot be read.
            psycopg.Error: a transient error.
        """
        self._tries += 1
        milliseconds = patience(patient=self._tries % _PATIENT_TRY == 0)
        seen = None if watch is None else partial(watch.last_seen, self.blocked.table)
        try:
            return unless_locked(connection, self._step, milliseconds, seen)
        except BlockedError as error:
            if error.error.detail.startswith("blocked by"):
                self.blocked = self.blocked._replace(error=error.error)
            self._put_off()
            return None
        except psycopg.Error:
            self._put_off()
            raise

    def _put_off(self) -> None:
        self._replay = None  # make a new plan later: the session with the lock may alter the table
        self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _step(self, connection: Connection[Any]) -> Step:
        table = self.blocked.table
        if table in paused_tables(connection, self._settings.subscription):
            return Step(ended=True)  # an operator has paused the table, and must resume it
        if self._replay is None:
            self._replay = Replay(connection, self._settings, table)
        return self._replay.step()


_ENOUGH: Final = 2
"""If no other batch is being applied, a batch starts when 1/`_ENOUGH` of its maximum size is
waiting, so that PostgreSQL is not idle.
"""

_BLOCKED_SECONDS: Final = 2.0
"""Seconds until a blocked batch is retried."""

_PATIENT_TRY: Final = 10

_TIGHT: Final = 8
"""If memory is short, changes wait for other changes only 1/`_TIGHT` of the usual time."""


class QueuedChanges(NamedTuple):
    """Changes of whole transactions.

    Attributes:
        size: bytes of the values of these changes.
        held: bytes that the server keeps for these changes until they are confirmed.
    """

    selection: Selection
    size: int
    held: int

    @classmethod
    def of(cls, selection: Selection) -> QueuedChanges:
        """Make a queue entry for a selection of changes."""
        size = selection.value_bytes()
        return cls(selection, size, size + TRANSACTION_BYTES * len(selection.firsts()))


class TableBatch(NamedTuple):
    """The changes or the event that is applied to a table in one target transaction.

    Attributes:
        event: an event of the table; None for row changes.
        spooled: the changes in the spool; None if they are in memory.
        prepared: the prepared statements, if any.
        is_retry: whether the batch was postponed before, because a lock blocked the table.
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
        """Bytes that the server keeps for the changes until they are confirmed."""
        return sum(one.held for one in self.queued)

    def extent(self) -> dict[str, int]:
        """Describe the batch: the number of changes and their commit SCNs."""
        if self.selection is None or not len(self.selection):
            return {}
        first, last = self.selection.commit_scn[[0, -1]].tolist()
        return {"changes": len(self.selection), "first_scn": first, "last_scn": last}

    def patience(self, settings: ApplierSettings) -> int:
        """Return the lock timeout of the batch in milliseconds."""
        if settings.consistency is not Consistency.TABLE:
            return patience(patient=True)  # so the role's timeout stays
        if self.spooled is not None:
            return int(HOLD_SECONDS * 1000)
        return patience(patient=not self.is_retry or self.queue.waits_patiently)

    def give_back(self) -> None:
        """Release the spool's space. Call this method when the batch is applied or will be
        delivered again.
        """
        if self.spooled is not None:
            self.spooled.close()

    @property
    def parts(self) -> int:
        """The number of queue entries in the batch."""
        return len(self.queued) or 1


class TableQueue:
    """The waiting changes and events of one table; guarded by its worker's condition.

    If a lock blocks a batch, it is postponed together with later batches of the table, and `take`
    returns it again after a pause. The worker's other tables continue.

    Attributes:
        name: ``OWNER.NAME``, or `table_changes.STREAM`.
        waiting: entries that are not part of a batch yet: changes in memory or in the spool, and
            events.
        waiting_changes: number of waiting changes.
        waiting_bytes: bytes of the values of waiting changes in memory.
        since: the time from which the waiting entries wait (`time.monotonic`).
        pending: the first commit SCN of each entry that is not durable yet, in ascending order.
        applier: applies the batches.
        blocked: describes the session that blocks the table; None if the table is not blocked.
        locked: the state of the table while its changes are held because of a lock; else None.
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
        """Append changes or an event. `commit_scn` is the commit SCN of the first transaction."""
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(part)
        self.pending.append(commit_scn)
        self.waiting_changes += changes
        self.waiting_bytes += part.size if isinstance(part, QueuedChanges) else 0

    def progress(self) -> Callable[[], list[TableProgress]]:
        """Return a function that reports the progress of the table, or of all tables of a stream.
        Call the returned function without holding the condition.
        """
        pending = self.pending[0] if self.pending else None
        waiting = [part.selection for part in self.waiting if isinstance(part, QueuedChanges)]
        aside = sum(len(b.selection) for b in self._set_aside if b.selection is not None)
        return self.applier.progress(waiting, self.waiting_changes + aside, pending)

    # --- postponed batches ---

    def set_aside(self, batch: TableBatch, error: OlrPgError) -> None:
        """Postpone a blocked batch. `take` returns the batch again after a pause.

        Args:
            error: names the blocking session (5098).
        """
        since = steady_time() if self.blocked is None else self.blocked.since
        self.blocked = Blocked(self.name, since, error)
        self._set_aside.appendleft(batch._replace(is_retry=True))
        self._tries += 1
        self._again_at = time.monotonic() + _BLOCKED_SECONDS

    @property
    def waits_too_long(self) -> bool:
        """Return whether a lock has blocked the changes so long that they should be held.

        A transaction that does not fit in memory is held after its first attempt, which has waited
        for `HOLD_SECONDS`.
        """
        first = self._set_aside[0] if self._set_aside else None
        if self.blocked is None or first is None:
            return False
        seconds = steady_time() - self.blocked.since
        return first.spooled is not None or seconds >= HOLD_SECONDS

    def hold_for(self, locked: LockedTable) -> None:
        """Make the postponed batches due at once, so that they are written to the hold."""
        self.locked = locked
        self._again_at = time.monotonic()

    def put_behind(self, batch: TableBatch) -> None:
        """Postpone a batch because an earlier batch of the table is postponed."""
        self._set_aside.append(batch)

    def passed(self) -> None:
        """Record that a batch was applied, so that the table is no longer blocked."""
        self.blocked = None
        self._tries = 0

    @property
    def waits_patiently(self) -> bool:
        """Return whether the next attempt waits as long as the first attempt.

        Most attempts are short, because the worker's other tables wait during an attempt. An
        occasional long attempt waits in PostgreSQL's queue for the lock, so it gets the lock even
        if other sessions take it one after the other. While it waits, the applier can find out
        which session holds the lock.
        """
        return self._tries % _PATIENT_TRY == 0

    def forget(self) -> None:
        """Discard all entries and batches, because the server will deliver them again."""
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
        """Return the seconds until the next batch is due; 0 or less if it is due now.

        Args:
            at_once: whether a batch is due even if it is small.
            tight: whether memory is short, so that changes should not wait long for others. If a
                table gets few changes, its waiting changes delay the confirmation of all later
                changes of other tables.
            busy: whether another batch is being applied, so that the next batch can grow to its
                maximum size meanwhile.
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
        """Return whether at least 1/`part` of the maximum size of a batch is waiting."""
        return (
            self.waiting_changes * part >= settings.batch_changes
            or self.waiting_bytes * part >= settings.batch_bytes
        )

    @property
    def _is_urgent(self) -> bool:
        """Return whether an event or a spooled transaction is waiting; each of them is a batch of
        its own.
        """
        return any(not isinstance(part, QueuedChanges) for part in self.waiting)

    def take(self, settings: ApplierSettings) -> TableBatch:
        """Return the next batch: a postponed one, or the first waiting changes, or the first
        waiting event.
        """
        if self._set_aside:
            self._again_at = float("inf")  # no pause ends until the outcome of this batch is known
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
