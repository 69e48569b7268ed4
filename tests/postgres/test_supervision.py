"""A cluster that is killed while somebody works with it is started again, on its port."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded
from olr_pg.postgres.server_process import find_server
from olr_pg.postgres.supervision import ClusterSupervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_SECONDS = 120.0
BUSY = "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$"
"""Works on without ever waiting: it does not notice that its server is gone."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedPostgres]:
    # Not below tmp_path: pytest closes its folders to the user that PostgreSQL runs as.
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-test-"))
    started = start_embedded(folder)
    yield started
    started.stop()
    shutil.rmtree(folder)


def await_that(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # nothing tells when it does


def kill_server(cluster: EmbeddedPostgres) -> int:
    """Kill the postmaster alone; gives its pid."""
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await_that(lambda: not cluster.is_running)
    return pid


def answers(cluster: EmbeddedPostgres) -> bool:
    try:
        with psycopg.connect(cluster.connect_string) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_a_killed_server_with_a_backend_at_work_comes_back(cluster: EmbeddedPostgres) -> None:
    with psycopg.connect(cluster.connect_string, autocommit=True) as busy:
        backend = busy.info.backend_pid

        def work() -> None:
            with pytest.raises(psycopg.OperationalError):
                busy.execute(BUSY)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        with psycopg.connect(cluster.connect_string, autocommit=True) as other:
            await_that(
                lambda: other.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'", (backend,)
                ).fetchone()
            )
        port = cluster.port
        with ClusterSupervisor(cluster) as supervisor, capture_logs() as lines:
            killed = kill_server(cluster)
            assert Path(f"/proc/{backend}/cwd").exists()  # holds the shared memory
            supervisor.missed()
            await_that(lambda: answers(cluster))
            assert supervisor.missed() is None
        thread.join(WAIT_SECONDS)
    assert cluster.pid != killed
    assert cluster.port == port
    assert lines == []


def test_a_server_that_recovers_by_itself_is_left_alone(cluster: EmbeddedPostgres) -> None:
    before = cluster.pid
    with (
        ClusterSupervisor(cluster) as supervisor,
        psycopg.connect(cluster.connect_string) as connection,
    ):
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        supervisor.missed()
        await_that(lambda: answers(cluster))
    assert cluster.pid == before


def test_a_start_that_fails_is_told_once_and_tried_again(cluster: EmbeddedPostgres) -> None:
    with ClusterSupervisor(cluster) as supervisor, capture_logs() as lines:
        kill_server(cluster)
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind(("127.0.0.1", cluster.port))
            thief.listen()
            await_that(supervisor.missed)
            failure = supervisor.missed()
            assert failure is not None
            assert failure.code == 5002
            assert "server.log" in str(failure)
        await_that(lambda: answers(cluster))
        await_that(lambda: supervisor.missed() is None)
    assert [(line["log_level"], line["code"]) for line in lines] == [("error", "OLR-05002")]


def test_waiting_ends_with_its_span(cluster: EmbeddedPostgres) -> None:
    kill_server(cluster)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", cluster.port))
        thief.listen()
        with ClusterSupervisor(cluster) as supervisor:
            await_that(supervisor.missed)
    assert find_server(cluster.directory / "data") is None
    cluster.start_again()
    cluster.start_again()  # it runs: nothing is done
    assert answers(cluster)
