"""Columns that were added with a default: rows that do not store them read as the default."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import AddedColumn, Column, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot, parse_snapshot
from tests.lobs.lob_decoding import decode
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo, snapshot

if TYPE_CHECKING:
    from pathlib import Path

SEVEN, X = encode_number(7), b"x"
COLUMNS = (
    Column("ID", 1, 1, 1, 2, 22, nullable=False),
    Column("NAME", 2, 2, 2, 1, 20, charset_id=873, charset_form=1),
    Column("SYS_NC00003$", 3, 3, 0, 23, 126, hidden=True, guard=True),
    Column("C", 4, 4, 3, 2, 22, added=AddedColumn(SEVEN, 0)),
    Column("D", 5, 5, 4, 1, 5, charset_id=873, charset_form=1, nullable=False,
           added=AddedColumn(X)),
    Column("E", 6, 6, 5, 2, 22, added=AddedColumn(SEVEN, 9)),
)  # fmt: skip
TABLE = Table("APP", "ADDED", TABLE_OBJ, TABLE_OBJ, COLUMNS, key_kind=KeyKind.PRIMARY, key=(1,))
ONE = encode_number(1)


@pytest.fixture
def redo() -> LobRedo:
    made = LobRedo()
    made.begin()
    return made


def changes(redo: LobRedo, folder: Path, table: Table = TABLE) -> list[dict[str, Any]]:
    redo.end()
    return decode(redo, folder, snapshot(table)).changes


def test_whole_rows(redo: LobRedo, tmp_path: Path) -> None:
    redo.delete_row(0, ONE, b"old")
    redo.delete_row(1, ONE, b"set", b"\1", encode_number(5))
    redo.delete_row(2, ONE, b"null", b"\1", None, b"y")
    redo.delete_row(3, ONE, b"second", b"\0\2", None, b"y", None)
    redo.insert_row(ONE, b"new", b"\1\2", None, b"y", None)
    redo.insert_row(ONE, b"early", None, None, b"y")
    found = [change.get("before") or change["after"] for change in changes(redo, tmp_path)]
    rest = ("C", "D", "E")
    assert [(row["NAME"], *(row[name] for name in rest)) for row in found] == [
        ("old", 7, "x", 7),
        ("set", 5, "x", 7),
        ("null", None, "y", 7),
        ("second", 7, "y", None),
        ("new", None, "y", None),
        ("early", 7, "y", 7),
    ]
    assert all("SYS_NC00003$" not in row for row in found)


def test_updates(redo: LobRedo, tmp_path: Path) -> None:
    five = encode_number(5)
    # the first write of C in an old row sets the guard's bit too
    redo.update(0, Decimal(1), {3: None, 4: None}, {3: b"\1", 4: five}, width=4)
    # C was NULL before: its bit is set already, the guard is not logged
    redo.update(1, Decimal(1), {4: None}, {4: five}, width=4)
    # C becomes NULL
    redo.update(2, Decimal(1), {3: None, 4: None}, {3: b"\1", 4: None}, width=4)
    redo.update(3, Decimal(1), {4: five}, {4: None}, width=4)
    # the whole row is written again: C is still the default
    redo.update(4, Decimal(1), {3: None, 4: None, 5: None}, {3: None, 4: None, 5: b"z"}, width=5)
    # supplementally logged: with the guard it is clear what C is, without it nobody can tell
    redo.update(5, Decimal(1), {2: b"a"}, {2: b"b"}, {3: None, 4: None}, width=6)
    redo.update(6, Decimal(1), {2: b"a"}, {2: b"b"}, {3: b"\1", 4: None}, width=6)
    redo.update(7, Decimal(1), {2: b"a"}, {2: b"b"}, {4: None}, width=6)
    found = changes(redo, tmp_path)
    assert [(row["before"].get("C", "absent"), row["after"].get("C", "absent")) for row in found] \
        == [
            (7, 5), (None, 5), (7, None), (5, None), (7, 7), (7, "absent"), (None, "absent"),
            ("absent", "absent"),
        ]  # fmt: skip
    assert found[4]["before"]["D"] == "x"
    assert found[4]["after"]["D"] == "z"


def test_a_default_that_nobody_told_is_left_out(redo: LobRedo, tmp_path: Path) -> None:
    added = tuple(
        replace(column, added=AddedColumn(None, column.added.guard_id)) if column.added else column
        for column in COLUMNS
    )
    redo.delete_row(0, ONE, b"old")
    redo.insert_row(ONE, b"new", b"\1", None, b"y", SEVEN)
    old, new = changes(redo, tmp_path, replace(TABLE, columns=added))
    assert old["before"] == {"ID": 1, "NAME": "old"}
    assert new["after"] == {"ID": 1, "NAME": "new", "C": None, "D": "y", "E": 7}


def test_without_a_guard_column_every_missing_value_is_the_default(
    redo: LobRedo, tmp_path: Path
) -> None:
    columns = tuple(replace(column, guard=False) for column in COLUMNS)
    redo.delete_row(0, ONE, b"old", None, None, b"y")
    (row,) = changes(redo, tmp_path, replace(TABLE, columns=columns))
    assert row["before"] == {"ID": 1, "NAME": "old", "C": 7, "D": "y", "E": 7}


def test_an_update_of_nothing_but_the_guard_is_no_change(redo: LobRedo, tmp_path: Path) -> None:
    redo.update(0, Decimal(1), {3: None}, {3: b"\1"}, width=4)
    assert changes(redo, tmp_path) == []


@given(st.integers(0, 40), st.binary(max_size=6), st.booleans())
def test_the_rule(guard_id: int, guard: bytes, is_null: bool) -> None:
    import tempfile
    from pathlib import Path

    columns = (*COLUMNS[:3], replace(COLUMNS[3], added=AddedColumn(SEVEN, guard_id)))
    redo = LobRedo()
    redo.begin()
    redo.delete_row(0, ONE, b"r", guard or None, None if is_null else encode_number(5))
    with tempfile.TemporaryDirectory() as folder:
        (row,) = changes(redo, Path(folder), replace(TABLE, columns=columns))
    # values-and-lobs §14, word for word
    if not is_null:
        expected = 5
    elif len(guard) > guard_id // 8 and guard[guard_id // 8] & (1 << guard_id % 8):
        expected = None
    else:
        expected = 7
    assert row["before"]["C"] == expected


def test_the_snapshot_keeps_defaults() -> None:
    import orjson

    written = Snapshot(1, snapshot().database, (TABLE,))
    assert parse_snapshot(orjson.loads(dump_snapshot(written)), "here") == written


def test_columns_that_are_there_but_not_the_user_s(redo: LobRedo, tmp_path: Path) -> None:
    columns = (
        Column("ID", 1, 1, 1, 2, 22, nullable=False),
        Column("SYS_C00002_26010112:00:00$", 2, 2, 0, 2, 22, hidden=True),  # unused
        Column("TWICE", 0, 3, 2, 2, 22, virtual=True),
        Column("SECRET_NOTE", 3, 4, 0, 1, 20, charset_id=873, charset_form=1),  # invisible
        Column("SYS_NC00005$", 0, 5, 0, 2, 22, hidden=True, virtual=True),  # of an index
        Column("NAME", 4, 6, 3, 1, 20, charset_id=873, charset_form=1),
    )
    redo.insert_row(ONE, encode_number(99), b"seen", b"last")
    redo.update(0, Decimal(1), {2: None, 4: b"last"}, {2: encode_number(5), 4: b"new"}, width=4)
    redo.update(0, Decimal(1), {2: None}, {2: encode_number(6)}, width=4)
    found = changes(redo, tmp_path, replace(TABLE, columns=columns))
    assert [row["after"] for row in found] == [
        {"ID": 1, "SECRET_NOTE": "seen", "NAME": "last"},
        {"NAME": "new"},
    ]
