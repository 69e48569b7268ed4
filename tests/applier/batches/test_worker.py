"""Workers: commits that do not wait for the disk, the room that they share, when batches begin.

Several workers: tables share them, and none holds the others back.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.batches import table_queue
from olr_pg.applier.batches.shared_state import SharedState
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.batches.worker import Worker, WorkerTime
from olr_pg.postgres.embedded import start_embedded
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


Replication = Any  # tests/applier/conftest.py


@pytest.fixture
def idle_disk(
    cluster_folder: Path, replicate: Callable[[str], Replication]
) -> Iterator[Replication]:
    """A server of its own that brings nothing to disk unless a commit waits for it."""
    cluster = start_embedded(cluster_folder)
    r = replicate(cluster.connect_string)
    r.execute("ALTER SYSTEM SET autovacuum = off")
    r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY, n numeric)")
    r.apply()  # makes the ledger
    wait_until(lambda: _wal_writer(r) != 0)
    writer = _wal_writer(r)
    _stop_wal_writer(r, writer)
    yield r
    if _is_there(writer):
        os.kill(writer, signal.SIGCONT)
    cluster.stop()


def _stop_wal_writer(r: Replication, writer: int) -> None:
    """Stop it while it waits: at work it has the lock without which no commit gets to disk."""
    process = psutil.Process(writer)
    wait_event = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {writer}"
    while True:
        process.suspend()
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
        if r.rows(wait_event) == [("WalWriterMain",)]:
            return
        process.resume()


def _wal_writer(r: Replication) -> int:
    """Its process; 0 while there is none."""
    try:
        rows = r.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    except psycopg.OperationalError:
        return 0
    return int(rows[0][0]) if rows else 0


def _crash(r: Replication) -> None:
    """Let the server crash, and recover."""
    writer = _wal_writer(r)
    assert writer != 0
    os.kill(writer, signal.SIGKILL)
    wait_until(lambda: _wal_writer(r) not in (0, writer))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _deliver_behind_a_lock(
    blocker: psycopg.Connection[Any], r: Replication, worker: Worker, numbers: list[int]
) -> None:
    """Deliver transactions so that the second is ready before the first commits."""
    blocker.execute("SAVEPOINT unlocked")
    blocker.execute("LOCK s.t IN SHARE ROW EXCLUSIVE MODE")
    for number in numbers:
        worker.deliver("S.T", r.selection(number, number + 1))
    wait_until(lambda: worker._ahead is not None)
    blocker.execute("ROLLBACK TO unlocked")


def _worker(r: Replication) -> Worker:
    settings = r.settings(batch_changes=1, batch_milliseconds=0, retry_seconds=60)
    worker = Worker(0, SharedState(settings))
    worker.start()
    return worker


def test_what_a_crash_takes_is_not_durable_before(idle_disk: Replication) -> None:
    r = idle_disk
    first = r.transaction(r.insert({"ID": 1, "N": 1}))
    r.transaction(r.insert({"ID": 2, "N": 2}))
    worker = _worker(r)
    blocker = psycopg.connect(r.target)
    blocker.execute("INSERT INTO s.t VALUES (2)")  # the second waits for its key
    _deliver_behind_a_lock(blocker, r, worker, [0, 1])
    wait_until(lambda: r.rows("SELECT id FROM s.t") == [(1,)])
    assert worker.lowest_pending() == first, "it is in the table, not on disk"
    _crash(r)
    wait_until(lambda: worker.failure is not None)
    blocker.close()
    assert worker.lowest_pending() == first
    assert r.rows("SELECT id FROM s.t") == []
    worker.reset()
    assert worker.is_drained()
    for number in (0, 1):
        worker.deliver("S.T", r.selection(number, number + 1))
    wait_until(worker.is_drained)
    worker.close()
    assert worker.crash is None
    assert r.rows("SELECT id FROM s.t ORDER BY id") == [(1,), (2,)]


def test_what_nothing_follows_is_brought_to_disk(idle_disk: Replication) -> None:
    """The second is the first again: nothing to commit, so the first must be seen to."""
    r = idle_disk
    r.transaction(r.insert({"ID": 1, "N": 1}))
    worker = _worker(r)
    with psycopg.connect(r.target) as blocker:
        _deliver_behind_a_lock(blocker, r, worker, [0, 0])
    wait_until(worker.is_drained)
    worker.close()
    assert worker.crash is None
    _crash(r)
    assert r.rows("SELECT id FROM s.t") == [(1,)]


def test_a_ledger_that_somebody_has_locked_is_no_failure(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `olr-pg repair` does, for as long as it takes. One commit still waits for the disk."""
    monkeypatch.setattr(table_queue, "_PATIENT_MILLISECONDS", 300)
    monkeypatch.setattr(table_queue, "_SHORT_MILLISECONDS", 50)
    tries, settle = list[int](), TableApplier.settle

    def counted(applier: TableApplier, connection: psycopg.Connection[Any]) -> None:
        tries.append(1)
        settle(applier, connection)

    monkeypatch.setattr(TableApplier, "settle", counted)
    r = replication
    r.apply()  # makes the ledger
    for number in (1, 2):
        r.transaction(r.insert({"ID": number}))
    worker = _worker(r)
    with psycopg.connect(r.target) as blocker, psycopg.connect(r.target) as other:
        blocker.execute("INSERT INTO s.t VALUES (2)")  # the second waits for its key
        _deliver_behind_a_lock(blocker, r, worker, [0, 1])
        wait_until(lambda: r.rows("SELECT id FROM s.t") == [(1,)])
        other.execute("SELECT FROM olr_pg.ledger FOR UPDATE")  # as soon as the second gives up
        wait_until(lambda: len(tries) > 1 or worker.failure is not None)
        assert worker.failure is None
        assert worker.lowest_pending() == 10
        other.rollback()
        blocker.rollback()
        wait_until(worker.is_drained)
    worker.close()
    assert worker.crash is None
    assert r.rows("SELECT id FROM s.t ORDER BY id") == [(1,), (2,)]


def test_a_table_tells_which_one_it_waits_behind(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lag of a table is not its own where another one takes the worker's time."""
    monkeypatch.setattr("olr_pg.applier.batches.worker.WINDOW_SECONDS", 0.2)
    r = replication
    r.execute(
        "CREATE TABLE s.u (LIKE s.t INCLUDING ALL); CREATE TABLE s.ended ();"
        "CREATE FUNCTION s.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " WHILE NOT EXISTS (SELECT FROM s.ended) LOOP PERFORM pg_sleep(0.01); END LOOP;"
        " RETURN NEW; END $$;"
        "CREATE TRIGGER slow BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.slow();"
        "ALTER TABLE s.t ENABLE ALWAYS TRIGGER slow"
    )
    r.apply()  # makes the ledger
    for number, table in enumerate("TU"):
        r.transaction(r.insert({"ID": number, "N": number}, table))
    worker = _worker(r)
    worker.deliver("S.T", r.selection(0, 1))
    wait_until(lambda: worker._at_work > 0)
    worker.deliver("S.U", r.selection(1, 2))

    def behind() -> dict[str, str | None]:
        return {table.name: table.behind for table in worker.progress()}

    wait_until(lambda: behind() == {"S.T": None, "S.U": "S.T"})
    r.execute("INSERT INTO s.ended DEFAULT VALUES")
    wait_until(worker.is_drained)
    worker.close()
    assert worker.crash is None
    assert behind() == {"S.T": None, "S.U": None}


def test_what_is_forgotten_is_not_brought_to_disk(replication: Replication) -> None:
    """The session's thread may reset a worker that is just about to."""
    worker = Worker(0, SharedState(replication.settings()))
    worker.reset()
    worker._settle()
    assert worker.is_drained()


def test_the_table_that_takes_half_of_the_last_seconds_is_the_slowest() -> None:
    now = [0.0]
    worker_time = WorkerTime(lambda: now[0])

    def batch(table: str, seconds: float) -> None:
        worker_time.begin(table)
        now[0] += seconds
        worker_time.end()

    assert worker_time.slowest() is None
    worker_time.end()  # of a batch that was never begun: a reset came in between
    worker_time.begin("A")
    now[0] += 4.9
    assert worker_time.slowest() is None
    now[0] += 0.1
    assert worker_time.slowest() == "A", "while its batch goes on"
    worker_time.end()
    batch("B", 4.0)
    assert worker_time.slowest() == "A"
    now[0] += 2.0
    assert worker_time.slowest() is None, "of its five seconds one is too long ago"
    for _ in range(40):
        batch("C", 0.2)
        batch("A", 0.05)
    assert worker_time.slowest() == "C", "many short batches count together"
    now[0] += 60.0
    assert worker_time.slowest() is None


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def test_several_workers(replication: Replication) -> None:
    r = replication
    for table in "abcde":
        r.execute(f"CREATE TABLE s.{table} (id int PRIMARY KEY, v text)")
    for i in range(50):
        r.transaction(*(r.insert({"ID": i, "V": table}, table.upper()) for table in "abcde"))
    report = r.apply(workers=3, batch_changes=7)
    assert {name: c.inserted for name, c in report.tables.items()} == {
        f"S.{table}": 50 for table in "ABCDE"
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_table_with_few_changes_does_not_hold_the_others_back(
    replication: Replication, workers: int
) -> None:
    """It would wait for more, and the server keep all that came since, more than it may have."""
    r = replication
    r.execute("CREATE TABLE s.u (LIKE s.t INCLUDING ALL)")
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}, table="U"))
    for number in range(4000):
        r.transaction(r.insert({"ID": number, "N": 1, "V": "x"}))
    r.script.queue_bytes = 800_000
    with capture_logs() as entries:
        r.apply(
            workers=workers, batch_milliseconds=600_000, batch_changes=100, queue_bytes=400_000
        )  # fmt: skip
    assert len(_table(r)) == 4000
    assert len(_table(r, "s.u")) == 1
    assert not [
        entry
        for entry in entries
        if entry["event"] == "the client does not confirm the transactions it received"
    ]
