"""Changes of a table as received: cut, joined, and shown."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.applier.statements.table_changes import (
    LostValueMarks,
    by_name,
    by_table,
    count_by_table,
    join,
    raw_images,
    row_changes,
    row_id,
    rows_of,
)
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path

ROWID = "AAATLnAAFAAAAD9AAA"


@pytest.fixture
def made(tmp_path: Path) -> Replication:
    """An insert; an update and a delete; an insert."""
    r = Replication("", tmp_path)
    r.transaction(r.insert({"ID": 1, "V": "a"}, rowid=ROWID))
    r.transaction(r.update({"ID": 1, "V": "a"}, {"V": None}), r.delete({"ID": 2}))
    r.transaction(r.insert({"ID": 3, "V": "ü"}))
    return r


def test_transactions_are_told_apart(made: Replication) -> None:
    selection = made.selection()
    assert selection.firsts().tolist() == [0, 1, 3]
    assert selection.transactions() == [slice(0, 1), slice(1, 3), slice(3, 4)]
    made.transaction(made.insert({"ID": 4}), scn=30, xid=99)
    assert made.selection().firsts().tolist() == [0, 1, 3, 4]


def test_a_part_is_the_chosen_changes(made: Replication) -> None:
    part = made.selection().part(np.array([False, True, False, True]))
    assert (len(part), part.commit_scn.tolist()) == (2, [20, 30])
    assert [json.loads(raw_images(part, at)[1] or "null") for at in range(2)] == [
        {"V": None}, {"ID": "c104", "V": "c3bc"},
    ]  # fmt: skip


def test_what_was_received_in_several_chunks_is_one_selection(made: Replication) -> None:
    whole = made.selection()
    joined = join([made.selection(0, 1), made.selection(1)])
    assert (len(joined.chunks), len(whole.chunks)) == (2, 1)
    assert joined.commit_scn.tolist() == whole.commit_scn.tolist()
    images = [[raw_images(one, at) for at in range(4)] for one in (joined, whole)]
    assert images[0] == images[1]
    assert joined.element_bytes() == whole.element_bytes() == whole.value_bytes()
    assert [len(elements) for _, elements in joined.by_chunk()] == [1, 3]


def test_an_error_shows_the_images_that_a_change_has(made: Replication) -> None:
    selection = made.selection()
    insert, update, delete = (raw_images(selection, at) for at in range(3))
    assert (insert[0], json.loads(insert[1] or "")) == (None, {"ID": "c102", "V": "61"})
    assert json.loads(update[0] or "") == {"ID": "c102", "V": "61"}
    assert (json.loads(delete[0] or ""), delete[1]) == ({"ID": "c103"}, None)


def test_a_large_value_is_shown_in_part(tmp_path: Path) -> None:
    r = Replication("", tmp_path)
    r.transaction(r.insert({"ID": 1, "V": "x" * 70_000}))
    shown = json.loads(raw_images(r.selection(), 0)[1] or "")["V"]
    assert shown == "78" * 65_536 + "… (70000 bytes)"


def test_rowids(made: Replication) -> None:
    selection = made.selection()
    assert [row_id(selection, at) for at in range(4)] == [ROWID, None, None, None]


def test_rows_are_grouped_by_the_names_of_their_tables(made: Replication) -> None:
    made.transaction(made.insert({"ID": 1}, "O"), made.insert({"ID": 5}), made.delete({}, "O"))
    (chunk,) = made.selection().chunks
    rows = row_changes(chunk)
    found = {name: len(some) for name, some in by_name(chunk, rows)}
    assert found == {"S.T": 5, "S.O": 2}
    assert dict(by_name(chunk, rows[:1])).keys() == {"S.T"}


@pytest.fixture
def two_tables(tmp_path: Any) -> Replication:
    """Transactions 1 and 2 of tables U and T, which need no target."""
    made = Replication("", tmp_path)
    made.transaction(
        made.insert({"ID": 1}, "U"), made.insert({"ID": 2}), made.insert({"ID": 3}, "U"),
        xid=1, scn=10,
    )  # fmt: skip
    made.transaction(made.insert({"ID": 4}), xid=2, scn=20)
    return made


def test_each_table_has_its_changes_in_order(two_tables: Replication) -> None:
    found = by_table(two_tables.selection())
    assert [(name, part.commit_scn.tolist()) for name, part in found] == [
        ("S.U", [10, 10]), ("S.T", [10, 20]),
    ]  # fmt: skip


def test_they_are_counted_over_selections(two_tables: Replication) -> None:
    selections = [two_tables.selection(0, 1), two_tables.selection()]
    assert count_by_table(selections) == {"S.U": 4, "S.T": 3}
    assert count_by_table([join(selections)]) == {"S.U": 4, "S.T": 3}


def test_changes_of_a_transaction_and_a_table(two_tables: Replication) -> None:
    selection = two_tables.selection()
    assert rows_of(selection, "S.U", 10, 1).tolist() == [0, 2]
    assert rows_of(selection, "S.T", 20, 2).tolist() == [3]
    assert rows_of(selection, "S.U", 20, 2).tolist() == []
    assert rows_of(selection, "S.T", 10, 2).tolist() == []


def lob(column: str, place: int) -> LostLob:
    return LostLob(column, 2072, "", DmlKind.INSERT, place > 0, (max(place - 1, 0), 0, 0), ())


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2, 3]])
def test_each_goes_to_the_change_that_lacks_it(tmp_path: Path, cuts: list[int]) -> None:
    made = Replication("", tmp_path)
    made.transaction(*(made.insert({"ID": n}) for n in range(4)))
    selection = made.selection()
    marking = LostValueMarks("S.T", [lob("A", 0), lob("B", 2), lob("C", 2), lob("D", 9)], 4)
    parts = [
        marking.mark(selection.part(slice(first, end)), np.arange(end - first))
        for first, end in pairwise([0, *cuts, 4])
    ]
    found: dict[int, tuple[list[str], list[str]]] = {}
    for at, one in join(parts).marked().items():
        found[at] = [one.column for one in one.before], [one.column for one in one.after]
    assert found == {0: (["A"], []), 1: ([], ["B", "C"]), 3: ([], ["D"])}
