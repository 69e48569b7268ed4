"""An SFTP client over an SSH channel that reads ranges of files.

The client implements the part of SFTP version 3 (draft-ietf-secsh-filexfer-02) that reading needs:
INIT, OPEN, FSTAT, READ and CLOSE. It sends requests without waiting for earlier answers, which can
arrive in any order. So a range takes one round trip, regardless of the number of requests. The
client of the library (paramiko) waits for each answer, or reads ahead in threads that fail if a
connection breaks. It also waits forever if a connection breaks while a channel is opened. In this
module every wait has a time limit.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import paramiko

if TYPE_CHECKING:
    from collections.abc import Iterator

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
