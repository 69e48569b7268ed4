from __future__ import annotations

from dataclasses import replace

from olr_pg.wire.column_directory import ColumnDirectory
from olr_pg.wire.elements import ColumnValue

COLUMN = ColumnValue("ID", 2, 10, 0, value=b"\x80")


def test_numbers_stay_and_are_those_of_what_is_described() -> None:
    directory = ColumnDirectory()
    one, two = directory.table("A", "T"), directory.table("A.T", "")
    assert (one, two) == (0, 1)
    described = [(one, COLUMN), (two, COLUMN), (one, replace(COLUMN, precision=11))]
    for _ in range(2):
        assert [directory.column(*column) for column in described] == [0, 1, 2]
        assert directory.table("A", "T") == one
    without = [(table, replace(column, value=None)) for table, column in described]
    assert directory.columns == without
    assert directory.column(one, replace(COLUMN, value=None)) == 0
    assert directory.table_name(one) == "A.T"
