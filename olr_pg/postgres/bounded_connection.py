"""A connection to PostgreSQL whose statements wait with a bound.

psycopg waits for an answer as long as the socket is open. A network that accepts everything and
passes nothing on keeps it open for ever, and TCP's own timeouts do not help where a proxy answers
for a server that is gone. So the thread that waits looks up ten times a second: whether its
statement has taken longer than it may, and whether another thread wants it given up. The connection
is closed then, since nobody knows what becomes of the statement.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg.abc import PQGen

RV = TypeVar("RV")

_TICK_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 0.5
"""What asking the server to cancel a statement may take."""

_TCP_INFO: Final[int] = getattr(socket, "TCP_INFO", -1)  # elsewhere than on Linux it is refused
_TCP_INFO_BYTES: Final = 136
_TCP_COUNTS: Final = struct.Struct("=120xQQ")
"""Of Linux's `struct tcp_info`: tcpi_bytes_acked and tcpi_bytes_received."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that can be given up while a statement waits for its answer.

    Its statements belong to one thread; `give_up` may be called from any other.

    Attributes:
        answer_seconds: that one wait for an answer may take; None: no bound of its own.
        waiting_since: since when the thread waits for an answer (`time.monotonic`); None while it
            does not.
        given_up: why the connection was given up; None while it was not.
        serves: what its statements are for, for whoever watches them.
        closing: called once when the connection is closed, before it is.
    """

    answer_seconds: float | None = None
    waiting_since: float | None = None
    given_up: str | None = None
    serves: str = ""
    closing: Callable[[BoundedConnection], None] | None = None
    _reason: str | None = None
    _cancels = False

    def give_up(self, reason: str, *, cancel: bool = False) -> None:
        """Let the statement at work, and any later one, fail and close the connection.

        Args:
            reason: the message of the psycopg.OperationalError.
            cancel: ask the server to cancel the statement first.
        """
        self._cancels = cancel
        self._reason = reason

    def close(self) -> None:
        """Close the connection."""
        closing, self.closing = self.closing, None
        try:
            if closing is not None:
                closing(self)
        finally:
            super().close()

    def __exit__(self, *ending: Any) -> None:
        try:
            super().__exit__(*ending)
        finally:
            self.close()  # psycopg leaves one that broke as it is

    def wait(
        self, gen: PQGen[RV], interval: float = _TICK_SECONDS, timeout: float | None = None
    ) -> RV:
        """Wait as psycopg does, but only until the statement is given up.

        Raises:
            psycopg.OperationalError: it was.
        """
        self.waiting_since = time.monotonic()
        try:
            return super().wait(self._bounded(gen), min(interval, _TICK_SECONDS), timeout)
        finally:
            self.waiting_since = None

    def _bounded(self, gen: PQGen[RV]) -> PQGen[RV]:
        began = time.monotonic()
        try:
            if self._reason is not None:
                self._end(self._reason)
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready:
                    self._check(time.monotonic() - began)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result

    def _check(self, seconds: float) -> None:
        bound = self.answer_seconds
        if self._reason is not None:
            self._end(self._reason)
        elif bound is not None and seconds >= bound:
            self._end(f"PostgreSQL gave no answer for {bound:g} s")

    def _end(self, reason: str) -> None:
        """Close the connection.

        Raises:
            psycopg.OperationalError: always.
        """
        if self.given_up is None:
            self.given_up = reason
            if self._cancels and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with suppress(psycopg.Error):
                    self.cancel_safe(timeout=_CANCEL_SECONDS)
            self.pgconn.finish()
        raise psycopg.OperationalError(reason)

    def transported(self) -> tuple[int, int] | None:
        """Return the bytes that the other side has acknowledged, and those received from it.

        None where the system does not tell: over a local socket, or after the end.
        """
        try:
            with socket.socket(fileno=self.fileno()) as there:
                try:
                    found = there.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
                finally:
                    there.detach()
        except (OSError, psycopg.Error):
            return None
        return None if len(found) < _TCP_INFO_BYTES else _TCP_COUNTS.unpack(found)
