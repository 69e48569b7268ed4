"""Connection poolers: one that shares sessions is refused, one that does not is used."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.target import pooler
from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/bin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def pooled(target: str, mode: str, size: int = 4) -> Iterator[str]:
    """A pgbouncer in front of a database: the connection string of the pool."""
    parts = psycopg.conninfo.conninfo_to_dict(target)
    port = _free_port()
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\n{parts['dbname']} = host={parts['host']} port={parts['port']}"
        f" user={parts['user']} password={parts.get('password', '')}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
        f"pool_mode = {mode}\ndefault_pool_size = {size}\nunix_socket_dir =\n",
        "utf-8",
    )
    file.chmod(0o644)
    assert PGBOUNCER is not None
    # It does not run as root.
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    pool = subprocess.Popen([PGBOUNCER, "-q", *user, str(file)])
    try:
        string = psycopg.conninfo.make_conninfo(target, host="127.0.0.1", port=port)
        until = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(string, connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                assert pool.poll() is None
                assert time.monotonic() < until
        yield string
    finally:
        pool.terminate()
        pool.wait(120)
        shutil.rmtree(folder)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_one_that_shares_sessions_is_refused(postgres_database: str, mode: str) -> None:
    with pooled(postgres_database, mode) as string:
        with pytest.raises(OlrPgError) as caught:
            connect(string)
        assert caught.value.code == Code.POOLER_SHARES_SESSIONS


@pytest.mark.parametrize("size", [1, 4])
def test_one_that_gives_a_session_to_keep_is_used(
    postgres_database: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooler, "_WAIT_SECONDS", 1.0)
    with pooled(postgres_database, "session", size) as string, connect(string) as connection:
        pid = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert pid != (connection.info.backend_pid,)
        row = connection.execute("SHOW session_replication_role").fetchone()
        assert row == ("replica",)
