"""Wrong, lost and phantom rows are found by replaying decoded changes, and right ones are not."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.proving.replay import (
    LOST,
    PHANTOM,
    UNFIT,
    WRONG,
    Difference,
    Moment,
    Rows,
    TableRows,
    check_replay,
)

START: Rows = {"A": {"ID": 1, "V": "x"}, "B": {"ID": 2, "V": None}}


def rows(found: Rows, columns: tuple[str, ...] = ("ID", "V")) -> dict[str, TableRows]:
    return {"S.T": TableRows(columns, (), found)}


def event(op: str, scn: int, rowid: str = "", **images: Any) -> dict[str, Any]:
    return {"op": op, "commit_scn": scn, "xid": "1.2.3", "table": "S.T", "rowid": rowid, **images}


def replayed(events: list[dict[str, Any]], *moments: tuple[int, Rows]) -> list[Difference]:
    return check_replay(
        Moment(10, 0, rows(START)), [Moment(scn, 5, rows(one)) for scn, one in moments], events
    )


CHANGES = [
    event("update", 20, "A", before={"V": "x"}, after={"V": "y"}),
    event("delete", 20, "B", before={"ID": 2}),
    event("insert", 30, "C", after={"ID": 3, "V": "z"}),
]
FIRST: Rows = {"A": {"ID": 1, "V": "y"}}
SECOND: Rows = {**FIRST, "C": {"ID": 3, "V": "z"}}


def test_right_changes_are_right_at_each_commit() -> None:
    assert replayed(CHANGES, (25, FIRST), (30, SECOND)) == []


def test_a_lost_change_is_found_once() -> None:
    (found,) = replayed(CHANGES[1:], (25, FIRST), (30, SECOND))
    assert (found.kind, found.row, found.columns, found.scn) == (WRONG, "A", ("V",), 25)
    assert (found.expected, found.decoded) == ({"V": "y"}, {"V": "x"})


def test_a_lost_row_and_a_phantom_row() -> None:
    (lost,) = replayed(CHANGES[:2], (25, FIRST), (30, SECOND))
    assert (lost.kind, lost.row, lost.line) == (LOST, "C", 5)
    (phantom,) = replayed([CHANGES[0], CHANGES[2]], (30, SECOND))
    assert (phantom.kind, phantom.row) == (PHANTOM, "B")


def test_a_change_at_a_later_commit_than_its_own() -> None:
    late = [*CHANGES[:2], {**CHANGES[2], "commit_scn": 40}]
    assert [one.kind for one in replayed(late, (25, FIRST), (30, SECOND))] == [LOST, UNFIT, PHANTOM]


def test_a_before_image_that_the_row_does_not_have() -> None:
    wrong = [event("update", 20, "A", before={"V": "other"}, after={"V": "y"}), *CHANGES[1:]]
    (found,) = replayed(wrong, (30, SECOND))
    assert (found.kind, found.columns, found.xid) == (UNFIT, ("V",), "1.2.3")
    assert "V is other, not x" in found.words


def test_a_value_that_is_reported_as_lost_is_the_sources() -> None:
    lost = event("lost", 20, "A", column="V", code=2120)
    assert replayed([lost, *CHANGES[1:]], (30, SECOND)) == []


def test_a_truncated_table_is_empty() -> None:
    assert replayed([event("ddl", 20, command="TRUNCATE TABLE")], (25, {})) == []


@pytest.mark.parametrize("verb", ["TRUNCATE", "drop", "EXCHANGE"])
def test_rows_of_a_partition_that_went_are_gone_and_others_are_not(verb: str) -> None:
    first: Rows = {f"AAAAA{one}AAAAAAAAAA{n}": {"ID": n, "V": "x"} for one in "AB" for n in (1, 2)}
    left: Rows = {key: row for key, row in first.items() if key.startswith("AAAAAB")}
    ddl = event("ddl", 20, command="ALTER TABLE", text=f"ALTER TABLE t {verb} PARTITION p")
    start = Moment(10, 0, rows(first))
    assert check_replay(start, [Moment(25, 5, rows(left))], [ddl]) == []
    one = dict([next(iter(left.items()))])
    (phantom,) = check_replay(start, [Moment(25, 5, rows(one))], [ddl])
    assert phantom.kind == PHANTOM
    assert len(check_replay(start, [Moment(25, 5, rows(left))], [])) == 2


def test_the_default_of_a_new_column_is_the_sources() -> None:
    widened = {key: {**row, "N": 7} for key, row in START.items()}
    moment = Moment(25, 3, rows(widened, ("ID", "V", "N")))
    assert check_replay(Moment(10, 0, rows(START)), [moment], []) == []


def test_rows_that_a_ddl_has_moved_keep_their_values() -> None:
    moved = {"X": START["A"], "Y": START["B"]}
    ddl = event("ddl", 20, command="ALTER TABLE")
    assert replayed([ddl], (25, moved)) == []
    assert {one.kind for one in replayed([], (25, moved))} == {LOST, PHANTOM}


@pytest.mark.parametrize(
    "text",
    ["ALTER TABLE T RENAME TO U", "rename t to u", 'ALTER TABLE t RENAME TO "U"', "RENAME t TO u"],
)
def test_a_renamed_table_is_compared_up_to_there(text: str) -> None:
    ddl = event("ddl", 26, command="ALTER TABLE", text=text)
    (wrong,) = replayed([*CHANGES[1:2], ddl], (25, FIRST), (30, {}))
    assert wrong.scn == 25  # what came before it
    assert replayed([*CHANGES[:2], ddl, *CHANGES[2:]], (25, FIRST), (30, {})) == []


def test_a_renamed_column_is_no_renamed_table() -> None:
    ddl = event("ddl", 26, command="ALTER TABLE", text="ALTER TABLE T RENAME COLUMN V TO W")
    (wrong,) = replayed([*CHANGES[:2], ddl], (25, FIRST), (30, {**FIRST, "C": {"ID": 3, "V": "z"}}))
    assert (wrong.kind, wrong.scn) == (LOST, 30)


def test_a_row_without_a_rowid_is_known_by_its_key() -> None:
    start = TableRows(("ID", "V"), ("ID",), {"[1]": {"ID": 1, "V": "x"}})
    end = TableRows(("ID", "V"), ("ID",), {"[2]": {"ID": 2, "V": "x"}})
    change = event("update", 20, before={"ID": 1}, after={"ID": 2})
    assert (
        check_replay(Moment(10, 0, {"S.T": start}), [Moment(25, 1, {"S.T": end})], [change]) == []
    )
