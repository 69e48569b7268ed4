"""The conversation with the server: what is asked for, and what is confirmed when."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import psycopg
import pytest

from olr_pg.applier.session.applier_session import Applier, ApplyReport
from olr_pg.applier.session.conversation import Exchange
from olr_pg.applier.session.server_side import ServerSide
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.wire.messages import LastCommitedScn, Request

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def _ledger(replication: Replication) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, xids, transactions, inserted, updated, deleted"
        " FROM olr_pg.ledger ORDER BY 1"
    )
    return rows


def test_redelivered_transactions_are_skipped_one_by_one(replication: Replication) -> None:
    """A checkpoint that is behind: the server sends all again, the ledger knows better."""
    r = replication
    for i in range(1, 6):
        r.transaction(r.insert({"ID": i, "N": i, "V": None}), scn=100 if i in (3, 4, 5) else 10 + i)
    everything = list(r.script.transactions)
    for count in (1, 3, 4, 5):  # ends in the middle of a tie
        r.script.transactions = everything[:count]
        (r.folder / "checkpoint.json").unlink(missing_ok=True)
        r.serve()
        r.apply()
        assert len(_table(r)) == count
    assert _ledger(r)[0][1:4] == (100, ["0.0.3", "0.0.4", "0.0.5"], 5)


def test_confirmation_does_not_reach_an_unseen_tie(replication: Replication) -> None:
    r = replication
    for i in range(1, 200):
        r.transaction(r.insert({"ID": i, "N": i, "V": None}), scn=10 + i // 7)
    report = r.apply(window=3, batch_changes=1, batch_milliseconds=1)
    assert len(_table(r)) == 199
    assert report.confirmed_scn == r.script.transactions[-1].commit_scn
    assert r.listener is not None
    r.serve()
    r.apply()
    assert len(_table(r)) == 199


def test_what_is_on_disk_is_remembered_before_the_first_confirmation(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at once, the server's saved SCN would be taken for a stranger's without it.

    What lies before the first transaction may be confirmed while nothing is on disk yet.
    """
    r = replication
    first = r.transaction(r.insert({"ID": 1, "N": 1, "V": None}))
    remembered: list[dict[str, Any]] = []
    send = Exchange.send

    def watched(exchange: Exchange, message: Request, count: int = 1) -> None:
        if isinstance(message, LastCommitedScn) and message.scn >= first:
            file = r.folder / "applied.json"
            remembered.append(json.loads(file.read_bytes())["tables"] if file.exists() else {})
        send(exchange, message, count)

    monkeypatch.setattr(Exchange, "send", watched)
    r.apply()
    assert remembered
    assert remembered[0]["S.T"]["commit_scn"] == first


def test_a_tie_that_comes_late_is_not_confirmed_before_it_is_durable(
    replication: Replication,
) -> None:
    """Several requests of one kind go out at once: the first may bring what the next confirms."""
    r = replication
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")
    r.script.queue_transactions = 1
    tied = r.transaction(r.insert({"ID": 1}), scn=50)
    applier = Applier(r.settings())
    thread = threading.Thread(target=applier.run)
    thread.start()
    try:
        r.script.complete.wait()
        queue = r.script._queue
        assert queue.wait_until_confirmed(60)
        assert r.transaction(r.insert({"ID": 1}, "O"), scn=50, xid=2) == tied
        with psycopg.connect(r.target) as connection:
            connection.execute("LOCK TABLE s.o")
            r.script.put_rest()
            r.wait_for("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
            assert queue.status().transmitted == 1
        assert queue.wait_until_confirmed(60)
    finally:
        applier.stop()
        thread.join()
    assert _table(r, "s.o") == [(1,)]


def test_a_transaction_larger_than_any_window(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "x" * 20}) for i in range(20_000)))
    r.apply(window=64)
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(20_000, sum(range(20_000)))]


def test_draining_applies_and_confirms_what_was_received(replication: Replication) -> None:
    r = replication
    for number in range(200):
        r.transaction(r.insert({"ID": number, "N": number}))
    # It would collect for an hour before it applies anything.
    applier = Applier(
        r.settings(batch_milliseconds=3_600_000, batch_changes=1_000_000, poll_milliseconds=5)
    )
    reports: list[ApplyReport] = []
    runner = threading.Thread(target=lambda: reports.append(applier.run()))
    runner.start()
    while not any(table.waiting or table.commit_scn for table in applier.tables):
        time.sleep(0.005)
    applier.drain()
    runner.join()
    (report,) = reports
    applied = r.rows("SELECT count(*) FROM s.t")[0][0]
    assert 0 < applied <= 200
    last = r.rows("SELECT commit_scn FROM olr_pg.ledger")[0][0]
    # A transaction that was received in part counts as open: what lies below it is confirmed.
    assert last <= report.confirmed_scn < last + 10
    # The answer to the last confirmation may have brought one more, which is not part of it.
    pending = [table.pending for table in applier.tables if table.pending is not None]
    assert all(scn > report.confirmed_scn for scn in pending)
    # The next life begins behind that, and finds nothing missing.
    r.serve()
    r.apply()
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(200, sum(range(200)))]


def test_a_recovery_image_is_used_only_where_the_target_has_all_before_it(
    replication: Replication,
) -> None:
    """The SCN to start at is the saved one in each case."""
    r = replication
    applied = r.folder / "applied.json"
    checkpoint = Checkpoint(r.folder / "checkpoint.json", "test")
    r.listener = Listener(
        r.script, checkpoint, PortSettings(port=0, order=r.script.order), applier="applier"
    )
    r.listener.start()
    server = ServerSide(r.listener.connect, lambda: checkpoint.confirmed_by == "applier")

    def run() -> None:
        applier = Applier(r.settings(), (), server)
        applier.run(once=True, drained=r.script.complete.is_set)

    for number in range(2):
        r.transaction(r.insert({"ID": number, "N": number}))
    run()
    saved = checkpoint.saved
    assert saved is not None
    kept = applied.read_bytes()
    load = (
        "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,"
        f" parts, finished_at) VALUES ('olr_pg', 'S.T', 's.t', 1, {saved + 1}, '', 0, now())"
    )
    for confirmed_by, is_known, is_loaded in (
        ("applier", True, False),
        ("applier", False, False),
        ("another", True, False),
        ("applier", True, True),
    ):
        checkpoint.save(saved, "image", confirmed_by)
        applied.write_bytes(kept)
        if not is_known:
            applied.unlink()
        if is_loaded:
            r.execute(load)
        run()
    assert r.script.started == [0, *[saved] * 4]
    assert r.script.images == [None, "image", None, None, None]
