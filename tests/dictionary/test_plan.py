from __future__ import annotations

from olr_pg.dictionary.model import Column, Snapshot, Table
from olr_pg.dictionary.plan import build_row_plan


def test_the_plan_of_the_real_table(real_snapshot: Snapshot) -> None:
    table = real_snapshot.find("OLR_TEST", "TEST_CDC")
    assert table is not None
    plan = build_row_plan([table], 3)

    assert plan.object_key.tolist() == [3 << 32 | 72726]
    assert plan.segment_column.tolist() == [0, 1]
    assert plan.column_first.tolist() == [0, 2]


def test_columns_that_are_not_delivered_have_no_ordinal() -> None:
    columns = (
        Column("V", 0, 4, 3, 2, 22, virtual=True),
        Column("A", 1, 1, 1, 2, 22),
        Column("GUARD", 2, 2, 0, 23, 513, hidden=True),
        Column("B", 3, 3, 2, 2, 22),
    )
    tables = [
        Table("APP", "PARTED", 50, None, columns, partitions=(52, 51)),
        Table("APP", "CLUSTERED", 10, 9, columns[1:2], cluster_columns=1),
    ]
    plan = build_row_plan(tables, 0)

    assert plan.object_key.tolist() == [10, 50, 51, 52]
    assert plan.object_table.tolist() == [1, 0, 0, 0]
    assert plan.segment_first.tolist() == [0, 3, 4]
    assert plan.segment_column.tolist() == [0, -1, 1, 0]
    assert plan.column_first.tolist() == [0, 2, 3]
    assert plan.table_obj.tolist() == [50, 10]
    assert plan.cluster_columns.tolist() == [0, 1]


def test_no_table_gives_an_empty_plan() -> None:
    plan = build_row_plan([], 0)

    assert plan.object_key.size == 0
    assert plan.segment_first.tolist() == [0]
