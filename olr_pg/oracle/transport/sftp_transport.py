"""Reads logs over SFTP from Oracle's host: copies whole archived logs, and reads ranges of online
logs.

`SftpHost` logs in, `SftpLogs` copies logs, and `SftpRanges` reads ranges.

`SftpChannel` is an SFTP client over an SSH channel. The client implements the part of SFTP version
3 (draft-ietf-secsh-filexfer-02) that reading needs: INIT, OPEN, FSTAT, READ and CLOSE. The client
sends requests without waiting for earlier answers; answers can arrive in any order. So a range
takes one round trip, regardless of the number of requests. The client of the library (paramiko)
waits for each answer, or reads ahead in threads that fail if a connection breaks. Paramiko's client
also waits forever if a connection breaks while a channel is opened. In this module every wait has a
time limit.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from contextlib import nullcontext
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_ssh_private_key,
)
from paramiko.hostkeys import InvalidHostKey

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.oracle.archive import map_path, not_brought
from olr_pg.oracle.transport.local_copy import LocalCopy
from olr_pg.oracle.transport.online_ranges import ANSWER_SECONDS, SessionLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.config.source_section import SftpTransport
    from olr_pg.oracle.archive import ListedLog

REQUEST_BYTES: Final = 32 << 10
"""Bytes per request; every server accepts this size."""

_WINDOW_BYTES: Final = 8 << 20
"""Maximum bytes that the server can send before this side enlarges the window."""

_ANSWER_BYTES_MAX: Final = 256 << 10
"""Maximum bytes of an answer. If a packet announces more bytes, this is a protocol error."""

_INIT, _VERSION = 1, 2
_OPEN, _CLOSE, _READ, _FSTAT = 3, 4, 5, 8
_STATUS, _HANDLE, _DATA, _ATTRS = 101, 102, 103, 105
_FOR_READING: Final = 1
_HAS_SIZE: Final = 1
_END_OF_FILE, _NO_SUCH_FILE, _PERMISSION_DENIED = 1, 2, 3
_ERRNO: Final = {_NO_SUCH_FILE: errno.ENOENT, _PERMISSION_DENIED: errno.EACCES}
_LOOK_SECONDS: Final = 0.1


class Refused(OSError):  # noqa: N818 - of the server
    """Raised if the server refuses a request, because the file does not exist or cannot be read."""


class _EndOfFile(Exception):  # noqa: N818 - no error
    """Raised if a read begins at or after the end of a file."""


class _Answered(threading.Event):
    """The event on which a channel of the library waits for an answer; it adds a time limit.

    The library waits without a limit: it checks the connection and then clears the event. If the
    connection breaks between the check and the clearing, the event is lost, because it is not set
    again.
    """

    def __init__(self, transport: paramiko.Transport, seconds: float) -> None:
        super().__init__()
        self._transport = transport
        self._seconds = seconds

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the answer. The event is also set when the time limit is reached or the
        connection ends.
        """
        end = time.monotonic() + (self._seconds if timeout is None else timeout)
        while not super().wait(_LOOK_SECONDS):
            if not self._transport.is_active() or time.monotonic() >= end:
                self.set()
        return True


class SftpChannel:
    """An SFTP channel of an SSH connection; used by one thread at a time.

    Args:
        transport: the SSH transport, connected and authenticated; None if it has ended.
        seconds: time limit for each answer.

    Raises:
        paramiko.SSHException, EOFError, OSError: the connection is lost or silent, or the server
            refuses the channel.
    """

    def __init__(self, transport: paramiko.Transport | None, seconds: float) -> None:
        if transport is None:
            raise EOFError
        self._channel = transport.open_session(window_size=_WINDOW_BYTES, timeout=seconds)
        self._channel.settimeout(seconds)
        self._channel.event = _Answered(transport, seconds)
        self._channel.invoke_subsystem("sftp")
        self._requests = 0
        self._early: dict[int, tuple[int, bytes]] = {}
        self._unwanted = set[int]()
        self._send(_INIT, struct.pack(">I", 3))
        if self._receive()[0] != _VERSION:
            raise paramiko.SFTPError("the server does not speak SFTP")

    def open(self, path: str) -> bytes:
        """Open a file; return the server's handle for the file."""
        name = os.fsencode(path)
        number = self._request(_OPEN, _string(name) + struct.pack(">II", _FOR_READING, 0))
        (length,), handle = _cut(self._answer(number, _HANDLE), ">I")
        return handle[:length]

    def size(self, handle: bytes) -> int:
        """Return the size of a file in bytes."""
        (flags,), rest = _cut(self._answer(self._request(_FSTAT, _string(handle)), _ATTRS), ">I")
        if not flags & _HAS_SIZE:
            raise paramiko.SFTPError("the server does not report the size of a file")
        ((size,), _) = _cut(rest, ">Q")
        return int(size)

    def close(self, handle: bytes) -> None:
        """Close a file."""
        self._answer(self._request(_CLOSE, _string(handle)), _STATUS)

    def read(self, handle: bytes, offset: int, size: int) -> bytes:
        """Read a range; fewer bytes are returned only at the end of the file."""
        ahead = -(-size // REQUEST_BYTES)
        return b"".join(self.pieces(handle, offset, size, at_first=ahead, at_most=ahead))

    def pieces(
        self, handle: bytes, offset: int, size: int, *, at_first: int, at_most: int
    ) -> Iterator[bytes]:
        """Read a range piece by piece, until the end of the range or of the file.

        Args:
            at_first: number of requests to send at first; each answer allows one more pending
                request. With 1, a connection that breaks early still delivers pieces, as if each
                request were sent alone.
            at_most: maximum number of pending requests.
        """
        places = iter(range(offset, offset + size, REQUEST_BYTES))
        asked = deque[tuple[int, int, int]]()
        ahead = at_first
        try:
            while True:
                for at in islice(places, ahead - len(asked)):
                    wanted = min(REQUEST_BYTES, offset + size - at)
                    asked.append((self._ask(handle, at, wanted), at, wanted))
                if not asked:
                    return
                data = self._whole(handle, *asked.popleft())
                yield data
                if len(data) < REQUEST_BYTES:  # the file ends here
                    return
                ahead = min(ahead + 1, at_most)
        finally:
            for number, _, _ in asked:
                self._forget(number)

    def _ask(self, handle: bytes, offset: int, size: int) -> int:
        return self._request(_READ, _string(handle) + struct.pack(">QI", offset, size))

    def _whole(self, handle: bytes, number: int, offset: int, size: int) -> bytes:
        """Wait for a piece. If the server returned fewer bytes, request the rest."""
        data = self._data(number, size)
        while data and len(data) < size:
            more = self._data(self._ask(handle, offset + len(data), size - len(data)), size)
            if not more:
                break
            data += more
        return data

    def _data(self, number: int, size: int) -> bytes:
        try:
            (length,), data = _cut(self._answer(number, _DATA), ">I")
        except _EndOfFile:
            return b""
        if not 0 < length <= size or length != len(data):
            raise paramiko.SFTPError("the server sent other bytes than requested")
        return data

    def _request(self, kind: int, content: bytes) -> int:
        """Send a request; return its number."""
        self._requests += 1
        self._send(kind, struct.pack(">I", self._requests) + content)
        return self._requests

    def _send(self, kind: int, content: bytes) -> None:
        self._channel.sendall(struct.pack(">IB", len(content) + 1, kind) + content)

    def _answer(self, number: int, expected: int) -> bytes:
        """Wait for the answer to a request; keep answers to other requests that arrive first."""
        while number not in self._early:
            kind, content = self._receive()
            (other,), content = _cut(content, ">I")
            if other in self._unwanted:
                self._unwanted.discard(other)
            else:
                self._early[other] = kind, content
        kind, content = self._early.pop(number)
        if kind == _STATUS:
            _raise_refusal(content)
        if kind != expected:
            raise paramiko.SFTPError(f"an answer of kind {kind} instead of {expected}")
        return content

    def _forget(self, number: int) -> None:
        if self._early.pop(number, None) is None:
            self._unwanted.add(number)

    def _receive(self) -> tuple[int, bytes]:
        """Wait for a packet; return its type and content."""
        ((length,), _) = _cut(self._receive_bytes(4), ">I")
        if not 0 < length <= _ANSWER_BYTES_MAX:
            raise paramiko.SFTPError("the server does not speak SFTP")
        packet = self._receive_bytes(length)
        return packet[0], packet[1:]

    def _receive_bytes(self, size: int) -> bytes:
        parts = list[bytes]()
        while size > 0:
            part = self._channel.recv(size)
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _raise_refusal(content: bytes) -> None:
    """Raise the error that a status message contains; do nothing if the status is success."""
    (code, length), text = _cut(content, ">II")
    if code == _END_OF_FILE:
        raise _EndOfFile
    if code:
        said = text[:length].decode("utf-8", "replace") or f"status {code} of SFTP"
        raise Refused(_ERRNO.get(code, errno.EIO), said)


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _cut(content: bytes, form: str) -> tuple[tuple[int, ...], bytes]:
    """Read numbers from the beginning of `content`; return the numbers and the remaining bytes."""
    size = struct.calcsize(form)
    if len(content) < size:
        raise paramiko.SFTPError("an answer of the server is too short")
    return struct.unpack_from(form, content), content[size:]


_AHEAD: Final = 64
"""Maximum number of pending requests for a log's pieces."""

_CONNECT_SECONDS: Final = 30.0

_REFUSED_SECONDS: Final = 60.0
_REFUSED_SECONDS_MAX: Final = 600.0
"""First and maximum time without a new attempt after the host has refused a login."""

_LOST_LOGINS: Final = frozenset(
    {"Authentication timeout.", "Authentication failed: transport shut down or saw EOF"}
)
"""What the library says of a login without an answer."""

_TERMINATING: Final = "the appliance is terminating"

_BROKEN: Final = (OSError, EOFError, UnicodeError, paramiko.SSHException, paramiko.SFTPError)
"""Errors that mean a lost connection, a protocol failure, or a refusal. UnicodeError: the name of
the host cannot be a name in DNS.
"""

# Disable the library's log: it would print each error with a traceback, although it also raises the
# error.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class _Transport(paramiko.Transport):
    """An SSH connection that asks nobody for a password.

    If the host asks for more than the configuration contains, the library would read the answer
    from this process's standard input.
    """

    def auth_interactive_dumb(
        self, username: str, handler: Any = None, submethods: str = ""
    ) -> list[str]:
        raise paramiko.AuthenticationException(
            "the host accepted the key, but also asks for a password or a code"
        )


def _transport(sock: Any, **options: Any) -> _Transport:
    return _Transport(sock, **options)  # the options depend on the version of the library


class SftpHost:
    """Logs in to the host with the logs; used by several threads.

    After the host has refused a login, there is no new attempt for some time, because hosts lock
    accounts and block addresses after several refused logins. Until a login was accepted, threads
    log in one after the other, so that a wrong password is not sent several times at once. If the
    connection is lost during a login, this counts as a refusal only if no login was accepted yet:
    some hosts end the connection instead of an answer.
    """

    def __init__(self, section: SftpTransport, clock: Callable[[], float] = time.monotonic) -> None:
        self.section = section
        self._clock = clock
        self._one = threading.Lock()
        self._accepted = self._was_accepted = False
        self._clients: set[paramiko.SSHClient] = set()
        self._closed = threading.Event()
        self._refusal = ""
        self._again = 0.0
        self._pause = _REFUSED_SECONDS

    def __str__(self) -> str:
        return f"{self.section.user}@{self.section.host}:{self.section.port}"

    def connect(self, client: paramiko.SSHClient, seconds: float) -> None:
        """Connect and log in; `seconds` limits each step.

        Raises:
            paramiko.SSHException, EOFError, OSError, UnicodeError: the connection failed, or the
                host refused the login.
        """
        with nullcontext() if self._accepted else self._one:
            left = self._again - self._clock()
            if left > 0:
                raise paramiko.AuthenticationException(
                    f"{self._refusal} (olr_pg tries to log in again in {left:.0f} s, or after a"
                    " restart)"
                )
            self._clients.add(client)
            try:
                _connect(client, self.section, seconds, self._closed)
            except paramiko.AuthenticationException as error:
                self._accepted = False
                if not (self._was_accepted and str(error) in _LOST_LOGINS):
                    self._refusal = _words(error)
                    self._again = self._clock() + self._pause
                    self._pause = min(2 * self._pause, _REFUSED_SECONDS_MAX)
                raise
            finally:
                self._clients.discard(client)
            self._accepted = self._was_accepted = True
            self._pause = _REFUSED_SECONDS

    def close(self) -> None:
        """End the logins that are in progress, and allow no more."""
        self._closed.set()
        for client in tuple(self._clients):
            client.close()


class SftpLogs:
    """Copies logs, each over its own connection; implements `log_transport.LogTransport`."""

    def __init__(self, section: SftpTransport) -> None:
        self._host = SftpHost(section)
        self._free = threading.Semaphore(section.sessions)
        self._clients: set[paramiko.SSHClient] = set()
        self._lock = threading.Lock()
        self._closed = False

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """See `LogTransport.fetch`; it resumes after the bytes that `into` already contains.

        Raises:
            OlrPgError: 7031 the fetch failed, 7030 the copy cannot be written.
        """
        while not self._free.acquire(timeout=_LOOK_SECONDS):
            self._check_open(listed)
        try:
            self._fetch(listed, into)
        finally:
            self._free.release()

    def _fetch(self, listed: ListedLog, into: Path) -> None:
        client = paramiko.SSHClient()
        with self._lock:
            self._check_open(listed)
            self._clients.add(client)
        try:
            self._host.connect(client, _CONNECT_SECONDS)
            self._copy(client, listed, into)
        except _BROKEN as error:
            raise not_brought(listed, f"{self._host}: {_words(error)}") from error
        except AttributeError as error:
            if not self._closed:
                raise
            # `close` was called while the library used the client.
            raise not_brought(listed, _TERMINATING) from error
        finally:
            client.close()
            with self._lock:
                self._clients.discard(client)

    def _check_open(self, listed: ListedLog) -> None:
        if self._closed:
            raise not_brought(listed, _TERMINATING)

    def _copy(self, client: paramiko.SSHClient, listed: ListedLog, into: Path) -> None:
        section = self._host.section
        with LocalCopy(into) as local:
            channel = SftpChannel(client.get_transport(), section.timeout_seconds)
            remote = channel.open(map_path(listed.name, section.path_mapping))
            size = channel.size(remote)
            done = local.begin(size)
            for piece in channel.pieces(remote, done, size - done, at_first=1, at_most=_AHEAD):
                self._check_open(listed)
                local.write(piece)
                done += len(piece)
            if done < size:
                raise not_brought(
                    listed, f"{self._host}: the file ended after {done} of its {size} bytes"
                )

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            self._host.close()
            for client in self._clients:
                client.close()


def _open_socket(host: str, port: int, seconds: float, closed: threading.Event) -> socket.socket:
    """Connect to the first address of a host that answers within `seconds`.

    Raises:
        OSError, UnicodeError: no address answers.
        EOFError: `closed` was set.
    """
    failure: OSError = TimeoutError()
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            code, end = sock.connect_ex(address), time.monotonic() + seconds
            while code in (errno.EINPROGRESS, errno.EALREADY):
                if closed.is_set():
                    raise EOFError
                if time.monotonic() >= end:
                    raise TimeoutError
                select.select([], [sock], [], _LOOK_SECONDS)
                code = sock.connect_ex(address)
            if code not in (0, errno.EISCONN):
                raise OSError(code, os.strerror(code))
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            sock.setblocking(True)
            return sock
    raise failure


def _connect(
    client: paramiko.SSHClient, section: SftpTransport, seconds: float, closed: threading.Event
) -> None:
    """Connect; `seconds` limits each step of the connection, and `closed` ends it."""
    # Reject hosts whose key is unknown: another host could pretend to be Oracle's host.
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    path = None if section.known_hosts is None else str(section.known_hosts)
    try:
        client.load_system_host_keys(path)
    except (ValueError, InvalidHostKey) as error:
        # The library skips lines that it cannot parse, but not those with a part of a key.
        raise paramiko.SSHException(f"a key in {path or 'known_hosts'} is damaged") from error
    except OSError as error:
        raise paramiko.SSHException(f"known-hosts {path}: {system_reason(error)}") from error
    password = None if section.password is None else section.password.get_secret_value()
    key = None
    if section.key_file is not None:
        key, is_locked = read_key(section.key_file, password)
        if is_locked:  # do not send the password of the key to the host
            password = None
    has_secret = key is not None or password is not None
    sock = _open_socket(section.host, section.port, seconds, closed)
    client.connect(
        section.host,
        section.port,
        section.user,
        password,
        pkey=key,
        timeout=seconds,
        sock=sock,
        banner_timeout=seconds,
        auth_timeout=seconds,
        channel_timeout=seconds,
        allow_agent=not has_secret,
        look_for_keys=not has_secret,
        transport_factory=_transport,
    )


_KEYS: Final = (
    (rsa.RSAPrivateKey, paramiko.RSAKey),
    (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
)


def read_key(path: Path, password: str | None) -> tuple[paramiko.PKey, bool]:
    """Read a private key in the form of OpenSSH, or in PEM; with its certificate, if a file of the
    same name and ``-cert.pub`` exists.

    Args:
        password: the password of the key, if it has one.

    Returns:
        The key, and whether it has a password.

    Raises:
        paramiko.SSHException: a file cannot be read, or is no such key or certificate.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise paramiko.SSHException(f"key-file {path}: {system_reason(error)}") from error
    load = load_ssh_private_key if b"BEGIN OPENSSH" in data else load_pem_private_key
    is_locked = False
    try:
        try:
            private = load(data, None)
        except TypeError:  # it has a password
            is_locked = True
            if password is None:
                reason = "the key has a password: set `source.transport.password`"
                raise paramiko.SSHException(f"key-file {path}: {reason}") from None
            private = load(data, password.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        wrong = "the password of the key is wrong"
        reason = wrong if is_locked else "the file is not a private key"
        raise paramiko.SSHException(f"key-file {path}: {reason}") from error
    for form, kind in _KEYS:
        if isinstance(private, form):
            plain = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            key = kind.from_private_key(StringIO(plain.decode()))
            certificate = path.with_name(f"{path.name}-cert.pub")
            if certificate.is_file():
                try:
                    key.load_certificate(str(certificate))
                except (OSError, ValueError) as error:
                    raise paramiko.SSHException(
                        f"certificate {certificate}: {system_reason(error)}"
                    ) from error
            return key, is_locked
    raise paramiko.SSHException(f"key-file {path}: neither RSA, ECDSA nor Ed25519")


class SftpRanges:
    """Reads ranges of files over its own connection; implements `online_ranges.RangeSession`.

    Raises:
        SessionLost: the connection cannot be opened.
    """

    def __init__(self, host: SftpHost) -> None:
        self._host = host
        self._mapping = host.section.path_mapping
        self._client = paramiko.SSHClient()
        self._files: dict[str, tuple[int, bytes]] = {}
        seconds = min(host.section.timeout_seconds, ANSWER_SECONDS)
        try:
            host.connect(self._client, seconds)
            self._channel = SftpChannel(self._client.get_transport(), seconds)
        except _BROKEN as error:
            self._client.close()
            raise SessionLost(_words(error)) from error

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """See `RangeSession.read`.

        Raises:
            SessionLost: the connection is lost or silent.
            OlrPgError: 2002, the file cannot be read.
        """
        try:
            return self._channel.read(self._file(name, opened), offset, size)
        except Refused as error:
            raise OlrPgError(
                Code.LOG_UNREADABLE,
                f"{self._host}: {_words(error)}",
                file=map_path(name, self._mapping),
            ) from error
        except _BROKEN as error:
            raise SessionLost(_words(error)) from error

    def _file(self, name: str, opened: int) -> bytes:
        known = self._files.get(name)
        if known is not None and known[0] == opened:
            return known[1]
        if known is not None:
            del self._files[name]
            self._channel.close(known[1])
        file = self._channel.open(map_path(name, self._mapping))
        self._files[name] = opened, file
        return file

    def close(self) -> None:
        """See `RangeSession.close`."""
        self._client.close()


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the host did not answer in time"
    return system_reason(error) if str(error) else "the connection ended"
