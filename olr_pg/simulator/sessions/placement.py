"""Gives tables their object numbers, segments, indexes and LOB segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.model.lobs import SimLob, SimLobSegment
from olr_pg.simulator.model.storage import (
    DATABASE_BLOCK_SIZE,
    ROW_SPACE,
    UNDO_BLOCKS_PER_SEGMENT,
    UPDATE_RESERVE,
    TransactionalBlock,
    UndoSegment,
)
from olr_pg.simulator.model.tables import INDEX_BLOCKS, ROW_MAX, SimIndex, SimSegment, SimTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.lobs import LobStorage
    from olr_pg.simulator.model.tables import Logging, SimColumn
    from olr_pg.simulator.writer.instance import Container

FIRST_OBJECT: Final = 72_000
FIRST_LOB_OBJECT: Final = 82_000
SEGMENTS_PER_THREAD: Final = 3
UNDO_FIRST: Final = 128
"""Undo segments of a thread, and the block at which undo segments begin in their file."""

FIRST_INDEX_BLOCK: Final = 1_000_000
INDEX_SPACING: Final = 1_000
"""The block at which indexes begin in their file, and the blocks from one index to the next."""

INDEXES_MAX: Final = 10
"""Maximum number of indexes of a table."""

MANY: Final = 16
"""Tables from this number on have their indexes in separate files, because there may be hundreds of
tables.
"""

TABLES_PER_FILE: Final = 60
FURTHER_FILE: Final = 600
INDEX_FILE: Final = 700
"""The first file of tables from number `TABLES_PER_FILE` on, and of indexes of tables from `MANY`
on.
"""

LOB_OBJECTS: Final = 60
"""Object numbers that are reserved for the LOB segments and LOB indexes of a table."""

LOB_PARENTS: Final = 40
"""Offset, within `LOB_OBJECTS`, of the numbers of a partitioned table's LOBs. Their segments have
the numbers below this offset.
"""

LOB_FILE: Final = 30
LOB_BLOCKS: Final = 400_000
"""Blocks that are reserved for a LOB segment."""

LOB_INDEX: Final = 8
LOB_PAGES: Final = 128
"""Blocks of a LOB segment at which its index and its pages begin."""

ADDED_LOB_FILE: Final = 60
ADDED_LOB_BLOCKS: Final = 4_000
"""File and reserved blocks of LOB segments that DDL adds."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table without object numbers and blocks.

    Attributes:
        indexes: (columns, is unique) for each index.
        row_max: maximum bytes of a row.
        row_dependencies: rows contain an SCN.
        partitions: number of partitions, 1 for none. The value of `partition_column` decides the
            partition of a row; in an index-organised table, it is a column of the key.
        index_organised: the rows are in the primary key's index.
        block_size: block size of its tablespace in bytes.
        partition_names: the names of the partitions; empty if the dictionary generates them.
        bounds: see `SimTable.bounds`.
    """

    owner: str
    name: str
    columns: tuple[SimColumn, ...]
    key: tuple[int, ...]
    logging: Logging
    indexes: tuple[tuple[tuple[int, ...], bool], ...] = ()
    row_max: int = ROW_MAX
    row_dependencies: bool = False
    partitions: int = 1
    partition_column: int = 0
    index_organised: bool = False
    block_size: int = DATABASE_BLOCK_SIZE
    partition_names: tuple[str, ...] = ()
    bounds: Callable[[Cell | None], int] | None = None


def place_table(
    number: int,
    spec: TableSpec,
    scn: int,
    *,
    index_blocks: int = INDEX_BLOCKS,
    index_spacing: int = INDEX_SPACING,
) -> SimTable:
    """Make an empty table.

    Args:
        number: number of the table, from 0.
        scn: the SCN at which its blocks were formatted.
        index_blocks: leaf blocks of each index.
        index_spacing: blocks from the beginning of one index to the next.
    """
    obj, relative = FIRST_OBJECT + 20 * number, _file(number)
    place = 128 + number % TABLES_PER_FILE * 65_536
    # The difference of 7 fits only for up to three partitions: the DATAOBJ# of a fourth one would
    # be a number of the next table.
    dataobj, segment = obj + (7 if number % 2 and spec.partitions <= 3 else 0), place
    parts = spec.partitions if spec.partitions > 1 else 0
    indexed = spec.index_organised and parts > 0
    table = SimTable(
        owner=spec.owner,
        name=spec.name,
        obj=obj,
        dataobj=dataobj,
        columns=spec.columns,
        key=spec.key,
        logging=spec.logging,
        tablespace=6,
        afn=relative,
        relative_file=relative,
        segment_block=segment,
        indexes=_indexes(number, spec, scn, index_blocks, index_spacing),
        row_space=ROW_SPACE,
        update_reserve=UPDATE_RESERVE,
        piece_max=ROW_SPACE,
        row_max=spec.row_max,
        partition_column=spec.partition_column,
        segments=[
            SimSegment(obj + 10 + part, dataobj + 10 + part, relative,
                       (relative << 22) + segment + 8192 * part,
                       table_part=obj + 14 + part if indexed else 0)
            for part in range(max(parts, 1) if spec.index_organised else parts)
        ],
        index_organised=spec.index_organised,
    )  # fmt: skip
    for part, name in zip(table.segments, spec.partition_names, strict=False):
        part.name = name
    if spec.bounds is not None:
        table.bounds, table.routes = spec.bounds, list(table.segments)
    for at, column in enumerate(spec.columns):
        if column.type.lob is not None:
            table.lobs[at] = _lob(number, len(table.lobs), column.type.lob, table, scn)
    return table


def undo_segments(thread: int, afn: int, scn: int) -> list[UndoSegment]:
    """Make the undo segments of a thread in file `afn`, formatted at an SCN."""
    first = 1 + (thread - 1) * SEGMENTS_PER_THREAD
    return [
        UndoSegment(usn, afn, undo_header_dba(afn, usn), scn)
        for usn in range(first, first + SEGMENTS_PER_THREAD)
    ]


def undo_header_dba(afn: int, usn: int) -> int:
    """Return the address of the header of an undo segment."""
    return (afn << 22) + UNDO_FIRST + usn * UNDO_BLOCKS_PER_SEGMENT


def usn_of(dba: int) -> int:
    """Return the number of the undo segment to which a block belongs."""
    return ((dba & 0x3FFFFF) - UNDO_FIRST) // UNDO_BLOCKS_PER_SEGMENT


def _indexes(
    number: int, spec: TableSpec, scn: int, blocks: int, spacing: int
) -> tuple[SimIndex, ...]:
    obj, made = FIRST_OBJECT + 20 * number, list[SimIndex]()
    for at, (columns, unique) in enumerate(spec.indexes):
        place = index_place(number, at, spacing)
        made.append(place_index(obj + 1 + at, columns, unique, place, scn, blocks))
    return tuple(made)


def _file(number: int) -> int:
    """Return the file of the table with this number, from 0."""
    further = number // TABLES_PER_FILE
    return (FURTHER_FILE + 3 * further if further else 12) + number % 3


def index_place(number: int, at: int, spacing: int = INDEX_SPACING) -> int:
    """Return the first block of index `at` (from 0) of a table."""
    file = INDEX_FILE + number % 3 if number >= MANY else _file(number)
    return (file << 22) + FIRST_INDEX_BLOCK + (number * INDEXES_MAX + at) * spacing


def place_index(
    obj: int, columns: tuple[int, ...], unique: bool, dba: int, scn: int, blocks: int = INDEX_BLOCKS
) -> SimIndex:
    """Make an empty index."""
    file = dba >> 22
    own = [TransactionalBlock(file, dba + 1 + at, scn, first_itl=2) for at in range(blocks)]
    return SimIndex(obj, columns, unique, dba, own)


def _lob(number: int, at: int, storage: LobStorage, table: SimTable, scn: int) -> SimLob:
    """Make the LOB segments of LOB column `at` (from 0) of a table."""
    first = FIRST_LOB_OBJECT + LOB_OBJECTS * number
    count = len(table.segments)
    segments = [
        lob_segment(first + 2 * place, LOB_FILE + number, 128 + place * LOB_BLOCKS, scn)
        for place in range(at * count, (at + 1) * count)
    ]
    own = first + 2 * at * count if count == 1 else first + LOB_PARENTS + 2 * at
    return SimLob(storage, segments, own, own + 1)


def added_lob(storage: LobStorage, table: SimTable, container: Container, scn: int) -> SimLob:
    """Make the LOB segments of a column that is added to a table."""
    segments = [new_lob_segment(container, scn) for _ in table.segments]
    own = segments[0].obj
    if len(segments) > 1:
        own = container.take_object()
        container.take_object()
    return SimLob(storage, segments, own, own + 1)


def new_lob_segment(container: Container, scn: int) -> SimLobSegment:
    """Make a LOB segment that DDL adds."""
    obj = container.take_object()
    container.take_object()
    return lob_segment(obj, ADDED_LOB_FILE, 128 + obj % 1000 * ADDED_LOB_BLOCKS, scn)


def lob_segment(obj: int, file: int, block: int, scn: int) -> SimLobSegment:
    """Make a LOB segment that begins at a block; its index has the next object number."""
    dba = (file << 22) + block
    index = TransactionalBlock(file, dba + LOB_INDEX, scn, first_itl=2)
    return SimLobSegment(obj, obj, obj + 1, obj + 1, file, dba + LOB_PAGES, scn, index)
