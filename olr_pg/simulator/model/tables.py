"""Tables of the model: columns with their value generators, rows and their blocks, indexes.

Facts: values-and-lobs §1.1 (what COL$ says for each declaration).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.scalars import format_rowid
from olr_pg.simulator.fields.row_fields import (
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    SLOT_SIZE,
    RowAddress,
    RowPiece,
    lay_out,
    stored_columns,
)
from olr_pg.simulator.model.storage import (
    DATABASE_BLOCK_SIZE,
    ROW_SPACE,
    UPDATE_RESERVE,
    WIDE_BLOCK_SIZE,
    TransactionalBlock,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from random import Random

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import PieceSpan
    from olr_pg.simulator.model.lobs import LobStorage, SimLob
    from olr_pg.simulator.model.storage import Holder

    CellMaker = Callable[[Random], Cell]

CHARSET_UTF8: Final = 873
CHARSET_UTF16: Final = 2000
ROW_MAX: Final = 3500
"""Maximum bytes of a row in a table without long rows."""

INDEX_BLOCKS: Final = 4
ROWS_INDEX: Final = 9
"""OBJ# of the index of a partitioned index-organised table, minus the OBJ# of the table."""

RANGES: Final = 64
"""Number of ranges into which the values of a partition column are divided."""


IDENTITY_SEQUENCE: Final = "ISEQ$$_"
"""Prefix of the names of sequences that belong to identity columns."""

VIRTUAL_FORMS: Final = {
    "plus one": "{column}+1",
    "zero for null": "NVL({column},0)",
    "with x": "{column}||'x'",
    "upper": "UPPER({column})",
    "own function": '"{owner}"."OWN_FUNCTION"({column})',
}
"""Expressions of virtual columns. PostgreSQL has no equivalent of the last one."""


class Logging(Enum):
    """The supplemental logging of a table."""

    NONE = "none"
    MINIMAL = "minimal"
    PRIMARY_KEY = "primary key"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A declared column type: its numbers in COL$, and a function that draws values.

    `lob` is the storage of a LOB column, None for other types.
    """

    type_code: int
    length: int
    make: CellMaker
    precision: int | None = None
    scale: int | None = None
    charset_id: int | None = None
    charset_form: int | None = None
    lob: LobStorage | None = None


@dataclass(frozen=True, slots=True)
class SimColumn:
    """A column; its place in the table is its SEGCOL#.

    Attributes:
        default: for a NOT NULL column that was added later, the value of rows that do not store it.
        unused: the column was set unused. Rows may still contain values of the column, but SQL does
            not show them.
        sequence: the sequence that gives the column its default; empty for none. The name of an
            identity column's sequence begins with ``ISEQ$$_``.
    """

    name: str
    type: ColumnType
    nullable: bool = True
    default: Cell | None = None
    unused: bool = False
    sequence: str = ""


@dataclass(frozen=True, slots=True)
class SimVirtual:
    """A virtual column: Oracle computes its values, and rows do not store them.

    Attributes:
        base: the stored column that the expression uses, 0-based.
        form: the expression, one of `VIRTUAL_FORMS`.
        index: OBJ# of the function-based index for which Oracle made the column, which is hidden
            then; 0 for a column of the user.
    """

    name: str
    type: ColumnType
    base: int
    form: str
    index: int = 0

    def expression(self, table: SimTable) -> str:
        """Return the expression as COL$.DEFAULT$ contains it."""
        column = f'"{table.columns[self.base].name}"'
        return VIRTUAL_FORMS[self.form].format(column=column, owner=table.owner)


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """A row piece and its place; `first` is its first column (0-based)."""

    block: DataBlock
    slot: int
    image: RowPiece
    first: int

    @property
    def address(self) -> RowAddress:
        """The address of the piece."""
        return RowAddress(self.block.dba, self.slot)


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """A row as SQL sees it.

    Attributes:
        cells: one per column of the table, None is NULL.
        owner: the last transaction that locked it.
        deleted: the row is deleted; by `owner`, if that transaction is still active.
        chain: its pieces in row order, head first; empty if the row has one piece.
        chain_owner: the transaction that wrote all pieces after the head; None if several
            transactions wrote them.
        position: index in `SimTable.live`, -1 if the row is not in this list.
    """

    table: SimTable
    block: DataBlock
    slot: int
    cells: list[Cell | None]
    owner: Holder | None = None
    deleted: bool = False
    chain: tuple[StoredPiece, ...] = ()
    chain_owner: Holder | None = None
    position: int = -1

    @property
    def rowid(self) -> str:
        """The row's ROWID, which stays the same if the row migrates to another block; empty in an
        index-organised table.
        """
        organised = self.table.index_organised
        return "" if organised else format_rowid(self.block.dataobj, self.block.dba, self.slot)


@dataclass(slots=True, eq=False, repr=False)
class DataBlock(TransactionalBlock):
    """A table block: rows by slot, and the bytes that they take.

    `obj`, `dataobj` and `segment_dba` describe the segment of the table or partition.
    """

    obj: int = 0
    dataobj: int = 0
    segment_dba: int = 0
    rows: list[Row | None] = field(default_factory=list)
    free_slots: list[int] = field(default_factory=list)
    used: int = 0

    def next_slot(self) -> int:
        """Return the slot of the next new row."""
        return self.free_slots[-1] if self.free_slots else len(self.rows)

    def put(self, slot: int, row: Row) -> None:
        """Place a row piece of `row` at `slot`."""
        if slot == len(self.rows):
            self.rows.append(row)
            return
        if slot in self.free_slots:
            self.free_slots.remove(slot)
        self.rows[slot] = row

    def release(self, slot: int) -> None:
        """Free a slot for other rows."""
        self.rows[slot] = None
        self.free_slots.append(slot)


OPEN_BLOCKS: Final = 3
"""Number of blocks of a segment that receive new rows: the last ones."""

NOWHERE: Final = DataBlock(0, 0, 0)
"""The block of rows that are not placed in a block yet."""


@dataclass(slots=True, eq=False, repr=False)
class SimIndex:
    """A B-tree index, whose redo a decoder must skip. `columns` are 0-based.

    `blocks` are the leaf blocks of the index.
    """

    obj: int
    columns: tuple[int, ...]
    unique: bool
    segment_dba: int
    blocks: list[TransactionalBlock] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class SimSegment:
    """A segment of a table or partition; `blocks` are in the order in which they were formatted.

    If the segment belongs to the index of an index-organised table, `table_part` is the OBJ# of the
    table's partition. New rows go only into blocks from index `open_from` on. `forgotten` is the
    number of earlier blocks that are no longer in `blocks`. `name` is the name of the partition;
    if it is empty, the dictionary contains a generated name, and DDL statements contain ``P``.
    """

    obj: int
    dataobj: int
    afn: int
    dba: int
    blocks: list[DataBlock] = field(default_factory=list)
    table_part: int = 0
    open_from: int = 0
    forgotten: int = 0
    name: str = ""

    def exchange(self, other: SimSegment) -> None:
        """Exchange the blocks of two segments; each segment keeps its OBJ#."""
        for name in ("dataobj", "afn", "dba", "blocks", "open_from", "forgotten"):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, theirs)
            setattr(other, name, mine)


@dataclass(slots=True, eq=False, repr=False)
class SimBeside:
    """Objects that statements have created for a table: comments, indexes and checks.

    Attributes:
        comments: by 0-based column; the key None is for the table's comment.
        indexes: the column of each index, by OBJ# of the index; an index has one column.
        checks: by CON#, the column of the check's condition, and whether the check is enabled.
        sequences: OBJ# of the sequence of each identity column, by 0-based column.
        index_names: by OBJ#, the names of the indexes, including those of expressions.
        free_names: the names of dropped indexes; new indexes get these names first.
    """

    comments: dict[int | None, str] = field(default_factory=dict)
    indexes: dict[int, int] = field(default_factory=dict)
    checks: dict[int, tuple[int, bool]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    index_names: dict[int, str] = field(default_factory=dict)
    free_names: list[str] = field(default_factory=list)

    def name_index(self, obj: int) -> str:
        """Give a new index its name, and return it."""
        name = self.free_names.pop() if self.free_names else f"IX{obj}"
        self.index_names[obj] = name
        return name

    def free_index(self, obj: int) -> str:
        """Make the name of a dropped index available to the next index, and return it."""
        name = self.index_names.pop(obj)
        self.free_names.append(name)
        return name


@dataclass(slots=True, eq=False, repr=False)
class SimTable:
    """A table and its segments.

    Attributes:
        key: 0-based columns of the primary key, empty for none.
        blocks: in the order they were formatted.
        live: the rows that SQL may see, in any order.
        row_space: bytes of a block that inserts may fill.
        update_reserve: additional bytes of a block that only updates may fill.
        piece_max: maximum bytes of a row piece; a longer row has several pieces.
        row_max: maximum bytes of a row.
        row_scn: bytes of the SCN in each row (ROWDEPENDENCIES), 0 for none.
        partition_column: the 0-based column that decides a row's partition.
        segments: those of the partitions, or the single segment of the table. For an
            index-organised table, the segments belong to its index.
        routes: the segment of each range of values of the partition column.
        index_organised: the rows are in the primary key's index; its columns are the first ones.
        lobs: the LOB columns, by 0-based number.
        at_start: the rows that exist before the first log, by ROWID, or by key if they have no
            ROWID.
        encrypted: the tablespace of the table, its indexes and its LOBs is encrypted.
        former_columns: (last SCN, columns up to this SCN) for each DDL that altered a column.
        former_names: (last SCN, name up to this SCN) for each rename.
        virtual: the virtual columns, by INTCOL#; also those of function-based indexes.
        free_intcols: INTCOL# of dropped virtual columns that no other column has taken.
        beside: comments, indexes and checks that statements have created.
        bounds: returns the index in `routes` for the value of the partition column, or -1 if no
            partition accepts the value. None: the model distributes the values over the ranges.
    """

    owner: str
    name: str
    obj: int
    dataobj: int
    columns: tuple[SimColumn, ...]
    key: tuple[int, ...]
    logging: Logging
    tablespace: int
    afn: int
    relative_file: int
    segment_block: int
    indexes: tuple[SimIndex, ...] = ()
    blocks: list[DataBlock] = field(default_factory=list)
    live: list[Row] = field(default_factory=list)
    next_key: int = 1
    row_space: int = ROW_SPACE
    piece_max: int = ROW_SPACE
    row_max: int = ROW_MAX
    update_reserve: int = UPDATE_RESERVE
    row_scn: int = 0
    partition_column: int = 0
    segments: list[SimSegment] = field(default_factory=list)
    routes: list[SimSegment] = field(default_factory=list)
    index_organised: bool = False
    lobs: dict[int, SimLob] = field(default_factory=dict)
    at_start: dict[str, dict[int, Cell | None]] = field(default_factory=dict)
    encrypted: bool = False
    former_columns: list[tuple[int, tuple[SimColumn, ...]]] = field(default_factory=list)
    former_names: list[tuple[int, str]] = field(default_factory=list)
    beside: SimBeside = field(default_factory=SimBeside)
    virtual: dict[int, SimVirtual] = field(default_factory=dict)
    free_intcols: set[int] = field(default_factory=set)
    bounds: Callable[[Cell | None], int] | None = None

    def __post_init__(self) -> None:
        if not self.segments:
            self.segments.append(SimSegment(self.obj, self.dataobj, self.afn, self.segment_dba))
        count = len(self.segments)
        self.routes = [self.segments[at * count // RANGES] for at in range(RANGES)]

    def intcol(self, place: int) -> int:
        """Return the INTCOL# of a stored column. Virtual columns also have INTCOL#s, but no
        SEGCOL#.
        """
        number = place + 1
        for other in sorted({*self.virtual, *self.free_intcols}):
            number += other <= number
        return number

    @property
    def next_intcol(self) -> int:
        """The INTCOL# of the next column that is added."""
        return max(self.intcol(len(self.columns) - 1), 0, *self.virtual) + 1

    @property
    def user_virtual(self) -> dict[int, SimVirtual]:
        """The virtual columns that are not hidden, by INTCOL#."""
        return {intcol: one for intcol, one in self.virtual.items() if not one.index}

    def remove_column(self, place: int) -> None:
        """Remove a column from the rows; the later columns get lower numbers.

        Nothing but comments may use the column, and the table is a heap table without LOBs and
        chained rows.
        """

        def now(at: int) -> int:
            return at - (at > place)

        intcol, beside = self.intcol(place), self.beside
        self.columns = (*self.columns[:place], *self.columns[place + 1 :])
        self.key = tuple(map(now, self.key))
        self.partition_column = now(self.partition_column)
        for index in self.indexes:
            index.columns = tuple(map(now, index.columns))
        self.virtual = {
            at - (at > intcol): replace(one, base=now(one.base)) for at, one in self.virtual.items()
        }
        self.free_intcols = {at - (at > intcol) for at in self.free_intcols}
        beside.comments = {at and now(at): one for at, one in beside.comments.items()}
        beside.indexes = {obj: now(at) for obj, at in beside.indexes.items()}
        beside.checks = {con: (now(at), on) for con, (at, on) in beside.checks.items()}
        beside.sequences = {now(at): one for at, one in beside.sequences.items()}
        for row in self.live:
            del row.cells[place]

    def is_computed_from(self, place: int) -> bool:
        """Return whether the expression of a virtual column uses a stored column."""
        return any(one.base == place for one in self.virtual.values())

    def columns_at(self, scn: int) -> tuple[SimColumn, ...]:
        """Return the columns with the names and types that they had at an SCN; columns that were
        added later are included.
        """
        former = (columns for until, columns in self.former_columns if scn <= until)
        return next(former, self.columns)

    def full_name_at(self, scn: int) -> str:
        """Return ``OWNER.NAME`` as of an SCN."""
        former = (name for until, name in self.former_names if scn <= until)
        return f"{self.owner}.{next(former, self.name)}"

    @property
    def is_partitioned(self) -> bool:
        """Return whether the table's segments belong to partitions or to an index."""
        return self.index_organised or self.segments[0].obj != self.obj

    @property
    def has_partitions(self) -> bool:
        """Return whether the table's segments are partitions of the table, or of the index with its
        rows.
        """
        return self.is_partitioned and (not self.index_organised or self._index_is_partitioned)

    @property
    def _index_is_partitioned(self) -> bool:
        return any(segment.table_part for segment in self.segments)

    @property
    def rows_index(self) -> int:
        """OBJ# of the index that contains the rows of an index-organised table."""
        return self.obj + ROWS_INDEX if self._index_is_partitioned else self.segments[0].obj

    @property
    def block_size(self) -> int:
        """Block size of its tablespace in bytes."""
        return WIDE_BLOCK_SIZE if self.piece_max > ROW_SPACE else DATABASE_BLOCK_SIZE

    @property
    def is_plain(self) -> bool:
        """Return whether the table is a heap table without LOBs."""
        return not (self.lobs or self.index_organised)

    @property
    def is_delivered(self) -> bool:
        """Return whether its changes are delivered: it is not a table of SYS."""
        return self.owner != "SYS"

    @property
    def objects(self) -> frozenset[int]:
        """OBJ# of the table and its segments."""
        return frozenset((self.obj, *(segment.obj for segment in self.segments)))

    def holds(self, dataobj: int) -> bool:
        """Return whether the segment `dataobj` contains rows or LOBs of the table."""
        pages = (segment.dataobj for lob in self.lobs.values() for segment in lob.segments)
        return dataobj in (*(segment.dataobj for segment in self.segments), *pages)

    def owns(self, dataobj: int) -> bool:
        """Return whether the segment `dataobj` belongs to the table or one of its indexes."""
        indexes = (index.obj for index in self.indexes)
        of_lobs = (one.index_dataobj for lob in self.lobs.values() for one in lob.segments)
        return self.holds(dataobj) or dataobj in (*indexes, *of_lobs)

    @property
    def logs_whole_rows(self) -> bool:
        """Return whether updates log every column; without a key, PRIMARY KEY logging does so."""
        keyless = self.logging is Logging.PRIMARY_KEY and not self.key
        return self.logging is Logging.ALL or keyless

    @property
    def logged(self) -> list[int]:
        """The columns that supplemental logging adds to every update; never LOBs."""
        if self.logs_whole_rows:
            return [at for at in range(len(self.columns)) if at not in self.lobs]
        return sorted(self.key) if self.logging is Logging.PRIMARY_KEY else []

    @property
    def segment_dba(self) -> int:
        """The segment header's address."""
        return self.relative_file << 22 | self.segment_block

    @property
    def full_name(self) -> str:
        """``OWNER.NAME``."""
        return f"{self.owner}.{self.name}"

    def add_live(self, row: Row) -> None:
        """Make the row visible to SQL."""
        row.position = len(self.live)
        self.live.append(row)

    def drop_live(self, row: Row) -> None:
        """Hide the row from SQL."""
        last = self.live.pop()
        if last is not row:
            self.live[row.position] = last
            last.position = row.position
        row.position = -1

    def forget(self, rows: Iterable[Row]) -> None:
        """Discard rows that no later statement uses, and blocks that receive no more rows."""
        for row in rows:
            self.drop_live(row)
            for block, slot in ((row.block, row.slot), *((p.block, p.slot) for p in row.chain)):
                block.rows[slot] = None
        for segment in self.segments:
            count = max(0, len(segment.blocks) - OPEN_BLOCKS)
            segment.forgotten += count
            del segment.blocks[:count]
        del self.blocks[:-OPEN_BLOCKS]

    def segment_of(self, cells: Sequence[Cell | None]) -> SimSegment:
        """Return the segment that a row belongs to."""
        return self.routes[self.range_of(cells)]

    def range_of(self, cells: Sequence[Cell | None]) -> int:
        """Return the number of the range that contains the row's partition value."""
        cell = cells[self.partition_column]
        if self.bounds is not None:
            return self.bounds(cell)
        return sum(cell.raw if cell else b"") % RANGES

    def store(self, cells: Sequence[Cell | None], scn: int) -> Row:
        """Store a row without redo; it exists before the first log."""
        row = Row(self, NOWHERE, 0, list(cells))
        pieces = self.place(row, lay_out(stored_columns(cells), self.piece_max), None, scn)
        row.block, row.slot = pieces[0].block, pieces[0].slot
        row.chain = tuple(pieces) if len(pieces) > 1 else ()
        self.add_live(row)
        self.at_start[row.rowid or self.key_text(row.cells)] = dict(enumerate(cells))
        return row

    def place(
        self, row: Row, parts: Sequence[PieceSpan], hrid: RowAddress | None, scn: int
    ) -> list[StoredPiece]:
        """Place the pieces of a row in blocks, the last piece first; return them in row order.

        If `hrid` is given, the row has moved, and a stub at this address is its head.
        """
        segment = self.segment_of(row.cells)
        placed = list[StoredPiece]()
        for number in reversed(range(len(parts))):
            part, fb = parts[number], parts[number].cut
            if number == 0:
                fb |= FB_FIRST if hrid else FB_FIRST | FB_HEAD
            nrid = placed[0].address if placed else None
            fb |= 0 if nrid else FB_LAST
            link = hrid if number == 0 else None
            image = RowPiece(fb, part.columns, nrid, link, self.row_scn)
            block = self.block_for(segment, image.size + SLOT_SIZE, scn)
            placed.insert(0, StoredPiece(block, block.next_slot(), image, part.first))
            block.put(placed[0].slot, row)
            block.used += image.size + SLOT_SIZE
        return placed

    def key_text(self, cells: Sequence[Cell | None] | Mapping[int, Cell | None]) -> str:
        """Return the key text that identifies a row without ROWID in the truth."""
        return ",".join(cell.json for at in self.key if (cell := cells[at]))

    def block_for(self, segment: SimSegment, size: int, scn: int) -> DataBlock:
        """Return a block with `size` free bytes for inserts: one of the last blocks, or a new
        block.
        """
        for block in segment.blocks[max(segment.open_from, len(segment.blocks) - OPEN_BLOCKS) :]:
            if block.used + size <= self.row_space:
                return block
        return self.new_block(segment, scn)

    def new_block(self, segment: SimSegment, scn: int) -> DataBlock:
        """Add the next block of a segment."""
        dba = segment.dba + 4 + segment.forgotten + len(segment.blocks)
        block = DataBlock(segment.afn, dba, scn, obj=segment.obj, dataobj=segment.dataobj,
                          segment_dba=segment.dba)  # fmt: skip
        block.first_itl = 2 if self.index_organised else 1
        segment.blocks.append(block)
        self.blocks.append(block)
        return block

    def describe(self) -> Table:
        """Return the table in the form of a dictionary snapshot."""
        columns = tuple(
            Column(
                *(column.name, number, number, number, column.type.type_code, column.type.length),
                precision=column.type.precision,
                scale=column.type.scale,
                charset_id=column.type.charset_id,
                charset_form=column.type.charset_form,
                nullable=column.nullable,
                hidden=column.unused,
                lob=self.lobs[number - 1].describe() if number - 1 in self.lobs else None,
            )
            for number, column in enumerate(self.columns, 1)
        )
        parts = self.segments if self.is_partitioned else []
        of_table = [part.table_part for part in parts if part.table_part]
        return Table(
            *(self.owner, self.name, self.obj, None if parts else self.dataobj, columns),
            partitions=(*(part.obj for part in parts), *of_table),
            segments=(*(part.dataobj for part in parts), *(0 for _ in of_table)),
            index_organised=self.index_organised,
            row_dependencies=bool(self.row_scn),
            key_kind=KeyKind.PRIMARY if self.key else KeyKind.NONE,
            key=tuple(number + 1 for number in self.key),
        )
