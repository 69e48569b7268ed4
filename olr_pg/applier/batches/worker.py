"""A worker applies its own tables over its own connection.

A worker has two threads. One thread forms a batch as soon as enough changes wait, and makes its
statements. The other thread executes the statements. While one batch is executed, the next batch is
already prepared, so that PostgreSQL does not wait for statements.

If the next batch is ready, the current batch is committed without waiting for the disk. This batch
counts as pending, and is not confirmed to the server, until PostgreSQL's WAL is flushed past its
commit. If the connection is lost, PostgreSQL may have crashed and lost a commit that was not
flushed. After a lost connection, the server therefore delivers all pending changes again, and the
ledger shows which of these changes are already applied.

A worker applies one batch at a time. The batches of one table can take long: its key has no index,
a trigger is slow, or there are many changes. Such batches also make the lag of the worker's other
tables grow, although these tables have no problem themselves. So `WorkerTime` measures which table
uses most of the time.

A batch can keep failing with an error that is usually transient. Two of these errors can also be
permanent: PostgreSQL reports XX000 for a row that is too large for the server's memory, and 53200
for a table with more partitions than the server's lock table can contain. So the batch is first
retried for `apply.retry-seconds`. If the batch still fails, the error is attributed to the table:
the table is stopped, and the others continue (`give_up`).

`WorkerPool` is the workers of an applier as a group. Each table belongs to one worker.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
import structlog

from olr_pg.applier.batches.batch_applier import MAX_PLACE, CommitDurability, TableProgress
from olr_pg.applier.batches.replay import Step
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.batches.table_queue import (
    BlockedError,
    LockedTable,
    QueuedChanges,
    TableBatch,
    TableQueue,
    patience,
    unless_locked,
    wait_briefly,
)
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.table_changes import STREAM
from olr_pg.applier.stopped.error_table import refusal
from olr_pg.applier.target.outage import retry_seconds, retrying
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import join_started, steady_time
from olr_pg.observability.tracing import span
from olr_pg.postgres.sqlstates import is_transient, may_last, plain_words, target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.applier.batches.batch_applier import BatchApplier
    from olr_pg.applier.batches.shared_state import SharedState
    from olr_pg.applier.batches.spool import SpooledChanges
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.applier.target.blockers import Blocked
    from olr_pg.applier.target.ledger import Reach
    from olr_pg.transactions.schema_event import SchemaEvent


WINDOW_SECONDS: Final = 10.0
"""The time of batches is added up for this many seconds up to now (the window)."""

LARGE_SHARE: Final = 0.5
"""A table that uses at least this share of the window delays the others."""


class WorkerTime:
    """Adds up how long the batches of each table recently took; guarded by its worker's condition.

    Args:
        clock: returns a monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: deque[tuple[float, float, str]] = deque()
        self._begun: tuple[float, str] | None = None

    def begin(self, table: str) -> None:
        """Record that a batch of the table begins."""
        self._begun = self._clock(), table

    def end(self) -> None:
        """Record that the batch has ended."""
        if self._begun is not None:
            began, table = self._begun
            self._begun = None
            self._ended.append((began, self._clock(), table))
            self._drop()

    def slowest(self) -> str | None:
        """Return the table that took at least half of the window; None if there is none."""
        self._drop()
        now = self._clock()
        first = now - WINDOW_SECONDS
        spent: defaultdict[str, float] = defaultdict(float)
        for began, ended, table in self._ended:
            spent[table] += ended - max(began, first)
        if self._begun is not None:
            began, table = self._begun
            spent[table] += now - max(began, first)
        table, seconds = max(spent.items(), key=lambda one: one[1], default=("", 0.0))
        return table if seconds >= WINDOW_SECONDS * LARGE_SHARE else None

    def _drop(self) -> None:
        first = self._clock() - WINDOW_SECONDS
        while self._ended and self._ended[0][1] <= first:
            self._ended.popleft()


_log = structlog.get_logger(__name__)

T = TypeVar("T")

_SETTLE_SECONDS: Final = 0.02
"""Seconds after which a commit that did not wait for the disk is flushed, if no batch follows
it.
"""


class _Committed(NamedTuple):
    """A batch that is committed but perhaps not flushed to disk.

    Attributes:
        parts: the number of queue entries in the batch; they are pending until its commit is
            flushed.
        reached: how far each table is after the batch.
        place: a WAL position after the commit; 0 if the commit is already on disk.
    """

    queue: TableQueue
    parts: int
    place: int
    reached: Mapping[str, Reach]


class Worker:
    """Applies the changes of its tables in order; the module's docstring explains how.

    Attributes:
        failure: a transient error that lasted longer than `retry_seconds`; the worker then pauses
            until `reset`.
        crash: an unexpected error that ended one of the threads.
    """

    def __init__(self, number: int, shared: SharedState) -> None:
        self._shared, self._settings = shared, shared.settings
        self._changed = threading.Condition()
        self._queues: dict[str, TableQueue] = {}
        self._target = shared.connection(self._begin_session, self._forget)
        self._at_once = False
        self._at_work = 0  # how many batches the threads are working on
        self._ahead: TableBatch | None = None
        self._time = WorkerTime()
        self._committed: deque[_Committed] = deque()
        self._resetting = False
        self._closing = threading.Event()
        self._queued_bytes = 0
        self.failure: OlrPgError | None = None
        self.crash: Exception | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
            for work, name in (
                (self._apply_batches, f"apply-{number}"),
                (self._prepare_batches, f"apply-{number}-prepare"),
            )
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the threads after the current batch, and wait for them."""
        self._closing.set()
        self._notify()
        for thread in self._threads:
            join_started(thread)
        self._target.close()

    @property
    def busy_threads(self) -> Sequence[threading.Thread]:
        """Return the worker's threads while one of them works on a batch, else an empty sequence;
        thread-safe.
        """
        return tuple(self._threads) if self._at_work else ()

    # --- for the session's thread ---

    def deliver(self, table: str, selection: Selection) -> None:
        """Queue changes of whole transactions."""
        queued = QueuedChanges.of(selection)
        self._shared.room.take(queued.held)
        with self._changed:
            self._at_once = False
            self._queued_bytes += queued.held
            self._append(table, queued, int(selection.commit_scn[0]), len(selection))

    def deliver_spooled(self, table: str, spooled: SpooledChanges) -> None:
        """Queue the changes of a transaction that is in the spool."""
        with self._changed:
            self._append(table, spooled, spooled.commit_scn, len(spooled))

    def deliver_event(self, event: SchemaEvent) -> None:
        """Queue an event of a table after the changes delivered so far."""
        with self._changed:
            is_stream = self._settings.consistency is Consistency.TRANSACTION
            self._append(STREAM if is_stream else event.table, event, event.commit_scn, 0)

    def _append(
        self,
        table: str,
        part: QueuedChanges | SchemaEvent | SpooledChanges,
        commit_scn: int,
        changes: int,
    ) -> None:
        self._queue(table).append(part, commit_scn, changes)
        self._changed.notify_all()

    def _queue(self, table: str) -> TableQueue:
        if table not in self._queues:
            self._queues[table] = TableQueue(table, self._applier(table))
        return self._queues[table]

    def replay_unlocked(self, blocked: Blocked) -> None:
        """Replay the held changes of a table as soon as its lock is released. Call this before
        `start`.
        """
        self._queue(blocked.table).locked = LockedTable(self._settings, blocked)

    def _applier(self, table: str) -> BatchApplier:
        if table == STREAM:
            return StreamApplier(self._settings, self._shared.tables)
        applier = TableApplier(table, self._settings, self._shared.tables.get(table))
        applier.error = self._shared.stopped.get(table)
        return applier

    def apply_waiting(self, *, unless_ready: bool = False) -> None:
        """Apply the waiting changes at once, because no more changes arrive for now.

        Args:
            unless_ready: do nothing if the worker already has two batches or more in work or
                prepared.
        """
        with self._changed:
            taken = self._at_work + (self._ahead is not None)
            if not (unless_ready and taken > 1):
                self._at_once = True
                self._changed.notify_all()

    def lowest_pending(self) -> int | None:
        """Return the lowest commit SCN that is not durable yet; None if all changes are durable."""
        with self._changed:
            firsts = [queue.pending[0] for queue in self._queues.values() if queue.pending]
        return min(firsts, default=None)

    def is_drained(self) -> bool:
        """Return whether all delivered changes are durable."""
        with self._changed:
            return not any(queue.pending for queue in self._queues.values())

    def queues(self) -> list[TableQueue]:
        """Return the queues of all tables."""
        with self._changed:
            return list(self._queues.values())

    def progress(self) -> list[TableProgress]:
        """Return the progress of the tables."""
        with self._changed:
            looks = [queue.progress() for queue in self._queues.values()]
            slowest = self._time.slowest()
        found = [table for look in looks for table in look()]
        if slowest in (None, STREAM):
            return found
        return [
            table._replace(behind=slowest)
            if table.pending is not None and table.name != slowest
            else table
            for table in found
        ]

    def reset(self) -> None:
        """Discard the waiting changes, because the server delivers them again."""
        with self._changed:
            self._resetting = True
            self._changed.wait_for(lambda: not self._at_work or self.crash is not None)
            self._resetting = False
            if self._ahead is not None:
                self._ahead.give_back()
                self._ahead = None
            for queue in self._queues.values():
                queue.forget()
            self._committed.clear()
            self._shared.room.give_back(self._queued_bytes)
            self._queued_bytes = 0
            self._target.rest()
            self.failure = None
            self._changed.notify_all()

    # --- the threads ---

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        self._shared.room.wake()
        self._shared.progress.set()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread's supervisor; the session raises it
            self.crash = error
        finally:
            self._notify()

    def _may_take(self) -> bool:
        return self.failure is None and self.crash is None and not self._resetting

    # --- the thread that prepares ---

    def _prepare_batches(self) -> None:
        while (batch := self._take_due()) is not None:
            selection = batch.selection
            if selection is not None and batch.prepared is None:
                batch = batch._replace(prepared=batch.queue.applier.prepare(selection))
                selection.release_pages()
            with self._changed:
                if batch.queue.blocked is None or batch.is_retry:
                    self._ahead = batch
                else:
                    batch.queue.put_behind(batch)
                self._at_work -= 1
                self._changed.notify_all()

    def _take_due(self) -> TableBatch | None:
        """Wait for the next batch that is due and return it; None when the worker stops."""
        with self._changed:
            while not self._closing.is_set():
                wait = None
                if self._ahead is None and self._may_take():
                    due = {name: self._due_in(queue) for name, queue in self._queues.items()}
                    wait = min(due.values(), default=None)
                if wait is None or wait > 0:
                    self._changed.wait(None if wait == float("inf") else wait)
                    continue
                self._at_work += 1
                ready = (queue for queue in self._queues.values() if due[queue.name] <= 0)
                return min(ready, key=lambda queue: queue.since).take(self._settings)
            return None

    def _due_in(self, queue: TableQueue) -> float:
        return queue.due_in(
            self._settings,
            at_once=self._at_once,
            tight=self._shared.room.is_tight,
            busy=self._at_work > 0,
        )

    # --- the thread that applies ---

    def _apply_batches(self) -> None:
        while not self._closing.is_set():
            batch = self._take_prepared()
            if batch is not None:
                self._work(batch)
            elif self._committed:
                self._settle()
            for queue in self.queues():
                if queue.locked is not None and queue.locked.due_in() <= 0:
                    self._replay(queue, queue.locked)
                elif queue.locked is None and queue.blocked is not None and queue.waits_too_long:
                    self._hold(queue, queue.blocked)

    def _take_prepared(self) -> TableBatch | None:
        """Wait for the prepared batch and return it. Return None if other work is due first, or if
        the worker stops.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing.is_set() or (self._ahead is not None and self._may_take()),
                self._idle_seconds(),
            )
            if self._ahead is None or not self._may_take() or self._closing.is_set():
                return None
            batch, self._ahead = self._ahead, None
            self._at_work += 1
            self._time.begin(batch.queue.name)
            self._changed.notify_all()
            return batch

    def _idle_seconds(self) -> float | None:
        """Return how long to wait for a batch before other work is due; None for no limit."""
        if not self._may_take():
            return None
        locked = (queue.locked for queue in self._queues.values())
        due = [max(0.0, one.due_in()) for one in locked if one is not None]
        return min([*due, _SETTLE_SECONDS] if self._committed else due, default=None)

    def _work(self, batch: TableBatch) -> None:
        """Apply a batch, and record which commits are flushed."""
        failure: OlrPgError | None = None
        place = flushed = 0
        reached: Mapping[str, Reach] = {}
        try:
            with span("apply", table=batch.queue.name, **batch.extent()):
                durability = self._with_retries(batch.queue, lambda: self._do(batch))
            if durability.lags or self._committed:
                written, flushed = self._target.use(durability.places)
                place = written if durability.lags else 0
            reached = batch.queue.applier.reached()
        except BlockedError as error:
            self._set_aside(batch, error.error)
            return
        except psycopg.Error as error:
            failure = self._given_up(batch, error)
            reached = batch.queue.applier.reached()
        with self._changed:
            self._at_work -= 1
            self._time.end()
            self._queued_bytes -= batch.held
            self.failure = failure
            if failure is None:
                self._note_passed(batch.queue)
                self._committed.append(_Committed(batch.queue, batch.parts, place, reached))
                self._note_flushed(flushed)
            batch.give_back()
        self._shared.room.give_back(batch.held)
        self._notify()

    def _given_up(self, batch: TableBatch, error: psycopg.Error) -> OlrPgError | None:
        """Handle an error that persists. If the table itself can be the cause of the error, stop
        the table and return None. Otherwise return the error.
        """
        applier, selection = batch.queue.applier, batch.selection
        is_tried = may_last(error) and not (self._committed or self._closing.is_set())
        if not is_tried or selection is None or not isinstance(applier, TableApplier):
            return target_error(error)
        try:
            self._target.use(lambda c: give_up(applier, c, selection), applier.name)
        except psycopg.Error as other:
            return target_error(other)
        return None

    def _note_passed(self, queue: TableQueue) -> None:
        if queue.blocked is not None and queue.locked is None:
            seconds = round(steady_time() - queue.blocked.since, 1)
            _log.info(
                "a table is no longer blocked by another session",
                table=queue.name,
                held_up_seconds=seconds,
            )
        queue.passed()

    def _set_aside(self, batch: TableBatch, error: OlrPgError) -> None:
        """Postpone a blocked batch and the later batches of its table."""
        queue = batch.queue
        with self._changed:
            self._at_work -= 1
            self._time.end()
            if queue.blocked is None and queue.locked is None:
                _log.warning("a table is blocked by another session", table=queue.name, error=error)
            queue.set_aside(batch, error)
            if self._ahead is not None and self._ahead.queue is queue:
                queue.put_behind(self._ahead)
                self._ahead = None
        self._notify()

    # --- changes that are held because of a lock ---

    def _hold(self, queue: TableQueue, blocked: Blocked) -> None:
        """Stop a table that was blocked too long, so that its changes are written to the hold from
        now on.
        """
        applier = queue.applier
        if not isinstance(applier, TableApplier):
            return  # a stream waits for the lock, because it cannot continue without a table

        def stop(connection: Connection[Any]) -> bool:
            applier.stop_in_place(connection, blocked.error)
            return True

        try:
            milliseconds = patience(patient=False)
            stopping = partial(unless_locked, work=stop, milliseconds=milliseconds)
            if not self._between_batches(queue, stopping):
                return
        except BlockedError:
            return  # the ledger is locked, too, so the batch is retried later
        _log.warning(
            "a table is still locked: its changes are held until the lock is released",
            table=queue.name,
            error=blocked.error,
        )
        with self._changed:
            queue.hold_for(LockedTable(self._settings, blocked))
            self._changed.notify_all()

    def _replay(self, queue: TableQueue, locked: LockedTable) -> None:
        """Replay some of the changes that are held because of a lock, if the lock was released."""
        applier = queue.applier
        try:
            step = self._between_batches(queue, partial(locked.step, watch=self._shared.watch))
        except OlrPgError as unreadable:
            step = Step(error=unreadable)
        if step is None or not isinstance(applier, TableApplier):
            return
        applier.counters = applier.counters.plus(step.counters)
        if step.error is not None or step.ended:
            seconds = round(steady_time() - locked.blocked.since, 1)
            applier.stop_ended(step.error)
            _log.info(
                "a table is no longer blocked by another session",
                table=queue.name,
                held_up_seconds=seconds,
            )
            queue.locked = None
        self._notify()

    def _between_batches(self, queue: TableQueue, work: Callable[[Connection[Any]], T]) -> T | None:
        """Call `work` for a table between batches, and return its result. Return None if the target
        is unavailable or nothing may be applied now.

        Raises:
            any error of `work` that is not transient.
        """
        if self._committed:
            self._settle()  # so that no commit can be lost with the connection
        with self._changed:
            if self._committed or not self._may_take():
                return None
            self._at_work += 1
        try:
            return self._target.use(work, queue.name)
        except psycopg.Error as error:
            if not is_transient(error):
                raise
            self._target.rest()
            _log.warning(
                "the held changes of a locked table will be retried",
                table=queue.name,
                error=plain_words(error),
            )
            return None
        finally:
            with self._changed:
                self._at_work -= 1
            self._notify()

    def _settle(self) -> None:
        """Make PostgreSQL flush all commits to disk, because no batch follows for now. If another
        session has locked the ledger's row, do it later.
        """
        with self._changed:
            if not self._committed:
                return  # `reset` was called meanwhile
            queue = self._committed[-1].queue
        settling = queue.applier.settle
        if self._settings.consistency is Consistency.TABLE:  # a stream waits for the lock
            milliseconds = patience(patient=False)
            settling = partial(unless_locked, work=settling, milliseconds=milliseconds)
        try:
            self._target.use(settling)
        except BlockedError:
            return
        except psycopg.Error as error:
            self.failure = target_error(error)
        else:
            with self._changed:
                self._note_flushed(MAX_PLACE)
        self._notify()

    def _note_flushed(self, place: int) -> None:
        """Record that PostgreSQL's WAL is flushed up to `place`: commits before it are durable."""
        while self._committed and self._committed[0].place <= place:
            done = self._committed.popleft()
            self._shared.applied.add(done.reached)
            for _ in range(done.parts):
                done.queue.pending.popleft()

    def _follows(self) -> bool:
        """Return whether another batch is ready. If so, the commit does not need to wait for the
        disk.
        """
        return self._ahead is not None and self._may_take()

    def _do(self, batch: TableBatch) -> CommitDurability:
        """Make one attempt to apply a batch. Return whether the commit of the batch has waited for
        the disk.

        Raises:
            psycopg.Error: a transient error.
            OlrPgError: 5004, the role lacks a privilege for the ledger or the hold; 5015, they
                cannot be written; 5145, a transaction of a stream fails.
        """
        applier = batch.queue.applier
        durability = CommitDurability(self._follows)

        def do(connection: Connection[Any]) -> None:
            if batch.event is not None:
                applier.evolve(connection, batch.event)
            elif batch.spooled is not None:
                applier.apply_slices(connection, batch.spooled)
            elif batch.selection is not None:
                applier.apply(connection, batch.selection, batch.prepared, durability)

        seen = partial(self._shared.watch.last_seen, applier.name)
        milliseconds = batch.patience(self._settings)
        trying = partial(unless_locked, work=do, milliseconds=milliseconds, last_seen=seen)
        try:
            self._target.use(trying, applier.name)
        except BlockedError:
            applier.forget()
            raise
        except psycopg.Error as error:
            if is_transient(error):
                raise
            raise target_error(error, code=Code.LEDGER_UNUSABLE, table=applier.name) from error
        return durability

    def _begin_session(self, connection: Connection[Any]) -> None:
        wait_briefly(connection, self._settings)
        self._shared.applied.check(connection)

    def blocked(self) -> list[Blocked]:
        """Return the tables that other sessions block, with those sessions."""
        found = [
            queue.blocked if queue.locked is None else queue.locked.blocked
            for queue in self.queues()
        ]
        return [one for one in found if one is not None]

    def _with_retries(
        self, queue: TableQueue, work: Callable[[], CommitDurability]
    ) -> CommitDurability:
        """Call `work`, retry it after transient errors, and return its result.

        Raises:
            psycopg.Error: a transient error that lasted too long, or that may have lost commits
                that were not flushed.
        """
        applying = retrying(
            f"applying changes of {queue.name}",
            lambda error: isinstance(error, psycopg.Error) and not self._committed,
            partial(retry_seconds, self._settings),
            self._closing,
        )
        return applying(work)

    def _forget(self) -> None:
        """Discard all state that depends on the connection, because it was lost."""
        for queue in self.queues():
            queue.applier.forget()
            if queue.locked is not None:
                queue.locked.forget()


def give_up(applier: TableApplier, connection: Connection[Any], selection: Selection) -> None:
    """Apply the transactions of a batch one by one; stop the table at the first transaction that
    fails.

    Raises:
        psycopg.Error: a transient error that the table cannot have caused. Transactions that were
            applied or held before stay so.
    """
    for rows in selection.transactions():
        part = selection.part(rows)
        try:
            applier.apply(connection, part)
        except psycopg.Error as error:
            if not may_last(error):
                raise
            applier.stop_with(connection, part, refusal(error))


_LOOK_SECONDS: Final = 0.1


class Workers:
    """All workers of an applier. A table is assigned to a worker at its first change.

    Args:
        workers: not started yet.

    Attributes:
        shared: what the workers share with the applier's own thread.
    """

    def __init__(self, workers: Sequence[Worker], shared: SharedState) -> None:
        self._workers = workers
        self.shared = shared
        self._assigned: dict[str, Worker] = {}

    def start(self) -> None:
        """Start the threads of all workers."""
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Stop each worker after its current batch."""
        for worker in self._workers:
            worker.close()

    def progress(self) -> list[TableProgress]:
        """Return the progress of all tables; thread-safe."""
        return [table for worker in self._workers for table in worker.progress()]

    def blocked(self) -> list[Blocked]:
        """Return the tables that other sessions block, with those sessions; thread-safe."""
        return [one for worker in self._workers for one in worker.blocked()]

    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """Return the threads of each worker that works on a batch; thread-safe."""
        return [worker.busy_threads for worker in self._workers if worker.busy_threads]

    def of(self, table: str) -> Worker:
        """Return the table's worker."""
        if table not in self._assigned:
            self._assigned[table] = self._workers[len(self._assigned) % len(self._workers)]
        return self._assigned[table]

    def deliver(self, table: str, selection: Selection) -> None:
        """Give changes of a table to its worker. Wait first while the limit on waiting changes is
        exceeded.
        """
        if self.shared.room.is_short:
            self.apply_waiting()
            self.shared.room.wait(self.has_stopped)
        self.of(table).deliver(table, selection)

    def apply_waiting(self, *, unless_ready: bool = False) -> None:
        """Apply the waiting changes of all workers at once; see `Worker.apply_waiting`."""
        for worker in self._workers:
            worker.apply_waiting(unless_ready=unless_ready)

    def finish(self) -> bool:
        """Apply all delivered changes, and wait until they are durable. Return False if the workers
        have stopped.

        If another session has locked a table, its changes count as applied once they are in the
        hold.
        """
        self.apply_waiting()
        while not self.are_drained():
            self.check()
            if self.has_stopped():
                return False
            self.shared.progress.wait(_LOOK_SECONDS)
            self.shared.progress.clear()
        return True

    def are_drained(self) -> bool:
        """Return whether all delivered changes are durable."""
        return all(worker.is_drained() for worker in self._workers)

    def lowest_pending(self) -> int | None:
        """Return the lowest commit SCN that is not durable yet; None if all changes are durable."""
        scns = [worker.lowest_pending() for worker in self._workers]
        return min((scn for scn in scns if scn is not None), default=None)

    @property
    def failure(self) -> OlrPgError | None:
        """The transient error because of which a worker waits for `reset`; None if there is
        none.
        """
        return next((w.failure for w in self._workers if w.failure is not None), None)

    def check(self) -> None:
        """Raise the error of a worker that has ended unexpectedly."""
        for worker in self._workers:
            if worker.crash is not None:
                raise worker.crash

    def has_stopped(self) -> bool:
        """Return whether the workers should stop, or a worker has failed."""
        ended = (worker.failure or worker.crash for worker in self._workers)
        return self.shared.stop.is_set() or any(error is not None for error in ended)

    def reset(self) -> None:
        """Discard the waiting changes, because the server delivers them again."""
        for worker in self._workers:
            worker.reset()
