from __future__ import annotations

import pytest

from olr_pg.dictionary.sys_rows import ObjectRow, TabRow
from olr_pg.dictionary.sys_tables import table_refusal


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


def test_what_others_found_is_the_reason() -> None:
    assert refusal(obstacle="it is so") == "it is so"
