"""OpenSSH's own server: the one that Oracle's hosts have."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
AS_NOBODY = os.geteuid() == 0
"""As root it would need a user of its own."""

NEEDS_OPENSSH = pytest.mark.skipif(
    SSHD is None or (AS_NOBODY and shutil.which("setpriv") is None),
    reason="sshd is not installed (or setpriv, as root)",
)


class OpenSsh:
    """A server on the loopback address, and the key that it lets in.

    Attributes:
        archive: a directory that its user may read.
        key: the private key.
        log: what the server says.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self.archive, self.key, self.log = folder / "archive", folder / "id", folder / "log"
        self.archive.mkdir()
        own, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        own.write_private_key(str(folder / "host_key"))
        user.write_private_key(str(self.key))
        (folder / "host_key").chmod(0o600)
        user.write_public_key(str(folder / "authorized"))
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = int(server.getsockname()[1])
        public = own.export_public_key().decode()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}", "utf-8")
        lines = (
            *options,  # the first of several values counts
            f"Port {self.port}", "ListenAddress 127.0.0.1", "PidFile none", "StrictModes no",
            # Otherwise an account without a password counts as locked.
            "UsePAM yes", f"AuthorizedKeysFile {folder / 'authorized'}",
            f"HostKey {folder / 'host_key'}", "Subsystem sftp internal-sftp", "LogLevel VERBOSE",
        )  # fmt: skip
        (folder / "config").write_text("\n".join(lines) + "\n", "utf-8")

    def section(self, **changes: Any) -> dict[str, Any]:
        """The configuration's `source.transport`."""
        user = "nobody" if AS_NOBODY else pwd.getpwuid(os.geteuid()).pw_name
        return {
            "kind": "sftp",
            "host": "127.0.0.1",
            "port": self.port,
            "user": user,
            "key-file": str(self.key),
            "known-hosts": str(self._folder / "known_hosts"),
            "path-mapping": ["/arch", str(self.archive)],
            **changes,
        }

    @contextmanager
    def letting_in(self, public: str) -> Iterator[None]:
        """Another key is let in, too."""
        authorized = self._folder / "authorized"
        before = authorized.read_text("utf-8")
        authorized.write_text(f"{before}\n{public}\n", "utf-8")
        yield
        authorized.write_text(before, "utf-8")

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [str(SSHD), "-D", "-e", "-f", str(self._folder / "config")]
        if AS_NOBODY:
            nobody = pwd.getpwnam("nobody")
            ids = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
            command = ["setpriv", *ids, *command]
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        with self.log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: self._listens(process))
            yield
        finally:
            process.terminate()
            process.wait(60)

    def _listens(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, self.log.read_text("utf-8")
        return b"Server listening" in self.log.read_bytes()


@contextmanager
def open_ssh(*options: str) -> Iterator[OpenSsh]:
    """A server that runs, with these lines in its configuration."""
    # Another user must be able to look into it, as into no folder of a test's own.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = OpenSsh(folder, *options)
        with server.running():
            yield server
