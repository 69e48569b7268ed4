"""`apply.consistency` "transaction": source transactions go in whole, across tables."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest

from olr_pg.applier.batches.shared_state import SharedState
from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.batches.worker import Worker
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.table_changes import STREAM
from olr_pg.applier.statements.target_plan import table_ledger
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ChangeCounts
from olr_pg.dictionary.evolution import Evolution
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import pack_xid
from olr_pg.transactions.schema_event import SchemaEvent
from tests.advice import followed

Replication = Any  # tests/applier/conftest.py


@pytest.fixture
def two_tables(replication: Replication) -> Replication:
    """``s.t`` and ``s.o (id, n)``; whole transactions are applied."""
    replication.execute("CREATE TABLE s.o (id int PRIMARY KEY, n numeric)")
    replication.options["consistency"] = Consistency.TRANSACTION
    return replication


def _ends(replication: Replication, **options: Any) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    return caught.value


def _rows(replication: Replication) -> tuple[list[Any], list[Any]]:
    return (
        replication.rows("SELECT id, n FROM s.t ORDER BY 1"),
        replication.rows("SELECT id, n FROM s.o ORDER BY 1"),
    )


def test_a_reader_sees_the_tables_as_of_one_commit(two_tables: Replication) -> None:
    """Amounts move from one table to the other: their sum never changes."""
    r = two_tables
    r.transaction(r.insert({"ID": 1, "N": 0}), r.insert({"ID": 1, "N": 1000}, "O"))
    for i in range(1, 401):
        r.transaction(
            r.update({"ID": 1}, {"N": i}), r.update({"ID": 1}, {"N": 1000 - i}, "O"),
            scn=100 + i // 3,
        )  # fmt: skip
    applier = Applier(r.settings(batch_changes=7, batch_milliseconds=1, window=16))
    thread = threading.Thread(
        target=lambda: applier.run(once=True, drained=r.script.complete.is_set)
    )
    thread.start()
    seen = set()
    with psycopg.connect(r.target) as connection:
        while thread.is_alive():
            row = connection.execute(
                "SELECT t.n, o.n, olr_pg.consistent_scn() FROM s.t, s.o"
                if r.rows("SELECT to_regclass('olr_pg.version') IS NOT NULL") == [(True,)]
                else "SELECT t.n, o.n, 0 FROM s.t, s.o"
            ).fetchone()
            connection.rollback()
            if row is not None:
                assert row[0] + row[1] == 1000
                # Everything up to that SCN is in; of the next one some transactions may be.
                scn = row[2] or 0
                assert scn < 100 or min(3 * (scn - 100) + 2, 400) <= row[0] <= 3 * (scn - 99) + 2
                seen.add(row[0])
    thread.join()
    assert len(seen) > 2
    assert _rows(r) == ([(1, 400)], [(1, 600)])
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(233,)]


def test_each_table_has_a_position_and_counts_of_its_own(two_tables: Replication) -> None:
    r = two_tables
    both = r.transaction(
        r.insert({"ID": 1, "N": 1}), r.insert({"ID": 2, "N": 2}), r.insert({"ID": 1, "N": 1}, "O")
    )
    assert r.apply().tables == {
        "S.T": ChangeCounts(transactions=1, inserted=2),
        "S.O": ChangeCounts(transactions=1, inserted=1),
    }
    first = r.transaction(r.update({"ID": 1}, {"N": 5}))
    r.transaction(r.delete({"ID": 1}, "O"), r.insert({"ID": 3, "N": 3}, "O"))
    last = r.transaction(r.insert({"ID": 4, "N": 4}, "O"))
    r.serve()
    columns = (
        Column("ID", 1, 1, 1, 2, 22, 9, 0, nullable=False),
        Column("N", 2, 2, 2, 2, 22),
    )
    tables = [
        Table("S", name, 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,)) for name in ("T", "O")
    ]
    applier = Applier(r.settings(), tables)
    thread = threading.Thread(
        target=lambda: applier.run(once=True, drained=r.script.complete.is_set)
    )
    with psycopg.connect(r.target) as blocker:
        blocker.execute("SELECT * FROM olr_pg.ledger FOR UPDATE")
        thread.start()
        # Nothing is durable: whichever table one asks for, it may lack the first of them.
        while None in (pending := {t.name: t.pending for t in applier.tables}).values():
            assert thread.is_alive()
            time.sleep(0.002)
        assert set(pending) == {"S.T", "S.O"}
        assert set(pending.values()) <= {both, first}
        assert {t.commit_scn for t in applier.tables} == {both}  # of the run before
        blocker.rollback()
    thread.join()
    found = {t.name: (t.commit_scn, t.waiting, t.pending, t.counters) for t in applier.tables}
    assert found == {
        "S.T": (first, 0, None, ChangeCounts(transactions=1, updated=1)),
        "S.O": (last, 0, None, ChangeCounts(transactions=2, inserted=2, deleted=1)),
    }


def test_what_waits_is_counted_by_table(two_tables: Replication) -> None:
    r = two_tables
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "O"), r.insert({"ID": 2}, "O"))
    selection = r.selection()
    worker = Worker(0, SharedState(r.settings()))
    worker.deliver(STREAM, selection)
    worker.deliver(STREAM, selection)
    scn = int(selection.commit_scn[0])
    assert [(t.name, t.waiting, t.pending) for t in worker.progress()] == [
        ("S.O", 4, scn),
        ("S.T", 2, scn),
    ]


def test_a_transaction_that_does_not_go_in_whole_does_not_go_in_at_all(
    two_tables: Replication,
) -> None:
    r = two_tables
    r.execute("ALTER TABLE s.o ADD CONSTRAINT small CHECK (n < 100)")
    good = r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 1, "N": 1}, "O"))
    bad = r.transaction(
        r.insert({"ID": 2, "N": 2}), r.insert({"ID": 2, "N": 2}, "O"),
        r.insert({"ID": 3, "N": 300}, "O"),
    )  # fmt: skip
    last = r.transaction(r.insert({"ID": 4, "N": 4}))
    for attempt in (1, 2):
        error = _ends(r)
        followed(error, Code.TRANSACTION_NOT_WHOLE, "skip the change with `olr-pg errors skip`")
        assert error.exit_code == 6
        assert "S.O" in error.detail
        assert _rows(r) == ([(1, 1)], [(1, 1)])
        assert r.rows(
            "SELECT source_table, commit_scn, position, resolution, attempts FROM olr_pg.error"
        ) == [("S.O", bad, 1, "stopped", attempt)]
        assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(good, False)] * 2
        assert r.rows(f"SELECT olr_pg.consistent_scn() >= {bad}") != [(True,)]
        r.serve()
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", read_errors(connection, "olr_pg", resolved=False)[0].id)
    r.apply()
    assert _rows(r) == ([(1, 1), (2, 2), (4, 4)], [(1, 1), (2, 2)])
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(last,)]


def test_what_was_mended_goes_in_and_its_error_is_settled(two_tables: Replication) -> None:
    r = two_tables
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "MISSING"))
    r.transaction(r.insert({"ID": 2}))
    assert "OLR-05005" in _ends(r).detail
    assert _rows(r) == ([], [])
    r.execute("CREATE TABLE s.missing (id int PRIMARY KEY)")
    r.serve()
    r.apply()
    assert len(_rows(r)[0]) == 2
    assert r.rows("SELECT resolution FROM olr_pg.error") == [("applied",)]


def test_redelivered_transactions_are_skipped_one_by_one(two_tables: Replication) -> None:
    r = two_tables
    for i in range(1, 7):
        r.transaction(r.insert({"ID": i}), r.insert({"ID": i}, "O"), scn=100 if i > 3 else 10 + i)
    everything = list(r.script.transactions)
    for count in (1, 4, 5, 6):  # ends in the middle of a tie
        r.script.transactions = everything[:count]
        (r.folder / "checkpoint.json").unlink(missing_ok=True)
        r.serve()
        r.apply(batch_changes=3)
        assert [len(rows) for rows in _rows(r)] == [count, count]
    assert r.rows("SELECT DISTINCT transactions, xids FROM olr_pg.ledger") == [
        (6, ["0.0.4", "0.0.5", "0.0.6"])
    ]


def test_what_fails_at_the_commit_names_its_transaction(two_tables: Replication) -> None:
    r = two_tables
    r.execute("""
        CREATE FUNCTION s.no() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.n = 3 THEN RAISE EXCEPTION 'three'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER no AFTER INSERT ON s.o DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION s.no();
        ALTER TABLE s.o ENABLE ALWAYS TRIGGER no""")
    scns = [
        r.transaction(r.insert({"ID": i, "N": i}), r.insert({"ID": i, "N": i}, "O"))
        for i in range(1, 6)
    ]
    assert "a function of the target raised an exception" in _ends(r).detail
    assert [len(rows) for rows in _rows(r)] == [2, 2]
    assert r.rows("SELECT commit_scn, message FROM olr_pg.error") == [(scns[2], "three")]


def test_ddl_that_the_target_cannot_follow_ends_the_stream(two_tables: Replication) -> None:
    r = two_tables
    r.apply()
    settings = r.settings()
    error = OlrPgError(3072, "renamed", table="S.T")
    event = SchemaEvent("S.T", 500, pack_xid(1, 2, 3), 490, Evolution((), error), None)
    with connect(r.target) as connection:
        with pytest.raises(OlrPgError) as caught:
            StreamApplier(settings, {}).evolve(connection, event)
        assert caught.value.code == 5145
        skip_error(connection, "olr_pg", read_errors(connection, "olr_pg", resolved=False)[0].id)
        StreamApplier(settings, {}).evolve(connection, event)
        with connection.transaction():
            state = table_ledger(settings, "S.T").lock(connection)
        assert state.position.has(500, event.xid)
        assert not state.stopped
