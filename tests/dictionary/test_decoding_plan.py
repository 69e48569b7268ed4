from __future__ import annotations

from olr_pg.dictionary.decoding_plan import (
    NO_DEFAULTS,
    Span,
    UnstoredColumn,
    build_row_plan,
    column_defaults,
)
from olr_pg.dictionary.model import AddedColumn, Column, Snapshot, Table


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


def test_rows_go_out_as_stored_where_nothing_stands_between() -> None:
    number = Column("A", 1, 1, 1, 2, 22)
    plain = (number, Column("B", 2, 2, 2, 1, 10), Column("V", 0, 3, 3, 2, 22, virtual=True))
    added = Column("B", 2, 2, 2, 2, 22, added=AddedColumn(b"\xc1\x02", None))
    columns = {
        "plain": plain,
        "hidden in between": (number, Column("H", 2, 2, 0, 2, 22, hidden=True), *plain[3:]),
        "another order": (Column("A", 2, 1, 1, 2, 22), Column("B", 1, 2, 2, 2, 22)),
        "a lob": (number, Column("B", 2, 2, 2, 112, 4000)),
        "an added column": (number, added),
    }
    tables = [Table("APP", name, n, n, held) for n, (name, held) in enumerate(columns.items(), 1)]
    plan = build_row_plan(tables, 0)
    stored = [t.name for t, is_so in zip(tables, plan.as_stored, strict=True) if is_so]
    assert stored == ["plain"]

    spans = [Span(), Span(followed=True), Span(delivered=False)]
    plan = build_row_plan([tables[0]] * 3, 0, spans=spans)
    assert plan.as_stored.tolist() == [1, 0, 0]


def column(added: AddedColumn | None = None, *, guard: bool = False) -> Column:
    return Column("C", 1, 1, 1, 2, 22, added=added, guard=guard)


def test_no_added_column_needs_no_table() -> None:
    assert column_defaults([column()], [False]) is NO_DEFAULTS


def test_each_column_has_its_meaning_and_its_bytes() -> None:
    columns = [
        column(),
        column(AddedColumn(b"\xc1\x02", 4)),
        column(AddedColumn(b"", 5)),
        column(AddedColumn(None)),
        column(AddedColumn(b"xyz", 6)),
        column(guard=True),
    ]
    found = column_defaults(columns, [True, True, True, True, False, True])
    assert found.missing.tolist() == [
        UnstoredColumn.NULL, UnstoredColumn.DEFAULT, UnstoredColumn.NULL,
        UnstoredColumn.UNKNOWN, UnstoredColumn.DEFAULT, UnstoredColumn.GUARD,
    ]  # fmt: skip
    assert found.guard_id.tolist() == [-1, 4, 5, -1, -1, -1]
    values = [
        found.data[at : at + size].tobytes()
        for at, size in zip(found.offset, found.length, strict=True)
    ]
    assert values == [b"", b"\xc1\x02", b"", b"", b"xyz", b""]
