"""A pgbouncer in front of a test's database."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/bin")
NEEDS_PGBOUNCER = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Pool:
    """A pgbouncer in front of a database.

    Attributes:
        connect_string: the connection string of the pool.
    """

    def __init__(self, target: str, folder: Path, mode: str, *options: str) -> None:
        self._target = conninfo_to_dict(target)
        self._file = folder / "pgbouncer.ini"
        self._port = _free_port()
        self.connect_string = make_conninfo(target, host="127.0.0.1", port=self._port)
        self.configure(mode, *options)

    def configure(self, mode: str, *options: str) -> None:
        """Write the configuration, and let a running pgbouncer read it."""
        to = self._target
        place = f"host={to['host']} port={to['port']}"
        account = f"user={to['user']} password={to.get('password', '')}"
        lines = (
            "[databases]", f"{to['dbname']} = {place} {account}",
            "[pgbouncer]", "listen_addr = 127.0.0.1", f"listen_port = {self._port}",
            "unix_socket_dir =", "auth_type = any", "admin_users = admin",
            f"pool_mode = {mode}", "default_pool_size = 4", *options,
        )  # fmt: skip
        self._file.write_text("\n".join(lines) + "\n", "utf-8")
        self._file.chmod(0o644)

    def reload(self) -> None:
        """Let the running pgbouncer read the configuration."""
        admin = make_conninfo(self.connect_string, dbname="pgbouncer", user="admin")
        with psycopg.connect(admin, autocommit=True) as console:
            console.pgconn.exec_(b"RELOAD")

    @contextmanager
    def running(self) -> Iterator[None]:
        assert PGBOUNCER is not None
        # It does not run as root.
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        process = subprocess.Popen([PGBOUNCER, "-q", *user, str(self._file)])

        def answers() -> bool:
            assert process.poll() is None
            try:
                psycopg.connect(self.connect_string, connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        try:
            wait_until(answers)
            yield
        finally:
            process.terminate()
            process.wait(120)


@contextmanager
def pooled(target: str, mode: str, *options: str) -> Iterator[Pool]:
    """A pgbouncer that runs in front of a database."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    pool = Pool(target, folder, mode, *options)
    try:
        with pool.running():
            yield pool
    finally:
        shutil.rmtree(folder)
