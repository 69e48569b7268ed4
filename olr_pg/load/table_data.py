"""The data of a table, wherever it comes from: partitions of record batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from olr_pg.dictionary.selection import as_known, like_it
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.large_row import LargeRow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa

    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.errors import Place
    from olr_pg.oracle.facts import ReadableScn

UNDO_GONE: Final = Code.LOAD_SCN_TOO_OLD
"""The source cannot read the rows as of the SCN any more."""

RANGE_BYTES: Final = 64 << 20
"""Of a range of a live table, at most (`oracle.rowids` cuts them so), or of anything unknown."""


class SourcePartition(Protocol):
    """A part of a table, which one task reads; it goes there by pickle."""

    @property
    def rows(self) -> int:
        """The number of rows; 0 where it is not known."""

    @property
    def size(self) -> int:
        """About how many bytes it reads; `RANGE_BYTES` where that is not known."""

    @property
    def place(self) -> dict[str, Place]:
        """The place of its rows, for messages."""

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """Yield its rows, every time the same; those with large values one by one.

        Raises:
            OlrPgError: 5103 or 70xx, they cannot be read.
        """


@dataclass(frozen=True, slots=True)
class TableData:
    """The data of one table.

    Attributes:
        schema: of every partition.
        partitions: in a fixed order.
        rows: how many in all; 0 not known.
        scn: as of which the rows are; None where nobody tells.
        start_scn: begin SCN of the oldest transaction open at `scn`; None where nobody tells.
        identity: of the same data in the same partitions.
        as_of: the data as of another SCN, in the partitions of an earlier `identity` if one is
            given; None where there is only this SCN.
        reached: asks up to which SCN the source can be read by now; None where `as_of` is.
    """

    schema: pa.Schema
    partitions: tuple[SourcePartition, ...]
    rows: int
    scn: int | None
    start_scn: int | None
    identity: str
    as_of: Callable[[int, str | None], TableData] | None = None
    reached: Callable[[], ReadableScn] | None = None


class SourceTable(NamedTuple):
    """A table and its data.

    Attributes:
        scn: as of which the rows are; 0 not known.
        start_scn: begin SCN of the oldest transaction open at `scn`; 0 not known.
    """

    table: Table
    data: TableData
    scn: int
    start_scn: int


class TableSource(Protocol):
    """Says where whole tables come from."""

    snapshot: Snapshot

    def choose(self, names: Collection[str]) -> tuple[Table, ...]:
        """Choose the tables of `apply.tables`, or those of them that `names` lists.

        Raises:
            OlrPgError: 3xxx the tables cannot be replicated, 3012 a name is not among them.
        """

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """Find the data of the tables.

        Raises:
            OlrPgError: 5103, 5113 or 70xx, a table's data cannot be had.
        """

    def later(self, source: SourceTable) -> SourceTable | None:
        """Read the same table as of now; None where there is only the one SCN."""

    def undo_retention(self) -> str:
        """Say for how long the source keeps undo, in words; empty where nobody knows."""


def schema_of(rows: pa.RecordBatch | LargeRow) -> pa.Schema:
    """Return the schema of what `SourcePartition.batches` gives."""
    return rows.batch.schema if isinstance(rows, LargeRow) else rows.schema


def named_tables(
    tables: Sequence[Table], names: Collection[str], filters: Filters, database: Database
) -> tuple[Table, ...]:
    """Choose those of `tables` that `names` lists, without what the filter leaves out.

    Args:
        names: ``OWNER.NAME`` of each, as it is or in upper case; all where it lists none.

    Raises:
        OlrPgError: 3012 a name is not among them, 1095 and 1096 the filter leaves too little.
    """
    known = {table.full_name for table in tables}
    wanted = set(as_known(names, known))
    unknown = wanted - known
    if unknown:
        told = [name + like_it(tables, _pair(name)) for name in sorted(unknown)]
        raise OlrPgError(Code.TABLE_UNKNOWN, f"not in `apply.tables`: {', '.join(told)}")
    chosen = filters.chosen(tables, database)
    return tuple(table for table in chosen if not wanted or table.full_name in wanted)


def _pair(name: str) -> tuple[str, str]:
    owner, _, own = name.rpartition(".")
    return owner, own
