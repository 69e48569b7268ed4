"""Rows whose LOB values redo did not hold are listed in the target, and the list follows them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import Consistency, IncompletePolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import SchemaEvent
from tests.advice import followed

Replication = Any  # tests/applier/conftest.py
Line = tuple[Any, ...]

TABLE = Table(
    "S",
    "T",
    1,
    1,
    (
        Column("ID", 1, 1, 1, 2, 22),
        Column("N", 2, 2, 2, 2, 22),
        Column("V", 3, 3, 3, 1, 20, charset_id=873, charset_form=1),
    ),
    key_kind=KeyKind.PRIMARY,
    key=(1,),
)
WITHOUT_KEY = Table("S", "T", 1, 1, TABLE.columns)
INSERTED, UPDATED = DmlKind.INSERT, DmlKind.UPDATE
EVERY_WAY: list[dict[str, Any]] = [
    {},
    {"copy_rows": 1},
    {"batch_changes": 1},
    {"spool_bytes": 1},
    {"spool_bytes": 1, "batch_changes": 1},
    {"consistency": Consistency.TRANSACTION},
    {"consistency": Consistency.TRANSACTION, "spool_bytes": 1, "batch_changes": 1},
]
ways = pytest.mark.parametrize("way", EVERY_WAY, ids=str)


def lost(
    key: int, kind: DmlKind = UPDATED, before: int = 0, *, alone: bool = False, rowid: str = ""
) -> LostLob:
    """V of the row `key` is left out of a change that `before` others come in front of."""
    told = (("ID", encode_number(key)),)
    return LostLob("V", 2120, rowid or f"AAA{key:015}", kind, not alone, (before, 0, 0), told)


class Told:
    """A decoder's events beside a script."""

    def __init__(self, replication: Replication) -> None:
        self.replication = replication

    def lost(self, scn: int, *lobs: LostLob, xid: int = 0) -> None:
        follow = Evolution()
        self.replication.script.events.append(
            SchemaEvent("S.T", scn, xid or scn // 10, scn - 5, follow, None, lobs=lobs)
        )

    def apply(self, table: Table = TABLE, **options: Any) -> Applier:
        """Run the applier over everything, as a restarted appliance does."""
        applier: Applier = self.replication.applier([table], **options)
        applier.run(once=True, drained=self.replication.script.complete.is_set)
        return applier

    def stops(self, **options: Any) -> int:
        with pytest.raises(OlrPgError) as caught:
            self.apply(**options)
        return caught.value.code


@pytest.fixture
def told(replication: Replication) -> Told:
    return Told(replication)


def lines(replication: Replication) -> list[Line]:
    """Key, operation and commit SCN of what is listed; the ledger's count agrees."""
    found: list[Line] = replication.rows(
        "SELECT key ->> 'id', operation, commit_scn FROM olr_pg.incomplete ORDER BY 1, 3"
    )
    counts = replication.rows("SELECT incomplete FROM olr_pg.ledger WHERE source_table = 'S.T'")
    assert counts == [(len(found),)]
    return found


@ways
def test_a_row_is_listed_with_its_change_and_once(told: Told, way: dict[str, Any]) -> None:
    r = told.replication
    first = r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 2, "N": 1, "V": "whole"}))
    told.lost(first, lost(1, INSERTED))
    second = r.transaction(r.insert({"ID": 3, "N": 1}), r.update({"ID": 2}, {"N": 2}))
    told.lost(second, lost(3, INSERTED), lost(2, UPDATED, 1))
    told.apply(**way)
    expected = [("1", "insert", first), ("2", "update", second), ("3", "insert", second)]
    assert lines(r) == expected
    (line,) = r.rows(
        "SELECT source_table, target_table, row_id, column_name, target_column, xid, reason"
        " FROM olr_pg.incomplete WHERE commit_scn = 10"
    )
    assert line == ("S.T", "s.t", "AAA000000000000001", "V", "v", "0.0.1", 2120)
    # All of it again: nothing is noted twice.
    r.execute("UPDATE s.t SET n = n")
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    told.apply(**way)
    assert lines(r) == expected


@ways
def test_the_list_follows_the_rows(told: Told, way: dict[str, Any]) -> None:
    r = told.replication
    first = r.transaction(*(r.insert({"ID": key, "N": 1}) for key in range(1, 8)))
    told.lost(first, *(lost(key, INSERTED, key - 1) for key in range(1, 8)))
    r.transaction(r.update({"ID": 1}, {"V": "now"}), r.delete({"ID": 2}))
    r.transaction(r.update({"ID": 3, "N": 1, "V": None}, {"ID": 30, "N": 1, "V": None}))
    r.transaction(r.update({"ID": 4, "N": 1, "V": None}, {"ID": 40, "N": 1}))
    again = r.transaction(r.delete({"ID": 5}), r.insert({"ID": 5, "N": 2}))
    told.lost(again, lost(5, INSERTED, 1))
    r.transaction(r.update({"ID": 6}, {"N": 3}))
    r.transaction(r.delete({"ID": 7}), r.insert({"ID": 7, "N": 2, "V": "new"}))
    told.apply(**way)
    assert lines(r) == [("40", "insert", first), ("5", "insert", again), ("6", "insert", first)]
    assert r.rows("SELECT id FROM s.t WHERE v IS NOT NULL ORDER BY 1") == [(1,), (7,)]
    r.transaction(*(r.update({"ID": key}, {"V": "x"}) for key in (40, 5, 6)))
    r.serve()
    told.apply(**way)
    assert lines(r) == []


@ways
def test_the_order_within_a_transaction_counts(told: Told, way: dict[str, Any]) -> None:
    r = told.replication
    scn = r.transaction(
        r.insert({"ID": 1, "N": 1}),
        r.update({"ID": 1}, {"V": "whole after all"}),
        r.insert({"ID": 2, "N": 1, "V": "whole"}),
        r.insert({"ID": 3, "N": 1}),
        r.delete({"ID": 3}),
    )
    # Of 2 an update of V alone, which is not delivered, comes at the end.
    told.lost(scn, lost(1, INSERTED), lost(3, INSERTED, 3), lost(2, UPDATED, 5, alone=True))
    told.apply(**way)
    assert lines(r) == [("2", "update", scn)]


@ways
def test_keys_that_rows_pass_on_to_each_other(told: Told, way: dict[str, Any]) -> None:
    r = told.replication
    ids = [f"AAA{key:015}" for key in range(1, 5)]
    first = r.transaction(
        *(r.insert({"ID": key, "N": key}, rowid=ids[key - 1]) for key in range(1, 5))
    )
    told.lost(first, lost(1, INSERTED), lost(3, INSERTED, 2))
    moves = [
        r.update(
            {"ID": key, "N": key, "V": None},
            {"ID": key + 1, "N": key, "V": None} if key == 9 else {"ID": key + 1},
            rowid=ids[key - 1],
        )
        for key in range(1, 5)
    ]
    r.transaction(*moves)
    told.apply(**way)
    assert [line[0] for line in lines(r)] == ["2", "4"]
    assert r.rows("SELECT id, n FROM s.t ORDER BY 1") == [(2, 1), (3, 2), (4, 3), (5, 4)]


@pytest.mark.parametrize("consistency", Consistency)
def test_a_value_of_a_change_that_is_not_delivered_itself(
    told: Told, consistency: Consistency
) -> None:
    r = told.replication
    r.execute("CREATE TABLE s.o (id int)")
    r.transaction(r.insert({"ID": 1, "V": "old"}), r.insert({"ID": 2, "V": "old"}))
    both = r.transaction(r.insert({"ID": 1}, "O"))
    told.lost(both, lost(1, alone=True))  # the transaction changes nothing else of S.T
    nothing = r.script.transactions[-1].last_commit_scn + 5
    told.lost(nothing, lost(2, alone=True), xid=77)  # and this one nothing else at all
    told.apply(consistency=consistency)
    assert lines(r) == [("1", "update", both), ("2", "update", nothing)]
    assert r.rows("SELECT DISTINCT v FROM s.t") == [("old",)]
    r.serve()
    told.apply(consistency=consistency)
    assert len(lines(r)) == 2


def test_what_is_held_keeps_them(told: Told) -> None:
    r = told.replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    bad = r.transaction(r.insert({"ID": 1, "N": 200}))
    told.lost(bad, lost(1, INSERTED))
    r.transaction(r.insert({"ID": 2, "N": 1}))
    large = r.transaction(*(r.insert({"ID": key, "N": 1}) for key in range(3, 40)))
    told.lost(large, lost(20, INSERTED, 17))
    told.lost(large + 5, lost(2, alone=True), xid=77)
    for options in ({}, {"spool_bytes": 1, "batch_changes": 1}):
        assert told.stops(**options) == 5010
        assert lines(r) == []
        r.serve()
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    with connect(r.target) as connection:
        assert replay(connection, r.settings(), "S.T").error is None
    assert lines(r) == [("1", "insert", bad), ("2", "update", large + 5), ("20", "insert", large)]


STOP = {"incomplete": {"S.T.V": IncompletePolicy.STOP}}


def skip(replication: Replication) -> None:
    with connect(replication.target) as connection:
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        assert line.code == 5155
        skip_error(connection, "olr_pg", line.id)


@pytest.mark.parametrize("way", [{}, {"spool_bytes": 1}], ids=str)
def test_the_policy_stops_the_table_until_somebody_decides(told: Told, way: dict[str, Any]) -> None:
    r = told.replication
    first = r.transaction(r.insert({"ID": 1, "N": 1, "V": "old"}), r.insert({"ID": 2, "N": 1}))
    told.lost(first, lost(1, UPDATED, 1, alone=True), lost(2, INSERTED, 1))
    alone = first + 5
    told.lost(alone, lost(1, alone=True), xid=77)
    r.transaction(r.insert({"ID": 3, "N": 1, "V": "whole"}))
    assert told.stops(**STOP, **way) == 5010
    assert r.rows("SELECT count(*) FROM s.t") == [(0,)]
    with connect(r.target) as connection:
        assert replay(connection, r.settings(**STOP), "S.T").error is not None
        # The value that is not delivered with a change: to skip it leaves no change out.
        skip(r)
        again = replay(connection, r.settings(**STOP), "S.T")
        assert again.error is not None
        assert r.rows("SELECT count(*) FROM s.t") == [(0,)]
        skip(r)  # the insert of 2
        assert replay(connection, r.settings(**STOP), "S.T").error is not None
        assert r.rows("SELECT id FROM s.t") == [(1,)]
        assert lines(r) == [("1", "update", first)]
        # With another policy what stays refused goes in, and is listed.
        words = "set the column to `null` or `fetch` in `apply.incomplete-lobs`"
        retry = "Then run `olr-pg errors retry`: this command applies the row"
        followed(OlrPgError(Code.LOB_STOPS_TABLE, ""), Code.LOB_STOPS_TABLE, words, retry)
        assert replay(connection, r.settings(), "S.T").error is None
    assert lines(r) == [("1", "update", alone)]
    assert r.rows("SELECT id FROM s.t ORDER BY 1") == [(1,), (3,)]


def test_a_truncated_table_has_none(told: Told) -> None:
    r = told.replication
    first = r.transaction(r.insert({"ID": 1, "N": 1}))
    told.lost(first, lost(1, INSERTED))
    told.apply()
    assert len(lines(r)) == 1
    event = SchemaEvent("S.T", 500, 9, 490, Evolution((Step(DdlKind.TRUNCATE),)), TABLE)
    with connect(r.target) as connection:
        assert apply_event(connection, r.settings(), event) is None
    assert lines(r) == []


def test_a_table_without_a_key_is_listed_by_rowid(told: Told) -> None:
    r = told.replication
    r.execute("ALTER TABLE s.t DROP CONSTRAINT t_pkey")
    first = r.transaction(
        *(r.insert({"ID": key, "N": 1}, rowid=f"AAA{key:015}") for key in (1, 2, 3))
    )
    told.lost(first, *(lost(key, INSERTED, key - 1) for key in (1, 2, 3)))
    r.transaction(r.delete({"ID": 1, "N": 1}, rowid=f"AAA{1:015}"))
    r.transaction(r.update({"ID": 2, "N": 1}, {"V": "x"}, rowid=f"AAA{2:015}"))
    told.apply(WITHOUT_KEY)
    found = r.rows("SELECT key, row_id FROM olr_pg.incomplete")
    assert found == [(None, f"AAA{3:015}")]


def test_a_refused_set_leaves_nothing_of_it_in_the_list(told: Told) -> None:
    r = told.replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    first = r.transaction(r.insert({"ID": 1, "N": 1}))
    told.lost(first, lost(1, INSERTED))
    second = r.transaction(r.insert({"ID": 2, "N": 200}))
    told.lost(second, lost(2, INSERTED))
    assert told.stops() == 5010
    assert lines(r) == [("1", "insert", first)]


def test_a_batch_without_listed_rows_does_not_look_at_the_list(told: Told) -> None:
    r = told.replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    told.apply()
    r.transaction(r.update({"ID": 1}, {"N": 2}))
    r.serve()
    with psycopg.connect(r.target) as connection:
        connection.execute("LOCK TABLE olr_pg.incomplete")  # whoever looks waits
        told.apply()
    assert r.rows("SELECT n FROM s.t") == [(2,)]
