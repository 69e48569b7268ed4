"""The applier's session with the server.

The session's thread sends requests (`LastCommitedSCN`) without waiting for the answer to each, so
that many are in flight. A kernel parses all elements that arrived together, and groups the changes
by table. The workers get a transaction only when its Commit has arrived. Each worker applies its
changes at its own pace. Events of tables arrive in order between the elements.

Each request confirms an SCN: all changes up to it are durable in every table. Two transactions can
have the same commit SCN, and the answer to a request in flight can contain the second transaction.
So a request confirms the last received commit SCN only if no other request is in flight; otherwise
it confirms a lower one (protocol, “Positions”).
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

import psycopg
import structlog

from olr_pg.applier.session.handover import Handover, end_handover
from olr_pg.applier.session.reception import Distribution, Reception, Unconfirmed
from olr_pg.applier.settings import Consistency
from olr_pg.applier.target.ledger import (
    Reach,
    note_complete,
    note_loaded,
    note_saved,
    note_start,
    noted_start,
)
from olr_pg.applier.target.orphaned_transactions import follow_incarnation
from olr_pg.applier.target.outage import announce_retry, retry_seconds, retrying
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.postgres.sqlstates import is_transient, plain_words
from olr_pg.transactions.schema_event import Ancestry, SchemaEvent
from olr_pg.wire.messages import (
    BackToScn,
    Error,
    GetSavedScn,
    GetStatus,
    LastCommitedScn,
    LogOff,
    SavedScn,
    StartScn,
    State,
    Status,
    TableList,
)
from olr_pg.wire.protocol import ClientProtocol, Elements, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.batches.worker import Workers
    from olr_pg.applier.session.server_side import ServerLink, ServerSide
    from olr_pg.applier.stopped.pausing import Pauses
    from olr_pg.applier.target.applied_file import AppliedTables
    from olr_pg.applier.target.connection import KeptConnection
    from olr_pg.wire.frames import ByteOrder
    from olr_pg.wire.messages import Answer, Request

_log = structlog.get_logger(__name__)

_FIRST_WINDOW: Final = 64
_IN_FLIGHT_PART: Final = 8
"""The answers to requests in flight can use about 1/`_IN_FLIGHT_PART` of the limit on unconfirmed
bytes.
"""
_NOTE_SECONDS: Final = 1.0


class Conversation:
    """The session with the server, over one connection at a time.

    Args:
        workers: the workers, already started.
        positions: the positions in the target.
        server: the server that delivers the changes.
        pauses: the pauses that an operator has requested.
        look_at_target: reads states from the target, `pauses` among them; called periodically.
    """

    def __init__(
        self,
        workers: Workers,
        positions: NotedPositions,
        server: ServerSide,
        pauses: Pauses,
        look_at_target: Callable[[], None],
    ) -> None:
        self._workers, self._shared = workers, workers.shared
        self._settings = settings = workers.shared.settings
        self._positions = positions
        self._server = server
        self._pauses = pauses
        self._look_at_target = look_at_target
        self._exchange = Exchange(server.connect, settings.byte_order, self._shared.stop.is_set)
        is_stream = settings.consistency is Consistency.TRANSACTION
        self._distribution = Distribution(workers, self._shared.tables, is_stream=is_stream)
        self._unconfirmed = Unconfirmed(settings.queue_bytes)
        self._reception = Reception(
            settings, self._distribution, self._unconfirmed, workers.has_stopped
        )
        self._saved_scn: int | None = None
        self._begin_scn = 0
        self._noted_at = 0.0
        self._rewinds = 0
        self._window = _FIRST_WINDOW

    @property
    def is_full(self) -> bool:
        """Whether too many changes are unconfirmed, so that nothing more is requested;
        thread-safe.
        """
        return self._unconfirmed.is_full

    @property
    def confirmed_scn(self) -> int:
        """The highest SCN confirmed to the server; thread-safe."""
        return self._positions.confirmed_scn

    # --- the connection ---

    def open(self) -> None:
        """Connect and subscribe.

        Raises:
            OSError: the server cannot be reached.
            OlrPgError: 5012, the server refuses; 5024, the target has lost transactions; 2010, the
                server has lost its saved SCN, and the oldest log begins too late.
            psycopg.Error: the target cannot be queried.
        """
        self._forget()
        self._exchange.open()
        try:
            self._subscribe()
        except BaseException:
            self.close()
            raise

    def _subscribe(self) -> None:
        status = self._exchange.ask(GetStatus())
        assert isinstance(status, Status)
        saved = self._exchange.ask(GetSavedScn())
        assert isinstance(saved, SavedScn)
        self._saved_scn = saved.scn
        if status.state is State.WAIT_TABLE_LIST:
            self._exchange.ask(TableList(self._settings.table_query))
        self._check_applied(saved.scn)
        if status.state is not State.REPLICATING:
            is_own = self._server.is_saved_here() and self._shared.applied.is_known
            if not is_own or self._positions.handover.scn:
                # The server's recovery image must not be used: the target may lack transactions
                # that committed before the image, even if the image has the same start SCN.
                self._exchange.decline_image()
            start = self._positions.start(saved.scn, self._settings.start_scn, is_own=is_own)
            if saved.scn is None:
                self._positions.check_begin(start, self._server.logs.check_from)
            self._exchange.ask(StartScn(start))
            self._begin_scn = start
            self._positions.started(start)

    def _check_applied(self, saved_scn: int | None) -> None:
        """Check that the target has every transaction that the server will not deliver again.

        Raises:
            OlrPgError: 5024, transactions are missing.
            psycopg.Error: the target cannot be queried.
        """
        self._shared.applied.read_file(self._shared.tables)
        # If the server has no checkpoint, it delivers all changes from `start-scn` on again.
        loaded = self._positions.handover.tables
        self._shared.applied.forget(None if saved_scn is None else loaded)
        # The commit at the end of a load is on disk (`load.copy_task`). If the target lacks the
        # load from now on, it was restored, or a standby was promoted that had not received it.
        self._shared.applied.add({name: Reach(scn) for name, scn in loaded.items()})
        # Save the file before the server has a checkpoint: from then on, a restart would trust the
        # old positions in the file.
        self._shared.applied.save()
        self._positions.target.use(self._shared.applied.check)

    def close(self) -> None:
        """Log off and close the connection, if there is one."""
        self._exchange.close()

    # --- the conversation ---

    def converse(self, *, once: bool, drained: Callable[[], bool]) -> None:
        """Request and apply changes until `stop` or the end of the source.

        Raises:
            ConnectionError: the connection is lost, or must be opened again.
            OSError: another operation failed, also one of a worker. A new connection does not help.
            OlrPgError: any error that ends the run.
        """
        was_drained = drained()
        while not self._shared.stop.is_set():
            self._workers.check()
            failure = self._workers.failure
            if failure is not None:
                self._rewind(failure)
            if time.monotonic() - self._noted_at > _NOTE_SECONDS:
                self._note_if_reachable()
                self._exchange.send(GetSavedScn())
            self._shared.progress.clear()
            if self._shared.drain.is_set():
                if self._finish():
                    return
                continue
            if self._pauses.whole is not None:
                self._rest()
                continue
            if self._exchange.pending == 0:
                was_drained = drained()
            self._top_up()
            if not self._take_answers():
                continue
            # The server answered NoMore and no request is in flight, so nothing more arrives for
            # now.
            self._distribution.release()
            self._workers.apply_waiting()
            if once and was_drained and self._workers.are_drained():
                if self._confirm_all():
                    self._take_saved(self._exchange.ask(GetSavedScn()))
                    return
                continue
            self._await_progress()

    def _await_progress(self) -> None:
        self._shared.progress.wait(self._settings.poll_milliseconds / 1000)

    def _rest(self) -> None:
        """While the subscription is paused, request nothing, but let the received changes be
        applied.

        The applied changes are not confirmed, because each confirmation also requests more changes.
        """
        if self._exchange.pending:
            self._take_answers()
            return
        self._distribution.release()
        self._workers.apply_waiting()
        self._await_progress()

    def _finish(self) -> bool:
        """Apply and confirm all received changes. Return False if the workers have not applied all
        of them yet.
        """
        while self._exchange.pending:
            self._take_answers()
        self._workers.apply_waiting()
        if not self._workers.are_drained():
            self._await_progress()
            return False
        # The answer to the confirmation may contain more transactions. They are ignored: they are
        # not confirmed, so the server delivers them again.
        self._confirm_all()
        return True

    def note(self) -> None:
        """Store the confirmed positions in the target, and the applied positions in their file.

        Raises:
            psycopg.Error: the target cannot be used; call this again later.
        """
        self._noted_at = time.monotonic()
        self._positions.note()
        self._shared.applied.save()

    def _note_if_reachable(self) -> None:
        try:
            self.note()
            self._look_at_target()
        except psycopg.Error as error:
            if not is_transient(error):
                raise
            announce_retry("retrying: recording the confirmed SCN in the target", 1, error)
        self._shared.applied.save()

    # --- requests and answers ---

    def _top_up(self) -> None:
        missing = self._window - self._exchange.pending
        if missing * 2 < self._window:
            return
        if self._exchange.pending == 0:
            # Only one request confirms the last received commit SCN, because its answer may contain
            # another transaction with this commit SCN. If a second request confirmed the same SCN,
            # it would confirm that transaction before it is received.
            self._exchange.send(LastCommitedScn(self._confirmable()))
            missing -= 1
        if missing:
            self._exchange.send(LastCommitedScn(self._confirmable()), missing)

    def _take_answers(self) -> bool:
        """Receive and process answers. Return True if the server had nothing more."""
        idle = False
        self._exchange.receive()
        while True:
            answer = self._exchange.next_answer()
            if answer is None:
                if not idle or self._exchange.pending == 0:
                    break
                self._exchange.receive()  # the answers to the other requests in flight
                continue
            if isinstance(answer, Elements):
                self._reception.take(answer)
                self._window = min(self._window * 2, self._window_max(answer))
                self._await_durable()
                idle = False
            elif isinstance(answer, SchemaEvent):
                self._reception.tell(answer)
                idle = False
            elif isinstance(answer, Ancestry):
                self._follow_incarnation(answer)
                idle = False
            elif isinstance(answer, SavedScn):
                self._take_saved(answer)
            else:
                idle = True
        if idle:
            self._window = _FIRST_WINDOW
        return idle

    def _follow_incarnation(self, ancestry: Ancestry) -> None:
        """Record in the target the incarnation from which everything comes that arrives from now
        on.

        Raises:
            OlrPgError: 7020, the target has changes that this incarnation does not contain; 2010,
                the server's oldest log begins too late.
            ConnectionAbortedError: earlier changes cannot be applied because the workers have
                stopped, or the applier must stop. The session must end, and the server announces
                the incarnation again.
            psycopg.Error: the target cannot be changed.
        """
        if not self._workers.finish():
            raise ConnectionAbortedError("not all changes before a new incarnation are applied")
        following = retrying(
            "recording the incarnation in the target",
            lambda error: isinstance(error, psycopg.Error) and is_transient(error),
            partial(retry_seconds, self._settings),
            self._shared.stop,
        )
        work = partial(
            follow_incarnation,
            subscription=self._settings.subscription,
            ancestry=ancestry,
            tables=self._shared.tables,
            saved_scn=self._saved_scn,
        )
        try:
            is_set_back = following(self._positions.target.use, work)
        except psycopg.Error as error:
            if self._shared.stop.is_set():
                raise ConnectionAbortedError(plain_words(error)) from error
            raise
        if is_set_back:
            self._positions.set_back()
            if self._saved_scn is None:
                self._positions.check_begin(self._begin_scn, self._server.logs.check_from)

    def _take_saved(self, saved: Answer) -> None:
        """Record the SCN that the server has saved. If the server starts at this SCN, it delivers
        all unconfirmed changes.
        """
        assert isinstance(saved, SavedScn)
        if saved.scn is not None:
            self._positions.saved(saved.scn)

    def _window_max(self, elements: Elements) -> int:
        """Return the maximum number of requests in flight. The answers to these requests will also
        be unconfirmed changes.
        """
        fitting = self._settings.queue_bytes // _IN_FLIGHT_PART * elements.messages
        fitting //= max(elements.blob.size, 1)
        return min(max(fitting, _FIRST_WINDOW), self._settings.window)

    def _await_durable(self) -> None:
        """Wait while the server has to keep too many unconfirmed changes.

        Let the workers apply small batches meanwhile: if a table gets few changes, its waiting
        changes delay the confirmation of all later changes.
        """
        while self._unconfirmed.is_too_much(self._workers.lowest_pending()):
            if self._workers.has_stopped():
                return
            self._shared.progress.clear()
            self._workers.apply_waiting(unless_ready=True)
            if self._unconfirmed.is_too_much(self._workers.lowest_pending()):
                self._await_progress()

    # --- positions ---

    def _lowest_pending(self) -> int | None:
        scns = (
            self._workers.lowest_pending(),
            self._reception.open_scn,
            self._distribution.waiting_scn,
        )
        return min((scn for scn in scns if scn is not None), default=None)

    def _confirmable(self) -> int:
        """Return the SCN to confirm; see the module's docstring."""
        lowest = self._lowest_pending()
        last = self._reception.last_scn
        limit = last if self._exchange.pending == 0 else last - 1
        if lowest is not None:
            limit = min(limit, lowest - 1)
        if limit > self._positions.confirmed_scn:
            self._shared.applied.save()
            self._positions.confirmed_scn = limit
            self._rewinds = 0
        # This is lower than the last received SCN if requests are in flight: their answers may
        # contain another transaction with that SCN.
        return max(limit, 0)

    def _confirm_all(self) -> bool:
        """Confirm the durable changes, while no request is in flight. Return False if the answer
        contains more changes.
        """
        self._exchange.send(LastCommitedScn(self._confirmable()))
        return self._take_answers()

    def _rewind(self, failure: OlrPgError) -> None:
        """Request the transactions that could not be applied again, to retry them."""
        self._rewinds += 1
        if self._rewinds > self._settings.rewinds:
            raise failure
        while self._exchange.pending:
            if self._exchange.next_answer() is None:
                self._exchange.receive()
        lowest = self._lowest_pending()
        # Go back to the SCN before the lowest commit SCN that is not applied, because several
        # transactions may have that commit SCN.
        scn = max(0, (self._reception.last_scn if lowest is None else lowest) - 1)
        _log.warning(
            "requesting transactions again after an error",
            scn=scn,
            rewind=self._rewinds,
            error=str(failure),
        )
        self._forget()
        self._exchange.send(BackToScn(scn))

    def _forget(self) -> None:
        """Discard received changes that are not applied, because the server delivers them again."""
        self._reception.forget(self._positions.confirmed_scn)
        self._window = _FIRST_WINDOW
        self._workers.reset()
        self._distribution.forget()


# --- requests and answers ---


class LinkLostError(ConnectionError):
    """The connection to the server is lost, whatever the reason of the system is."""


class Exchange:
    """Sends requests and receives their answers, over one connection at a time.

    Args:
        order: byte order of the connection.
        is_stopped: called periodically while the server is silent; if it returns True, waiting
            ends.
    """

    def __init__(
        self, connect: Callable[[], ServerLink], order: ByteOrder, is_stopped: Callable[[], bool]
    ) -> None:
        self._connect = connect
        self._order = order
        self._is_stopped = is_stopped
        self._link: ServerLink | None = None
        self._protocol = ClientProtocol(order)

    @property
    def pending(self) -> int:
        """The number of requests that the server has not answered yet."""
        return self._protocol.pending

    def open(self) -> None:
        """Connect.

        Raises:
            OSError: the server cannot be reached.
        """
        self._protocol = ClientProtocol(self._order)
        self._link = self._connect()

    def close(self) -> None:
        """Log off and close the connection, if there is one."""
        if self._link is None:
            return
        try:
            self._link.send(self._protocol.request(LogOff()))
        except OSError as error:
            _log.debug("log-off failed", error=plain_reason(error))
        self._link.close()
        self._link = None

    def ask(self, request: Request) -> Answer:
        """Send one request and return its answer. No other request may be in flight.

        Raises:
            LinkLostError: the connection is lost.
            ConnectionRefusedError: another client is connected.
            OlrPgError: 5012, the server refuses.
        """
        self.send(request)
        while (event := self._protocol.next_event()) is None:
            self.receive()
        assert isinstance(event, Reply)
        if isinstance(event.answer, Error) and event.answer.code == Code.PLACE_TAKEN:
            # The server accepts one client. The other client may be this applier's previous
            # connection, whose loss the server has not noticed yet.
            raise ConnectionRefusedError(event.answer.text)
        return _accepted(event)

    def decline_image(self) -> None:
        """See `ServerLink`."""
        assert self._link is not None
        self._link.decline_image()

    def send(self, request: Request, count: int = 1) -> None:
        """Send a request `count` times; `next_answer` returns the answers.

        Raises:
            LinkLostError: the connection is lost.
        """
        assert self._link is not None
        requests = self._protocol.request(request, count)
        try:
            self._link.send(requests)
        except OSError as error:
            raise LinkLostError(*error.args) from error

    def receive(self) -> None:
        """Wait until the server sends answers, and receive them.

        Raises:
            LinkLostError: the connection is lost.
        """
        assert self._link is not None
        try:
            self._link.receive(self._protocol, self._is_stopped)
        except OSError as error:
            raise LinkLostError(*error.args) from error

    def next_answer(self) -> Elements | Answer | SchemaEvent | Ancestry | None:
        """Return the next received answer, in the order of the requests, or an event. Return None
        if `receive` must be called for more.

        Raises:
            OlrPgError: 5012, the server refuses the request; any error of
                `ClientProtocol.next_event`.
        """
        answer = self._protocol.next_event()
        if answer is None:
            return self._protocol.told()
        return _accepted(answer) if isinstance(answer, Reply) else answer


def _accepted(reply: Reply) -> Answer:
    if isinstance(reply.answer, Error):
        request = type(reply.request).__name__
        raise OlrPgError(
            Code.SERVER_REFUSED, f"{request}: {reply.answer.text}", server_code=reply.answer.code
        )
    return reply.answer


# --- the positions in the target, for status displays and for the next start ---


class NotedPositions:
    """The positions that are stored in the target, or will be stored by the next `note`.

    Args:
        applied: records that loaded tables are on disk.

    Attributes:
        target: the connection to the target.
        handover: the initial loads that replication has not caught up with yet.
        confirmed_scn: the highest SCN that was confirmed to the server.
    """

    def __init__(
        self,
        subscription: str,
        target: KeptConnection,
        handover: Handover,
        applied: AppliedTables,
    ) -> None:
        self._subscription = subscription
        self._applied = applied
        self.target = target
        self._noted_scn = 0
        self._noted_start: int | None = None
        self.handover = handover
        self.confirmed_scn = 0
        # If a server starts at this SCN, it delivers all changes that the target lacks. None if
        # unknown.
        self._start_scn: int | None = None
        self._is_saved = False
        self._disbelieved: int | None = None

    def start(self, saved_scn: int | None, configured_scn: int, *, is_own: bool) -> int:
        """Return the SCN at which the server must start, so that it skips no change that the target
        may lack.

        The server's saved SCN is used if this applier confirmed it and the target is known to
        contain all changes before it. Otherwise the position stored in the target is used, if it is
        lower than the saved SCN. If the target has no position, the server starts at the configured
        SCN.

        Args:
            saved_scn: the SCN that the server has saved; None if it has none.
            configured_scn: where to start if no SCN is saved.
            is_own: whether the saved SCN can be trusted, because this applier confirmed it.

        Raises:
            psycopg.Error: the target cannot be queried.
        """
        start = self.handover.start(saved_scn, configured_scn)
        self._disbelieved = None
        if saved_scn is None or is_own:
            return start
        noted = self._start_scn
        if noted is None:
            noted = self.target.use(lambda c: noted_start(c, self._subscription))
        own = self.handover.start(noted, configured_scn)
        if own >= start:
            return start
        error = OlrPgError(
            Code.SAVED_SCN_AHEAD,
            f"the server has saved SCN {saved_scn}, but the target requires all changes from SCN"
            f" {own} on. The applier starts at SCN {own}",
            subscription=self._subscription,
        )
        _log.warning(
            "starting at the SCN recorded in the target, not at the one saved by the server",
            reason=str(error),
            action=error.action,
        )
        self._disbelieved = saved_scn
        return own

    def check_begin(self, start_scn: int, check_logs: Callable[[int], None]) -> None:
        """Check that a start without a saved SCN does not skip changes that the target lacks.

        If the server's checkpoint was lost, only the target knows from which SCN it needs redo. A
        start at the oldest log fails if this log begins later. If the configuration names a later
        SCN, log a warning: an operator may have chosen it because older logs are lost.

        Raises:
            OlrPgError: 2010, the oldest log begins after the SCN.
            psycopg.Error: the target cannot be queried.
        """
        loads = self.handover
        if loads.scn and loads.covers_all:
            # No table needs redo from before its load. If the source was restored to an earlier
            # time, or is another copy, the target has recorded a higher SCN.
            self.target.use(lambda c: note_loaded(c, self._subscription, loads.lowest_scn))
            return
        needed = self.target.use(lambda c: noted_start(c, self._subscription))
        if needed is None or 0 < start_scn <= needed:
            return
        if start_scn == 0:
            check_logs(needed)
            return
        error = OlrPgError(
            Code.START_AFTER_TARGET,
            f"the server starts at SCN {start_scn}, but the target requires all changes from SCN"
            f" {needed} on",
            subscription=self._subscription,
        )
        _log.warning(
            "changes between the target's position and `apply.start-scn` may be missing",
            reason=str(error),
            action=error.action,
        )

    def set_back(self) -> None:
        """Store all positions again, because those in the target were lowered."""
        self._noted_scn, self._noted_start = 0, None

    def started(self, scn: int) -> None:
        """Record that the server delivers all transactions that began at this SCN or later."""
        self._start_scn, self._is_saved = scn, False

    def saved(self, scn: int) -> None:
        """Record the SCN from which the server delivers all unconfirmed changes. The target
        contains all other changes.

        Ignore the SCN that `start` did not trust: this applier has confirmed nothing since.
        """
        if scn == self._disbelieved:
            return
        self._disbelieved = None
        self._start_scn, self._is_saved = scn, True

    def note(self) -> None:
        """Store changed positions in the target.

        All tables contain their changes up to `confirmed_scn` (`ledger.sql`). The handover of an
        initial load ends when all changes up to its SCN are confirmed.

        Raises:
            psycopg.Error: the target cannot be used; call this again later.
        """
        name, confirmed = self._subscription, self.confirmed_scn
        handover = self.handover
        if 0 < handover.scn <= confirmed:
            loaded = self.target.use(lambda c: end_handover(c, name, handover, confirmed))
            if loaded is not None:
                self.handover = Handover()
                # The commit of the handover has flushed the loads to disk. If the target lacks a
                # load from now on, it was restored from a backup, even if the table has had no
                # change since the load.
                self._applied.add({name: Reach(scn) for name, scn in loaded.items()})
        if confirmed > self._noted_scn:
            self.target.use(lambda c: note_complete(c, name, confirmed))
            if self._noted_scn == 0:
                self._noted_start = None  # `note_complete` may have inserted the row
            self._noted_scn = confirmed
        start = self._start_scn
        if start is not None and start != self._noted_start:
            note = note_saved if self._is_saved else note_start
            self.target.use(lambda c: note(c, name, start))
            self._noted_start = start
