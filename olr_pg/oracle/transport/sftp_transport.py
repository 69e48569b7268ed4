"""Logs that are copied over SFTP from the host that Oracle archives to."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import paramiko

from olr_pg.oracle.archive import map_path, not_brought

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import SftpTransport
    from olr_pg.oracle.archive import ListedLog

_PIECE: Final = 32 << 10
"""Bytes of one request: what every server takes."""

_CONNECT_SECONDS: Final = 30

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
            self._connect(client)
            self._copy(client, map_path(listed.name, self._section.path_mapping), into)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise not_brought(listed, f"{self._place}: {_words(error)}") from error
        finally:
            client.close()
            with self._lock:
                self._clients.discard(client)

    @property
    def _place(self) -> str:
        return f"{self._section.user}@{self._section.host}:{self._section.port}"

    def _connect(self, client: paramiko.SSHClient) -> None:
        section = self._section
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

    def _copy(self, client: paramiko.SSHClient, name: str, into: Path) -> None:
        with client.open_sftp() as sftp, sftp.open(name, "rb") as remote, into.open("ab") as local:
            channel = sftp.get_channel()
            assert channel is not None  # it is open
            channel.settimeout(self._section.timeout_seconds)
            size = remote.stat().st_size
            assert size is not None  # SFTP of version 3 tells it
            done = min(local.tell(), size)
            local.truncate(done)
            local.seek(done)
            remote.seek(done)
            # One request after the other: the library's requests ahead end in a thread of their
            # own where a connection breaks. Several logs come at a time instead.
            while done < size:
                data = remote.read(min(_PIECE, size - done))
                if not data:
                    raise EOFError
                local.write(data)
                done += len(data)

    def close(self) -> None:
        """See `LogTransport.close`."""
        with self._lock:
            self._closed = True
            for client in self._clients:
                client.close()


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, EOFError):
        return "the connection ended"
    return str(error) or "the connection ended"
