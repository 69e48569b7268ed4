"""Looks after statements that wait for PostgreSQL: tells slow from lost, and gives up what is lost.

A statement may take as long as it needs: a COPY, an index, a lock of somebody else. But where the
network lost the request or its answer, nothing would ever come. No timeout of a statement can tell
one from the other; PostgreSQL can. When a statement has got no answer for `LOOK_SECONDS`, the watch
asks about its session over a connection of its own:

- PostgreSQL works on the statement, or the statement waits there: it goes on. Where it waits for
  others, `blocked` says who they are.
- PostgreSQL waits for the client, as the client waits for PostgreSQL, or has no such session:
  request or answer are lost. After `answer_seconds` the connection is given up.
- PostgreSQL answers nobody: after `answer_seconds` the connection is given up.

Bytes that the other side takes, or that come from it, count as an answer: large values may take
long over a slow network. The connection that was given up is closed, its session in PostgreSQL
ended as soon as a new connection can tell PostgreSQL so, and the ledger says whether the commit
happened.
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
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.steady_time import steady_time
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.postgres.keepalive import with_timeouts
from olr_pg.postgres.sqlstates import is_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.errors import OlrPgError

LOOK_SECONDS: Final = 3.0
"""After so long without an answer PostgreSQL is asked what it does."""

BLOCKED_SECONDS: Final = 5.0
"""After so long a statement that waits for others is told of."""

_TICK_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 1.0
"""Between two looks at the same sessions."""

_SESSIONS: Final = """
SELECT pid, state, wait_event_type, wait_event
FROM pg_stat_activity WHERE pid = ANY(%s)
"""
_END: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s AND pid <> pg_backend_pid()
"""
# A number, not a time: psycopg reads no DateStyle but ISO, which is set later (`connection`).
_SELF: Final = """
SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity
WHERE pid = pg_backend_pid()
"""

_log = structlog.get_logger(__name__)


class _Watched:
    """A connection that is watched, and what was seen of it.

    Attributes:
        session: its process in PostgreSQL, and when that began; None where nobody asked yet.
        began: the wait that the rest is about (`BoundedConnection.waiting_since`).
        moved: when bytes went over it last, in that wait.
        lost_since: since when PostgreSQL waits for this client; None while it does not.
    """

    def __init__(self, connection: BoundedConnection) -> None:
        self.connection = connection
        self.session: tuple[int, object] | None = None
        self.began: float | None = None
        self.moved = 0.0
        self.lost_since: float | None = None
        self._transported: tuple[int, int] | None = None

    def silent_seconds(self, now: float) -> float:
        """Return for how long the wait at hand has brought nothing; 0 without one."""
        began = self.connection.waiting_since
        transported = None if began is None else self.connection.transported()
        if began is None or began != self.began or transported != self._transported:
            self.began, self._transported, self.lost_since = began, transported, None
            self.moved = now if began is None or transported is not None else began
        if began is None:
            return 0.0
        return now - self.moved


class _Session(NamedTuple):
    """A row of `_SESSIONS`."""

    pid: int
    state: str | None
    wait_event_type: str | None
    wait_event: str | None

    @property
    def awaits_client(self) -> bool:
        """Whether the client is to do something next; not where nobody may see what it does."""
        return self.wait_event_type == "Client" or (self.state or "active") != "active"


class StatementWatch:
    """Watches the statements of one applier, from `start` to `stop`, in a thread of its own.

    Args:
        connect_string: of the target.
        answer_seconds: after which a statement that is lost is given up.

    Attributes:
        is_abandoned: whether every statement is given up, since the appliance ends.
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
        """Start to watch."""
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
        """Give up every statement, now and from now on: the appliance ends."""
        with self._lock:
            self.is_abandoned = True
            open_now = list(self._watched)
        for connection in open_now:
            connection.give_up("given up, since the appliance ends", cancel=True)

    @property
    def blocked(self) -> Sequence[Blocked]:
        """The statements that wait for others now, since `BLOCKED_SECONDS` at least."""
        now = steady_time()
        return [one for one in self._blocked if now - one.since >= BLOCKED_SECONDS]

    def last_seen(self, serves: str) -> OlrPgError | None:
        """Return who held up a statement for a table when it was looked at last."""
        return self._seen.get(serves)

    # --- for the threads that connect ---

    def opened(self, connection: BoundedConnection) -> None:
        """Watch a connection until it is closed.

        The sessions that were given up before it are ended in PostgreSQL. Their transactions may be
        open, and hold locks that the new connection would wait for; or they commit after the ledger
        was asked.

        Raises:
            psycopg.Error: PostgreSQL cannot be asked.
        """
        watched = _Watched(connection)
        connection.closing = self._closed
        with self._lock:
            self._watched[connection] = watched
            is_abandoned = self.is_abandoned
        if is_abandoned:
            connection.give_up("given up, since the appliance ends")
        info = connection.info
        # One of several servers of the connect string, perhaps.
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
        """Watch a connection no more; it is not closed yet, unless it broke."""
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
            found = None  # it answers, but does not let us look
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
        """Give the statements that wait for others, with who these are."""
        assert self._own is not None  # it was asked over it
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
        """Give up what got no answer for as long as nobody got one."""
        now = time.monotonic()
        for one in silent:
            seconds = min(one.silent_seconds(now), now - self._answered_at)
            if seconds >= self._answer_seconds:
                self._give_up(one, f"PostgreSQL answers nobody for {seconds:.0f} s")

    def _judge(self, silent: Sequence[_Watched], found: Mapping[int, _Session]) -> None:
        """Give up what waits for PostgreSQL while PostgreSQL waits for it."""
        now = time.monotonic()
        for one in silent:
            session = None if one.session is None else found.get(one.session[0])
            if session is not None and not session.awaits_client:
                one.lost_since = None
                continue
            if one.lost_since is None:
                # Until then its answer may be on the way.
                one.lost_since = max(one.moved, now - self._look_seconds)
            if now - one.lost_since >= self._answer_seconds:
                what = "no such session" if session is None else "nothing to do for it"
                self._give_up(one, f"the network lost a statement: PostgreSQL has {what}")

    def _give_up(self, one: _Watched, reason: str) -> None:
        if one.connection.waiting_since == one.began:
            _log.warning("a connection to PostgreSQL is given up", reason=reason)
            one.connection.give_up(reason)


class ConnectionWatch(StatementWatch):
    """The watch of one connection of a command, which ends with the connection.

    It logs who holds a statement up, once for each connection.
    """

    _is_told = False

    def opened(self, connection: BoundedConnection) -> None:
        """Watch the connection until it is closed.

        Raises:
            psycopg.Error: PostgreSQL cannot be asked.
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
            _log.warning("a statement of this command waits", error=self.blocked[0].error)
