"""Laws of every snapshot: columns without holes, names and numbers of one table only."""

from __future__ import annotations

import pytest

from olr_pg.dictionary.consistency import check_unique_tables, column_fault, sort_columns
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.errors import Code, OlrPgError


def column(name: str, segcol: int, intcol: int) -> Column:
    return Column(name, segcol, intcol, intcol, 2, 22)


GOOD = (column("A", 1, 1), column("V", 0, 2), column("B", 2, 3))


def test_columns_are_kept_in_stored_order() -> None:
    assert [c.name for c in sort_columns(reversed(GOOD))] == ["V", "A", "B"]
    assert column_fault(GOOD) is None


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ((), "no columns"),
        ((column("A", 1, 1), column("B", 3, 2)), "SEGCOL# 2 is missing"),
        ((column("A", 1, 1), column("B", 1, 2)), "SEGCOL# 1 appears twice"),
        ((column("A", 1, 1), column("B", 2, 1)), "INTCOL# 1 appears twice"),
        ((column("A", 1, 1), column("A", 2, 2)), "column A appears twice"),
    ],
)
def test_a_fault_is_named(columns: tuple[Column, ...], fault: str) -> None:
    assert fault in (column_fault(columns) or "")


@pytest.mark.parametrize(
    "other",
    [
        Table("S", "T", 9, 9, GOOD),
        Table("S", "U", 7, 9, GOOD),
        Table("S", "U", 8, 9, GOOD, partitions=(7,)),
    ],
)
def test_a_name_or_number_of_two_tables_is_refused(other: Table) -> None:
    tables = (Table("S", "T", 7, 7, GOOD), other)
    with pytest.raises(OlrPgError) as caught:
        check_unique_tables(Snapshot(1, Database("D"), tables), "d.json")
    assert caught.value.code == Code.DICTIONARY_CONTRADICTS_ITSELF


def test_different_tables_pass() -> None:
    tables = (Table("S", "T", 7, 7, GOOD), Table("S", "t", 8, 8, GOOD))
    check_unique_tables(Snapshot(1, Database("D"), tables), "d.json")
