"""Watches statements that wait for PostgreSQL: it distinguishes slow statements from lost ones, and
ends the lost ones.

A statement may take as long as it needs, for example for a COPY, to build an index, or to wait for
a lock of another session. But if the network has lost the statement or its answer, the client would
wait forever. A timeout cannot distinguish these cases, but PostgreSQL can. If a statement has no
answer after `LOOK_SECONDS`, the watch queries the state of its session over a separate connection:

- If PostgreSQL executes the statement, or the statement waits for a lock, it continues. If the
  statement waits for other sessions, `blocked` names these sessions.
- The statement or the answer is lost in two cases: PostgreSQL waits for the client while the client
  waits for PostgreSQL, or the session does not exist. After `answer_seconds` the watch closes the
  connection.
- If PostgreSQL does not answer the watch either, the watch closes the connection after
  `answer_seconds`.

Sent or received bytes count as an answer, because large values can take long over a slow network.
After the watch has closed a connection, the next new connection terminates its session in
PostgreSQL. After that, the ledger shows whether the session's last commit has happened.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg.rows import namedtuple_row

from olr_pg.applier.target.blockers import Blocked, is_blocked, who_blocks
from olr_pg.observability.periodic import Periodic, steady_time
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from olr_pg.postgres.sqlstates import is_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.errors import OlrPgError

LOOK_SECONDS: Final = 3.0
"""Seconds without an answer after which the watch queries the session's state."""

BLOCKED_SECONDS: Final = 5.0
"""A statement that waits for other sessions is reported after this many seconds."""

_TICK_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 1.0
"""Minimum seconds between two queries of the sessions' states."""

_SESSIONS: Final = """
SELECT pid, state, wait_event_type, wait_event
FROM pg_stat_activity WHERE pid = ANY(%s)
"""
_END: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s AND pid <> pg_backend_pid()
"""
# Select the time as text of a number: it is only compared, and no setting changes it.
_SELF: Final = """
SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity
WHERE pid = pg_backend_pid()
"""

_log = structlog.get_logger(__name__)


class _Watched:
    """A watched connection and its last known state.

    Attributes:
        session: the process id and the start time of the session in PostgreSQL; None before they
            are queried.
        began: when the wait began that the other attributes describe
            (`BoundedConnection.waiting_since`).
        moved: when bytes were last sent or received during that wait.
        lost_since: the time from which PostgreSQL has been waiting for this client; None if it does
            not wait.
    """

    def __init__(self, connection: BoundedConnection) -> None:
        self.connection = connection
        self.session: tuple[int, object] | None = None
        self.began: float | None = None
        self.moved = 0.0
        self.lost_since: float | None = None
        self._transported: tuple[int, int] | None = None

    def silent_seconds(self, now: float) -> float:
        """Return for how many seconds no bytes were sent or received during the current wait; 0 if
        the connection does not wait.
        """
        began = self.connection.waiting_since
        transported = None if began is None else self.connection.transported()
        if began is None or began != self.began or transported != self._transported:
            self.began, self._transported, self.lost_since = began, transported, None
            self.moved = now if began is None or transported is not None else began
        if began is None:
            return 0.0
        return now - self.moved


class _Session(NamedTuple):
    """A row of the query `_SESSIONS`."""

    pid: int
    state: str | None
    wait_event_type: str | None
    wait_event: str | None

    @property
    def awaits_client(self) -> bool:
        """Whether PostgreSQL waits for the client; False if the session's state is not visible."""
        return self.wait_event_type == "Client" or (self.state or "active") != "active"


class StatementWatch:
    """Watches the statements of one applier in its own thread, from `start` to `stop`.

    Args:
        connect_string: the connect string of the target.
        answer_seconds: time limit for a statement that is lost.

    Attributes:
        is_abandoned: whether `abandon` was called, so that all statements are ended.
    """

    def __init__(self, connect_string: str, answer_seconds: float) -> None:
        self._answer_seconds = answer_seconds
        self._look_seconds = min(LOOK_SECONDS, answer_seconds / 3)
        self._connect_string = connect_string
        self._own_string = ""
        self._lock = threading.Lock()
        self._watched: dict[BoundedConnection, _Watched] = {}
        self._ended: list[tuple[int, object]] = []
        self.is_abandoned = False
        self._own: BoundedConnection | None = None
        self._blocked: tuple[Blocked, ...] = ()
        self._seen: dict[str, OlrPgError] = {}
        self._looked_at = 0.0
        self._answered_at = 0.0
        self._ticking: Periodic | None = None

    def start(self) -> None:
        """Start watching."""
        tick = min(_TICK_SECONDS, self._answer_seconds / 6)
        self._ticking = Periodic("olr-watch", tick, self._tick)
        self._ticking.start()

    def stop(self) -> None:
        """Stop watching."""
        own = self._own
        if own is not None:
            own.give_up("the watch ends")
        if self._ticking is not None:
            self._ticking.stop()
        self._disconnect()

    def abandon(self) -> None:
        """End all running statements, and all later statements as soon as they begin, because the
        appliance ends.
        """
        with self._lock:
            self.is_abandoned = True
            open_now = list(self._watched)
        for connection in open_now:
            connection.give_up("cancelled, because the appliance ends", cancel=True)

    @property
    def blocked(self) -> Sequence[Blocked]:
        """The statements that have waited for other sessions for at least `BLOCKED_SECONDS`."""
        now = steady_time()
        return [one for one in self._blocked if now - one.since >= BLOCKED_SECONDS]

    def last_seen(self, serves: str) -> OlrPgError | None:
        """Return the error that names the session that was last seen blocking a statement for a
        table.
        """
        return self._seen.get(serves)

    # --- for the threads that connect ---

    def opened(self, connection: BoundedConnection) -> None:
        """Watch a connection until it is closed.

        First, terminate PostgreSQL's sessions of broken connections. The transactions of these
        sessions may still be open: such a transaction could keep locks that the new connection
        needs, or could commit after the new connection has read the ledger.

        Raises:
            psycopg.Error: PostgreSQL cannot be queried.
        """
        watched = _Watched(connection)
        connection.closing = self._closed
        with self._lock:
            self._watched[connection] = watched
            is_abandoned = self.is_abandoned
        if is_abandoned:
            connection.give_up("cancelled, because the appliance ends")
        info = connection.info
        # If the connect string names several servers, query the one to which this connection is
        # connected.
        self._own_string = with_timeouts(
            self._connect_string,
            connect_timeout=max(2, round(self._look_seconds)),
            host=info.host,
            hostaddr=info.hostaddr or None,
            port=info.port,
        )
        watched.session = connection.execute(_SELF).fetchone()
        while self._ended:
            session = self._ended[-1]
            connection.execute(_END, session)
            with self._lock, suppress(ValueError):
                self._ended.remove(session)

    def _closed(self, connection: BoundedConnection) -> None:
        """Stop watching a connection, which is about to be closed. If the connection is broken,
        remember its session.
        """
        with self._lock:
            watched = self._watched.pop(connection, None)
            if watched is not None and watched.session is not None and connection.broken:
                self._ended.append(watched.session)

    # --- its own thread ---

    def _tick(self) -> None:
        now = time.monotonic()
        with self._lock:
            watched = list(self._watched.values())
        silent = [one for one in watched if one.silent_seconds(now) >= self._look_seconds]
        if not silent:
            self._blocked = ()
            self._disconnect()
            return
        if now - self._looked_at < min(_AGAIN_SECONDS, self._look_seconds):
            return
        self._looked_at = now
        try:
            found = self._ask([one.session[0] for one in silent if one.session is not None])
            self._blocked = tuple(self._name_blockers(silent, found))
        except psycopg.Error as error:
            self._disconnect()
            if not is_answer(error):
                self._answered_nobody(silent)
                return
            found = None  # PostgreSQL answers, but rejects the query
        self._answered_at = time.monotonic()
        if found is not None:
            self._judge(silent, found)

    def _ask(self, pids: Sequence[int]) -> Mapping[int, _Session]:
        if self._own is None:
            self._own = BoundedConnection.connect(
                self._own_string, autocommit=True, application_name="olr_pg watch"
            )
            self._own.answer_seconds = max(2.0, self._look_seconds)
        cursor = self._own.cursor(row_factory=namedtuple_row)
        rows: Sequence[Any] = cursor.execute(_SESSIONS, (list(pids),)).fetchall()
        return {row.pid: _Session(*row) for row in rows}

    def _name_blockers(
        self, silent: Sequence[_Watched], found: Mapping[int, _Session]
    ) -> Iterator[Blocked]:
        """Yield the statements that wait for other sessions, with those sessions."""
        assert self._own is not None  # `_ask` has opened it
        for one in silent:
            session = None if one.session is None else found.get(one.session[0])
            if session is None or not is_blocked(session.wait_event_type, session.wait_event):
                continue
            error = who_blocks(self._own, session.pid, session.wait_event)
            serves = one.connection.serves
            self._seen[serves] = error
            yield Blocked(serves, steady_time() - one.silent_seconds(time.monotonic()), error)

    def _disconnect(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def _answered_nobody(self, silent: Sequence[_Watched]) -> None:
        """Close connections without an answer, if PostgreSQL has not answered the watch for the
        same time.
        """
        now = time.monotonic()
        for one in silent:
            seconds = min(one.silent_seconds(now), now - self._answered_at)
            if seconds >= self._answer_seconds:
                self._give_up(one, f"PostgreSQL has answered no session for {seconds:.0f} s")

    def _judge(self, silent: Sequence[_Watched], found: Mapping[int, _Session]) -> None:
        """Close connections that wait for PostgreSQL while PostgreSQL waits for them."""
        now = time.monotonic()
        for one in silent:
            session = None if one.session is None else found.get(one.session[0])
            if session is not None and not session.awaits_client:
                one.lost_since = None
                continue
            if one.lost_since is None:
                # Until then, the answer may still have been on its way.
                one.lost_since = max(one.moved, now - self._look_seconds)
            if now - one.lost_since >= self._answer_seconds:
                what = "no session for it" if session is None else "nothing to do for it"
                self._give_up(one, f"the network lost a statement: PostgreSQL has {what}")

    def _give_up(self, one: _Watched, reason: str) -> None:
        if one.connection.waiting_since == one.began:
            _log.warning("closing a connection to PostgreSQL that does not answer", reason=reason)
            one.connection.give_up(reason)


class ConnectionWatch(StatementWatch):
    """The watch of a command that has a single connection. The watch ends with the connection.

    If another session blocks a statement, it logs that session once.
    """

    _is_told = False

    def opened(self, connection: BoundedConnection) -> None:
        """Watch the connection until it is closed.

        Raises:
            psycopg.Error: PostgreSQL cannot be queried.
        """
        super().opened(connection)
        self.start()

    def _closed(self, connection: BoundedConnection) -> None:
        super()._closed(connection)
        self.stop()

    def _tick(self) -> None:
        super()._tick()
        if self.blocked and not self._is_told:
            self._is_told = True
            _log.warning(
                "another session blocks a statement of this command", error=self.blocked[0].error
            )
