"""Connections to Oracle that are given up when the network passes nothing on.

The driver bounds how long TCP takes to connect, and each call of a connection that is there. It
does not bound what lies between: a proxy that accepts and passes nothing on keeps a login waiting
for ever. And the bound of a call has to leave room for the longest query. So this module knows the
sockets: Python tells an audit hook of each socket that connects, with the thread that does.

- A login may take `LOGIN_SECONDS`.
- While `giving_up_silence` lasts, connections that have received nothing for `SILENT_SECONDS` are
  doubted, and a login is tried. If nobody answers that either, their sockets are shut, and the
  driver reports that the connection is lost. If Oracle answers it, it works on what was asked.

Thick mode has no sockets of Python's: there SQLNET.RECV_TIMEOUT bounds both (sqlnet.ora).
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, finalize

import oracledb
import structlog

from olr_pg.errors import system_reason
from olr_pg.observability.periodic import Periodic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOGIN_SECONDS: Final = 15.0
SILENT_SECONDS: Final = 10.0
_PROBE_SECONDS: Final = 5.0
_TICK_SECONDS: Final = 1.0

_TCP_INFO: Final[int] = getattr(socket, "TCP_INFO", -1)  # elsewhere than on Linux it is refused
_TCP_INFO_BYTES: Final = 136
_RECEIVED: Final = struct.Struct("=128xQ")
"""Of Linux's `struct tcp_info`: tcpi_bytes_received."""

_log = structlog.get_logger(__name__)
_connecting = threading.local()


class SilenceError(oracledb.OperationalError):
    """Ends what waits for an Oracle that answers nobody."""


class _Socket:
    """A socket of a connection, by a descriptor of our own: the driver may wrap and close its."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))

    def shut(self) -> None:
        """End the connection; who waits for an answer hears of it at once."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it; the driver's connection stays as it is."""
        self._socket.close()

    def received(self) -> int:
        """Return the bytes that have come over it; 0 where the system does not tell."""
        try:
            found = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        except OSError:
            return 0
        return _RECEIVED.unpack(found)[0] if len(found) == _TCP_INFO_BYTES else 0


@cache
def _listen_to_sockets() -> None:
    """Let `_connecting` hear of sockets that connect; such a hook stays for the process's life."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        heard = getattr(_connecting, "sockets", None)
        if heard is not None:
            heard.append(_Socket(arguments[0].fileno()))


class BoundedCalls:
    """Gives connections of one database up that get no answer, as nobody does.

    Args:
        arguments: of `oracledb.connect`, for the login that is tried.
        silent_seconds, login_seconds, probe_seconds: see the module.
    """

    def __init__(
        self,
        arguments: dict[str, Any],
        *,
        silent_seconds: float = SILENT_SECONDS,
        login_seconds: float = LOGIN_SECONDS,
        probe_seconds: float = _PROBE_SECONDS,
    ) -> None:
        self._arguments = arguments
        self._silent_seconds = silent_seconds
        self._login_seconds = login_seconds
        self._probe_seconds = probe_seconds
        self._lock = threading.Lock()
        self._calls: set[_Call] = set()
        self._sockets = WeakKeyDictionary[object, _Socket]()
        self._watching: Periodic | None = None
        self._probed_at = 0.0

    def connect(self, seconds: float | None = None) -> oracledb.Connection:
        """Connect as `oracledb.connect` does, but in bounded time.

        Args:
            seconds: that it may take.

        Raises:
            oracledb.Error: what the driver reports.
            SilenceError: nobody answers.
        """
        bound = seconds or self._login_seconds
        heard: list[_Socket] = []
        late = threading.Event()

        def give_up() -> None:
            late.set()
            for one in heard:
                one.shut()

        _listen_to_sockets()
        _connecting.sockets = heard
        timer = threading.Timer(bound, give_up)
        timer.daemon = True
        timer.start()
        try:
            connection = oracledb.connect(**self._arguments)
        except BaseException as error:
            _close_all(heard)
            if late.is_set() and isinstance(error, oracledb.Error):
                raise SilenceError(f"nobody answers a login for {bound:g} s") from error
            raise
        finally:
            timer.cancel()
            _connecting.sockets = None
        _close_all(heard[:-1])  # of addresses and redirections before it
        if heard:  # thick mode has none
            # Whatever becomes of the connection: the other side must not see it open for ever.
            finalize(connection, heard[-1].close)
            with self._lock:
                self._sockets[connection] = heard[-1]
        return connection

    def closed(self, connection: object) -> None:
        """Forget a connection that is closed."""
        with self._lock:
            known = self._sockets.pop(connection, None)
        if known is not None:
            known.close()

    @contextmanager
    def giving_up_silence(self, connection: object) -> Iterator[None]:
        """Give the connection up when nothing comes over it, and nobody is answered.

        Raises:
            SilenceError: it was; in place of what the driver made of it.
        """
        with self._lock:
            known = self._sockets.get(connection)
            call = None if known is None else _Call(known)
            if call is not None:
                self._calls.add(call)
                if self._watching is None:
                    tick = min(_TICK_SECONDS, self._silent_seconds / 4)
                    self._watching = Periodic("olr-oracle-watch", tick, self._look)
                    self._watching.start()
        try:
            yield
        except Exception as error:
            if call is not None and call.given_up is not None:
                raise SilenceError(call.given_up) from error
            raise
        finally:
            if call is not None:
                with self._lock:
                    self._calls.discard(call)

    def close(self) -> None:
        """End the watch."""
        with self._lock:
            watching, self._watching = self._watching, None
            left = list(self._sockets.values())
            self._sockets.clear()
        _close_all(left)
        if watching is not None:
            watching.stop()

    def _look(self) -> None:
        with self._lock:
            calls = list(self._calls)
        silent = [one for one in calls if one.silent_seconds() >= self._silent_seconds]
        # A login costs the database something: not one a second beside a long query.
        is_early = time.monotonic() - self._probed_at < self._silent_seconds
        if not silent or is_early or self._is_answered():
            return
        for one in silent:
            reason = f"nobody answers for {one.silent_seconds():.0f} s"
            _log.warning("a connection to Oracle is given up", reason=reason)
            with self._lock:
                if one in self._calls:
                    one.given_up = reason
                    one.socket.shut()

    def _is_answered(self) -> bool:
        """Tell whether Oracle answers a new connection, with whatever answer."""
        try:
            probe = self.connect(self._probe_seconds)
        except oracledb.Error as error:
            _log.debug("a login was tried", reason=system_reason(error))
            return not isinstance(error, SilenceError) and "ORA-" in str(error)
        finally:
            self._probed_at = time.monotonic()
        with suppress(oracledb.Error):
            probe.close()
        self.closed(probe)
        return True


class _Call:
    """Something that is asked over a connection, and when something came of it last.

    Attributes:
        given_up: why its connection was given up; None while it was not.
    """

    def __init__(self, known: _Socket) -> None:
        self.socket = known
        self._received = known.received()
        self._at = time.monotonic()
        self.given_up: str | None = None

    def silent_seconds(self) -> float:
        """Return for how long nothing has come."""
        received, now = self.socket.received(), time.monotonic()
        if received != self._received:
            self._received, self._at = received, now
        return now - self._at


def _close_all(sockets: Sequence[_Socket]) -> None:
    for one in sockets:
        one.close()
