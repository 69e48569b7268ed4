"""Workers: threads that apply, each with a connection and tables of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog
import tenacity

from olr_pg.applier.changes import Selection, join
from olr_pg.applier.connection import connect, is_transient, unreachable
from olr_pg.applier.schema_events import SchemaEvent, SchemaEvents
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stream import STREAM, StreamApplier, TableDone, count_by_table
from olr_pg.applier.table import TableApplier
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.ledger import Counters
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.spool import SpooledChanges
    from olr_pg.applier.writer import Prepared
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)


_ENOUGH: Final = 4
"""A batch begins with the fourth part of the changes that it may have: the server should not wait,
and while it works there come more."""

_TRANSACTION_BYTES: Final = 768
"""What the server counts for keeping an unconfirmed transaction beside its messages, about."""


class Delivery(NamedTuple):
    """Changes of whole transactions.

    Attributes:
        size: bytes of their values.
        held: what they cost the server until they are confirmed.
    """

    selection: Selection
    size: int
    held: int


class Batch(NamedTuple):
    """What is done to a table in one target transaction.

    Attributes:
        event: an event of the table's definition; None where it is changes.
        spooled: changes that are in the spool; None where they are here.
        deliveries, selection: the changes.
        prepared: their preparation, which may be under way.
    """

    feed: Feed
    event: SchemaEvent | None
    deliveries: Sequence[Delivery] = ()
    selection: Selection | None = None
    prepared: Future[Prepared | None] | None = None
    spooled: SpooledChanges | None = None

    @property
    def held(self) -> int:
        """What the changes cost the server until they are confirmed."""
        return sum(delivery.held for delivery in self.deliveries)

    def give_back(self) -> None:
        """It is done, or will be delivered again."""
        if self.spooled is not None:
            self.spooled.close()

    @property
    def parts(self) -> int:
        """How many things of those that wait it takes."""
        return len(self.deliveries) or 1


class TableProgress(NamedTuple):
    """How far a table is.

    Attributes:
        commit_scn: of the last transaction that is durable (of a stopped table: held), 0 for none
            since the start.
        waiting: changes that no batch has taken. Of a stream those of a spooled transaction do not
            count: which tables they are of is not known yet.
        pending: the lowest commit SCN that was delivered and is not durable; of a stream that of
            all tables, which go on together.
        counters: of what was applied since the start.
        error: why the table stopped.
    """

    name: str
    commit_scn: int
    waiting: int
    pending: int | None
    counters: Counters
    error: OlrPgError | None


class Feed:
    """What waits for one table; guarded by its worker's condition.

    Attributes:
        name: ``OWNER.NAME``, or `STREAM`.
        waiting: what no batch has taken: changes, here or in the spool, and events of the table's
            definition.
        waiting_changes: how many changes wait.
        since: when the oldest of them came (`time.monotonic`).
        pending: the first commit SCN of every delivery that is not durable, ascending.
        applier: brings them in.
    """

    def __init__(self, name: str, applier: TableApplier | StreamApplier) -> None:
        self.name = name
        self.applier = applier
        self.waiting: deque[Delivery | SchemaEvent | SpooledChanges] = deque()
        self.waiting_changes = 0
        self.since = 0.0
        self.pending: deque[int] = deque()

    def progress(self) -> Callable[[], list[TableProgress]]:
        """How far the table is, or the tables of a stream; to be called without the condition."""
        pending = self.pending[0] if self.pending else None
        if isinstance(self.applier, StreamApplier):
            waiting = [part.selection for part in self.waiting if isinstance(part, Delivery)]
            return partial(_progress_of_stream, self.applier, waiting, pending)
        only = TableProgress(
            self.name,
            self.applier.commit_scn,
            self.waiting_changes,
            pending,
            self.applier.counters,
            self.applier.error,
        )
        return lambda: [only]

    @property
    def is_urgent(self) -> bool:
        """Whether something waits that is not collected with others."""
        return any(not isinstance(part, Delivery) for part in self.waiting)

    def forget(self) -> None:
        """Drop what waits."""
        self.waiting.clear()
        self.waiting_changes = 0


def _progress_of_stream(
    applier: StreamApplier, waiting: Sequence[Selection], pending: int | None
) -> list[TableProgress]:
    done, counts = applier.done, count_by_table(waiting)
    names = sorted(applier.table_names.union(counts))
    return [
        TableProgress(
            name,
            done.get(name, TableDone()).commit_scn,
            counts.get(name, 0),
            pending,
            done.get(name, TableDone()).counters,
            None,
        )
        for name in names
    ]


class Worker:
    """A thread that applies the deliveries of its tables in order.

    Args:
        source: the source's tables by ``OWNER.NAME``, as far as anyone told.
        progress: set whenever something became durable or went wrong.
        events: told which schema events are done.
        stopped: why tables were stopped already at the start.

    Attributes:
        failure: an error that may pass but did not in `retry_seconds`; the worker rests until
            `reset` then.
        crash: an error that nobody foresaw; the worker has ended.
    """

    def __init__(
        self,
        number: int,
        settings: ApplierSettings,
        source: Mapping[str, Table],
        progress: threading.Event,
        events: SchemaEvents | None = None,
        stopped: Mapping[str, OlrPgError] | None = None,
    ) -> None:
        self._stopped = stopped or {}
        self._events = events or SchemaEvents()
        self._settings = settings
        self._source = source
        self._progress = progress
        self._changed = threading.Condition()
        self._feeds: dict[str, Feed] = {}
        self._connection: Connection[Any] | None = None
        self._hurry = False
        self._busy = False
        self._resetting = False
        self._closing = threading.Event()
        self._queued_bytes = 0
        self.failure: OlrPgError | None = None
        self.crash: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"apply-{number}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the batch at work and wait for the thread."""
        self._closing.set()
        self._notify()
        if self._thread.ident is not None:
            self._thread.join()

    # --- for the session's thread ---

    def deliver(self, table: str, selection: Selection) -> None:
        """Queue changes of whole transactions; waits while too much waits already."""
        size = selection.value_bytes()
        held = size + _TRANSACTION_BYTES * len(selection.firsts())
        delivery = Delivery(selection, size, held)
        with self._changed:
            self._hurry = False
            share = self._settings.queue_bytes // self._settings.workers
            while self._queued_bytes > share and self._is_working():
                self._changed.wait()
            feed = self._append(table, delivery, int(selection.commit_scn[0]))
            self._queued_bytes += delivery.held
            feed.waiting_changes += len(selection)

    def deliver_spooled(self, table: str, spooled: SpooledChanges) -> None:
        """Queue changes of one transaction that wait in the spool."""
        with self._changed:
            self._append(table, spooled, spooled.commit_scn).waiting_changes += len(spooled)

    def announce(self, event: SchemaEvent) -> None:
        """Queue an event of a table, behind the changes that were delivered so far."""
        with self._changed:
            is_stream = self._settings.consistency is Consistency.TRANSACTION
            self._append(STREAM if is_stream else event.table, event, event.commit_scn)

    def _append(
        self, table: str, part: Delivery | SchemaEvent | SpooledChanges, commit_scn: int
    ) -> Feed:
        """Queue something for a table."""
        feed = self._feeds.get(table)
        if feed is None:
            feed = self._feeds[table] = Feed(table, self._applier(table))
        if not feed.waiting:
            feed.since = time.monotonic()
        feed.waiting.append(part)
        feed.pending.append(commit_scn)
        self._changed.notify_all()
        return feed

    def _applier(self, table: str) -> TableApplier | StreamApplier:
        if table == STREAM:
            return StreamApplier(self._settings, self._source)
        applier = TableApplier(table, self._settings, self._source.get(table))
        applier.error = self._stopped.get(table)
        return applier

    def hurry(self) -> None:
        """Nothing more comes for now: apply what waits, however little it is."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()

    def lowest_pending(self) -> int | None:
        """The lowest commit SCN that is not durable, None where everything is."""
        with self._changed:
            firsts = [feed.pending[0] for feed in self._feeds.values() if feed.pending]
        return min(firsts, default=None)

    def is_drained(self) -> bool:
        """Whether all is durable."""
        with self._changed:
            return not any(feed.pending for feed in self._feeds.values())

    def feeds(self) -> list[Feed]:
        """The tables."""
        with self._changed:
            return list(self._feeds.values())

    def progress(self) -> list[TableProgress]:
        """How far the tables are."""
        with self._changed:
            looks = [feed.progress() for feed in self._feeds.values()]
        return [table for look in looks for table in look()]

    def reset(self) -> None:
        """Forget what waits: the server delivers it again."""
        with self._changed:
            self._resetting = True
            while self._busy and self.crash is None:
                self._changed.wait()
            self._resetting = False
            for feed in self._feeds.values():
                feed.forget()
                feed.pending.clear()
                feed.applier.forget()
            self._queued_bytes = 0
            self.failure = None
            self._changed.notify_all()

    def _is_working(self) -> bool:
        return self.failure is None and self.crash is None and not self._closing.is_set()

    # --- the thread ---

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        self._progress.set()

    def _run(self) -> None:
        try:
            with ThreadPoolExecutor(1, f"{self._thread.name}-prepare") as executor:
                batch = self._take()
                while batch is not None:
                    ahead = self._take_ahead(executor)
                    batch = ahead if self._work(batch, ahead) else self._take()
        except Exception as error:  # noqa: BLE001 - the thread's supervisor; the session raises it
            self.crash = error
        finally:
            self._disconnect()
            self._notify()

    def _take(self) -> Batch | None:
        """The next batch; None when the worker closes."""
        with self._changed:
            while not self._closing.is_set():
                wait = None if self.failure is not None else self._next_due()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                return self._due_batch()
            return None

    def _take_ahead(self, executor: ThreadPoolExecutor) -> Batch | None:
        """The batch after the one at work, where it is due: prepared while the server works."""
        with self._changed:
            due = self._next_due()
            if due is None or due > 0 or self._closing.is_set() or self._resetting:
                return None
            batch = self._due_batch()
        if batch.selection is None:
            return batch
        return batch._replace(prepared=executor.submit(batch.feed.applier.prepare, batch.selection))

    def _due_batch(self) -> Batch:
        feed = min(
            (feed for feed in self._feeds.values() if self._due_in(feed) <= 0),
            key=lambda feed: feed.since,
        )
        self._busy = True
        return self._batch(feed)

    def _next_due(self) -> float | None:
        return min(
            (self._due_in(feed) for feed in self._feeds.values() if feed.waiting), default=None
        )

    def _due_in(self, feed: Feed) -> float:
        if not feed.waiting:
            return float("inf")
        enough = self._settings.batch_changes // _ENOUGH
        if self._hurry or feed.is_urgent or feed.waiting_changes >= enough:
            return 0.0
        return feed.since + self._settings.batch_milliseconds / 1000 - time.monotonic()

    def _batch(self, feed: Feed) -> Batch:
        """The next changes of a table, or the event that comes before them."""
        parts: list[Delivery] = []
        changes = size = 0
        while feed.waiting and (
            not parts
            or (changes < self._settings.batch_changes and size < self._settings.batch_bytes)
        ):
            part = feed.waiting[0]
            if not isinstance(part, Delivery):
                if not parts:
                    feed.waiting.popleft()
                    return self._alone(feed, part)
                break
            feed.waiting.popleft()
            parts.append(part)
            changes += len(part.selection)
            size += part.size
        feed.waiting_changes -= changes
        feed.since = time.monotonic()
        return Batch(feed, None, parts, join([part.selection for part in parts]))

    @staticmethod
    def _alone(feed: Feed, part: SchemaEvent | SpooledChanges) -> Batch:
        if isinstance(part, SchemaEvent):
            return Batch(feed, part)
        feed.waiting_changes -= len(part)
        return Batch(feed, None, spooled=part)

    def _work(self, batch: Batch, ahead: Batch | None) -> bool:
        """Do a batch; whether `ahead` is to follow."""
        feed = batch.feed
        failure: OlrPgError | None = None
        try:
            self._with_retries(feed, lambda: self._do(batch))
        except psycopg.Error as error:
            failure = unreachable(error)
        with self._changed:
            self._queued_bytes -= batch.held
            self.failure = failure
            if failure is None:
                for _ in range(batch.parts):
                    feed.pending.popleft()
            # What is taken ahead comes again after a failure.
            follows = ahead is not None and failure is None and not self._closing.is_set()
            if ahead is not None and not follows:
                self._queued_bytes -= ahead.held
                ahead.give_back()
            batch.give_back()
            self._busy = follows
            self._changed.notify_all()
        self._progress.set()
        return follows

    def _do(self, batch: Batch) -> None:
        """Do a batch once.

        Raises:
            psycopg.Error: an error that may pass.
            OlrPgError: 5015 the ledger or the hold cannot be written, 5145 a transaction of a
                stream does not go in.
        """
        applier = batch.feed.applier
        try:
            if batch.event is not None:
                applier.evolve(self._connected(), batch.event)
                self._events.done(batch.event)
            elif batch.spooled is not None:
                applier.apply_slices(self._connected(), batch.spooled)
            elif batch.selection is not None:
                connection = self._connected()
                prepared = batch.prepared.result() if batch.prepared is not None else None
                applier.apply(connection, batch.selection, prepared)
        except psycopg.Error as error:
            # Whatever it was, the connection's state is not known any more.
            self._disconnect()
            if is_transient(error):
                raise
            raise OlrPgError(5015, str(error).strip(), table=applier.name) from error

    def _with_retries(self, feed: Feed, work: Callable[[], None]) -> None:
        """Do something, again while the error may pass.

        Raises:
            psycopg.Error: an error that may pass, and did not in `retry_seconds`.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(psycopg.Error),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
            stop=tenacity.stop_any(
                tenacity.stop_after_delay(self._settings.retry_seconds),
                tenacity.stop_when_event_set(self._closing),
            ),
            sleep=tenacity.sleep_using_event(self._closing),
            before_sleep=lambda state: _log.warning(
                "applying again",
                table=feed.name,
                attempt=state.attempt_number,
                error=str(state.outcome.exception()).strip() if state.outcome else "",
            ),
            reraise=True,
        )
        retrying(work)

    def _connected(self) -> Connection[Any]:
        if self._connection is None:
            self._connection = connect(self._settings.connect_string)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for feed in self.feeds():
            feed.applier.forget()
