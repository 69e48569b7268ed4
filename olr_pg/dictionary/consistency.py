"""Checks rules that every snapshot must fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.dictionary.model import Column, Snapshot


def sort_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns in the order of a `Table`: by SEGCOL#, then INTCOL#."""
    return tuple(sorted(columns, key=lambda column: (column.segcol, column.intcol)))


def column_fault(columns: Sequence[Column]) -> str | None:
    """Return a description of an error in the numbering of a table's columns, or None.

    SEGCOL# must be 1 … n without gaps and duplicates, because a gap means that a dictionary row is
    missing (dictionary §2.4). INTCOL# and names must be unique.
    """
    if not columns:
        return "it has no columns"
    stored = sorted(column.segcol for column in columns if column.segcol > 0)
    for expected, segcol in enumerate(stored, 1):
        if segcol != expected:
            what = "appears twice" if segcol < expected else "is missing"
            return f"SEGCOL# {min(segcol, expected)} {what}"
    for label, values in (
        ("INTCOL#", [str(column.intcol) for column in columns]),
        ("column", [column.name for column in columns]),
    ):
        repeated = _first_repeated(values)
        if repeated is not None:
            return f"{label} {repeated} appears twice"
    return None


def check_unique_tables(snapshot: Snapshot, path: str) -> None:
    """Check that the names and the object numbers of the tables are unique.

    Raises:
        OlrPgError: 3005, two tables have the same name or number; the error contains both.
    """
    names: set[tuple[str, str]] = set()
    objects: dict[int, str] = {}
    for table in snapshot.tables:
        if (table.owner, table.name) in names:
            raise OlrPgError(
                Code.DICTIONARY_CONTRADICTS_ITSELF,
                f"the table {table.full_name} appears twice",
                file=path,
            )
        names.add((table.owner, table.name))
        for obj in (table.obj, *table.partitions):
            if obj in objects:
                raise OlrPgError(
                    Code.DICTIONARY_CONTRADICTS_ITSELF,
                    f"object number {obj} belongs to {objects[obj]} and to {table.full_name}",
                    file=path,
                )
            objects[obj] = table.full_name


def _first_repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
