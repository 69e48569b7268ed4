"""The SQL of sets of changes: keys that change, several sets of columns, tables without a key.

Rows that take one another's keys, where only the keys are logged.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.batches import table_writer
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.applier.statements.table_statements import steps
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import ColumnValue
from tests.applier.seen import rows

if TYPE_CHECKING:
    from olr_pg.applier.statements.bound_statement import BoundStatement

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


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[BoundStatement]:
    """The statements that the writer binds from now on."""
    found: list[BoundStatement] = []

    def noting(*args: Any) -> list[BoundStatement]:
        found.extend(steps(*args))
        return found

    monkeypatch.setattr(table_writer, "steps", noting)
    return found


def test_inserts_updates_and_deletes(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 10, "V": "one"}), r.insert({"ID": 2, "N": 20, "V": None}))
    r.transaction(r.update({"ID": 1}, {"V": "eins"}), r.insert({"ID": 3, "N": None, "V": "three"}))
    last = r.transaction(r.delete({"ID": 2}), xid=10 << 48 | 12 << 32 | 572)
    report = r.apply()
    assert _table(r) == [(1, 10, "eins"), (3, None, "three")]
    assert report.confirmed_scn == last
    assert _ledger(r) == [("S.T", last, ["10.12.572"], 3, 2, 0, 0)]


def test_key_changes(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": str(i)}) for i in range(1, 6)))
    r.transaction(r.update({"ID": 1, "N": 1, "V": "1"}, {"ID": 11}))  # whole row known
    r.transaction(r.update({"ID": 2}, {"ID": 12, "V": "zwei"}))  # only the key known
    r.transaction(*(r.update({"ID": i, "N": i, "V": str(i)}, {"ID": i + 1}, rowid=f"row{i}")
                    for i in (3, 4, 5)))  # fmt: skip
    r.apply(batch_changes=1)
    assert _table(r) == [(4, 3, "3"), (5, 4, "4"), (6, 5, "5"), (11, 1, "1"), (12, 2, "zwei")]


def test_composite_key_and_several_column_sets(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.c (v text, n int, a int, b int, UNIQUE (v, n));"
              "ALTER TABLE s.c ALTER v SET NOT NULL, ALTER n SET NOT NULL")  # fmt: skip
    rows = [{"V": v, "N": n, "NA": 0, "NB": 0} for v in ("x", "y") for n in (1, 2)]
    r.execute("ALTER TABLE s.c RENAME a TO na; ALTER TABLE s.c RENAME b TO nb")
    r.transaction(*(r.insert(row, "C") for row in rows))
    r.transaction(
        r.update({"V": "x", "N": 1}, {"NA": 1}, "C"),
        r.update({"V": "x", "N": 2}, {"NB": 2}, "C"),
        r.update({"V": "y", "N": 1}, {"NA": 3, "NB": 3}, "C"),
        r.delete({"V": "y", "N": 2}, "C"),
    )
    r.apply(batch_changes=1)
    assert _table(r, "s.c") == [("x", 1, 1, 0), ("x", 2, 0, 2), ("y", 1, 3, 3)]


def test_rows_with_a_composite_key_are_deleted_by_one_statement(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their keys only: the target's other columns have changed."""
    r = replication
    r.execute("CREATE TABLE s.c (v text, n int, a int, PRIMARY KEY (n, v))")
    r.execute("INSERT INTO s.c VALUES ('x', 1, 9), ('x', 2, 9), ('y', 1, 9), ('y', 2, 9)")
    r.transaction(*(r.delete({"V": v, "N": n, "A": 0}, "C") for v, n in (("x", 1), ("y", 2))))
    found = _noted(monkeypatch)
    r.apply()
    assert [(step.kind, step.expected) for step in found] == [(DmlKind.DELETE, 2)]
    assert _table(r, "s.c") == [("x", 2, 9), ("y", 1, 9)]


def _wide(width: int) -> str:
    columns = ", ".join(f"c{i} varchar(20)" for i in range(width))
    return f"CREATE TABLE s.w (id int PRIMARY KEY, {columns}) WITH (fillfactor = 30)"


def _updates(r: Replication, width: int, sets: dict[int, list[int]]) -> list[Any]:
    """An update of each row, which sets those columns to their own names."""
    return [r.update({"ID": row}, {f"C{i}": f"{i}.{row}" for i in columns}, "W")
            for row, columns in sets.items()]  # fmt: skip


@pytest.mark.parametrize("nulls", [0, 3])
@pytest.mark.parametrize("width", [3, 8, 9, 70, 300])
def test_updates_that_set_other_columns_are_one_statement(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, width: int, nulls: int
) -> None:
    """Those that a row does not set stay, NULL is set, and some rows set nothing at all. Only where
    a row sets a column to NULL the statement needs masks.
    """
    r, rng = replication, Random(width)
    r.execute(_wide(width))
    sets = {row: rng.sample(range(width), rng.randint(0, min(width, 9))) for row in range(40)}
    sets[0], sets[1] = [0], [width - 1]
    r.execute("INSERT INTO s.w (id, c0, c1, c2)"
              " SELECT i, 'old', 'old', NULL FROM generate_series(0, 39) AS i")  # fmt: skip
    changes = _updates(r, width, sets)
    to_null = range(0, 40, nulls) if nulls else ()
    changes += [r.update({"ID": row}, {"C1": None}, "W") for row in to_null]
    r.transaction(*changes)
    found = _noted(monkeypatch)
    r.apply()
    assert [one.kind for one in found] == [DmlKind.UPDATE]
    assert found[0].query.count(b"get_bit") == (nulls > 0)
    assert len(found[0].parameters) == 1 + (nulls > 0)
    expected = []
    for row, columns in sets.items():
        values: list[Any] = ["old", "old", *[None] * (width - 2)]
        for i in columns:
            values[i] = f"{i}.{row}"
        if row in to_null:
            values[1] = None
        expected.append((row, *values))
    assert _table(r, "s.w") == expected


def test_what_an_update_does_not_set_costs_nothing(replication: Replication) -> None:
    """No new index entries (HOT), no new copies of values outside of the row."""
    r = replication
    r.execute(_wide(6) + "; ALTER TABLE s.w ADD large text; CREATE INDEX ON s.w (c5);"
              " ALTER TABLE s.w ALTER large SET STORAGE EXTERNAL;"
              " INSERT INTO s.w (id, c5, large)"
              " SELECT i, i, repeat('x', 5000) FROM generate_series(1, 20) AS i")  # fmt: skip
    toast = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'w'"
    before = r.rows(toast)
    r.transaction(*_updates(r, 6, {row: [row % 4] for row in range(1, 21)}))
    r.transaction(r.update({"ID": 3}, {"C5": "new"}, "W"), r.update({"ID": 4}, {"LARGE": "y"}, "W"),
                  r.update({"ID": 5}, {"C0": "new"}, "W"))  # fmt: skip
    r.apply(batch_changes=1)
    assert r.rows(toast) == before
    updates = "SELECT n_tup_upd {} FROM pg_stat_user_tables WHERE relname = 'w'"
    r.wait_for(updates.format("= 20"))
    assert r.rows(updates.format(", n_tup_hot_upd")) == [(20, 19)]
    assert r.rows("SELECT id, c0, c5, length(large) FROM s.w WHERE id IN (3, 4, 5) ORDER BY 1") == [
        (3, None, "new", 5000), (4, "0.4", "4", 1), (5, "new", "5", 5000),
    ]  # fmt: skip


def test_updates_of_a_table_with_a_column_named_as_their_mask(replication: Replication) -> None:
    r = replication
    r.execute('CREATE TABLE s.w (id int PRIMARY KEY, mask0 text, "%" text)')
    r.transaction(*(r.insert({"ID": i, "MASK0": "a", "%": "b"}, "W") for i in (1, 2)))
    r.transaction(r.update({"ID": 1}, {"MASK0": "c"}, "W"), r.update({"ID": 2}, {"%": "d"}, "W"))
    r.apply(batch_changes=1)
    assert _table(r, "s.w") == [(1, "c", "b"), (2, "a", "d")]


def test_tables_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.k (n int, v text)")
    same = {"N": 1, "V": "a"}
    r.transaction(r.insert(same, "K"), r.insert(same, "K"), r.insert({"N": 2, "V": None}, "K"))
    r.transaction(r.delete(same, "K"), r.update({"N": 2, "V": None}, {"V": "b"}, "K"))
    r.transaction(r.insert({"N": 3, "V": "c"}, "K"), r.delete({"N": 3, "V": "c"}, "K"))
    r.apply()
    assert _table(r, "s.k") == [(1, "a"), (2, "b")]


def test_a_table_without_a_key_is_searched_by_bytes(replication: Replication) -> None:
    """Whatever its columns' collation calls equal.

    PostgreSQL as it comes with us is built without ICU, so it has no collation that calls different
    texts equal. One that cannot be used at all tells as well whether it is asked.
    """
    r = replication
    r.execute("CREATE COLLATION s.own (provider = libc, locale = 'C')")
    r.execute("CREATE DOMAIN s.words AS text COLLATE s.own")
    r.execute("CREATE TABLE s.k (n int, v text COLLATE s.own, c char(3) COLLATE s.own, d s.words)")
    r.execute("UPDATE pg_collation SET collcollate = 'x', collctype = 'x' WHERE collname = 'own'")
    rows = [{"N": n, "V": "v", "C": "c", "D": "d"} for n in range(3)]
    r.transaction(*(r.insert(row, "K") for row in rows))
    r.transaction(r.update(rows[1], {"V": "V"}, "K"), r.delete(rows[2], "K"))
    r.apply()
    assert _table(r, "s.k") == [(0, "v", "c  ", "d"), (1, "V", "c  ", "d")]


def test_large_insert_runs_go_by_copy(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "é" * (i % 20)}) for i in range(5000)))
    r.transaction(*(r.update({"ID": i}, {"V": None}) for i in range(0, 5000, 2)))
    r.transaction(*(r.delete({"ID": i}) for i in range(0, 5000, 5)))
    r.apply(copy_rows=100, batch_changes=100)
    assert len(_table(r)) == 4000
    assert _table(r)[:3] == [(1, 1, "é"), (2, 2, None), (3, 3, "ééé")]


@pytest.mark.parametrize(
    ("column", "key", "other"),
    [
        ("char(5)", ColumnValue("K", 96, charset_id=873, charset_form=1, value=b"ab   "),
         ColumnValue("K", 96, charset_id=873, charset_form=1, value=b"cd   ")),
        ("timestamp(0)", ColumnValue("K", 12, value=bytes.fromhex("787e0307022d28")),
         ColumnValue("K", 12, value=bytes.fromhex("787e0307022d29"))),
        ("numeric", ColumnValue("K", 2, value=bytes.fromhex("c2021744")),
         ColumnValue("K", 2, value=bytes.fromhex("3f5a4d66"))),
        ("bytea", ColumnValue("K", 23, value=b"\x00\xff"), ColumnValue("K", 23, value=b"\x01")),
    ],
)  # fmt: skip
def test_keys_of_other_types(
    replication: Replication, column: str, key: ColumnValue, other: ColumnValue
) -> None:
    r = replication
    r.execute(f"CREATE TABLE s.y (k {column} PRIMARY KEY, n int)")
    r.transaction(*(r.insert({"K": k, "N": 1}, "Y") for k in (key, other)))
    r.transaction(r.update({"K": key}, {"N": 2}, "Y"), r.delete({"K": other}, "Y"))
    r.apply(batch_changes=1)
    assert r.rows("SELECT n FROM s.y") == [(2,)]


@pytest.mark.parametrize("moved", [{1: 2, 2: 3, 3: 4}, {1: 2, 2: 1}])
def test_keys_change_places_where_only_they_are_logged(
    replication: Replication, moved: dict[int, int]
) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "row"}, rowid=f"{i:018}") for i in range(1, 4)))
    r.apply()
    r.transaction(
        *(r.update({"ID": i}, {"ID": to}, rowid=f"{i:018}") for i, to in moved.items()),
        r.update({"ID": 2}, {"N": 100}, rowid=f"{1:018}"),
    )
    r.serve()
    r.apply()
    expected = {moved.get(i, i): 100 if i == 1 else i for i in range(1, 4)}
    assert rows(r) == [(i, n, "row") for i, n in sorted(expected.items())]


def test_rows_whose_keys_change_places_before_they_go(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i}, rowid=f"{i:018}") for i in (1, 2)))
    r.apply()
    r.transaction(
        *(r.update({"ID": i}, {"ID": 3 - i}, rowid=f"{i:018}") for i in (1, 2)),
        *(r.delete({"ID": i}, rowid=f"{3 - i:018}") for i in (1, 2)),
    )
    r.serve()
    r.apply()
    assert rows(r) == []


def _moves(r: Replication, *moves: tuple[int, int]) -> list[Any]:
    """Whole rows that change their keys; ``v`` is the name of the row, which has the ROWID."""
    return [
        r.update(
            {"ID": old, "N": 0, "V": f"row {old}"}, {"ID": new, "N": 0, "V": f"row {old}"},
            rowid=f"{old:018}",
        )
        for old, new in moves
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "there", "policy", "expected"),
    [
        # The old key does not stay behind.
        ([(1, 2)], [1, 2], ConflictPolicy.OVERWRITE, {2: 1}),
        ([(1, 2)], [1, 2], ConflictPolicy.SKIP, {1: 1, 2: 2}),
        # The key that is left is another row's by then.
        ([(1, 2), (2, 3)], [1, 2, 3], ConflictPolicy.OVERWRITE, {2: 1, 3: 2}),
        ([(1, 2), (2, 1), (5, 6)], [1, 2, 6], ConflictPolicy.OVERWRITE, {1: 2, 2: 1, 6: 5}),
        # The second row is missing: what has its key now is the first one.
        ([(1, 2), (2, 3)], [1], ConflictPolicy.OVERWRITE, {2: 1, 3: 2}),
        ([(1, 2), (2, 3)], [1], ConflictPolicy.SKIP, {2: 1}),
    ],
)
def test_keys_that_move_where_rows_are_too_many_or_missing(
    replication: Replication,
    moves: list[tuple[int, int]],
    there: list[int],
    policy: ConflictPolicy,
    expected: dict[int, int],
) -> None:
    r = replication
    for number in there:
        r.execute(f"INSERT INTO s.t VALUES ({number}, 0, 'row {number}')")
    r.transaction(*_moves(r, *moves))
    r.apply(conflict=policy)
    assert {row[0]: row[2] for row in rows(r)} == {
        key: f"row {row}" for key, row in expected.items()
    }


def test_a_row_whose_key_another_one_has_by_now_is_not_deleted(replication: Replication) -> None:
    r = replication
    r.execute("INSERT INTO s.t VALUES (1, 0, 'row 1')")
    r.transaction(*_moves(r, (1, 2)), r.delete({"ID": 2}, rowid=f"{2:018}"), r.delete({"ID": 9}))
    r.apply(conflict=ConflictPolicy.SKIP)
    assert rows(r) == [(2, 0, "row 1")]
