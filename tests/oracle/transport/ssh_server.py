"""An SSH server of another make than our client, as a process: ``ssh_server FOLDER PASSWORD``.

The folder has its key (``host_key``), the public key of who is let in (``id.pub``), and what SFTP
sees as / (``root``). It prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh


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
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, bytes(folder / "root")),
    )
    sys.stdout.write(f"{server.get_port()}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
