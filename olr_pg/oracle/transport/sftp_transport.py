"""Reads logs over SFTP from Oracle's host: copies whole archived logs, and reads ranges of online
logs.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import paramiko
from paramiko.hostkeys import InvalidHostKey

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import open_plain
from olr_pg.oracle.archive import map_path, not_brought
from olr_pg.oracle.transport.online_ranges import ANSWER_SECONDS, SessionLost
from olr_pg.oracle.transport.sftp_channel import Refused, SftpChannel

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import SftpTransport
    from olr_pg.oracle.archive import ListedLog

_AHEAD: Final = 64
"""Maximum number of pending requests for a log's pieces."""

_CONNECT_SECONDS: Final = 30.0

_BROKEN: Final = (OSError, EOFError, paramiko.SSHException, paramiko.SFTPError)
"""Errors that mean a lost connection, a protocol failure, or a refusal."""

# Disable the library's log: it would print each error with a traceback, although it also raises the
# error.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class SftpLogs:
    """Copies logs, each over its own connection; implements `log_transport.LogTransport`."""

    def __init__(self, section: SftpTransport) -> None:
        self._section = section
        self._clients: set[paramiko.SSHClient] = set()
        self._lock = threading.Lock()
        self._closed = False

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """See `LogTransport.fetch`; it resumes after the bytes that `into` already contains.

        Raises:
            OlrPgError: 7031, the fetch failed.
        """
        client = paramiko.SSHClient()
        with self._lock:
            if self._closed:
                raise not_brought(listed, "the appliance is terminating")
            self._clients.add(client)
        try:
            _connect(client, self._section, _CONNECT_SECONDS)
            self._copy(client, map_path(listed.name, self._section.path_mapping), into)
        except _BROKEN as error:
            raise not_brought(listed, f"{self._place}: {_words(error)}") from error
        except AttributeError as error:
            if not self._closed:
                raise
            # `close` was called while the library used the client.
            raise not_brought(listed, "the appliance is terminating") from error
        finally:
            client.close()
            with self._lock:
                self._clients.discard(client)

    @property
    def _place(self) -> str:
        return f"{self._section.user}@{self._section.host}:{self._section.port}"

    def _copy(self, client: paramiko.SSHClient, name: str, into: Path) -> None:
        with open_plain(into, "ab") as local:
            channel = SftpChannel(client.get_transport(), self._section.timeout_seconds)
            remote = channel.open(name)
            size = channel.size(remote)
            done = min(local.tell(), size)
            local.truncate(done)
            local.seek(done)
            for piece in channel.pieces(remote, done, size - done, at_first=1, at_most=_AHEAD):
                local.write(piece)
            if local.tell() < size:
                raise EOFError

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            for client in self._clients:
                client.close()


def _connect(client: paramiko.SSHClient, section: SftpTransport, seconds: float) -> None:
    """Connect; `seconds` limits each step of the connection."""
    # Reject hosts whose key is unknown: another host could pretend to be Oracle's host.
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    path = None if section.known_hosts is None else str(section.known_hosts)
    try:
        client.load_system_host_keys(path)
    except (ValueError, InvalidHostKey) as error:
        # The library skips lines that it cannot parse, but not those with a part of a key.
        raise paramiko.SSHException(f"a key in {path or 'known_hosts'} is damaged") from error
    password = None if section.password is None else section.password.get_secret_value()
    client.connect(
        section.host,
        section.port,
        section.user,
        password,
        key_filename=None if section.key_file is None else str(section.key_file),
        passphrase=password if section.key_file is not None else None,
        timeout=seconds,
        banner_timeout=seconds,
        auth_timeout=seconds,
        channel_timeout=seconds,
        allow_agent=section.key_file is None and password is None,
        look_for_keys=section.key_file is None and password is None,
    )


class SftpRanges:
    """Reads ranges of files over its own connection; implements `online_ranges.RangeSession`.

    Raises:
        SessionLost: the connection cannot be opened.
    """

    def __init__(self, section: SftpTransport) -> None:
        self._section = section
        self._client = paramiko.SSHClient()
        self._files: dict[str, tuple[int, bytes]] = {}
        seconds = min(section.timeout_seconds, ANSWER_SECONDS)
        try:
            _connect(self._client, section, seconds)
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
                f"{self._section.user}@{self._section.host}: {_words(error)}",
                file=map_path(name, self._section.path_mapping),
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
        file = self._channel.open(map_path(name, self._section.path_mapping))
        self._files[name] = opened, file
        return file

    def close(self) -> None:
        """See `RangeSession.close`."""
        self._client.close()


def _words(error: Exception) -> str:
    return system_reason(error) if str(error) else "the connection ended"
