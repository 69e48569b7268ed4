"""Defaults of added columns: what a row that lacks the column means."""

from __future__ import annotations

from olr_pg.dictionary.defaults import NO_DEFAULTS, UnstoredColumn, column_defaults
from olr_pg.dictionary.model import AddedColumn, Column


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
