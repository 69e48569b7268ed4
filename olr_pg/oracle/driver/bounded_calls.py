"""Connections to Oracle with time limits that also hold if the network is silent.

The driver limits the time of TCP's connect and of each call on a connection. The driver does not
limit the login, which comes between the connect and the first call: a proxy that accepts a
connection and sends nothing blocks a login forever. The time limit of a call must be long enough
for the longest query, so it detects a lost connection late. Therefore this module watches the
sockets. A Python audit hook reports each socket that connects in a thread.

- A login can take `LOGIN_SECONDS`.
- While `giving_up_silence` is active, a connection that has received nothing for `SILENT_SECONDS`
  is suspected to be lost, and a test login is tried. If the test login gets no answer either, the
  connection's socket is shut down, and the driver reports a lost connection. If Oracle answers the
  test login, the call is only slow and continues.

In thick mode Python has no access to the sockets; there SQLNET.RECV_TIMEOUT in sqlnet.ora limits
both the login and the calls.
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

_TCP_INFO: Final[int] = getattr(socket, "TCP_INFO", -1)  # valid only on Linux
_TCP_INFO_BYTES: Final = 136
_RECEIVED: Final = struct.Struct("=128xQ")
"""Reads tcpi_bytes_received from Linux's `struct tcp_info`."""

_log = structlog.get_logger(__name__)
_connecting = threading.local()


class SilenceError(oracledb.OperationalError):
    """Raised if Oracle answers neither the connection nor a test login."""


class HostError(oracledb.OperationalError):
    """Raised if the host of Oracle cannot be found. The driver lets the error of the system's
    resolver through (``socket.gaierror``), which is no error of the driver.
    """


class _Socket:
    """The socket of a connection. This descriptor is a duplicate, because the driver can wrap and
    close its own descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))

    def shut(self) -> None:
        """Shut the connection down, so that a thread that waits for an answer returns at once."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the duplicated descriptor; the driver's connection is not affected."""
        self._socket.close()

    def received(self) -> int:
        """Return the number of bytes received; 0 if the system does not report it."""
        try:
            found = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        except OSError:
            return 0
        return _RECEIVED.unpack(found)[0] if len(found) == _TCP_INFO_BYTES else 0


@cache
def _listen_to_sockets() -> None:
    """Install the audit hook that reports connecting sockets to `_connecting`; Python cannot remove
    the hook again.
    """
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        heard = getattr(_connecting, "sockets", None)
        if heard is not None:
            heard.append(_Socket(arguments[0].fileno()))


class BoundedCalls:
    """Opens connections to one database, and ends connections whose calls get no answer.

    Args:
        arguments: the arguments for `oracledb.connect`, also used for the test login.
        silent_seconds, login_seconds: see the docstring of the module.
    """

    def __init__(
        self,
        arguments: dict[str, Any],
        *,
        silent_seconds: float = SILENT_SECONDS,
        login_seconds: float = LOGIN_SECONDS,
    ) -> None:
        self._arguments = arguments
        self._silent_seconds = silent_seconds
        self._login_seconds = login_seconds
        self._probe_seconds = _PROBE_SECONDS
        self._lock = threading.Lock()
        self._calls: set[_Call] = set()
        self._sockets = WeakKeyDictionary[object, _Socket]()
        self._watching: Periodic | None = None
        self._probed_at = 0.0

    def connect(self, seconds: float | None = None) -> oracledb.Connection:
        """Connect as `oracledb.connect` does, but within a time limit.

        Args:
            seconds: the time limit.

        Raises:
            oracledb.Error: the driver's error.
            SilenceError: Oracle does not answer.
            HostError: the host of Oracle cannot be found.
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
                raise SilenceError(f"Oracle has not answered a login for {bound:g} s") from error
            if isinstance(error, socket.gaierror):
                reason = system_reason(error)
                raise HostError(f"the host of the address cannot be found: {reason}") from error
            raise
        finally:
            timer.cancel()
            _connecting.sockets = None
        _close_all(heard[:-1])  # sockets of earlier addresses and redirections
        if heard:  # there is none in thick mode
            # Close the duplicate even if the connection is only garbage-collected. Otherwise the
            # server would see it open forever.
            finalize(connection, heard[-1].close)
            with self._lock:
                self._sockets[connection] = heard[-1]
        return connection

    def closed(self, connection: object) -> None:
        """Close the duplicated socket of a connection that was closed."""
        with self._lock:
            known = self._sockets.pop(connection, None)
        if known is not None:
            known.close()

    @contextmanager
    def giving_up_silence(self, connection: object) -> Iterator[None]:
        """While the context is active, end the connection if it is silent and a test login is not
        answered.

        Raises:
            SilenceError: the connection was ended. SilenceError is raised instead of the driver's
                error.
        """
        with self._lock:
            known = self._sockets.get(connection)
            call = None if known is None else _Call(known)
            if call is not None:
                if self._watching is None:
                    tick = min(_TICK_SECONDS, self._silent_seconds / 4)
                    watching = Periodic("olr-oracle-watch", tick, self._look)
                    watching.start()
                    self._watching = watching
                self._calls.add(call)
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
        """Stop the watching thread."""
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
        # A login is expensive for the database: do not log in every second during a long query.
        is_early = time.monotonic() - self._probed_at < self._silent_seconds
        if not silent or is_early or self._is_answered():
            return
        for one in silent:
            reason = f"Oracle has not answered for {one.silent_seconds():.0f} s"
            _log.warning("closing a connection to Oracle that does not answer", reason=reason)
            with self._lock:
                if one in self._calls:
                    one.given_up = reason
                    one.socket.shut()

    def _is_answered(self) -> bool:
        """Return whether Oracle answers a new connection; an error also counts as an answer."""
        try:
            probe = self.connect(self._probe_seconds)
        except oracledb.Error as error:
            _log.debug("a test login to Oracle failed", reason=system_reason(error))
            return not isinstance(error, SilenceError) and "ORA-" in str(error)
        finally:
            self._probed_at = time.monotonic()
        with suppress(oracledb.Error):
            probe.close()
        self.closed(probe)
        return True


class _Call:
    """A call on a connection. The object records when data last arrived.

    Attributes:
        given_up: the reason why the connection was ended; None if it was not ended.
    """

    def __init__(self, known: _Socket) -> None:
        self.socket = known
        self._received = known.received()
        self._at = time.monotonic()
        self.given_up: str | None = None

    def silent_seconds(self) -> float:
        """Return the number of seconds since data last arrived."""
        received, now = self.socket.received(), time.monotonic()
        if received != self._received:
            self._received, self._at = received, now
        return now - self._at


def _close_all(sockets: Sequence[_Socket]) -> None:
    for one in sockets:
        one.close()
