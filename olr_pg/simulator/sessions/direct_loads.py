"""Direct-path inserts: whole formatted blocks (redo-format §6.2), in a separate transaction.

A load that is not logged writes ranges of blocks (19.2) instead of blocks. The vector header
contains the data object and the first block. It is not known how a real 19.2 encodes the number of
blocks, so its fields have no meaning here.

The undo of a load contains no rows. If the transaction is rolled back, its blocks stay unused.

It also contains CREATE TABLE … ORGANIZATION INDEX AS SELECT: writes whole leaf blocks (19.1).

We have seen that the first byte of such a block is 2. The rest follows block dumps of leaves (index
header of 32 bytes, row directory, rows from the block's end). No decoder reads these blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    SLOT_SIZE,
    RowPiece,
    packed_row,
    stored_columns,
)
from olr_pg.simulator.fields.vector_fields import TYP_NEW
from olr_pg.simulator.model.storage import CLASS_DATA, ItlEntry
from olr_pg.simulator.model.tables import NOWHERE, DataBlock, Row
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.instance import UnloggedRange
from olr_pg.simulator.writer.iot_writer import LEAF_ROW_OVERHEAD
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import SimSegment, SimTable
    from olr_pg.simulator.writer.chained_rows import ChainWriter
    from olr_pg.simulator.writer.iot_writer import IndexWriter, LeafWriter
    from olr_pg.simulator.writer.piece_writer import PieceWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter

IMAGE_OVERHEAD: Final = 24
"""Bytes of a block that its image does not contain: cache header and tail."""

TABLE_DATA: Final = 1
TRANSACTIONAL: Final = b"\x06"
ITL_ENTRY_SIZE: Final = 24
PLAIN, ASSM = 0x02, 0x22
ASSM_SIZE: Final = 8
DATA_HEADER_SIZE: Final = 18


class DirectLoads:
    """Loads that write blocks past the high-water mark."""

    def __init__(
        self, tx: TransactionWriter, indexes: IndexWriter, pieces: PieceWriter, chains: ChainWriter
    ) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._indexes = indexes
        self._pieces = pieces
        self._chains = chains

    def load(
        self,
        table: SimTable,
        rows: Sequence[Sequence[Cell | None]],
        *,
        committed: bool = True,
        logged: bool = True,
    ) -> bool:
        """INSERT with APPEND, and its COMMIT or ROLLBACK; first commit the session's open
        transaction.

        Rows of several pieces are not loaded. If not `logged`, the load is NOLOGGING. Return False
        if the table may not be loaded, or if no row can be.
        """
        self._tx.commit()
        whole = self._whole(table, rows)
        if not whole or not self.is_free(table) or not self._tx.begin_empty():
            return False
        transaction = self._tx.current
        ranges = self._load(table, whole, logged=logged)
        if committed:
            self._tx.commit()
        else:
            self._tx.rollback()
        self._tx.instance.unlogged += [
            replace(one, end_scn=transaction.commit_scn if committed else 0) for one in ranges
        ]
        return True

    def load_part(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> int:
        """Load rows in the open transaction; rows of several pieces are not loaded.

        Returns:
            The number of loaded rows. They are the last rows in `SimTable.live`; if the table has
            one segment, in the order of `rows`.
        """
        whole = self._whole(table, rows)
        if whole:
            self._tx.begin_in_redo()
            self._load(table, whole, logged=True)
        return len(whole)

    def is_whole(self, table: SimTable, cells: Sequence[Cell | None]) -> bool:
        """Return whether a row fits into one piece."""
        return len(self._chains.parts(table, cells)) == 1

    def is_free(self, table: SimTable) -> bool:
        """Return whether a table may be loaded: `can_be_loaded`, and no transaction locks it."""
        may = can_be_loaded(table, self._tx.instance.modes)
        return may and not self._tx.container.is_locked(table)

    def _whole(
        self, table: SimTable, rows: Sequence[Sequence[Cell | None]]
    ) -> list[Sequence[Cell | None]]:
        return [cells for cells in rows if len(self._chains.parts(table, cells)) == 1]

    def _load(
        self, table: SimTable, rows: Sequence[Sequence[Cell | None]], *, logged: bool
    ) -> list[UnloggedRange]:
        """Load rows in the open transaction; return the ranges of blocks that redo does not
        contain.
        """
        transaction = self._tx.current
        made = [Row(table, NOWHERE, 0, list(cells)) for cells in rows]

        def finish(kept: bool) -> None:
            for row in () if kept else made:
                table.drop_live(row)
                row.block.rows = []
                row.block.used = table.row_space

        transaction.on_end.append(finish)
        ranges = list[UnloggedRange]()
        placed = (
            self.load_blocks(table, made) if logged else self._load_unlogged(table, made, ranges)
        )
        for row, scn in placed:
            table.add_live(row)
            change = self._pieces.delivered(
                DmlKind.INSERT, row, scn, {}, dict(enumerate(row.cells))
            )
            transaction.changes.append(replace(change, logged=logged))
        for row in made:
            self._indexes.maintain(row, row.cells, insert=True)
        return ranges

    def _load_unlogged(
        self, table: SimTable, rows: Sequence[Row], ranges: list[UnloggedRange]
    ) -> list[tuple[Row, int]]:
        """Load rows without redo of the blocks: write a 19.2 for each range, and add it to
        `ranges`.
        """
        loaded = list[tuple[Row, int]]()
        for segment in table.segments:
            filled = list(self._filled(table, segment, rows))
            if filled:
                scn = self._invalidate(table, [block for block, _ in filled], ranges)
                loaded += [(row, scn) for _, taken in filled for row in taken]
        return loaded

    def _invalidate(
        self, table: SimTable, blocks: Sequence[DataBlock], ranges: list[UnloggedRange]
    ) -> int:
        """Write a 19.2 for consecutive blocks, rarely with a 24.6; return the record's SCN."""
        record = self._tx.record()
        is_named = self._rng.random() < 0.2
        if is_named:
            record.name_transaction(self._tx.current)
        for block in blocks:
            block.itl[0] = ItlEntry(self._tx.transaction, cleaned=False)
        first, *_ = [
            block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_NEW)
            for block in blocks
        ]
        fields = [self._rng.randbytes(4)] * self._rng.randint(0, 1)
        record.vector((19, 2), fields, first)
        record.emit()
        self._tx.instance.note_unrecoverable(blocks[0].afn, record.scn)
        ranges.append(
            UnloggedRange(
                table.full_name, blocks[0].dataobj, blocks[0].dba, len(blocks), record.scn,
                is_named, self._tx.container.con_id,
            )
        )  # fmt: skip
        return record.scn

    def load_blocks(self, table: SimTable, rows: Sequence[Row]) -> list[tuple[Row, int]]:
        """Load rows into new blocks; return each row with the SCN of its record, in redo order."""
        loaded = list[tuple[Row, int]]()
        for segment in table.segments:
            for block, taken in self._filled(table, segment, rows):
                scn = self._write_block(block, taken)
                loaded += [(row, scn) for row in taken]
        return loaded

    def _filled(
        self, table: SimTable, segment: SimSegment, rows: Sequence[Row]
    ) -> Iterator[tuple[DataBlock, list[Row]]]:
        """Yield new blocks of a segment, each with the rows that it contains."""
        block: DataBlock | None = None
        taken = list[Row]()
        for row in rows:
            if table.segment_of(row.cells) is not segment:
                continue
            size = _piece(row).size + SLOT_SIZE
            if block is not None and block.used + size > table.row_space:
                yield block, taken
                block, taken = None, []
            block = block or table.new_block(segment, self._tx.instance.scn)
            row.block, row.slot, row.owner = block, len(taken), self._tx.transaction
            block.put(row.slot, row)
            block.used += size
            taken.append(row)
        if block is not None:
            yield block, taken

    def _write_block(self, block: DataBlock, rows: Sequence[Row]) -> int:
        """Write a 19.1 with the 24.6 of its transaction; return the record's SCN."""
        block.itl[0] = ItlEntry(self._tx.transaction, cleaned=False)
        record = self._tx.record()
        record.name_transaction(self._tx.current)
        image = self._block_image(block, rows, record.scn)
        where = block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_NEW)
        record.vector((19, 1), [image, TRANSACTIONAL], where)
        record.emit()
        return record.scn

    def _block_image(self, block: DataBlock, rows: Sequence[Row], scn: int) -> bytes:
        redo, count = self._redo, len(rows)
        flags = self._rng.choice((PLAIN, ASSM))
        head = redo.pack("BxxxI", TABLE_DATA, block.dataobj) + redo.scn8(scn)
        head += redo.pack("HBxI", len(block.itl), flags, block.dba)
        entry = self._tx.current.xid_bytes + bytes(8) + redo.pack("HHI", count, 0, 0)
        head += entry + bytes(ITL_ENTRY_SIZE * (len(block.itl) - 1))
        head += bytes(ASSM_SIZE if flags == ASSM else 0)
        space = rows[0].table.block_size - IMAGE_OVERHEAD - len(head)
        images = [packed_row(redo, _piece(row), 1) for row in rows]
        offsets, end = list[int](), space
        for image in images:
            end -= len(image)
            offsets.append(end)
        directory = DATA_HEADER_SIZE + SLOT_SIZE * count
        free = end - directory
        data = redo.pack("BBHhHHHH", 0, 1, count, -1, directory, end, free, free)
        data += redo.pack("HH", 0, count) + redo.pack(f"{count}H", *offsets)
        return head + data + bytes(free) + b"".join(reversed(images))


def can_be_loaded(table: SimTable, modes: frozenset[SourceMode]) -> bool:
    """Return whether a table can be loaded directly: it is a heap table without LOBs.

    Tables with row dependencies can be loaded only in the mode DEPENDENT_LOADS.
    """
    dependent = table.row_scn and SourceMode.DEPENDENT_LOADS not in modes
    return not (table.lobs or table.index_organised or dependent)


def _piece(row: Row) -> RowPiece:
    """Return a row as it is in its block; with row dependencies, the row's SCN is 0."""
    return RowPiece(FB_ROW, stored_columns(row.cells), row_scn=row.table.row_scn)


INDEX_DATA: Final = 2
LEAF_HEADER_SIZE: Final = 32
ROW_HEAD: Final = bytes(2)
"""Flags and lock of a leaf row."""

INDEX_BLOCK: Final = "index block"
"""The reason why the block cannot be decoded."""


class LeafLoads:
    """Fills empty index-organised tables."""

    def __init__(self, tx: TransactionWriter, leaves: LeafWriter) -> None:
        self._tx, self._redo, self._leaves = tx, tx.redo, leaves

    def create_as_select(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> bool:
        """Commit the open transaction, fill the table, and commit. False if the table has had rows.

        The redo of these rows cannot be decoded.
        """
        self._tx.commit()
        if table.blocks or not rows or not self._tx.begin_empty():
            return False
        made = [Row(table, NOWHERE, 0, list(cells)) for cells in rows]
        made.sort(key=lambda row: self._leaves.leaf_row(table, row.cells)[0])
        for block, taken in self._filled(table, made):
            scn = self._write_block(block, taken)
            for row in taken:
                table.add_live(row)
                image = dict(enumerate(row.cells))
                change = Change(
                    *(DmlKind.INSERT, table, 0, block.dba, row.slot, scn, {}, image), logged=False
                )
                self._tx.current.changes.append(change)
        self._tx.commit()
        return True

    def _filled(
        self, table: SimTable, rows: Sequence[Row]
    ) -> Iterator[tuple[DataBlock, list[Row]]]:
        """Yield new leaf blocks, each with the rows that it contains."""
        for segment in table.segments:
            own = [row for row in rows if table.segment_of(row.cells) is segment]
            while own:
                block, taken = table.new_block(segment, self._tx.instance.scn), list[Row]()
                while own and (not taken or block.used + self._space(own[0]) <= table.row_space):
                    row = own.pop(0)
                    row.block, row.slot, row.owner = block, len(taken), self._tx.transaction
                    block.put(row.slot, row)
                    block.used += self._space(row)
                    taken.append(row)
                yield block, taken

    def _space(self, row: Row) -> int:
        return sum(map(len, self._leaves.leaf_row(row.table, row.cells))) + LEAF_ROW_OVERHEAD

    def _write_block(self, block: DataBlock, rows: Sequence[Row]) -> int:
        """Write a 19.1 with the 24.6 of its transaction; return the record's SCN."""
        block.itl[1] = ItlEntry(self._tx.transaction, cleaned=False)
        record = self._tx.record()
        record.name_transaction(self._tx.current)
        image = self._leaf_image(block, rows, record.scn)
        where = block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_NEW)
        record.vector((19, 1), [image, TRANSACTIONAL], where)
        if not rows[0].table.encrypted:
            record.note_undecoded((19, 1), block.dataobj, INDEX_BLOCK)
        record.emit()
        return record.scn

    def _leaf_image(self, block: DataBlock, rows: Sequence[Row], scn: int) -> bytes:
        redo, count = self._redo, len(rows)
        head = redo.pack("BxxxI", INDEX_DATA, block.dataobj) + redo.scn8(scn)
        head += redo.pack("HBxI", len(block.itl), PLAIN, block.dba)
        owner = self._tx.current.xid_bytes + bytes(8) + redo.pack("HHI", count, 0, 0)
        head += bytes(ITL_ENTRY_SIZE) + owner + bytes(ITL_ENTRY_SIZE * (len(block.itl) - 2))
        images = [ROW_HEAD + b"".join(self._leaves.leaf_row(row.table, row.cells)) for row in rows]
        end = rows[0].table.block_size - IMAGE_OVERHEAD - len(head)
        offsets = list[int]()
        for image in images:
            end -= len(image)
            offsets.append(end)
        directory = LEAF_HEADER_SIZE + 2 * count
        data = redo.pack("BBBBIHHHH", 0, 0, 0x90, 1, 0, count, directory, end, end - directory)
        data += redo.pack("HHIIB3x", 0, 0, 0, 0, 0)
        data += redo.pack(f"{count}H", *offsets)
        return head + data + bytes(end - directory) + b"".join(reversed(images))
