"""The error table: its lines name the transactions that stopped a table.

Changes that the target refuses: they stop their table alone, and the error table names them.
"""

from __future__ import annotations

from typing import Any

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.dictionary.evolution import Evolution
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.schema_event import SchemaEvent
from tests.applier.seen import errors, fails, held, retry, rows, stops

Replication = Any  # tests/applier/conftest.py


def fault(number: int) -> SchemaEvent:
    """A transaction whose part of S.T cannot be decoded; its commit SCN is ten times its number."""
    error = OlrPgError(2016, f"fault {number}", table="S.T", scn=10 * number - 1, thread=1)
    stop = Evolution((), error)
    return SchemaEvent("S.T", 10 * number, number, 10 * number - 5, stop, None, is_fault=True)


def test_faults_that_follow_each_other_are_held_as_one(replication: Replication) -> None:
    r = replication
    options = r.settings()
    with connect(r.target) as connection:
        ensure_ledger(connection)
        assert apply_event(connection, options, fault(1)) is not None
        for number in range(2, 100):
            # Delivered twice, it counts once.
            for _ in range(2):
                assert apply_event(connection, options, fault(number)) is None
        assert held(r) == [("S.T", 10, 0)]
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        assert error.message.startswith("fault 1 [")
        assert "98 more transactions, the last one with commit SCN 990, XID 0.0.99" in str(
            error.message
        )
        assert (error.commit_scn, error.scn, error.attempts) == (10, 9, 1)
        assert error.action == Code(2016).action
        r.execute("UPDATE olr_pg.error SET action = 'do this'")
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        assert error.action == "do this"
        assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(990, True)]
        # What comes behind the decision was not decided on.
        skip_error(connection, "olr_pg", error.id)
        for number in (100, 101):
            apply_event(connection, options, fault(number))
        assert held(r) == [("S.T", 10, 0), ("S.T", 1000, 0)]
        stopped = replay(connection, options, "S.T")
        assert stopped.error is not None
        assert stopped.events == 1
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        assert "fault 100" in error.message
        assert "and 1 more transaction," in error.message
        # Nor are faults on both sides of something else one.
        changed = fault(102)._replace(is_fault=False)
        for event in (changed, fault(103), fault(104)):
            apply_event(connection, options, event)
        assert held(r) == [("S.T", scn, 0) for scn in (1000, 1020, 1030)]


def test_what_fails_at_the_commit_names_its_transaction(replication: Replication) -> None:
    """A constraint trigger that fires always and is deferred fails when nobody asked it to."""
    r = replication
    r.execute("""
        CREATE FUNCTION s.no() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.n = 3 THEN RAISE EXCEPTION 'three'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER no AFTER INSERT ON s.t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION s.no();
        ALTER TABLE s.t ENABLE ALWAYS TRIGGER no""")
    scns = [r.transaction(r.insert({"ID": i, "N": i})) for i in range(1, 6)]
    stops(r)
    assert [row[0] for row in rows(r)] == [1, 2]
    assert held(r) == [("S.T", scn, 1) for scn in scns[2:]]
    again = retry(r)
    assert again.error is not None
    assert "a function of the target raised an exception" in str(again.error)
    assert r.rows("SELECT commit_scn, message, attempts FROM olr_pg.error") == [
        (scns[2], "three", 2)
    ]
    r.execute("ALTER TABLE s.t DISABLE TRIGGER no")
    assert retry(r).error is None
    assert len(rows(r)) == 5


def _other(r: Replication) -> None:
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")


def test_a_value_that_does_not_fit_stops_only_its_table(replication: Replication) -> None:
    r = replication
    _other(r)
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric(3, 0)")
    r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 1}, "O"))
    bad = r.transaction(
        r.insert({"ID": 2}), r.insert({"ID": 3, "N": 10**20}), r.insert({"ID": 2}, "O")
    )
    last = r.transaction(r.insert({"ID": 4, "N": 4}), r.insert({"ID": 3}, "O"))
    error = fails(r)
    assert error.code == 5010
    assert "S.T" in error.detail
    assert rows(r) == [(1, 1, None)], "nothing half applied"
    assert rows(r, "s.o") == [(1,), (2,), (3,)]
    assert errors(r) == [("S.T", bad, 1, "insert", 5008, "22003", "stopped", 1)]
    after = r.rows("SELECT after, message, statement FROM olr_pg.error")[0]
    assert after[0] == {"ID": "c104", "N": "cb02"}
    assert "overflow" in after[1]
    assert after[2].startswith('INSERT INTO "s"."t"')
    assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger WHERE source_table = 'S.T'") == [
        (last, True)
    ]
    assert r.rows("SELECT commit_scn, changes FROM olr_pg.held") == [(bad, 2), (last, 1)]
    # Mended and started again: what was held goes in, and nothing is delivered again.
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric")
    r.serve()
    r.apply()
    assert [row[0] for row in rows(r)] == [1, 2, 3, 4]
    assert rows(r, "s.o") == [(1,), (2,), (3,)]
    assert r.rows("SELECT stopped FROM olr_pg.ledger WHERE source_table = 'S.T'") == [(False,)]
    assert errors(r)[0][6] == "applied"
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(last,)]


def test_a_value_that_cannot_be_converted(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.i (id int PRIMARY KEY, n smallint)")
    r.transaction(r.insert({"ID": 1, "N": 1}, "I"))
    bad = r.transaction(r.insert({"ID": 2, "N": 40_000}, "I"))
    assert fails(r).code == 5010
    assert fails(r).code == 5010
    assert rows(r, "s.i") == [(1, 1)]
    assert errors(r) == [("S.I", bad, 0, "insert", 2053, None, "stopped", 2)]


def test_changes_without_their_key(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    bad = r.transaction(r.update({"N": 1}, {"N": 2}))
    assert fails(r).code == 5010
    assert errors(r) == [("S.T", bad, 0, "update", 5009, None, "stopped", 1)]
    assert rows(r) == [(1, 1, None)]
