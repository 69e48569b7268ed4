"""Tables out of rows of the SYS tables: columns, keys, partitions, and rows that do not fit.

What check constraints tell of flags.
"""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.datatypes.policies import BOOLEAN_PAIRS
from olr_pg.dictionary import sys_tables
from olr_pg.dictionary.model import KeyKind, Table
from olr_pg.dictionary.structure import LeftOut
from olr_pg.dictionary.sys_rows import ObjectRow, SysRows, TabRow
from olr_pg.dictionary.sys_tables import (
    char_length,
    check_conditions,
    join_tables,
    non_flag_values,
    table_refusal,
)
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


def refusal(
    owner: str = "APP",
    name: str = "T",
    properties: int = 0x20000000,
    flags: int = 0x40000001,
    object_flags: int = 0,
    cluster_columns: int = 0,
    obstacle: str | None = None,
) -> str | None:
    obj = ObjectRow(owner=1, obj=2, name=name, type=2, flags=object_flags)
    tab = TabRow(obj=2, data_obj=2, clu_cols=cluster_columns, flags=flags, property=properties)
    return table_refusal(owner, obj, tab, obstacle)


@pytest.mark.parametrize(
    "properties",
    [0x20000000, 0x420000000, 0x20000020, 0x20040800, 1 << 58 | 0x20000000],
    ids=["heap", "deferred segment", "partitioned", "user LOBs", "identity"],
)
def test_ordinary_tables_are_not_refused(properties: int) -> None:
    assert refusal(properties=properties) is None


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"properties": 0x1}, "object table"),
        ({"properties": 0x200}, "overflow"),
        ({"properties": 0x2000}, "nested table"),
        ({"properties": 0x400000}, "temporary"),
        ({"properties": 0x800000}, "temporary"),
        ({"properties": 0x80000000}, "external"),
        ({"flags": 0x20000000}, "mapping table"),
        ({"object_flags": 0x2}, "temporary"),
        ({"object_flags": 0x20}, "temporary"),
        ({"object_flags": 0x80}, "recycle bin"),
        ({"object_flags": 0x10}, "domain index"),
        ({"object_flags": 0x20001}, "SHARING=DATA"),
        ({"object_flags": 0x100010000}, "SHARING=EXTENDED DATA"),
        ({"name": "BIN$abc==$0"}, "recycle bin"),
        ({"name": "MLOG$_ORDERS"}, "materialized view log"),
        ({"name": "RUPD$_ORDERS"}, "updatable materialized view"),
        ({"name": "SYS_IOT_OVER_123"}, "overflow"),
        ({"name": "DR$IDX$I"}, "text index"),
        ({"name": "AQ$_QUEUE_H"}, "queue"),
        ({"cluster_columns": 1, "properties": 0x400}, "cluster"),
    ],
)
def test_refused_tables_say_why(arguments: dict[str, int], word: str) -> None:
    reason = refusal(**arguments)  # type: ignore[arg-type] # names of differing types

    assert reason is not None
    assert word in reason


def test_the_clustered_tables_of_the_dictionary_itself_are_not_refused() -> None:
    assert refusal(owner="SYS", name="TAB$", properties=0x400, cluster_columns=1) is None


@pytest.mark.parametrize(
    ("owner", "flags"), [("APP", 0x10000), ("SYS", 0x20000), ("SYS", 0x100010000)]
)
def test_tables_of_which_only_the_definition_is_shared_are_not_refused(
    owner: str, flags: int
) -> None:
    assert refusal(owner=owner, object_flags=flags) is None


def test_what_others_found_is_the_reason() -> None:
    assert refusal(obstacle="it is so") == "it is so"


@pytest.mark.parametrize(
    ("condition", "strays"),
    [
        ("flag IN ('Y', 'N')", ()),
        ("\"FLAG\" in ('Y','N','X')", ("X",)),
        ("(FLAG IN ('A', 'it''s'))", ("A", "it's")),
        ("FLAG = 'Y'", ()),
        ("OTHER IN ('A')", None),
        ("FLAG IN ('A') OR OTHER = 1", None),
        ("FLAG IN (SELECT 1)", None),
        ("FLAG IS NOT NULL", None),
    ],
)
def test_texts(condition: str, strays: tuple[str, ...] | None) -> None:
    assert non_flag_values([condition], "FLAG", BOOLEAN_PAIRS, is_number=False) == strays


@pytest.mark.parametrize(
    ("condition", "strays"),
    [
        ("FLAG IN (0, 1)", ()),
        ("FLAG BETWEEN 0 AND 3", ("2", "3")),
        ("FLAG between -1 and 1", ("-1",)),
        ("FLAG IN (01, 5)", ("5",)),
    ],
)
def test_numbers(condition: str, strays: tuple[str, ...]) -> None:
    assert non_flag_values([condition], "FLAG", BOOLEAN_PAIRS, is_number=True) == strays


def test_of_several_checks_the_narrowest_holds() -> None:
    both = ["FLAG IN ('A','B','Y')", "FLAG IN ('A','Y')"]
    assert non_flag_values(both, "FLAG", BOOLEAN_PAIRS, is_number=False) == ("A",)
    assert non_flag_values([], "FLAG", BOOLEAN_PAIRS, is_number=False) is None


def test_the_conditions_of_a_structure() -> None:
    text = 'ALTER TABLE "S"."T" ADD CONSTRAINT "C" CHECK (FLAG IN (\'Y\', \'N\'))'
    parts = [
        LeftOut(owner="S", table="T", name="C", reason="r", kind=kind, definition=text)
        for kind in ("check constraint", "default")
    ]
    assert check_conditions(parts) == ["FLAG IN ('Y', 'N')"]


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("SYS_NC00004$", 0x8000000120),  # guard column, real
        ("SYS_NC00003$", 65832),  # function-based index column, real
        ("SYS_C00002_24010112:00:00$", 0x8000 | 0x20),  # SET UNUSED
        ("C", 0x4000),  # dropped in progress
        ("SYS_NC00003$", 0x120),  # data column of an XMLTYPE
        ("ORA_ARCHIVE_STATE", 0x20),
        ("ORABCTAB_INST_ID$", 0x20),
    ],
)
def test_hidden_columns(name: str, properties: int) -> None:
    assert sys_tables.is_hidden(name, properties)


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("ID", 0),
        ("PASSWORD", 1 << 43),  # real
        ("SCORE", 0x40000000),  # added with a default, real
        ("TITLE", 0x800000),  # NVARCHAR2, real
        ("DOC", 0x80),
        ("SHY", 0x20),  # user-invisible: the user's data
        ("ID", 1 << 37),  # identity
        ("TOTAL", 0x8),  # virtual, visible
    ],
)
def test_columns_of_the_user(name: str, properties: int) -> None:
    assert not sys_tables.is_hidden(name, properties)


def test_virtual_and_encrypted_bits() -> None:
    assert sys_tables.is_virtual(0x8)
    assert sys_tables.is_virtual(65832)
    assert not sys_tables.is_virtual(0x8000000120)
    assert sys_tables.is_encrypted(0x4000000)
    assert not sys_tables.is_encrypted(0x20000000)


def test_the_lob_bit_makes_a_string_extended_but_leaves_a_lob_a_lob() -> None:
    assert sys_tables.is_string_stored_as_lob(1, 0x80)
    assert sys_tables.is_string_stored_as_lob(23, 0x80)
    assert not sys_tables.is_string_stored_as_lob(1, 0)
    assert not sys_tables.is_string_stored_as_lob(112, 0x80)


@pytest.mark.parametrize(
    ("type_code", "length", "properties", "bytes_max", "characters"),
    [
        (1, 80, 1 << 23, 4, 20),
        (96, 10, 1 << 23, 1, 10),
        (1, 400, 1 << 23, 2, 200),
        (1, 80, 0, 4, None),  # BYTE semantics
        (1, 4000, 1 << 23, 4, None),  # cut: VARCHAR2(2000 CHAR) has it too
        (96, 2000, 1 << 23, 4, None),
        (1, 80, 1 << 23, None, None),  # a set whose widest character is not known
        (2, 22, 1 << 23, 1, None),
    ],
)
def test_lengths_in_characters(
    type_code: int, length: int, properties: int, bytes_max: int | None, characters: int | None
) -> None:
    assert char_length(type_code, length, properties, bytes_max) == characters
