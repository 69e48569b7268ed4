"""Rows of SYS tables as JSON: large bit masks in two halves, hyphens in keys.

The map of SYS columns is that of the rows, and of the tables that queries read.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest
from pydantic import ValidationError

from olr_pg.dictionary.sys_rows import (
    DATABASE_LEVELS,
    SYS_COLUMNS,
    EcolRow,
    ObjectRow,
    SysRows,
    TabRow,
    absent,
    make_row,
)
from olr_pg.dictionary.sys_tables import join_tables

EMPTY: dict[str, list[Any]] = {
    name.replace("_", "-"): []
    for name, field in SysRows.model_fields.items()
    if field.is_required()
}


def test_a_mask_of_more_than_64_bits_comes_in_halves() -> None:
    row = {"obj": 7, "data-obj": 7, "clu-cols": 0, "flags": [3, 1], "property": 5}
    made = make_row(TabRow, row)
    assert (made.flags, made.property) == (3 | 1 << 64, 5)
    rows = SysRows.model_validate({**EMPTY, "sys-tab": [row]})
    written = json.loads(json.dumps(rows.as_json()))
    assert written["sys-tab"][0]["flags"] == [3, 1]
    assert SysRows.model_validate(written) == rows


@pytest.mark.parametrize("halves", [[1], [1, 2, 3], ["1", 0], [-1, 0], -1, "7"])
def test_other_masks_are_refused(halves: object) -> None:
    with pytest.raises(ValidationError):
        make_row(ObjectRow, {"owner": 1, "obj": 1, "name": "T", "type": 2, "flags": halves})


def test_what_nobody_told_is_absent() -> None:
    rows = SysRows.model_validate(EMPTY)
    assert (rows.sys_lob, rows.sys_icol) == ([], [])
    assert ObjectRow(owner=1, obj=2, name="T", type=2, flags=0).row_id == ""


def test_a_default_is_hexadecimal() -> None:
    assert make_row(EcolRow, {"tab-obj": 1, "col-num": 2, "default": "c102"}).guard_id == -1
    with pytest.raises(ValidationError):
        make_row(EcolRow, {"tab-obj": 1, "col-num": 2, "default": "c10"})


TABLE, INDEX = 500, 501
COLUMNS = ("ORDER_ID", "LINE", "ITEM")
ORGANISED, OVERFLOW, PARTITIONED = 0x40, 0x80, 0x20
MAPPED = 0x10000000
KEY_COMPRESSION, COMPRESSED = 0x20, 0x8


def sys_rows(
    *,
    table: dict[str, Any] | None = None,
    index: dict[str, Any] | None = None,
    key: tuple[int, ...] = (1, 2),
    indexes: bool = True,
    parts: bool = False,
) -> SysRows:
    """SHOP.LINES (ORDER_ID, LINE, ITEM), its rows in the index of its primary key."""
    rows_index = {"obj": INDEX, "data-obj": 601, "bo": TABLE, "type": 4, "flags": 0, "property": 1}
    secondary = {"obj": 502, "data-obj": 502, "bo": TABLE, "type": 1, "flags": 0, "property": 0}
    tab = {"obj": TABLE, "data-obj": 0, "clu-cols": 0, "flags": 0, "property": ORGANISED}
    return SysRows.model_validate(
        {
            "sys-user": [{"user": 1, "name": "SHOP"}],
            "sys-obj": [{"owner": 1, "obj": TABLE, "name": "LINES", "type": 2, "flags": 0}],
            "sys-tab": [{**tab, **(table or {})}],
            "sys-col": [
                {
                    "obj": TABLE, "col": at, "seg-col": at, "int-col": at, "name": name, "type": 2,
                    "length": 22, "precision": -1, "scale": -1, "charset-form": 0,
                    "charset-id": 0, "null": 0, "property": 0,
                }
                for at, name in enumerate(COLUMNS, 1)
            ],
            "sys-cdef": [{"con": 9, "obj": TABLE, "type": 2}],
            "sys-ccol": [
                {"con": 9, "obj": TABLE, "int-col": intcol, "pos": at}
                for at, intcol in enumerate(key, 1)
            ],
            "sys-tabpart": [{"obj": at, "bo": TABLE} for at in (512, 511)] if parts else [],
            "sys-tabcompart": [],
            "sys-tabsubpart": [],
            "sys-ind": [secondary, {**rows_index, **(index or {})}] if indexes else [],
            "sys-indpart": [
                {"obj": 522, "data-obj": 632, "bo": INDEX},
                {"obj": 521, "data-obj": 631, "bo": INDEX},
                {"obj": 523, "data-obj": 633, "bo": 502},
            ]
            if parts
            else [],
            "sys-icol": [
                {"obj": INDEX, "bo": TABLE, "int-col": intcol, "pos": at}
                for at, intcol in enumerate(key, 1)
            ],
        }
    )  # fmt: skip


def test_the_rows_are_found_by_the_numbers_of_the_index() -> None:
    (table,) = join_tables(sys_rows(), "here")
    assert table.refusal is None
    assert table.index_organised
    assert (table.partitions, table.segments, table.dataobj) == ((INDEX,), (601,), None)
    assert table.key == (1, 2)


def test_the_rows_of_a_partitioned_one_are_found_by_the_partitions_of_the_index() -> None:
    bits = {"property": ORGANISED | PARTITIONED}
    (table,) = join_tables(sys_rows(table=bits, index={"data-obj": 0}, parts=True), "here")
    assert table.refusal is None
    # The table's own have no segments; who meets their numbers knows the table by them, too.
    assert table.partitions == (521, 522, 511, 512)
    assert table.segments == (631, 632, 0, 0)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"table": {"property": ORGANISED | OVERFLOW}}, "overflow segment"),
        ({"table": {"property": ORGANISED | PARTITIONED}}, "does not name its index's partitions"),
        ({"table": {"property": ORGANISED | PARTITIONED | OVERFLOW}, "parts": True}, "overflow"),
        ({"table": {"flags": MAPPED}}, "mapping table"),
        ({"index": {"flags": KEY_COMPRESSION}}, "compressed key"),
        ({"index": {"property": 1 | COMPRESSED}}, "compressed key"),
        ({"key": (2, 1)}, "not its first columns in the same order"),
        ({"key": (1, 3)}, "not its first columns in the same order"),
        ({"indexes": False}, "does not name the index"),
    ],
)
def test_what_cannot_be_decoded_is_refused_by_name(changes: dict[str, Any], word: str) -> None:
    (table,) = join_tables(sys_rows(**changes), "here")
    assert word in (table.refusal or "")


def row_type(section: str) -> Any:
    """The class of a section's rows."""
    return SysRows.model_fields[section].annotation.__args__[0]  # type: ignore[union-attr]


def test_every_section_is_mapped() -> None:
    assert SYS_COLUMNS.keys() == SysRows.model_fields.keys() - set(DATABASE_LEVELS)


@pytest.mark.parametrize("section", SYS_COLUMNS)
def test_the_fields_of_a_section_are_those_of_its_rows(section: str) -> None:
    found = {field.name: field for field in fields(row_type(section))}
    mapped = SYS_COLUMNS[section]
    assert mapped.keys() <= found.keys()
    needed = {name for name, field in found.items() if field.default is MISSING}
    assert needed <= mapped.keys()
    assert len(set(mapped.values())) == len(mapped)


def test_null_of_a_number_is_told_apart_where_zero_means_something() -> None:
    assert [absent(name) for name in ("precision", "scale", "guard_id")] == [-1, -1, -1]
    assert absent("default") is None
    assert absent("flags") == 0
