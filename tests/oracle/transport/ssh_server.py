"""An SSH server of another make than our client, as a process: ``ssh_server FOLDER PASSWORD``.

The folder has its key (``host_key``), the public key of who is let in (``id.pub``), and what SFTP
sees as / (``root``). It prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh

HELD = b"held.arc"
"""The end of a file's name of which the second piece comes only once the third is asked for."""

PIECE = 32 << 10


class _Files(asyncssh.SFTPServer):
    """The files below the folder."""

    _third_asked = asyncio.Event()

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        file = super().open(path, pflags, attrs)
        self._held = path.endswith(HELD)
        return file

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        if self._held and offset == 2 * PIECE:
            self._third_asked.set()
        if self._held and offset == PIECE:
            await self._third_asked.wait()
        data = super().read(file_obj, offset, size)
        assert isinstance(data, bytes)
        return data


class _Server(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("oracle", sys.argv[2])


async def _serve(folder: Path) -> None:
    server = await asyncssh.create_server(
        _Server,
        "127.0.0.1",
        0,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "id.pub"),
        sftp_factory=lambda channel: _Files(channel, bytes(folder / "root")),
    )
    sys.stdout.write(f"{server.get_port()}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
