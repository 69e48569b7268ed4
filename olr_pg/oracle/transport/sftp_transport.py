"""Logs that are read over SFTP from the host that has them: archived whole, online by ranges."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

import paramiko

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import open_plain
from olr_pg.oracle.archive import map_path, not_brought
from olr_pg.oracle.transport.online_ranges import ANSWER_SECONDS, SessionLost
from olr_pg.ordered_window import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.config.source_section import SftpTransport
    from olr_pg.oracle.archive import ListedLog

_PIECE: Final = 32 << 10
"""Bytes of one request: what every server takes."""

_CHANNELS_MAX: Final = 4
"""Of a connection, each with one request: sshd grants ten, and two logs may come at a time."""

_CONNECT_SECONDS: Final = 30

_LOST: Final = (
    EOFError,
    paramiko.SSHException,
    paramiko.SFTPError,
    TimeoutError,
    ConnectionError,
)
"""What tells that a connection is lost, or that its other end has lost its way."""

# What goes wrong is in the errors that are raised; the library would log it with a traceback.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class SftpLogs:
    """Copies logs, each over a connection of its own; a `log_transport.LogTransport`."""

    def __init__(self, section: SftpTransport) -> None:
        self._section = section
        self._clients: set[paramiko.SSHClient] = set()
        self._lock = threading.Lock()
        self._closed = False

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """See `LogTransport.fetch`; it goes on behind what `into` has.

        Raises:
            OlrPgError: 7031.
        """
        client = paramiko.SSHClient()
        with self._lock:
            if self._closed:
                raise not_brought(listed, "the appliance ends")
            self._clients.add(client)
        try:
            _connect(client, self._section)
            self._copy(client, map_path(listed.name, self._section.path_mapping), into)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise not_brought(listed, f"{self._place}: {_words(error)}") from error
        except AttributeError as error:
            if not self._closed:
                raise
            # `close` has closed the client under the library's hands.
            raise not_brought(listed, "the appliance ends") from error
        finally:
            client.close()
            with self._lock:
                self._clients.discard(client)

    @property
    def _place(self) -> str:
        return f"{self._section.user}@{self._section.host}:{self._section.port}"

    def _copy(self, client: paramiko.SSHClient, name: str, into: Path) -> None:
        with (
            # The files are closed last, here: Python's collector cannot close the library's, and
            # says so on stderr.
            ExitStack() as opened,
            ThreadPoolExecutor(_CHANNELS_MAX, "olr-sftp") as pool,
            open_plain(into, "ab") as local,
        ):

            def open_file() -> paramiko.SFTPFile:
                return opened.enter_context(self._open(client, name))

            try:
                first = open_file()
                size = first.stat().st_size
                assert size is not None  # SFTP of version 3 tells it
                done = min(local.tell(), size)
                local.truncate(done)
                local.seek(done)
                for piece in _pieces(pool, first, open_file, done, size):
                    local.write(piece)
            finally:
                # Before the pool's end: nobody waits for an answer any more.
                client.close()

    def _open(self, client: paramiko.SSHClient, name: str) -> paramiko.SFTPFile:
        """Open the file over a channel of its own."""
        return _open_sftp(client, self._section.timeout_seconds).open(name, "rb")

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            for client in self._clients:
                client.close()


def _connect(client: paramiko.SSHClient, section: SftpTransport) -> None:
    # A host that is not known is refused: it might be anybody's.
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    if section.known_hosts is None:
        client.load_system_host_keys()
    else:
        client.load_system_host_keys(str(section.known_hosts))
    password = None if section.password is None else section.password.get_secret_value()
    client.connect(
        section.host,
        section.port,
        section.user,
        password,
        key_filename=None if section.key_file is None else str(section.key_file),
        passphrase=password if section.key_file is not None else None,
        timeout=_CONNECT_SECONDS,
        banner_timeout=_CONNECT_SECONDS,
        auth_timeout=_CONNECT_SECONDS,
        channel_timeout=_CONNECT_SECONDS,
        allow_agent=section.key_file is None and password is None,
        look_for_keys=section.key_file is None and password is None,
    )


def _open_sftp(client: paramiko.SSHClient, seconds: float) -> paramiko.SFTPClient:
    """Open SFTP over a channel of its own, each answer of which may take so many seconds.

    Raises:
        EOFError, OSError, paramiko.SSHException: the connection broke, or does not answer.
    """
    transport = client.get_transport()
    if transport is None:
        raise paramiko.SSHException("the connection ended")
    channel = transport.open_session(timeout=seconds)
    channel.settimeout(seconds)
    # The library waits for this answer without a bound: also for ever, if the connection ends in
    # the moment before it begins to wait.
    bound = threading.Timer(seconds, channel.event.set)
    bound.start()
    try:
        channel.invoke_subsystem("sftp")
    finally:
        bound.cancel()
    return paramiko.SFTPClient(channel)


class SftpRanges:
    """Reads ranges of files over a connection of its own; an `online_ranges.RangeSession`.

    Raises:
        SessionLost: it cannot be made.
    """

    def __init__(self, section: SftpTransport) -> None:
        self._section = section
        self._client = paramiko.SSHClient()
        self._files: dict[str, tuple[int, paramiko.SFTPFile]] = {}
        try:
            _connect(self._client, section)
            self._sftp = _open_sftp(self._client, min(section.timeout_seconds, ANSWER_SECONDS))
        except (OSError, EOFError, paramiko.SSHException) as error:
            self._client.close()
            raise SessionLost(_words(error)) from error

    def read(self, name: str, opened: int, offset: int, size: int) -> bytes:
        """See `RangeSession.read`.

        Raises:
            SessionLost: the connection is lost, or does not answer.
            OlrPgError: 2002, the file cannot be read.
        """
        parts = list[bytes]()
        try:
            file = self._file(name, opened)
            while size > 0:
                file.seek(offset)
                part = file.read(min(size, _PIECE))
                if not part:
                    break
                parts.append(part)
                offset += len(part)
                size -= len(part)
        except _LOST as error:
            raise SessionLost(_words(error)) from error
        except OSError as error:
            # SFTP's own answers have a number of the system, or its words; a socket's end has none.
            if not self._is_alive():
                raise SessionLost(_words(error)) from error
            raise OlrPgError(
                Code.LOG_UNREADABLE,
                f"{self._section.user}@{self._section.host}: {_words(error)}",
                file=map_path(name, self._section.path_mapping),
            ) from error
        return b"".join(parts)

    def _is_alive(self) -> bool:
        transport = self._client.get_transport()
        return transport is not None and transport.is_active()

    def _file(self, name: str, opened: int) -> paramiko.SFTPFile:
        known = self._files.get(name)
        if known is not None and known[0] == opened:
            return known[1]
        if known is not None:
            del self._files[name]
            known[1].close()
        file = self._sftp.open(map_path(name, self._section.path_mapping), "rb")
        self._files[name] = opened, file
        return file

    def close(self) -> None:
        """See `RangeSession.close`."""
        # The connection first: nobody waits for the answers to what closes the files then.
        self._client.close()
        for _, file in self._files.values():
            with suppress(OSError, EOFError, paramiko.SSHException):
                file.close()
        self._files.clear()


def _pieces(
    pool: ThreadPoolExecutor,
    first: paramiko.SFTPFile,
    open_again: Callable[[], paramiko.SFTPFile],
    start: int,
    size: int,
) -> Iterator[bytes]:
    """Read a file in order, several pieces at a time.

    Each is read over a channel of its own, in a thread of ours: the library's own requests ahead
    end in a thread of its own where a connection breaks. With each piece that came there is one
    more, so that a connection which breaks soon gets as far as one request after the other does.

    Args:
        first: the file, open.
        open_again: opens it over another channel.
        start: where to begin.

    Raises:
        EOFError: it is shorter.
        OSError, paramiko.SSHException: the connection broke, or the server refuses.
    """
    idle = SimpleQueue[paramiko.SFTPFile]()
    idle.put(first)

    def read(at: int) -> bytes:
        remote = idle.get()
        try:
            remote.seek(at)
            wanted = min(_PIECE, size - at)
            data = remote.read(wanted)
        finally:
            idle.put(remote)
        if len(data) < wanted:
            raise EOFError
        return data

    channels, most = 1, _CHANNELS_MAX
    places = range(start, size, _PIECE)
    with closing(in_order(places, lambda at: pool.submit(read, at), lambda: channels)) as found:
        for at, data in found:
            yield data
            if channels < most and at + channels * _PIECE < size:  # there is a piece for one more
                try:
                    idle.put(open_again())
                    channels += 1
                except paramiko.ChannelException:
                    most = channels  # the server grants no more (sshd's MaxSessions)


def _words(error: Exception) -> str:
    return system_reason(error) if str(error) else "the connection ended"
