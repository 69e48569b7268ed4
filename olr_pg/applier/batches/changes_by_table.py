"""Groups changes by table. In a stream, one selection contains changes of several tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from olr_pg.applier.statements.table_changes import Selection

STREAM: Final = "*"
"""Used in place of a table's name for the stream of all tables."""


def by_table(selection: Selection) -> list[tuple[str, Selection]]:
    """Return the changes of each table, with the tables in the order of their first change."""
    found, table = _tables_of(selection)
    present, first_of = np.unique(table, return_index=True)
    return [(found[n], selection.part(table == n)) for n in present[np.argsort(first_of)].tolist()]


def rows_of(selection: Selection, table: str, commit_scn: int, xid: int) -> npt.NDArray[np.int64]:
    """Return the indexes of the changes that one transaction made to one table."""
    first, end = selection.commit_scn.searchsorted(
        np.array([commit_scn, commit_scn + 1], np.uint64)
    ).tolist()
    of_xid = selection.xid[first:end] == np.uint64(xid)
    rows: npt.NDArray[np.int64] = first + np.flatnonzero(of_xid)
    if len(rows) == 0:
        return rows
    names, number = _tables_of(selection.part(slice(int(rows[0]), int(rows[-1]) + 1)))
    wanted = names.index(table) if table in names else -1
    of_table: npt.NDArray[np.int64] = rows[number[rows - rows[0]] == wanted]
    return of_table


def count_by_table(selections: Iterable[Selection]) -> dict[str, int]:
    """Return the number of changes of each table."""
    counts: dict[str, int] = {}
    for selection in selections:
        names, table = _tables_of(selection)
        for name, count in zip(names, np.bincount(table).tolist(), strict=False):
            counts[name] = counts.get(name, 0) + count
    return counts


def _tables_of(selection: Selection) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of the tables, and for each change the index of its table's name."""
    numbers: dict[str, int] = {}
    table = np.empty(len(selection), np.int64)
    done = 0
    for chunk, elements in selection.by_chunk():
        found, which = np.unique(chunk.changes.table[elements], return_inverse=True)
        names = [chunk.directory.table_name(number) for number in found.tolist()]
        of_table = np.array([numbers.setdefault(n, len(numbers)) for n in names], np.int64)
        table[done : done + len(elements)] = of_table[which]
        done += len(elements)
    return list(numbers), table
