"""Rows of SYS tables that committed transactions change, and the tables that they make."""

from __future__ import annotations

from typing import Any, Final

import pytest

from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.committed_changes import DictionaryTransaction, SysRowChange, SysRowOperation
from olr_pg.dictionary.followed_dictionary import FollowedDictionary
from olr_pg.dictionary.sys_rows import SYS_COLUMNS, ColRow, ObjectRow, SysRows, TabRow, UserRow
from olr_pg.errors import OlrPgError

APP, OTHER, TABLE = 90, 91, 72_000
INSERT, DELETE, UPDATE = SysRowOperation.INSERT, SysRowOperation.DELETE, SysRowOperation.UPDATE
COLUMN: Final[dict[str, Any]] = {
    "length": 22, "precision": 10, "scale": 0, "charset_form": 0, "charset_id": 0, "null": 0,
    "property": 0, "type": 2,
}  # fmt: skip


def dictionary() -> FollowedDictionary:
    """``APP.T (A NUMBER)``; the owner OTHER is not captured."""
    empty: dict[str, Any] = {
        name: [] for name, field in SysRows.model_fields.items() if field.is_required()
    }
    rows = SysRows(
        **{
            **empty,
            "sys_user": [UserRow(row_id="u1", user=APP, name="APP")],
            "sys_obj": [ObjectRow(row_id="o1", owner=APP, obj=TABLE, data_obj=TABLE, name="T",
                                  type=2, flags=0)],
            "sys_tab": [TabRow(row_id="t1", obj=TABLE, data_obj=TABLE, clu_cols=0, flags=0,
                               property=0)],
            "sys_col": [ColRow(row_id="c1", obj=TABLE, col=1, seg_col=1, int_col=1, name="A",
                               **COLUMN)],
        }
    )  # fmt: skip
    return FollowedDictionary(rows, "AL32UTF8")


def change(table: str, operation: SysRowOperation, row_id: str, **fields: Any) -> SysRowChange:
    """A change of a row by its fields' names."""
    name = table.removesuffix("$").replace("_", "").lower()
    section = {"lobcomppart": "sys_lob_comp_part", "lobfrag": "sys_lob_frag"}.get(
        name, f"sys_{name}"
    )
    values = {
        SYS_COLUMNS[section][name]: value.encode() if isinstance(value, str)
        else None if value is None else encode_number(value)
        for name, value in fields.items()
    }  # fmt: skip
    return SysRowChange(table, operation, row_id, values)


def transaction(*changes: SysRowChange) -> DictionaryTransaction:
    return DictionaryTransaction(3, 1, 1, 2, (1, 1, 1, 1), changes)


def second_column(
    operation: SysRowOperation = INSERT, row_id: str = "c2", **other: Any
) -> SysRowChange:
    fields = {**COLUMN, "obj": TABLE, "col": 2, "seg_col": 2, "int_col": 2, "name": "B", **other}
    return change("COL$", operation, row_id, **fields)


def names(followed: FollowedDictionary, obj: int = TABLE) -> list[str]:
    table = followed.table(obj)
    return [] if table is None else [column.name for column in table.columns]


def test_a_column_comes_is_renamed_and_goes() -> None:
    followed = dictionary()
    assert names(followed) == ["A"]
    assert followed.apply(transaction(second_column())) == {TABLE}
    assert names(followed) == ["A", "B"]
    renamed = change("COL$", UPDATE, "c2", name="Bé")
    assert followed.concerned(transaction(renamed)) == {TABLE}
    assert names(followed) == ["A", "B"]
    followed.apply(transaction(renamed))
    assert names(followed) == ["A", "Bé"]
    assert followed.apply(transaction(change("COL$", DELETE, "c2"))) == {TABLE}
    assert names(followed) == ["A"]


def test_an_update_that_changes_nothing_touches_nothing() -> None:
    assert dictionary().apply(transaction(change("COL$", UPDATE, "c1", name="A"))) == set()


def test_a_new_table_is_there_whatever_the_order_of_its_rows() -> None:
    followed = dictionary()
    obj = {"obj": TABLE + 1, "data_obj": TABLE + 1}
    made = followed.apply(
        transaction(
            second_column(obj=TABLE + 1, col=1, seg_col=1, int_col=1),
            change("TAB$", INSERT, "t2", **obj, clu_cols=0, flags=0, property=0),
            change("OBJ$", INSERT, "o2", **obj, owner=APP, name="U", type=2, flags=0),
        )
    )
    assert made == {TABLE + 1}
    assert names(followed, TABLE + 1) == ["B"]


def test_tables_of_owners_that_are_not_captured_are_not_kept() -> None:
    followed = dictionary()
    obj = {"obj": TABLE + 1, "data_obj": TABLE + 1}
    changes = (
        change("OBJ$", INSERT, "o2", **obj, owner=OTHER, name="U", type=2, flags=0),
        change("TAB$", INSERT, "t2", **obj, clu_cols=0, flags=0, property=0),
    )
    assert followed.apply(transaction(*changes)) == set()
    assert followed.table(TABLE + 1) is None


def test_columns_with_a_default_that_rows_do_not_store() -> None:
    followed = dictionary()
    followed.apply(transaction(second_column(property=1 << 30)))
    assert followed.with_default(TABLE) == {2}


@pytest.mark.parametrize("value", [-1, "x"])
def test_a_row_that_is_none_of_the_dictionary_is_an_error(value: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        dictionary().apply(transaction(second_column(length=value)))
    assert caught.value.code in (3070, 2050)


def secure(row_id: str = "s7") -> SysRowChange:
    """An encrypted tablespace."""
    fields = {"ts": 7, "name": "SECURE", "block_size": 8192, "state": 1, "flags": 0x4021}
    return change("TS$", INSERT, row_id, **fields)


def test_a_table_that_moves_into_an_encrypted_tablespace_is_refused() -> None:
    followed = dictionary()
    followed.apply(transaction(secure()))
    table = followed.table(TABLE)
    assert table is not None
    assert table.refusal is None
    moved = change("TAB$", UPDATE, "t1", ts=7, data_obj=TABLE + 9)
    assert followed.apply(transaction(moved)) == {TABLE}
    table = followed.table(TABLE)
    assert table is not None
    assert table.refusal is not None
    assert table.refusal.startswith("it is in the encrypted tablespace SECURE")


def test_a_partition_that_comes_in_an_encrypted_tablespace_refuses_its_table() -> None:
    followed = dictionary()
    part = {"obj": TABLE + 1, "data_obj": TABLE + 1}
    added = (
        secure(),
        change("OBJ$", INSERT, "o2", **part, owner=APP, name="T", subname="P2", type=19, flags=0),
        change("TABPART$", INSERT, "p2", **part, bo=TABLE, ts=7),
    )
    assert followed.apply(transaction(*added)) == {TABLE}
    table = followed.table(TABLE)
    assert table is not None
    assert table.refusal is not None
    assert table.refusal.startswith('partition "P2" is in the encrypted tablespace SECURE')


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["table", "partition", "subpartition"])
def test_a_segment_that_will_be_columnar_refuses_its_table(depth: int) -> None:
    followed = dictionary()
    part, sub = ({"obj": TABLE + n, "data_obj": TABLE + n} for n in (1, 2))
    followed.apply(
        transaction(
            change("OBJ$", INSERT, "o2", **part, owner=APP, name="T", type=19, flags=0),
            change("OBJ$", INSERT, "o3", **sub, owner=APP, name="T", type=34, flags=0),
            change("TABCOMPART$" if depth == 2 else "TABPART$", INSERT, "p2", **part, bo=TABLE),
            change("TABSUBPART$", INSERT, "p3", **sub, p_obj=TABLE + 1),
        )
    )
    stored = change("DEFERRED_STG$", INSERT, "d", obj=TABLE + depth, flags_stg=4, cmp_flag=0)
    assert followed.apply(transaction(stored)) == {TABLE}
    table = followed.table(TABLE)
    assert table is not None
    assert "hybrid columnar" in str(table.refusal)


WITH_TABLESPACE: Final = ("TABPART$", "TABSUBPART$", "IND$", "INDPART$")
PLACED: Final[dict[str, list[tuple[str, dict[str, int]]]]] = {
    "table": [],
    "partition": [("TABPART$", {"bo": TABLE})],
    "subpartition": [
        ("TABCOMPART$", {"obj": TABLE + 8, "data_obj": 0, "bo": TABLE}),
        ("TABSUBPART$", {"p_obj": TABLE + 8}),
    ],
    "index": [
        ("IND$", {"bo": TABLE, "type": 4, "flags": 0, "property": 1}),
        ("ICOL$", {"obj": TABLE + 1, "bo": TABLE, "int_col": 1, "pos": 1}),
    ],
    "index partition": [
        ("IND$", {"obj": TABLE + 8, "bo": TABLE, "type": 4, "flags": 0, "property": 3, "ts": 0}),
        ("ICOL$", {"obj": TABLE + 8, "bo": TABLE, "int_col": 1, "pos": 1}),
        ("INDPART$", {"bo": TABLE + 8}),
    ],
    "LOB": [("LOB$", {"obj": TABLE, "int_col": 1, "l_obj": TABLE + 1, "ts": 7})],
    "LOB partition": [
        ("LOB$", {"obj": TABLE, "int_col": 1, "l_obj": TABLE + 7, "ts": 0}),
        ("LOBFRAG$", {"frag_obj": TABLE + 1, "parent_obj": TABLE + 7, "ts": 7}),
    ],
    "LOB subpartition": [
        ("LOB$", {"obj": TABLE, "int_col": 1, "l_obj": TABLE + 7, "ts": 0}),
        ("LOBCOMPPART$", {"part_obj": TABLE + 6, "l_obj": TABLE + 7}),
        ("LOBFRAG$", {"frag_obj": TABLE + 1, "parent_obj": TABLE + 6, "ts": 7}),
    ],
}
"""What has a segment in tablespace 7, for each kind of segment."""


@pytest.mark.parametrize("kind", PLACED)
def test_a_tablespace_that_is_encrypted_concerns_the_tables_in_it(kind: str) -> None:
    followed = dictionary()
    own = {"obj": TABLE + 1, "data_obj": TABLE + 1, "ts": 7}
    changes = [change("OBJ$", INSERT, f"x{n}", obj=TABLE + n, data_obj=TABLE + n, owner=APP,
                      name="X", type=19, flags=0) for n in (1, 6, 7, 8)]  # fmt: skip
    changes += [
        change(table, INSERT, f"r{at}", **(own if table in WITH_TABLESPACE else {}) | fields)
        for at, (table, fields) in enumerate(PLACED[kind])
    ]
    organised = 0x40 if "index" in kind else 0x20 if "partition" in kind else 0
    place = 7 if kind == "table" else 0
    changes.append(change("TAB$", UPDATE, "t1", ts=place, property=organised))
    plain = change("TS$", INSERT, "s7", ts=7, name="DATA", block_size=8192, state=1, flags=0x21)
    followed.apply(transaction(plain, *changes))
    assert followed.apply(transaction(change("TS$", UPDATE, "s7", block_size=8192))) == set()
    encrypted = transaction(change("TS$", UPDATE, "s7", flags=0x4021))
    assert followed.concerned(encrypted) == {TABLE}
    assert followed.apply(encrypted) == {TABLE}
    table = followed.table(TABLE)
    assert table is not None
    if "LOB" not in kind:
        assert "in the encrypted tablespace DATA" in str(table.refusal)


def test_a_tablespace_of_nothing_that_is_kept_concerns_nobody() -> None:
    followed = dictionary()
    followed.apply(transaction(secure()))
    assert followed.apply(transaction(change("TS$", UPDATE, "s7", flags=0x21))) == set()
