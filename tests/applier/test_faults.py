from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog
import structlog.testing

from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.session.applier_session import Applier, Overview
from olr_pg.errors import OlrPgError
from olr_pg.postgres.embedded import start_embedded
from tests.applier.seen import errors, rows
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

Replication = Any  # tests/applier/conftest.py


def test_lost_connections_are_made_again(replication: Replication) -> None:
    r = replication
    for i in range(2_000):
        r.transaction(r.insert({"ID": i, "N": i}))
    settings = r.settings(batch_changes=20, batch_milliseconds=1, window=64)
    applier = Applier(settings)
    ended = threading.Event()

    def cut() -> None:
        with psycopg.connect(r.target, autocommit=True) as connection:
            while not ended.is_set():
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'olr_pg applier' AND datname = current_database()"
                    " AND xact_start IS NOT NULL"
                )
                ended.wait(0.05)

    thread = threading.Thread(target=cut)
    # The start checks the target without retries; the cutting begins after the first rows.
    runner = threading.Thread(
        target=lambda: applier.run(once=True, drained=r.script.complete.is_set)
    )
    runner.start()
    r.wait_for("SELECT to_regclass('olr_pg.ledger') IS NOT NULL AND EXISTS (SELECT FROM s.t)")
    thread.start()
    runner.join()
    ended.set()
    thread.join()
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(2_000, sum(range(2_000)))]


def test_a_connection_that_is_lost_while_idle_ends_nothing(replication: Replication) -> None:
    """The session's own connection waits for hours; what it notes at the end is noted."""
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    cut = 0

    def drained() -> bool:
        nonlocal cut
        cut += len(
            r.rows(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE application_name = 'olr_pg applier' AND datname = current_database()"
                " AND xact_start IS NULL"
            )
        )
        complete: bool = r.script.complete.is_set()
        return complete

    r.serve()
    report = Applier(r.settings()).run(once=True, drained=drained)
    assert cut
    assert rows(r) == [(1, 1, None)]
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(report.confirmed_scn,)]


_WAITS = """
SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'olr_pg applier' AND wait_event_type = 'Lock'{}
"""


def _in_a_thread(replication: Replication, **options: Any) -> threading.Thread:
    """The applier, on its way; an error of its is the caller's to look for in the tables."""
    thread = threading.Thread(target=lambda: replication.apply(**options), daemon=True)
    thread.start()
    return thread


def test_a_statement_that_somebody_cancels_is_tried_again(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    with psycopg.connect(r.target) as locker:
        locker.execute("LOCK TABLE s.t IN SHARE MODE")  # as CREATE INDEX does
        thread = _in_a_thread(r, connect_string=f"{r.target} options='-c statement_timeout=300'")
        r.wait_for(_WAITS.format(" AND clock_timestamp() - query_start > interval '600 ms'"))
        pid = r.rows(_WAITS.format("").replace("count(*) = 1", "min(pid)"))[0][0]
        assert r.rows(f"SELECT pg_cancel_backend({pid})") == [(True,)]
        r.wait_for(_WAITS.format(f" AND pid <> {pid}"))
    thread.join()
    assert rows(r) == [(1, None, None)]
    assert errors(r) == []
    assert r.rows("SELECT stopped FROM olr_pg.ledger") == [(False,)]


def test_a_server_that_is_read_only_for_a_while_is_waited_for(replication: Replication) -> None:
    """As those of a switchover are."""
    r = replication
    r.transaction(r.insert({"ID": 1}))
    r.apply()
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    name = r.rows("SELECT quote_ident(current_database())")[0][0]
    r.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with structlog.testing.capture_logs() as events:
        thread = _in_a_thread(r)
        while not any("read-only" in str(event.get("reason")) for event in events):
            thread.join(0.005)
            assert thread.is_alive()
        writable = f"{r.target} options='-c default_transaction_read_only=off'"
        with psycopg.connect(writable, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        thread.join()
    assert [row[0] for row in rows(r)] == [1, 2]
    assert errors(r) == []


def test_postgres_killed_and_started_again(
    cluster_folder: Path, replicate: Callable[[str], Replication]
) -> None:
    """The outage is longer than the retries: the session is rewound."""
    cluster = start_embedded(cluster_folder)
    r = replicate(cluster.connect_string)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, n int)")
    for i in range(3_000):
        r.transaction(r.insert({"ID": i, "N": i}), scn=100 + i // 3)
    applier = Applier(
        r.settings(
            batch_changes=20, batch_milliseconds=1, window=64, outage_seconds=0.3, rewinds=200
        )
    )
    failures: list[BaseException] = []

    def run() -> None:
        try:
            applier.run(once=True, drained=r.script.complete.is_set)
        except OlrPgError as error:
            failures.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    r.wait_for("SELECT count(*) >= 100 FROM s.t")
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(cluster.is_gone)
    again = start_embedded(cluster_folder)
    runner.join()
    assert failures == []
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(3_000, sum(range(3_000)))]
    again.stop()
    cluster.stop()


_PROCESS = """
import sys
from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import ApplierSettings
connect_string, port = sys.argv[1:]
Applier(ApplierSettings(connect_string, "127.0.0.1", int(port), "q", batch_changes=10,
    batch_milliseconds=1, window=32)).run()
"""


@pytest.mark.timeout(600)  # each process loads everything anew
def test_kill_9_in_the_middle_and_start_again(replication: Replication) -> None:
    r = replication
    for i in range(1_500):
        r.transaction(
            r.insert({"ID": i, "N": i}), r.update({"ID": 0}, {"V": str(i)}), scn=10 + i // 4
        )
    _, port = r.serve()
    reached = "SELECT count(*) >= %s FROM s.t"
    for at_least in (50, 300, 700):
        process = subprocess.Popen([sys.executable, "-c", _PROCESS, r.target, str(port)])
        try:
            with psycopg.connect(r.target, autocommit=True) as connection:
                while connection.execute(reached, (at_least,)).fetchone() != (True,):
                    assert process.poll() is None
                    time.sleep(0.005)
        finally:
            process.kill()
            process.wait()
    r.apply(batch_changes=10)
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(1_500, sum(range(1_500)))]
    assert r.rows("SELECT v FROM s.t WHERE id = 0") == [("1499",)]
    assert r.rows("SELECT transactions, inserted FROM olr_pg.ledger") == [(1_500, 1_500)]


def test_two_appliers_of_one_subscription_do_not_apply_twice(replication: Replication) -> None:
    """A left-over backend that commits late looks like this to the ledger."""
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    r.apply()
    r.transaction(r.insert({"ID": 2, "N": 2}))
    r.execute("INSERT INTO s.t VALUES (2, 2)")
    r.execute("UPDATE olr_pg.ledger SET commit_scn = 20, xids = '{0.0.2}'")
    r.serve()
    r.apply()
    assert rows(r) == [(1, 1, None), (2, 2, None)]


def test_a_table_is_shown_as_stopped_although_the_answer_to_its_commit_was_lost(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, report, lost = replication, TableApplier._report, list[OlrPgError]()

    def without_answer(applier: TableApplier, error: OlrPgError) -> None:
        if not lost:
            lost.append(error)  # it is called right after the COMMIT
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        report(applier, error)

    monkeypatch.setattr(TableApplier, "_report", without_answer)
    for _ in range(2):
        r.transaction(r.insert({"ID": 1}))
    applier = r.applier(batch_milliseconds=1)
    thread, caught = r.started(applier)
    try:
        while not any(table.error for table in applier.tables):
            assert thread.is_alive()
            thread.join(0.01)
    finally:
        applier.stop()
        thread.join()
    assert [error.code for error in lost] == [5009]
    (table,) = applier.tables
    assert table.error is not None
    assert (table.error.code, table.error.where) == (5010, {"error": 1})
    assert applier.overview == Overview(table.counters.changes, ["S.T"], [], [])
    assert "S.T, because of OLR-05009" in table.error.detail
    assert [error.code for error in caught] == [5010]
