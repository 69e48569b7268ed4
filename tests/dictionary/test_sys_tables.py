"""Tables out of rows of the SYS tables: columns, keys, partitions, and rows that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.dictionary.model import KeyKind, Table
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import OlrPgError

OBJ = 700


def column(number: int, name: str, **facts: Any) -> dict[str, Any]:
    """A NUMBER column."""
    return {
        "obj": OBJ, "col": number, "seg-col": number, "int-col": number, "name": name, "type": 2,
        "length": 22, "precision": 10, "scale": 0, "charset-form": 0, "charset-id": 0, "null": 0,
        "property": 0, **facts,
    }  # fmt: skip


def rows(**sections: list[dict[str, Any]]) -> SysRows:
    """``APP.T (A, B)``, with other rows in place of or beside its own."""
    document: dict[str, Any] = {
        name.replace("_", "-"): []
        for name, field in SysRows.model_fields.items()
        if field.is_required()
    } | {
        "sys-user": [{"user": 9, "name": "APP"}],
        "sys-obj": [{"owner": 9, "obj": OBJ, "data-obj": OBJ, "name": "T", "type": 2, "flags": 0}],
        "sys-tab": [{"obj": OBJ, "data-obj": OBJ, "clu-cols": 0, "flags": 0, "property": 0}],
        "sys-col": [column(2, "B"), column(1, "A", null=1)],
    }
    return SysRows.model_validate(
        document | {name.replace("_", "-"): value for name, value in sections.items()}
    )


def joined(**sections: list[dict[str, Any]]) -> Table:
    (table,) = join_tables(rows(**sections), "d.json")
    return table


def test_columns_are_in_the_order_of_the_segment() -> None:
    table = joined()
    assert (table.full_name, table.dataobj) == ("APP.T", OBJ)
    assert [(one.name, one.segcol, one.nullable) for one in table.columns] == [
        ("A", 1, False), ("B", 2, True),
    ]  # fmt: skip


def test_the_primary_key_is_in_the_order_of_its_columns() -> None:
    table = joined(
        sys_cdef=[{"con": 5, "obj": OBJ, "type": 2}],
        sys_ccol=[
            {"con": 5, "obj": OBJ, "int-col": 1, "pos": 2},
            {"con": 5, "obj": OBJ, "int-col": 2, "pos": 1},
        ],
    )
    assert (table.key_kind, table.key) == (KeyKind.PRIMARY, (2, 1))


def test_a_disabled_key_is_none() -> None:
    table = joined(
        sys_cdef=[{"con": 5, "obj": OBJ, "type": 2, "enabled": 0}],
        sys_ccol=[{"con": 5, "obj": OBJ, "int-col": 1, "pos": 1}],
    )
    assert (table.key_kind, table.key) == (KeyKind.NONE, ())


def test_partitions_have_segments_of_their_own() -> None:
    table = joined(
        sys_tabpart=[
            {"obj": 711, "data-obj": 811, "bo": OBJ},
            {"obj": 712, "data-obj": 812, "bo": OBJ},
        ]
    )
    assert (table.partitions, table.segments) == ((711, 712), (811, 812))


@pytest.mark.parametrize(
    "sections",
    [{"sys_user": []}, {"sys_obj": []}],
    ids=["a table of nobody", "a table without its object"],
)
def test_a_row_that_refers_to_nothing_is_an_error(sections: dict[str, Any]) -> None:
    with pytest.raises(OlrPgError) as caught:
        join_tables(rows(**sections), "d.json")
    assert caught.value.code == 3005
    assert caught.value.where["file"] == "d.json"
