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

The driver's errors become errors with codes of the error catalogue (`oracle_error`).
"""

from __future__ import annotations

import os
import re
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
import sqlalchemy.exc
import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason, without_noise
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.redaction import mask

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


CREDENTIALS: Final = Code.ORACLE_LOGIN_REFUSED
SERVICE: Final = Code.ORACLE_SERVICE_UNKNOWN
PRIVILEGE: Final = Code.ORACLE_PRIVILEGE
SNAPSHOT_AGE: Final = Code.ORACLE_SNAPSHOT_TOO_OLD
NOT_REACHED: Final = Code.SCN_NOT_REACHED
TIMEOUT: Final = Code.ORACLE_TIMEOUT
LOST: Final = Code.ORACLE_CONNECTION_LOST
NOT_OPEN: Final = Code.ORACLE_NOT_OPEN
UNREACHABLE: Final = Code.ORACLE_UNREACHABLE
CLIENT_LIBRARY: Final = Code.ORACLE_CLIENT_LIBRARY
OTHER: Final = Code.ORACLE_ERROR
NO_PLACE: Final = Code.ORACLE_ADDRESS_INVALID

_TRANSIENT: Final = frozenset({UNREACHABLE, LOST, NOT_OPEN})
"""Errors that an immediate retry can resolve."""

PASSING: Final = _TRANSIENT | {
    TIMEOUT,
    SERVICE,
    Code.STANDBY_INCARNATION,
    Code.SOURCE_IS_SNAPSHOT_STANDBY,
}
"""Errors that a later retry can resolve: the database restarts, is overloaded or changes its
role.
"""

_CODES: Final[dict[str, int]] = {
    **dict.fromkeys(("ORA-01017", "ORA-01005", "ORA-28000", "ORA-28001", "ORA-01045"), CREDENTIALS),
    **dict.fromkeys(("DPY-6001", "DPY-6003", "ORA-12514", "ORA-12505"), SERVICE),
    "ORA-65011": SERVICE,  # there is no such PDB
    # The database is starting, shutting down or only mounted: ordinary users cannot log in, or can
    # read only fixed views.
    **dict.fromkeys(("ORA-01033", "ORA-01109", "ORA-01219"), NOT_OPEN),
    **dict.fromkeys(("ORA-00942", "ORA-01031", "ORA-01720", "ORA-41900"), PRIVILEGE),
    **dict.fromkeys(("ORA-01555", "ORA-08180", "ORA-01466", "ORA-22924"), SNAPSHOT_AGE),
    # ORA-08181 means an SCN in the future. If undo has expired, the error is ORA-01555.
    "ORA-08181": NOT_REACHED,
    **dict.fromkeys(("DPY-4024", "ORA-01013", "ORA-03136"), TIMEOUT),
    **dict.fromkeys(
        (
            *("ORA-03113", "ORA-03114", "ORA-03135", "ORA-00028", "ORA-01012"),
            *("ORA-01034", "ORA-01089", "ORA-01090", "ORA-01092", "ORA-12537", "ORA-12571"),
            *("ORA-12528", "ORA-12526", "ORA-02396", "DPY-4011", "DPY-1001", "DPY-6010"),
            # Restricted mode, or all processes or sessions are in use: the database accepts
            # connections later.
            *("ORA-12527", "ORA-01035", "ORA-00018", "ORA-00020"),
            *("ORA-12516", "ORA-12518", "ORA-12519", "ORA-12520"),
        ),
        LOST,
    ),
    **dict.fromkeys(
        ("DPY-6005", "DPY-6000", "ORA-12541", "ORA-12170", "ORA-12543", "ORA-12545"), UNREACHABLE
    ),
    **dict.fromkeys(
        (
            *("DPY-4000", "DPY-4017", "DPY-4018", "DPY-4021", "DPY-4026", "DPY-4027"),
            *("DPY-2049", "DPY-2056"),
        ),
        NO_PLACE,
    ),
    # The thin mode does not support a release before 12.1, native network encryption, or an old
    # password verifier.
    **dict.fromkeys(("DPY-3010", "DPY-3001", "DPY-3015"), CLIENT_LIBRARY),
    **dict.fromkeys(("DPI-1047", "DPI-1072", "DPY-2019", "DPY-2053"), CLIENT_LIBRARY),
}
_NUMBER: Final = re.compile(r"\b(?:ORA|DPY|DPI)-\d{4,5}\b")
_CONNECTION_ID: Final = re.compile(r"\s*\(CONNECTION_ID=[^)]*\)")


_ROW_DETAILS: Final = "ORA-03301"
_RAISED: Final = re.compile(r"(ORA-20\d{3}): .*")
_VALUES: Final = (
    re.compile(r"(?<=string value containing ).+(?= to a number)"),
    re.compile(r"(?<=: value ).+?(?= (?:greater|larger) than )"),
    re.compile(r"'(?:[^']|'')*'"),
)


def _without_values(text: str) -> str:
    """Return the message of an error of a statement that writes rows, without values of the rows.

    Since 23ai, Oracle's messages contain values: of a duplicate key (ORA-03301; the parameter
    ERROR_MESSAGE_DETAILS is on by default), of a text that is not a number (ORA-01722), and of a
    number that is too large (ORA-01438). An error that PL/SQL raises (ORA-20000 to ORA-20999) can
    contain any text, in several lines, up to the next number of an error.
    """
    lines, is_left_out = list[str](), False
    for line in text.splitlines():
        if _NUMBER.match(line):
            is_left_out = line.startswith(_ROW_DETAILS)
            raised = _RAISED.match(line)
            if raised is not None:
                lines.append(f"{raised[1]}: PL/SQL of the database raised this error")
                is_left_out = True
        if not is_left_out:
            for value in _VALUES:
                line = value.sub("…", line)
            lines.append(line)
    return "\n".join(lines)


def oracle_error(
    error: Exception, doing: str, *, action: str | None = None, of_rows: bool = False
) -> OlrPgError:
    """Convert an error of the driver, or the error with which SQLAlchemy wraps it, to an error with
    a code.

    Args:
        doing: the failed operation, for the message: "reading V$DATABASE".
        action: the action to recommend; None for the action of the error catalogue.
        of_rows: whether the statement had values of rows, which the message must not contain.
    """
    original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    text = _words(original if isinstance(original, BaseException) else error, of_rows=of_rows)
    # The first number belongs to the outermost error ("cannot connect"); the number of the reason
    # follows.
    numbers = _NUMBER.findall(text)
    codes = [_CODES[number] for number in numbers if number in _CODES]
    specific = [code for code in codes if code != UNREACHABLE]
    code = (specific or codes or [OTHER])[0]
    if isinstance(original, SilenceError):
        code = TIMEOUT
    elif isinstance(original, HostError):
        code = UNREACHABLE
    return OlrPgError(code, f"{doing}: {mask(text)}", action=action)


def is_transient(error: BaseException) -> bool:
    """Return whether an immediate retry can help."""
    return isinstance(error, OlrPgError) and error.code in _TRANSIENT


def _words(error: BaseException, *, of_rows: bool) -> str:
    """Join the meaningful lines of the error into one line."""
    if isinstance(error, sqlalchemy.exc.DBAPIError) and isinstance(error.orig, oracledb.Error):
        error = error.orig
    text = _without_values(str(error)) if of_rows else str(error)
    said = (line.rstrip(" .") for line in without_noise(text).splitlines())
    lines = [line for line in said if line and not line.startswith("Help:")]
    return _CONNECTION_ID.sub("", ": ".join(lines)) or plain_reason(error)
