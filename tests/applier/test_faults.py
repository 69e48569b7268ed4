from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog
import structlog.testing

from olr_pg.applier.connection import connect
from olr_pg.applier.embedded import packaged_installation, start_embedded
from olr_pg.applier.entangled import ATTEMPTS_MAX
from olr_pg.applier.error_table import read_errors, skip_error
from olr_pg.applier.session import Applier
from olr_pg.applier.settings import ConflictPolicy, Consistency
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.temporal import DateTime, encode_timestamp
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.cutover_state import forget_steps, note_step, read_steps
from olr_pg.wire.elements import ColumnValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Replication = Any  # tests/applier/conftest.py


def _fails(replication: Replication, **options: Any) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    return caught.value


def _errors(replication: Replication) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, position, operation, code, sqlstate, resolution,"
        " attempts FROM olr_pg.error ORDER BY id"
    )
    return rows


def _rows(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


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
    error = _fails(r)
    assert error.code == 5010
    assert "S.T" in error.detail
    assert _rows(r) == [(1, 1, None)], "nothing half applied"
    assert _rows(r, "s.o") == [(1,), (2,), (3,)]
    assert _errors(r) == [("S.T", bad, 1, "insert", 5008, "22003", "stopped", 1)]
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
    assert [row[0] for row in _rows(r)] == [1, 2, 3, 4]
    assert _rows(r, "s.o") == [(1,), (2,), (3,)]
    assert r.rows("SELECT stopped FROM olr_pg.ledger WHERE source_table = 'S.T'") == [(False,)]
    assert _errors(r)[0][6] == "applied"
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(last,)]


def test_a_value_that_cannot_be_converted(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.i (id int PRIMARY KEY, n smallint)")
    r.transaction(r.insert({"ID": 1, "N": 1}, "I"))
    bad = r.transaction(r.insert({"ID": 2, "N": 40_000}, "I"))
    assert _fails(r).code == 5010
    assert _fails(r).code == 5010
    assert _rows(r, "s.i") == [(1, 1)]
    assert _errors(r) == [("S.I", bad, 0, "insert", 2053, None, "stopped", 2)]


def test_missing_table_and_missing_column(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}, "NOWHERE"), r.insert({"ID": 1, "N": 1, "EXTRA": "x"}))
    _other(r)
    r.transaction(r.insert({"ID": 1}, "O"))
    error = _fails(r)
    assert (error.code, error.exit_code) == (5010, 6)
    assert sorted(row[0:1] + row[4:5] for row in _errors(r)) == [("S.NOWHERE", 5005), ("S.T", 5006)]
    assert _rows(r, "s.o") == [(1,)]
    r.execute("ALTER TABLE s.t ADD extra text; CREATE TABLE s.nowhere (id int PRIMARY KEY)")
    r.serve()
    r.apply()
    assert _rows(r) == [(1, 1, None, "x")]
    assert _rows(r, "s.nowhere") == [(1,)]


def test_a_column_of_another_type(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.d (id int PRIMARY KEY, v date)")
    r.transaction(r.insert({"ID": 1, "V": "x"}, "D"))
    assert _fails(r).code == 5010
    assert _errors(r)[0][4] == 5007


@pytest.mark.parametrize(
    ("policy", "rows", "resolutions"),
    [
        (ConflictPolicy.ERROR, [(1, 1, "mine"), (2, 2, "two")], ["stopped"]),
        (
            ConflictPolicy.SKIP,
            [(1, 1, "mine"), (2, 2, "two"), (5, 5, None)],
            ["skipped"] * 4,
        ),
        (
            ConflictPolicy.OVERWRITE,
            [(1, 10, "theirs"), (2, 2, "two"), (4, 4, "new"), (5, 5, None)],
            ["overwritten", "skipped", "overwritten", "skipped"],
        ),
    ],
)
def test_conflicts(
    replication: Replication,
    policy: ConflictPolicy,
    rows: list[tuple[Any, ...]],
    resolutions: list[str],
) -> None:
    r = replication
    r.execute("INSERT INTO s.t VALUES (1, 1, 'mine')")
    r.transaction(r.insert({"ID": 2, "N": 2, "V": "two"}))
    bad = r.transaction(r.insert({"ID": 1, "N": 10, "V": "theirs"}))
    r.transaction(r.update({"ID": 3}, {"V": "nothing there"}))
    r.transaction(r.update({"ID": 4, "N": 4, "V": "old"}, {"V": "new"}))
    r.transaction(r.delete({"ID": 6}), r.insert({"ID": 5, "N": 5, "V": None}))
    if policy is ConflictPolicy.ERROR:
        assert _fails(r, conflict=policy).code == 5010
        assert _errors(r) == [("S.T", bad, 0, "insert", 5009, "23505", "stopped", 1)]
    else:
        r.apply(conflict=policy)
        assert r.rows("SELECT conflicts FROM olr_pg.ledger") == [(4,)]
    assert _rows(r) == rows
    assert [row[6] for row in _errors(r)] == resolutions


def test_a_lob_that_is_not_chunked_is_refused_but_for_null(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD c text")
    r.transaction(r.insert({"ID": 1, "C": ColumnValue("C", 112)}))
    bad = r.transaction(r.insert({"ID": 3, "C": ColumnValue("C", 112, value=b"x")}))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.T", bad, 0, "insert", 5013, None, "stopped", 1)]
    assert _rows(r) == [(1, None, None, None)]


def test_changes_without_their_key(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    bad = r.transaction(r.update({"N": 1}, {"N": 2}))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.T", bad, 0, "update", 5009, None, "stopped", 1)]
    assert _rows(r) == [(1, 1, None)]


IDENTITY = "int GENERATED ALWAYS AS IDENTITY"


@pytest.mark.parametrize(
    ("columns", "before", "after"),
    [
        (f"id {IDENTITY} PRIMARY KEY, n int", {"ID": 7}, {"ID": 9}),
        (f"id int PRIMARY KEY, n {IDENTITY}", {"ID": 7, "N": 70}, {"N": 71}),
        (f"id int, n {IDENTITY}", {"ID": 7, "N": 70}, {"N": 71}),
        (f"id int PRIMARY KEY, n {IDENTITY}", {"ID": 7}, {"N": 71}),
    ],
)
def test_an_identity_that_postgresql_lets_nobody_update(
    replication: Replication, columns: str, before: dict[str, int], after: dict[str, int]
) -> None:
    r = replication
    r.execute(f"CREATE TABLE s.g ({columns})")
    r.execute("INSERT INTO s.g OVERRIDING SYSTEM VALUE VALUES (7, 70)")
    bad = r.transaction(r.update(before, after, "G"))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.G", bad, 0, "update", 5008, None, "stopped", 1)]
    changed = next(name for name in after).lower()
    action = f"ALTER TABLE s.g ALTER {changed} SET GENERATED BY DEFAULT"
    assert r.rows("SELECT message FROM olr_pg.error")[0][0].endswith(action)
    assert _rows(r, "s.g") == [(7, 70)]
    r.execute(action)
    r.serve()
    r.apply()
    assert _rows(r, "s.g") == [(after.get("ID", 7), after.get("N", 70))]


def test_identities_that_stay_or_move_with_their_whole_row(replication: Replication) -> None:
    r = replication
    r.execute(f"CREATE TABLE s.g (id {IDENTITY} PRIMARY KEY, n int, v text)")
    r.execute(f"CREATE TABLE s.h (id int PRIMARY KEY, n {IDENTITY}, v text)")
    r.execute(f"CREATE TABLE s.k (id int, n {IDENTITY}, v text)")
    r.execute("INSERT INTO s.g OVERRIDING SYSTEM VALUE VALUES (7, 70, 'a')")
    for table in "hk":
        r.execute(f"INSERT INTO s.{table} OVERRIDING SYSTEM VALUE VALUES (7, 70, 'a')")
    row = {"ID": 7, "N": 70, "V": "a"}
    r.transaction(r.update(row, {**row, "ID": 9}, "G"))
    for table in "HK":
        r.transaction(r.update(row, {"N": 70, "V": "b"}, table))
    r.apply()
    assert _rows(r, "s.g") == [(9, 70, "a")]
    assert _rows(r, "s.h") == _rows(r, "s.k") == [(7, 70, "b")]


def test_overwriting_that_is_refused(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v); INSERT INTO s.t VALUES (1, 1, 'a'), (3, 3, 'b')")
    bad = r.transaction(r.insert({"ID": 2, "V": "c"}), r.insert({"ID": 1, "V": "b"}))
    assert _fails(r, conflict=ConflictPolicy.OVERWRITE).code == 5010
    assert _rows(r) == [(1, 1, "a"), (3, 3, "b")]
    assert _errors(r) == [("S.T", bad, 1, "insert", 5009, "23505", "stopped", 1)]


def test_a_key_that_two_rows_have(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.w (id int, v text)")
    r.execute("INSERT INTO s.w VALUES (1, 'a'), (1, 'b')")
    r.execute("CREATE UNIQUE INDEX ON s.w (id) WHERE v = 'a'")  # partial: no key
    r.transaction(r.update({"ID": 1, "V": "a"}, {"V": "c"}, "W"))
    r.apply()
    assert sorted(_rows(r, "s.w")) == [(1, "b"), (1, "c")]


KEYLESS = {
    "update": lambda r: r.update({"N": 1}, {"N": 2}, "K"),
    "delete": lambda r: r.delete({"N": 1}, "K"),
}


@pytest.mark.parametrize("rest", ["c text", "c json", "c bytea, d int"])
@pytest.mark.parametrize("change", list(KEYLESS))
def test_rows_that_differ_in_what_the_change_does_not_tell(
    replication: Replication, change: str, rest: str
) -> None:
    """Without a key any of them could be meant; Oracle never logs a LOB's old value."""
    r = replication
    r.execute(f"CREATE TABLE s.k (n int, {rest})")
    r.execute("INSERT INTO s.k (n, c) VALUES (1, '1'), (1, '1'), (1, '22')")
    bad = r.transaction(KEYLESS[change](r))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.K", bad, 0, change, 5009, None, "stopped", 1)]
    message = r.rows("SELECT message FROM olr_pg.error")[0][0]
    assert message.startswith("0 rows were there")
    assert "differ in c" in message
    assert "a primary key" in message
    assert r.rows("SELECT n FROM s.k") == [(1,)] * 3
    # Of rows that are the same it does not matter which one is taken.
    r.execute("DELETE FROM s.k WHERE c::text = (SELECT max(c::text) FROM s.k)")
    r.serve()
    r.apply()
    assert sorted(r.rows("SELECT n FROM s.k")) == ([(1,), (2,)] if change == "update" else [(1,)])


@pytest.mark.parametrize("change", list(KEYLESS))
def test_columns_of_the_targets_own_tell_nothing(replication: Replication, change: str) -> None:
    r = replication
    r.execute("CREATE TABLE s.k (n int, own int GENERATED ALWAYS AS IDENTITY)")
    r.execute("INSERT INTO s.k VALUES (1), (1)")
    r.transaction(KEYLESS[change](r))
    source = Table("S", "K", 1, 1, (Column("N", 1, 1, 1, 2, 22),))
    r.apply([source])
    assert sorted(r.rows("SELECT n FROM s.k")) == ([(1,), (2,)] if change == "update" else [(1,)])


def test_text_policies(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "V": b"a\0b"}), r.insert({"ID": 2, "V": b"x\xffy"}))
    r.apply(policies=Policies(nul="replace"))
    assert _rows(r) == [(1, None, "a\ufffdb"), (2, None, "x\ufffdy")]
    r.transaction(r.insert({"ID": 3, "V": b"a\0b"}))
    r.serve()
    assert _fails(r, policies=Policies(nul="error")).code == 5010


@pytest.mark.parametrize("consistency", list(Consistency))
def test_values_that_a_policy_changes_are_counted(
    replication: Replication, consistency: Consistency
) -> None:
    r = replication
    r.execute("CREATE TABLE s.w (id int PRIMARY KEY, d timestamp)")
    times = [encode_timestamp(DateTime(2026, 1, 2, 3, 4, 5, rest)) for rest in (1000, 1001)]
    r.transaction(
        *(r.insert({"ID": i, "V": value}) for i, value in enumerate([b"a\0b", b"c", b"x\xffy"])),
        *(
            r.insert({"ID": i, "D": ColumnValue("D", OracleType.TIMESTAMP, value=value)}, "W")
            for i, value in enumerate(times)
        ),
    )
    r.transaction(r.update({"ID": 1}, {"V": b"\0"}))
    applier = Applier(r.settings(batch_changes=1, consistency=consistency))
    with structlog.testing.capture_logs() as events:
        applier.run(once=True, drained=r.script.complete.is_set)
    assert {table.name: table.altered for table in applier.tables} == {"S.T": 3, "S.W": 1}
    told = [
        {key: event[key] for key in ("column", "nul", "undecodable", "truncated") if key in event}
        for event in events
        if "policies" in event["event"]
    ]
    assert sorted(told, key=str) == [
        {"column": "D", "truncated": 1},
        {"column": "V", "nul": 1, "undecodable": 1},
    ]


def test_unique_values_that_change_places(replication: Replication) -> None:
    """One UPDATE of the set would meet a duplicate; the changes one by one do not."""
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v)")
    r.transaction(*(r.insert({"ID": i, "V": v}) for i, v in enumerate("abc")))
    r.transaction(
        r.update({"ID": 2}, {"V": "d"}),
        r.update({"ID": 1}, {"V": "c"}),
        r.update({"ID": 0}, {"V": "b"}),
    )
    r.apply(batch_changes=1)
    assert [row[2] for row in _rows(r)] == ["b", "c", "d"]


@pytest.mark.parametrize("consistency", list(Consistency))
@pytest.mark.parametrize("moved", [{1: "b", 2: "c", 3: "d"}, {1: "b", 2: "a"}, {3: "a", 1: "c"}])
def test_unique_values_of_one_statement_change_places(
    replication: Replication, moved: dict[int, str], consistency: Consistency
) -> None:
    """Oracle looks for duplicates at the statement's end; the change does not tell the rest."""
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v), ADD mine text DEFAULT 'kept'")
    rows = dict(enumerate("abc", 1))
    r.transaction(*(r.insert({"ID": i, "N": i, "V": v}, rowid=f"{i:018}") for i, v in rows.items()))
    r.apply()
    r.execute("UPDATE s.t SET mine = 'changed' WHERE id = 1")
    r.transaction(
        r.insert({"ID": 9, "N": 9, "V": "i"}, rowid=f"{9:018}"),
        r.update({"ID": 2}, {"N": 7}, rowid=f"{2:018}"),
        *(r.update({"ID": i}, {"V": v}, rowid=f"{i:018}") for i, v in moved.items()),
        r.delete({"ID": 9}, rowid=f"{9:018}"),
        r.insert({"ID": 8, "N": 8, "V": "h"}, rowid=f"{8:018}"),
    )
    r.serve()
    r.apply(consistency=consistency)
    assert r.rows("SELECT id, n, v, mine FROM s.t ORDER BY id") == [
        *(
            (i, 7 if i == 2 else i, v, "changed" if i == 1 else "kept")
            for i, v in (rows | moved).items()
        ),
        (8, 8, "h", "kept"),
    ]
    assert r.rows("SELECT inserted, updated FROM olr_pg.ledger") == [(4, len({2, *moved}))]
    assert _errors(r) == []


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
    assert _rows(r) == [(i, n, "row") for i, n in sorted(expected.items())]


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
    assert _rows(r) == []


def test_unique_values_that_change_places_do_not_hide_a_conflict(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v)")
    r.transaction(*(r.insert({"ID": i, "V": v}, rowid=f"{i:018}") for i, v in enumerate("ab")))
    r.apply()
    r.execute("INSERT INTO s.t VALUES (50, 0, 'c')")
    bad = r.transaction(
        r.update({"ID": 0}, {"V": "b"}, rowid=f"{0:018}"),
        r.update({"ID": 1}, {"V": "c"}, rowid=f"{1:018}"),
    )
    r.serve()
    assert _fails(r).code == 5010
    assert [row[:2] for row in _errors(r)] == [("S.T", bad)]
    assert [(row[0], row[2]) for row in _rows(r)] == [(0, "a"), (1, "b"), (50, "c")]


ROW_1, ROW_2 = "AAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAB"


def _two(r: Replication) -> tuple[Any, Any]:
    return (
        r.insert({"ID": 1, "N": 1, "V": "one"}, rowid=ROW_1),
        r.insert({"ID": 2, "N": 2, "V": "two"}, rowid=ROW_2),
    )


def _swap(r: Replication) -> tuple[Any, Any]:
    """Two rows that change their keys: one by one each meets the other."""
    return (
        r.update({"ID": 1, "N": 1, "V": "one"}, {"ID": 2, "N": 1, "V": "one"}, rowid=ROW_1),
        r.update({"ID": 2, "N": 2, "V": "two"}, {"ID": 1, "N": 2, "V": "two"}, rowid=ROW_2),
    )


@pytest.mark.parametrize("policy", [ConflictPolicy.SKIP, ConflictPolicy.OVERWRITE])
@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_conflict_beside_keys_that_change_places(
    replication: Replication, policy: ConflictPolicy, consistency: Consistency
) -> None:
    """Only what conflicts is skipped."""
    r = replication
    r.transaction(*_two(r))
    bad = r.transaction(r.delete({"ID": 98}), *_swap(r), r.delete({"ID": 99}))
    r.apply(conflict=policy, consistency=consistency)
    assert [(row[0], row[2]) for row in _rows(r)] == [(1, "two"), (2, "one")]
    assert _errors(r) == [
        ("S.T", bad, position, "delete", 5009, None, "skipped", 1) for position in (0, 3)
    ]


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
    assert {row[0]: row[2] for row in _rows(r)} == {
        key: f"row {row}" for key, row in expected.items()
    }


def test_a_row_whose_key_another_one_has_by_now_is_not_deleted(replication: Replication) -> None:
    r = replication
    r.execute("INSERT INTO s.t VALUES (1, 0, 'row 1')")
    r.transaction(*_moves(r, (1, 2)), r.delete({"ID": 2}, rowid=f"{2:018}"), r.delete({"ID": 9}))
    r.apply(conflict=ConflictPolicy.SKIP)
    assert _rows(r) == [(2, 0, "row 1")]


def test_the_conflict_is_named_not_the_keys_that_change_places(replication: Replication) -> None:
    r = replication
    r.transaction(*_two(r))
    bad = r.transaction(*_swap(r), r.delete({"ID": 99}))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.T", bad, 2, "delete", 5009, None, "stopped", 1)]
    assert [(row[0], row[2]) for row in _rows(r)] == [(1, "one"), (2, "two")]


def test_more_conflicts_than_sets_are_tried(replication: Replication) -> None:
    """Keys that move over each other towards one that is taken: none of them goes in."""
    r = replication
    count = ATTEMPTS_MAX + 5
    r.transaction(*(r.insert({"ID": i, "N": i}, rowid=f"{i:018}") for i in range(count)))
    r.execute(f"INSERT INTO s.t VALUES ({count}, 0, 'stray')")
    r.transaction(
        *(r.update({"ID": i, "N": i, "V": None}, {"ID": i + 1}, rowid=f"{i:018}")
          for i in range(count))
    )  # fmt: skip
    r.apply(conflict=ConflictPolicy.SKIP)
    assert _rows(r) == [*((i, i, None) for i in range(count)), (count, 0, "stray")]
    assert len(_errors(r)) == count


def test_keys_change_places_beside_a_skipped_change(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric(3)")
    r.transaction(*_two(r))
    r.transaction(r.insert({"ID": 5, "N": 10**9}), *_swap(r))
    assert _fails(r).code == 5010
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", read_errors(connection, "olr_pg", resolved=False)[0].id)
    r.serve()
    r.apply()
    assert [(row[0], row[2]) for row in _rows(r)] == [(1, "two"), (2, "one")]
    assert r.rows("SELECT conflicts, updated + deleted FROM olr_pg.ledger") == [(1, 2)]


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
    while r.rows("SELECT to_regclass('olr_pg.ledger') IS NULL OR NOT EXISTS (SELECT FROM s.t)") == [
        (True,)
    ]:
        time.sleep(0.01)
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
    assert _rows(r) == [(1, 1, None)]
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(report.confirmed_scn,)]


@pytest.fixture
def own_cluster() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-test-"))
    yield folder
    shutil.rmtree(folder)


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
    assert _rows(r) == [(1, None, None)]
    assert _errors(r) == []
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
        while not any("read-only" in str(event.get("error")) for event in events):
            thread.join(0.005)
            assert thread.is_alive()
        writable = f"{r.target} options='-c default_transaction_read_only=off'"
        with psycopg.connect(writable, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        thread.join()
    assert [row[0] for row in _rows(r)] == [1, 2]
    assert _errors(r) == []


def test_postgres_killed_and_started_again(
    own_cluster: Path, replicate: Callable[[str], Replication]
) -> None:
    """The outage is longer than the retries: the session is rewound."""
    cluster = start_embedded(own_cluster)
    r = replicate(cluster.connect_string)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, n int)")
    for i in range(3_000):
        r.transaction(r.insert({"ID": i, "N": i}), scn=100 + i // 3)
    applier = Applier(
        r.settings(
            batch_changes=20, batch_milliseconds=1, window=64, retry_seconds=0.3, rewinds=200
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
    while r.rows("SELECT count(*) FROM s.t")[0][0] < 100:
        time.sleep(0.01)
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        time.sleep(0.01)
    again = start_embedded(own_cluster)
    runner.join()
    assert failures == []
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(3_000, sum(range(3_000)))]
    again.stop()
    cluster.stop()


_PROCESS = """
import sys
from olr_pg.applier.session import Applier
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
    for at_least in (50, 300, 700):
        process = subprocess.Popen([sys.executable, "-c", _PROCESS, r.target, str(port)])
        try:
            while r.rows("SELECT count(*) FROM s.t")[0][0] < at_least:
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
    assert _rows(r) == [(1, 1, None), (2, 2, None)]


SQL = Path(__file__).parents[2] / "sql" / "postgres"


def run_script(target: str, script: str, **variables: str) -> None:
    """What an administrator does with one of our scripts."""
    psql = str(packaged_installation() / "bin" / "psql")
    values = [f"--set={name}={value}" for name, value in variables.items()]
    options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *values]
    done = subprocess.run(
        [psql, target, *options, f"--file={SQL / script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_role_with_the_minimal_grants(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    run_script(r.target, "ledger.sql")
    for _ in range(2):  # running it again does no harm
        run_script(r.target, "role.sql", role="applier", target_schema="s")
    r.execute("ALTER ROLE applier PASSWORD 'secret'")
    target = psycopg.conninfo.make_conninfo(r.target, user="applier", password="secret")
    try:
        r.apply(connect_string=target)
        r.transaction(r.update({"ID": 1}, {"N": 5}), r.insert({"ID": 2}))
        r.serve()
        r.apply(connect_string=target)
        assert _rows(r) == [(1, 5, None), (2, None, None)]
        with psycopg.connect(target) as connection:
            note_step(connection, "olr_pg", "quiet", "done", {})
            assert list(read_steps(connection, "olr_pg")) == ["quiet"]
            forget_steps(connection, "olr_pg")
        # Of the release before: it is not the role's to alter.
        r.execute("ALTER TABLE olr_pg.ledger DROP COLUMN dbid; UPDATE olr_pg.version SET version=5")
        r.transaction(r.insert({"ID": 3}))
        r.serve()
        r.apply(connect_string=target, dbid=11)
        assert len(_rows(r)) == 3
        r.execute("REVOKE SET ON PARAMETER session_replication_role FROM applier")
        assert _fails(r, connect_string=target).code == 5004
    finally:
        r.execute("DROP OWNED BY applier; DROP ROLE applier")
