"""The applier's conversation with the server.

Theory of operation. The session's thread asks (`LastCommitedSCN`, many requests in flight), parses
each received run of elements by one kernel, cuts it into changes per table — a transaction leaves
only when its Commit is here — and hands these to the workers, which apply them each at its own
pace. Each request carries the highest SCN up to which everything is durable in every table. Two
transactions may share a commit SCN, and a request in flight may bring the second one, so a request
carries the last commit SCN seen only if nothing is in flight when it is sent; else it stays below
(protocol "The session").
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import structlog

from olr_pg.applier.changes import Chunk, Selection, by_name, join
from olr_pg.applier.changes import select as select_changes
from olr_pg.applier.chunks import ChunkedRows
from olr_pg.applier.connection import KeptConnection, is_transient
from olr_pg.applier.handover import Handover, end_handover
from olr_pg.applier.ledger import note_complete, note_start
from olr_pg.applier.parse import LayoutReader
from olr_pg.applier.room import Room
from olr_pg.applier.schema_events import SchemaEvent, SchemaEvents
from olr_pg.applier.settings import Consistency
from olr_pg.applier.spool import Spool, SpoolFiles
from olr_pg.applier.stream import STREAM
from olr_pg.applier.unconfirmed import Unconfirmed
from olr_pg.applier.worker import Worker
from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.wire.client import ClientProtocol, Elements, Reply
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.messages import (
    BackToScn,
    Error,
    GetSavedScn,
    GetStatus,
    LastCommitedScn,
    LogOff,
    Request,
    SavedScn,
    StartScn,
    State,
    Status,
    TableList,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from olr_pg.applier.applied import AppliedTables
    from olr_pg.applier.parse import Answers
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.wire.link import ServerLink
    from olr_pg.wire.messages import Answer

_log = structlog.get_logger(__name__)

_FIRST_WINDOW = 64
_IN_FLIGHT_PART = 8
"""What of that which may be unconfirmed may be on the way, about."""
_NOTE_SECONDS = 1.0
_ANOTHER_CLIENT = 4008


class Conversation:
    """One connection to the server at a time."""

    def __init__(
        self,
        settings: ApplierSettings,
        target: KeptConnection,
        workers: Sequence[Worker],
        room: Room,
        stop: threading.Event,
        progress: threading.Event,
        events: SchemaEvents,
        tables: Collection[str],
        handover: Handover,
        connect: Callable[[], ServerLink],
        drain: threading.Event,
        applied: AppliedTables,
        look_at_held: Callable[[], None],
    ) -> None:
        self._applied = applied
        self._look_at_held = look_at_held
        self._start_scn: int | None = None
        self._noted_start: int | None = None
        self._settings = settings
        self._target = target
        self._connect = connect
        self._drain = drain
        self._handover = handover
        self._workers = workers
        self._room = room
        self._events = events
        self._tables = tables
        self._announced: dict[tuple[str, int, int], SchemaEvent] = {}
        self._stop = stop
        self._progress = progress
        self._link: ServerLink | None = None
        self._protocol = ClientProtocol(settings.byte_order)
        self._tail: list[tuple[str, Selection]] = []
        self._tail_bytes = 0
        self._spools = SpoolFiles(settings.spool_directory, settings.spool_max)
        self._spool: Spool | None = None
        self._unconfirmed = Unconfirmed(settings.queue_bytes)
        self._rows = ChunkedRows(settings.byte_order)
        self._layouts = LayoutReader(settings.byte_order)
        self._open_scn: int | None = None
        self._last_scn = 0
        self._rewinds = 0
        self._window = _FIRST_WINDOW
        self._assigned: dict[str, Worker] = {}
        self._complete_scn = 0
        self._noted = 0.0
        self.confirmed_scn = 0

    # --- the connection ---

    def open(self) -> None:
        """Connect and subscribe.

        Raises:
            OSError: the server cannot be reached.
            OlrPgError: 5012, it refuses; 5024, the target lacks what it had.
            psycopg.Error: the target cannot be asked.
        """
        self._forget()
        self._protocol = ClientProtocol(self._settings.byte_order)
        self._link = self._connect()
        try:
            self._subscribe()
        except BaseException:
            self.close()
            raise

    def _subscribe(self) -> None:
        status = self._ask(GetStatus())
        assert isinstance(status, Status)
        saved = self._ask(GetSavedScn())
        assert isinstance(saved, SavedScn)
        if status.state is State.WAIT_TABLE_LIST:
            self._ask(TableList(self._settings.table_query))
        self._check_applied(saved.scn)
        if status.state is not State.REPLICATING:
            start = self._handover.start(saved.scn, self._settings.start_scn)
            self._ask(StartScn(start))
            self._start_scn = start

    def _check_applied(self, saved_scn: int | None) -> None:
        """See whether the target has everything that the server will not deliver again.

        Raises:
            OlrPgError: 5024, it has not.
            psycopg.Error: it cannot be told.
        """
        self._applied.recall(self._tables)
        # Without a checkpoint everything from `start-scn` on is delivered again.
        self._applied.forget(None if saved_scn is None else self._handover.tables)
        # On disk before a checkpoint is, which would make the forgotten count.
        self._applied.save()
        self._target.use(self._applied.check)

    def close(self) -> None:
        """Log off, as far as there is a connection."""
        if self._link is None:
            return
        try:
            self._link.send(self._protocol.request(LogOff()))
        except OSError as error:
            _log.debug("no log off", error=str(error))
        self._link.close()
        self._link = None

    def _ask(self, request: Request) -> Answer:
        """One request and its answer, with nothing else in flight."""
        self._send(request, 1)
        while (event := self._protocol.next_event()) is None:
            self._receive()
        assert isinstance(event, Reply)
        if isinstance(event.answer, Error):
            if event.answer.code == _ANOTHER_CLIENT:
                # Perhaps our own lost connection, which the server has not noticed yet.
                raise ConnectionRefusedError(event.answer.text)
            raise _refusal(event)
        return event.answer

    def _send(self, request: Request, count: int) -> None:
        assert self._link is not None
        self._link.send(self._protocol.request(request, count))

    def _receive(self) -> None:
        assert self._link is not None
        self._link.receive(self._protocol, self._stop.is_set)

    # --- the conversation ---

    def converse(self, *, once: bool, drained: Callable[[], bool]) -> None:
        """Ask and apply, until `stop` or the end of the source.

        Raises:
            OSError: the connection is lost.
            OlrPgError: what ends the run.
        """
        was_drained = drained()
        seen = self._events.published()
        while not self._stop.is_set():
            self.check_workers()
            if any(worker.failure is not None for worker in self._workers):
                self._rewind()
            if time.monotonic() - self._noted > _NOTE_SECONDS:
                self._note_if_reachable()
                self._forget_faults()
                self._send(GetSavedScn(), 1)
            self._progress.clear()
            if self._drain.is_set():
                if self._finish():
                    return
                continue
            if self._protocol.pending == 0:
                was_drained = drained()
                seen = self._events.published()
            self._top_up()
            if not self._take_answers():
                continue
            # NoMore, and nothing is in flight: all that was queued before `seen` was read is here.
            self._announce(seen)
            for worker in self._workers:
                worker.hurry()
            if once and was_drained and all(worker.is_drained() for worker in self._workers):
                if self._confirm_all():
                    self._take_saved(self._ask(GetSavedScn()))
                    return
                continue
            self._progress.wait(self._settings.poll_milliseconds / 1000)

    def _finish(self) -> bool:
        """Apply what has come, and confirm it; False where the workers are not done yet."""
        while self._protocol.pending:
            self._take_answers()
        for worker in self._workers:
            worker.hurry()
        if not all(worker.is_drained() for worker in self._workers):
            self._progress.wait(self._settings.poll_milliseconds / 1000)
            return False
        # Its answer may bring more, which is not confirmed and comes again.
        self._confirm_all()
        return True

    def note(self) -> None:
        """Write down in the target what is confirmed.

        That is up to where all tables are complete (`ledger.sql`); an initial load is left behind
        once everything up to its SCN is confirmed. And from where a server would have to start for
        what the target lacks then.

        Raises:
            psycopg.Error: it could not be; again does no harm.
        """
        self._noted = time.monotonic()
        name, confirmed = self._settings.subscription, self.confirmed_scn
        if 0 < self._handover.scn <= confirmed:
            self._target.use(lambda c: end_handover(c, name, confirmed))
            self._handover = Handover()
        if confirmed > self._complete_scn:
            self._target.use(lambda c: note_complete(c, name, confirmed))
            if self._complete_scn == 0:
                self._noted_start = None  # its line may be new
            self._complete_scn = confirmed
        start = self._start_scn
        if start is not None and start != self._noted_start:
            self._target.use(lambda c: note_start(c, name, start))
            self._noted_start = start

    def _note_if_reachable(self) -> None:
        try:
            self.note()
            self._look_at_held()
        except psycopg.Error as error:
            if not is_transient(error):
                raise
            _log.warning("what is confirmed is not noted in the target", error=str(error).strip())
        self._applied.save()

    def check_workers(self) -> None:
        """Raise what ended a worker that should not have ended."""
        for worker in self._workers:
            if worker.crash is not None:
                raise worker.crash

    def _top_up(self) -> None:
        missing = self._window - self._protocol.pending
        if missing * 2 < self._window:
            return
        if self._protocol.pending == 0:
            # Alone: the answer to it may be of the same commit SCN, which the next ones would
            # confirm unseen.
            self._send(LastCommitedScn(self._confirmable()), 1)
            missing -= 1
        if missing:
            self._send(LastCommitedScn(self._confirmable()), missing)

    def _take_answers(self) -> bool:
        """Take what came; True where the server had nothing more."""
        idle = False
        self._receive()
        while True:
            event = self._protocol.next_event()
            if event is None:
                if not idle or self._protocol.pending == 0:
                    break
                self._receive()  # the answers to the rest of the window
                continue
            if isinstance(event, Elements):
                self._take_elements(event)
                self._window = min(self._window * 2, self._window_max(event))
                self._await_durable()
                idle = False
            elif isinstance(event.answer, Error):
                raise _refusal(event)
            elif isinstance(event.answer, SavedScn):
                self._take_saved(event.answer)
            else:
                idle = True
        if idle:
            self._window = _FIRST_WINDOW
        return idle

    def _take_saved(self, saved: Answer) -> None:
        """The server delivers from there what is not confirmed; the target has all the rest."""
        assert isinstance(saved, SavedScn)
        if saved.scn is not None:
            self._start_scn = saved.scn

    def _window_max(self, elements: Elements) -> int:
        """The most requests in flight: the answers to them are unconfirmed, too."""
        fitting = self._settings.queue_bytes // _IN_FLIGHT_PART * elements.messages
        fitting //= max(elements.blob.size, 1)
        return min(max(fitting, _FIRST_WINDOW), self._settings.window)

    def _await_durable(self) -> None:
        """Take nothing more while the server has to keep too much.

        What a table with few changes collects keeps everything that came since.
        """
        while self._unconfirmed.is_too_much(self._pending_of_workers()):
            if self._is_hopeless():
                return
            self._progress.clear()
            for worker in self._workers:
                worker.hurry(unless_ready=True)
            if self._unconfirmed.is_too_much(self._pending_of_workers()):
                self._progress.wait(self._settings.poll_milliseconds / 1000)

    def _take_elements(self, elements: Elements) -> None:
        self._unconfirmed.add(elements.blob.size)
        for answers in self._rows.feed(elements.blob):
            self._take_rows(answers)

    def _take_rows(self, answers: Answers) -> None:
        """Deliver what committed, and keep what is open."""
        layouts = self._layouts.read(answers)
        chunk = Chunk(answers, layouts)
        is_stream = self._settings.consistency is Consistency.TRANSACTION
        names = [STREAM if is_stream else f"{layout.owner}.{layout.table}" for layout in layouts]
        changes = np.flatnonzero(answers.layout >= 0)
        commits = np.flatnonzero(answers.kind == ElementCode.COMMIT)
        first = int(commits[0]) if len(commits) else len(answers.kind)
        whole = int(commits[-1]) if len(commits) else -1
        if len(commits):
            self._unconfirmed.end(len(commits), int(answers.commit_scn[whole]))
        if self._spool is not None:
            # The transaction that is open already.
            for table, rows in by_name(names, answers, changes[changes < first]):
                self._spool.add(table, select_changes(chunk, rows))
            changes = changes[changes > first]
            if len(commits):
                self._deliver_spool(self._spool)
                self._spool = None
        delivered = self._tail if len(commits) else []
        if len(commits):
            self._tail, self._tail_bytes = [], 0
        for table, rows in by_name(names, answers, changes):
            ready, rest = rows[rows < whole], rows[rows > whole]
            if len(ready):
                delivered.append((table, select_changes(chunk, ready)))
            if len(rest):
                self._keep_open(table, select_changes(chunk, rest))
        if self._tail_bytes > self._settings.spool_bytes:
            self._begin_spool()
        self._last_scn = int(answers.commit_scn[-1])
        self._open_scn = None if whole == len(answers.kind) - 1 else self._last_scn
        for table in dict.fromkeys(name for name, _ in delivered):
            parts = [part for name, part in delivered if name == table]
            self._deliver(table, join(parts))
        # Every transaction that committed before the last one seen is here.
        self._announce([e for e in self._events.published() if e.barrier <= self._last_scn])

    def _keep_open(self, table: str, selection: Selection) -> None:
        """Changes of the transaction whose Commit is not here yet."""
        self._tail.append((table, selection))
        self._tail_bytes += selection.value_bytes()

    def _begin_spool(self) -> None:
        """The open transaction is too large to wait in memory."""
        spool = Spool(self._spools, self._settings.byte_order, self._is_hopeless)
        for table, selection in self._tail:
            spool.add(table, selection)
        self._tail, self._tail_bytes, self._spool = [], 0, spool
        _log.info("a large transaction is spooled", xid=format_xid(spool.xid))

    def _is_hopeless(self) -> bool:
        """Whether nothing is applied any more."""
        ended = (worker.failure or worker.crash for worker in self._workers)
        return self._stop.is_set() or any(error is not None for error in ended)

    def _deliver_spool(self, spool: Spool) -> None:
        """Hand a whole spooled transaction to the workers of its tables."""
        _log.info("a spooled transaction is whole", xid=format_xid(spool.xid), bytes=spool.size)
        for table, spooled in spool.finish().items():
            self._announce(
                event
                for event in self._events.published()
                if event.barrier <= spooled.commit_scn and table in (event.table, STREAM)
            )
            self._worker(table).deliver_spooled(table, spooled)

    def _deliver(self, table: str, selection: Selection) -> None:
        """Hand changes of a table to its worker, and what happened to the table in between."""
        last = int(selection.commit_scn[-1])
        for event in self._events.published():
            if table not in (event.table, STREAM) or event.barrier > last:
                continue
            before = selection.commit_scn < np.uint64(event.barrier)
            if before.any():
                self._hand_over(table, selection.part(before))
                selection = selection.part(~before)
            self._announce([event])
        self._hand_over(table, selection)

    def _hand_over(self, table: str, selection: Selection) -> None:
        """Hand changes of a table to its worker, once there is room for them."""
        if self._room.is_short:
            for worker in self._workers:
                worker.hurry()
            self._room.wait(self._is_hopeless)
        self._worker(table).deliver(table, selection)

    def _announce(self, events: Iterable[SchemaEvent]) -> None:
        """Hand events to the workers of their tables, each once."""
        for event in events:
            known = self._announced.get(event.identity)
            # A fault that is published once more was done in between.
            is_news = known is None or (event.is_fault and known is not event)
            if event.table in self._tables and is_news:
                self._announced[event.identity] = event
                is_stream = self._settings.consistency is Consistency.TRANSACTION
                self._worker(STREAM if is_stream else event.table).announce(event)

    def _worker(self, table: str) -> Worker:
        if table not in self._assigned:
            self._assigned[table] = self._workers[len(self._assigned) % len(self._workers)]
        return self._assigned[table]

    # --- positions ---

    def _pending_of_workers(self) -> int | None:
        scns = [worker.lowest_pending() for worker in self._workers]
        return min((scn for scn in scns if scn is not None), default=None)

    def _lowest_pending(self) -> int | None:
        scns = [self._pending_of_workers(), self._open_scn]
        return min((scn for scn in scns if scn is not None), default=None)

    def _confirmable(self) -> int:
        """The SCN to confirm: see the module's theory of operation."""
        lowest = self._lowest_pending()
        limit = self._last_scn if self._protocol.pending == 0 else self._last_scn - 1
        if lowest is not None:
            limit = min(limit, lowest - 1)
        if limit > self.confirmed_scn:
            self.confirmed_scn = limit
            self._rewinds = 0
        # Not the highest so far: what is in flight may bring another transaction of that SCN.
        return max(limit, 0)

    def _confirm_all(self) -> bool:
        """Confirm what is durable with nothing else in flight; False where more came instead."""
        self._send(LastCommitedScn(self._confirmable()), 1)
        return self._take_answers()

    def _rewind(self) -> None:
        """Go back to just before the transactions that could not be applied, and try again."""
        failure = next(w.failure for w in self._workers if w.failure is not None)
        self._rewinds += 1
        if self._rewinds > self._settings.rewinds:
            raise failure
        while self._protocol.pending:
            event = self._protocol.next_event()
            if event is None:
                self._receive()
            elif isinstance(event, Reply) and isinstance(event.answer, Error):
                raise _refusal(event)
        lowest = self._lowest_pending()
        # One less: another transaction may share the commit SCN.
        scn = max(0, (self._last_scn if lowest is None else lowest) - 1)
        _log.warning("going back", scn=scn, rewind=self._rewinds, error=str(failure))
        self._forget()
        self._send(BackToScn(scn), 1)

    def _forget(self) -> None:
        """What was received and not applied comes again."""
        self._tail, self._tail_bytes, self._spool = [], 0, None
        self._rows.forget()
        self._unconfirmed.forget()
        self._open_scn = None
        self._last_scn = self.confirmed_scn
        self._window = _FIRST_WINDOW
        for worker in self._workers:
            worker.reset()
        done = (event for event in self._events.published() if self._events.is_done(event))
        self._announced = {event.identity: event for event in done}

    def _forget_faults(self) -> None:
        """Forget which faults were announced that are done: a stopped table has any number."""
        known = {event.identity for event in self._events.published()}
        self._announced = {key: event for key, event in self._announced.items() if key in known}


def _refusal(reply: Reply) -> OlrPgError:
    assert isinstance(reply.answer, Error)
    request = type(reply.request).__name__
    return OlrPgError(5012, f"{request}: {reply.answer.text}", server_code=reply.answer.code)
