"""The data of a table as partitions of record batches, whatever the source is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from olr_pg.dictionary.selection import as_known, like_it
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.key_cuts import LargeRow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Column, Database, Snapshot, Table
    from olr_pg.errors import Place
    from olr_pg.oracle.facts import ReadableScn
    from olr_pg.oracle.key_cuts import KeyCut

UNDO_GONE: Final = Code.LOAD_SCN_TOO_OLD
"""Error: the source can no longer read the rows as of the SCN."""

RANGE_BYTES: Final = 64 << 20
"""Maximum bytes of a range of a live table: `oracle.table_query` cuts a table into ranges of at
most this size. A range of unknown size is assumed to have this size.
"""


class SourcePartition(Protocol):
    """A part of a table, which one task reads; it is pickled and sent to the task."""

    @property
    def rows(self) -> int:
        """The number of rows; 0 if unknown."""

    @property
    def size(self) -> int:
        """Approximate bytes to read; `RANGE_BYTES` if unknown."""

    @property
    def place(self) -> dict[str, Place]:
        """The location of the part's rows, for messages."""

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """Yield the part's rows; a repeated call yields the same rows. A row with large values is
        yielded alone.

        Raises:
            OlrPgError: 5103 or 70xx, the rows cannot be read.
        """


@dataclass(frozen=True, slots=True)
class TableData:
    """The data of one table.

    Attributes:
        schema: the schema of the batches of every partition.
        partitions: the partitions in a fixed order.
        rows: total number of rows; 0 if unknown.
        scn: the SCN of the rows; None if unknown.
        start_scn: begin SCN of the oldest transaction that was open at `scn`; None if unknown.
        identity: a text that two objects share only if they contain the same data in the same
            partitions.
        as_of: returns the data as of another SCN; if an earlier `identity` is given, divided into
            the partitions that it describes. None if the rows exist as of only one SCN.
        reached: returns the SCN as of which the source can be read now; None if `as_of` is None.
        within: returns the data of some ranges of the key, as of another SCN; None if `as_of` is
            None.
    """

    schema: pa.Schema
    partitions: tuple[SourcePartition, ...]
    rows: int
    scn: int | None
    start_scn: int | None
    identity: str
    as_of: Callable[[int, str | None], TableData] | None = None
    reached: Callable[[], ReadableScn] | None = None
    within: Callable[[int, Sequence[KeyCut]], TableData] | None = None


class SourceTable(NamedTuple):
    """A table and its data.

    Attributes:
        scn: the SCN of the rows; 0 if unknown.
        start_scn: begin SCN of the oldest transaction that was open at `scn`; 0 if unknown.
        resetlogs_id: the incarnation of the source that the rows come from; None if unknown.
    """

    table: Table
    data: TableData
    scn: int
    start_scn: int
    resetlogs_id: int | None = None


class LoadMoment(NamedTuple):
    """An SCN of the source, as of which rows are read.

    Attributes:
        start_scn: no transaction that was open at `scn` began before `start_scn`.
    """

    scn: int
    start_scn: int


class Present(Enum):
    """The dictionary that is used instead of one for which Oracle has no undo.

    UNUSED: none. EARLIER_RUNS: the one of the earlier runs, if it has all tables. AS_OF_ROWS: the
    one as of the rows that are read now: no DDL changed a table while a transaction with changes of
    this table was open. CLAIMED: the present one, because an operator answers for it that no table
    was altered since.
    """

    UNUSED = 0
    EARLIER_RUNS = 1
    AS_OF_ROWS = 2
    CLAIMED = 3


class TableSource(Protocol):
    """A source of whole tables."""

    snapshot: Snapshot

    @property
    def moment(self) -> LoadMoment | None:
        """The present SCN at which the source was opened; None if the source does not show it."""

    def store_dictionary(
        self, path: Path, scn: int, present: Present = Present.UNUSED
    ) -> tuple[str, ...]:
        """Store the dictionary as of an SCN, for a `run` that begins at this SCN when Oracle no
        longer has the undo. An offline source stores nothing.

        Args:
            path: the file of the dictionary of a run. The stored file has the SCN in its name.
            present: what is used if Oracle no longer has the undo.

        Returns:
            The names of the listed tables that the stored dictionary lacks, because Oracle no
            longer has the undo, or because the tables were created after the SCN. A run at this
            SCN would refuse the list.
        """

    def choose(self, names: Collection[str]) -> tuple[Table, ...]:
        """Return the tables of `apply.tables`; if `names` is not empty, only the tables that it
        lists.

        Raises:
            OlrPgError: 3xxx the tables cannot be replicated, 3012 a name is not in `apply.tables`.
        """

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """Find the data of the tables.

        Raises:
            OlrPgError: 5103, 5113 or 70xx, a table's data cannot be read.
        """

    def later(self, source: SourceTable) -> SourceTable | None:
        """Return the same table as of the current SCN; None if the rows exist as of only one
        SCN.
        """

    def by_key(self, table: Table, *, is_checked: bool = False) -> SourceTable | None:
        """Return the table as of the current SCN, without partitions, so that ranges of its key can
        be read.

        Return None if this source cannot read ranges of a key (`TableData.within`).

        Args:
            is_checked: whether to check that the table still has the definition that was read.

        Raises:
            OlrPgError: 5118, the table has another definition now.
        """

    def undo_retention(self) -> str:
        """Describe how long the source keeps undo; empty if unknown."""


def schema_of(rows: pa.RecordBatch | LargeRow) -> pa.Schema:
    """Return the schema of the batches from `SourcePartition.batches`."""
    return rows.batch.schema if isinstance(rows, LargeRow) else rows.schema


def place_in(schema: pa.Schema, table: Table, column: Column) -> int:
    """Return the index of a column in the table data.

    Raises:
        OlrPgError: 5103, the table data lacks the column.
    """
    place = schema.get_field_index(column.name)
    if place < 0:
        raise OlrPgError(
            Code.TABLE_DATA_UNUSABLE,
            "the table data does not have this column",
            table=table.full_name,
            column=column.name,
        )
    return int(place)


def named_tables(
    tables: Sequence[Table], names: Collection[str], filters: Filters, database: Database
) -> tuple[Table, ...]:
    """Return the tables that `names` lists, without tables that a filter excludes.

    Args:
        names: ``OWNER.NAME`` of each table, in exact case or in any case for an upper-case name;
            empty for all.

    Raises:
        OlrPgError: 3012 a name is not in `tables`, 1095 and 1096 the filter excludes too much.
    """
    known = {table.full_name for table in tables}
    wanted = set(as_known(names, known))
    unknown = wanted - known
    if unknown:
        told = [name + like_it(tables, _pair(name)) for name in sorted(unknown)]
        raise OlrPgError(Code.TABLE_UNKNOWN, f"`apply.tables` does not contain {', '.join(told)}")
    chosen = filters.chosen(tables, database)
    return tuple(table for table in chosen if not wanted or table.full_name in wanted)


def _pair(name: str) -> tuple[str, str]:
    owner, _, own = name.rpartition(".")
    return owner, own
