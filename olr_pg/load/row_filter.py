"""Filters table data by `filter.rows`.

The values are converted to the form that redo has, and the condition is evaluated as in
replication. So a loaded table contains the same rows as a replicated one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from olr_pg.conditions.evaluate import Truth, evaluate
from olr_pg.decoding.filters import charsets_of
from olr_pg.load.arrow import arrow_column
from olr_pg.load.table_data import place_in, schema_of
from olr_pg.oracle.key_cuts import LargeRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from olr_pg.conditions.typed_conditions import Charsets, RowCondition
    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.errors import Place
    from olr_pg.load.table_data import SourcePartition, SourceTable, TableData, TableSource
    from olr_pg.oracle.key_cuts import KeyCut

_WHERE: Final = "\nwhere "
"""Separates the identity of the data from the condition in the identity of the filtered data."""


class FilteredPartition(NamedTuple):
    """The rows of a partition that meet the filter's condition."""

    inner: SourcePartition
    table: Table
    filters: Filters
    charsets: Charsets

    @property
    def rows(self) -> int:
        """See `SourcePartition.rows`; unknown."""
        return 0

    @property
    def size(self) -> int:
        """See `SourcePartition.size`; the whole partition is read, including the rows that the
        filter removes.
        """
        return self.inner.size

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        return self.inner.place

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """See `SourcePartition.batches`.

        Raises:
            OlrPgError: 5102 a value of the condition's columns is invalid; errors of reading.
        """
        rows: _Rows | None = None
        for found in self.inner.batches():
            if rows is None:
                rows = _Rows(self.table, self.filters, self.charsets, schema_of(found))
            if isinstance(found, LargeRow):
                if rows.fulfilling(found.batch).num_rows:
                    yield found
                continue
            left = rows.fulfilling(found)
            if left.num_rows:
                yield left


class _Rows:
    """The condition, prepared for batches of one schema."""

    def __init__(
        self, table: Table, filters: Filters, charsets: Charsets, schema: pa.Schema
    ) -> None:
        wanted = filters.row_condition(table, charsets)
        assert wanted is not None  # `filtered_data` has checked this
        self._columns = []
        described = {}
        for ordinal in wanted.ordinals:
            column = table.delivered[ordinal]
            place = place_in(schema, table, column)
            arrow = arrow_column(column, schema.field(place).type)
            described[column.name] = arrow.described
            self._columns.append((place, arrow))
        found = filters.row_condition(table, charsets, described)
        assert found is not None
        self._condition: RowCondition = found

    def fulfilling(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return only the rows that meet the condition."""
        values = [arrow.convert(batch.column(place)) for place, arrow in self._columns]
        is_true = evaluate(self._condition, values) == Truth.TRUE
        return batch if is_true.all() else batch.filter(pa.array(is_true))


class FilteredTables:
    """A source of tables with filtered rows; see `TableSource`."""

    def __init__(self, inner: TableSource, filters: Filters) -> None:
        self._inner = inner
        self._filters = filters
        self.snapshot: Snapshot = inner.snapshot

    def choose(self, names: Collection[str]) -> tuple[Table, ...]:
        """See `TableSource.choose`."""
        return self._inner.choose(names)

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """See `TableSource.sources`."""
        return tuple(map(self._filtered, self._inner.sources(tables)))

    def later(self, source: SourceTable) -> SourceTable | None:
        """See `TableSource.later`."""
        found = self._inner.later(source)
        return None if found is None else self._filtered(found)

    def by_key(self, table: Table, *, is_checked: bool = False) -> SourceTable | None:
        """See `TableSource.by_key`."""
        found = self._inner.by_key(table, is_checked=is_checked)
        return None if found is None else self._filtered(found)

    def undo_retention(self) -> str:
        """See `TableSource.undo_retention`."""
        return self._inner.undo_retention()

    def _filtered(self, source: SourceTable) -> SourceTable:
        charsets = charsets_of(self.snapshot.database)
        data = filtered_data(source.data, source.table, self._filters, charsets)
        return source._replace(data=data)


def filtered_data(data: TableData, table: Table, filters: Filters, charsets: Charsets) -> TableData:
    """Return the data of a table with the configured row filter.

    The identity of the returned data contains the condition, so that a load cannot be resumed with
    another condition.

    Raises:
        OlrPgError: 1132 to 1134, the condition does not fit the columns.
    """
    condition = filters.row_condition(table, charsets)
    if condition is None:
        return data
    as_of = data.as_of
    return replace(
        data,
        partitions=tuple(
            FilteredPartition(one, table, filters, charsets) for one in data.partitions
        ),
        rows=0,
        identity=f"{data.identity}{_WHERE}{condition.text}",
        as_of=as_of and partial(_as_of, data, table, filters, charsets),
        within=data.within and partial(_within, data, table, filters, charsets),
    )


def _as_of(
    data: TableData,
    table: Table,
    filters: Filters,
    charsets: Charsets,
    scn: int,
    identity: str | None,
) -> TableData:
    assert data.as_of is not None
    inner = identity and identity.split(_WHERE, 1)[0]
    return filtered_data(data.as_of(scn, inner), table, filters, charsets)


def _within(
    data: TableData,
    table: Table,
    filters: Filters,
    charsets: Charsets,
    scn: int,
    cuts: Sequence[KeyCut],
) -> TableData:
    assert data.within is not None
    return filtered_data(data.within(scn, cuts), table, filters, charsets)
