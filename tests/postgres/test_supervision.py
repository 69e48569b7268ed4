"""An embedded PostgreSQL that was killed runs again, on its port, with all that it had."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.postgres.embedded import EmbeddedPostgres
from olr_pg.postgres.supervision import Supervisor, supervised
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_SECONDS = 60
AGAIN = "embedded PostgreSQL had stopped and was restarted"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedPostgres]:
    with own_cluster() as made:
        yield made


def answers(cluster: EmbeddedPostgres) -> bool:
    try:
        with psycopg.connect(cluster.connect_string, connect_timeout=5) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def kill(cluster: EmbeddedPostgres) -> int:
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(cluster.is_gone, WAIT_SECONDS)
    return pid


def test_a_killed_server_is_started_again_and_told_of_once(cluster: EmbeddedPostgres) -> None:
    with psycopg.connect(cluster.connect_string) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with capture_logs() as lines, supervised(cluster):
        pid = kill(cluster)
        wait_until(lambda: bool(lines), WAIT_SECONDS)
        assert answers(cluster)
        assert cluster.pid not in (None, pid)
        with psycopg.connect(cluster.connect_string) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (7,)
    assert [line["event"] for line in lines] == [AGAIN]


def test_a_backend_that_is_still_at_work_does_not_hinder_the_start(
    cluster: EmbeddedPostgres,
) -> None:
    """It never waits, so it does not notice that its server is gone; it holds the shared memory."""
    busy = psycopg.connect(cluster.connect_string, autocommit=True)
    backend = busy.info.backend_pid

    def work() -> None:
        with pytest.raises(psycopg.OperationalError):
            busy.execute("DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    with psycopg.connect(cluster.connect_string, autocommit=True) as other:
        wait_until(lambda: other.execute(at_work, (backend,)).fetchone() == (1,), WAIT_SECONDS)
    with capture_logs() as lines, supervised(cluster):
        kill(cluster)
        assert Path(f"/proc/{backend}/cwd").exists()
        wait_until(lambda: bool(lines), WAIT_SECONDS)
        assert answers(cluster)
    thread.join(WAIT_SECONDS)
    busy.close()
    assert [line["log_level"] for line in lines] == ["warning"]


def test_one_killed_backend_is_the_servers_own_affair(cluster: EmbeddedPostgres) -> None:
    pid = cluster.pid
    with capture_logs() as lines, supervised(cluster):
        with psycopg.connect(cluster.connect_string) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        wait_until(lambda: answers(cluster), WAIT_SECONDS)
    assert (cluster.pid, lines) == (pid, [])


def test_what_cannot_start_is_tried_in_series_until_it_can(cluster: EmbeddedPostgres) -> None:
    over = threading.Event()
    supervisor = Supervisor(cluster, over, look_seconds=0.01, rest_seconds=0.01, attempts=2)
    kill(cluster)
    with capture_logs() as lines, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", cluster.port))
        other.listen()
        thread = threading.Thread(target=supervisor.run)
        thread.start()
        wait_until(lambda: any(line["log_level"] == "error" for line in lines), WAIT_SECONDS)
        other.close()
        wait_until(lambda: lines[-1]["event"] == AGAIN, WAIT_SECONDS)
        over.set()
        thread.join()
    refused = [line for line in lines if line["log_level"] == "error"]
    assert refused[0]["code"] == "OLR-05002"
    assert len(lines) == 1 + len(refused)


def test_it_ends_while_it_waits(cluster: EmbeddedPostgres) -> None:
    over = threading.Event()
    thread = threading.Thread(target=Supervisor(cluster, over, look_seconds=3600).run)
    thread.start()
    over.set()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
