"""Turns row changes of SQL into undo, redo and delivered changes: rows, LOBs, whole blocks.

Rows: redo-format §5.4–§5.9, §7.5.

The operations of DBMS_LOB write parts of a LOB, and then its new locator into the row. Facts:
values-and-lobs §17.6, §20, §23.

Direct-path inserts write whole formatted blocks (redo-format §6.2), in a separate transaction. A
load that is not logged writes ranges of blocks (19.2) instead of blocks. The vector header contains
the data object and the first block. We do not know how a real 19.2 encodes the number of blocks, so
the fields of a simulated 19.2 have no meaning. The undo of a load contains no rows. If the
transaction is rolled back, its blocks stay unused.

CREATE TABLE … ORGANIZATION INDEX AS SELECT writes whole leaf blocks (19.1). We have seen that the
first byte of such a block is 2. The rest follows block dumps of leaves (index header of 32 bytes,
row directory, rows from the block's end). No decoder reads these blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.simulator.fields.cells import BLOB, OPERATION_ERASE, OPERATION_TRIM, OPERATION_WRITE
from olr_pg.simulator.fields.redo_format import TYP_NEW, SourceMode
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_MOVED,
    OP_QMD,
    OP_QMI,
    SLOT_SIZE,
    SUPPLEMENTAL_LOCK,
    UNDO_SIDE,
    FieldPair,
    RowPiece,
    multi_kdo,
    multi_rows,
    packed_row,
    stored_columns,
)
from olr_pg.simulator.model.lobs import LobCell, StoredLob, drafted, is_inline
from olr_pg.simulator.model.storage import CLASS_DATA, ItlEntry
from olr_pg.simulator.model.tables import NOWHERE, DataBlock, Row, SimSegment, SimTable
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.instance import UnloggedRange
from olr_pg.simulator.writer.iot_writer import LEAF_ROW_OVERHEAD, IndexWriter, LeafWriter
from olr_pg.simulator.writer.lob_writer import VERSION_MAX, LobPlace, LobWriter, lob_cell
from olr_pg.simulator.writer.transaction_writer import TransactionWriter, mark_deleted
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.writer.chained_rows import ChainWriter, PieceWriter


class RowStatements:
    """The statements that change single rows or arrays of rows."""

    def __init__(
        self,
        tx: TransactionWriter,
        indexes: IndexWriter,
        pieces: PieceWriter,
        chains: ChainWriter,
        leaves: LeafWriter,
        lobs: LobWriter,
    ) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._indexes = indexes
        self._pieces = pieces
        self._chains = chains
        self._leaves = leaves
        self._lobs = lobs

    def insert(
        self, table: SimTable, cells: Sequence[Cell | None], *, extra: int = 0
    ) -> Row | None:
        """INSERT of one row; None if no transaction slot is free.

        `extra`: further bits of the supplemental flags.
        """
        if not self._tx.ready():
            return None
        if table.index_organised:
            return self._leaves.insert(table, cells)
        segment = table.segment_of(cells)
        cells = [self._lobs.stored(table, segment, at, cell) for at, cell in enumerate(cells)]
        return self._chains.insert(table, cells, extra)

    def insert_many(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> list[Row]:
        """Array INSERT into one block (QMI). Rows that do not fit are not inserted; return the
        others.
        """
        if table.index_organised or table.lobs:
            return [row for cells in rows if (row := self.insert(table, cells))]
        rows = [cells for cells in rows if len(self._chains.parts(table, cells)) == 1]
        segment = table.segment_of(rows[0]) if rows else None
        rows = [cells for cells in rows if table.segment_of(cells) is segment]
        if segment is None or not self._tx.ready():
            return []
        pieces = [RowPiece(FB_ROW, stored_columns(cells), row_scn=table.row_scn) for cells in rows]
        block = table.block_for(segment, pieces[0].size + SLOT_SIZE, self._tx.instance.scn)
        record = self._tx.record()
        made, slots = list[Row](), list[int]()
        for cells, piece in zip(rows, pieces, strict=True):
            if made and block.used + piece.size + SLOT_SIZE > table.row_space:
                break
            slot = block.next_slot()
            row = Row(table, block, slot, list(cells), self._tx.transaction)
            block.put(slot, row)
            block.used += piece.size + SLOT_SIZE
            table.add_live(row)
            made.append(row)
            slots.append(slot)
        kept = pieces[: len(made)]
        base = self._pieces.kdo(table, block)
        changes = tuple(
            self._pieces.delivered(DmlKind.INSERT, row, record.scn, {}, dict(enumerate(row.cells)))
            for row in made
        )

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = multi_kdo(self._redo, own, OP_QMD | UNDO_SIDE, slots, 0)
            redo = multi_kdo(self._redo, own, OP_QMI, slots, itli)
            return [undo], [redo, *multi_rows(self._redo, kept, itli)]

        def revert() -> None:
            for row, piece in zip(reversed(made), reversed(kept), strict=True):
                self._remove_row(row, piece.size + SLOT_SIZE)

        self._tx.write(
            record, self._pieces.row_change(table, block, OP_QMI, OP_QMD, fields, revert, *changes)
        )
        record.emit()
        for row in made:
            self._indexes.maintain(row, row.cells, insert=True)
        return made

    def delete(self, row: Row, *, extra: int = 0) -> bool:
        """DELETE of one row; False if the row is locked, or if no transaction slot is free.

        `extra`: further bits of the supplemental flags.
        """
        if not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.delete(row)
        return self._chains.delete(row, extra)

    def delete_many(self, rows: Sequence[Row]) -> bool:
        """Array DELETE in one block (QMD); False if a row has several pieces or is locked."""
        if any(row.chain or row.table.index_organised for row in rows):
            return False
        if not rows or not all(self.may_change(row) for row in rows):
            return False
        table, block = rows[0].table, rows[0].block
        pieces = [
            RowPiece(FB_ROW, stored_columns(row.cells), row_scn=table.row_scn) for row in rows
        ]
        record = self._tx.record()
        changes = tuple(
            self._pieces.delivered(DmlKind.DELETE, row, record.scn, dict(enumerate(row.cells)), {})
            for row in rows
        )
        slots = [row.slot for row in rows]
        base = self._pieces.kdo(table, block)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = multi_kdo(self._redo, own, OP_QMI | UNDO_SIDE, slots, 0)
            redo = multi_kdo(self._redo, own, OP_QMD, slots, itli)
            return [undo, *multi_rows(self._redo, pieces, 0)], [redo]

        reverts = [
            mark_deleted(self._tx, row, piece.size + SLOT_SIZE)
            for row, piece in zip(rows, pieces, strict=True)
        ]

        def revert() -> None:
            for take_back in reversed(reverts):
                take_back()

        self._tx.write(
            record, self._pieces.row_change(table, block, OP_QMD, OP_QMI, fields, revert, *changes)
        )
        record.emit()
        for row in rows:
            self._indexes.maintain(row, row.cells, insert=False)
        return True

    def update(self, row: Row, new: Mapping[int, Cell | None]) -> bool:
        """UPDATE of one row; `new` has values by 0-based column. False if the update is not
        possible.
        """
        if not new or not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.update(row, new)
        table, old = row.table, row.cells
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        segment = table.segment_of(cells)
        if segment.obj != row.block.obj:
            return self._move_to_partition(row, cells)
        new = {at: self._lobs.stored(table, segment, at, cell) for at, cell in new.items()}
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        if row.chain:
            return self._chains.update(row, new)
        # A column after the end of the old and the new row stays NULL and is not in redo.
        width = max(len(stored_columns(old)), len(stored_columns(cells)))
        new = {number: cell for number, cell in new.items() if number < width}
        if not new:
            return False
        return self._chains.update_whole(row, cells, list(new))

    def _move_to_partition(self, row: Row, cells: list[Cell | None]) -> bool:
        """Move a row to another partition, as an UPDATE does: delete it, and insert it there.

        Records of such rows may have the flag K (redo-format §4.3; not seen in real redo).
        """
        extra = self._rng.choice((0, GROUP_MOVED))
        if not self.delete(row, extra=extra):
            return False
        return self.insert(row.table, drafted(cells), extra=extra) is not None

    def lock(self, row: Row) -> bool:
        """SELECT … FOR UPDATE of one row: LKR."""
        if row.table.index_organised or not self.may_change(row):
            return False
        if row.owner is self._tx.transaction:
            return False
        steps = [self._pieces.lock_step(row)]
        self._pieces.run(row, SUPPLEMENTAL_LOCK, steps, lambda _: ())
        return True

    def may_change(self, row: Row) -> bool:
        """Return whether the session can change a row: no other transaction has locked it."""
        owner = row.owner
        if row.deleted or (
            owner is not None and owner.active and owner is not self._tx.transaction
        ):
            return False
        return self._tx.ready()

    def _remove_row(self, row: Row, space: int) -> None:
        row.table.drop_live(row)
        row.block.release(row.slot)
        row.block.used -= space


class LobStatements:
    """Statements that change parts of LOBs."""

    def __init__(self, tx: TransactionWriter, lobs: LobWriter, rows: RowStatements) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._lobs = lobs
        self._rows = rows

    def write_lob(self, row: Row, at: int, offset: int, data: bytes) -> bool:
        """DBMS_LOB.WRITE from byte `offset` (0-based) on; at the end of the value, it is
        WRITEAPPEND.
        """
        state = self._lob_to_change(row, at)
        if state is None or not data:
            return False
        place = LobPlace(row.table, at + 1)
        content = state.content[:offset] + data + state.content[offset + len(data) :]
        self._lobs.log_operation(place, state, OPERATION_WRITE, len(data), offset)
        return self._rows.update(row, {at: self._spliced(place, state, content, offset, len(data))})

    def trim_lob(self, row: Row, at: int, size: int) -> bool:
        """DBMS_LOB.TRIM to `size` bytes."""
        state = self._lob_to_change(row, at)
        if state is None or size >= len(state.content):
            return False
        place, content = LobPlace(row.table, at + 1), state.content[:size]
        self._lobs.log_operation(place, state, OPERATION_TRIM, size, 0)
        stays = state.form is not LobForm.INLINE and size > 0 and self._rng.random() < 0.7
        if not stays:
            return self._rows.update(row, {at: self._lobs.rewrite(place, _next(state), content)})
        runs = _cut(state.runs, -(-size // state.storage.page))
        new = self._lobs.lead_to(place, replace(_next(state), content=content, runs=runs))
        return self._rows.update(row, {at: lob_cell(new)})

    def erase_lob(self, row: Row, at: int, offset: int, size: int) -> bool:
        """DBMS_LOB.ERASE: write zeros into a BLOB, blanks into a text."""
        state = self._lob_to_change(row, at)
        if state is None or not 0 < size <= len(state.content) - offset:
            return False
        place = LobPlace(row.table, at + 1)
        blank = bytes(size) if state.storage.kind == BLOB else b"\0 " * (size // 2)
        content = state.content[:offset] + blank + state.content[offset + len(blank) :]
        self._lobs.log_operation(place, state, OPERATION_ERASE, size, offset)
        return self._rows.update(
            row, {at: self._spliced(place, state, content, offset, len(blank))}
        )

    def wrote_lob(self, row: Row, cell: LobCell) -> bool:
        """Return whether the redo of the session's transaction contains the whole value."""
        if cell.stored.form is LobForm.INLINE:
            return True
        return row.owner is self._tx.transaction is not None and (
            self._tx.transaction.lobs.value(cell.stored) is not None
        )

    def _lob_to_change(self, row: Row, at: int) -> StoredLob | None:
        cell = row.cells[at]
        if not isinstance(cell, LobCell) or not self._rows.may_change(row):
            return None
        # The length and pages of such a LOB are only in its index, so its row would not change.
        if cell.stored.form is LobForm.INDEXED:
            return None
        self._tx.begin_in_redo()
        return cell.stored

    def _spliced(
        self, place: LobPlace, state: StoredLob, content: bytes, offset: int, size: int
    ) -> LobCell:
        """Write `size` bytes at `offset`; return the new cell. `content` is the whole value."""
        if state.form is LobForm.INLINE or is_inline(state.storage, len(content)):
            return self._lobs.rewrite(place, _next(state), content)
        page = state.storage.page
        first, had = offset // page, len(state.pages)
        count = -(-len(content) // page)
        runs = (*state.runs, *state.segment.allocate(self._rng, count - had))
        new = replace(_next(state), content=content, runs=runs)
        last = (offset + size - 1) // page
        if state.storage.securefile:
            for number in range(first, min(last + 1, had)):
                start = max(offset, number * page)
                end = min(offset + size, (number + 1) * page)
                self._lobs.write_in_place(place, new, number, start, end)
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[had:])
        else:
            # A BASICFILE page is never overwritten: a new page replaces it.
            pages = new.pages
            for number in range(first, min(last + 1, had)):
                pages[number] = state.segment.allocate(self._rng, 1)[0][0]
            new = replace(new, runs=tuple((dba, 1) for dba in pages))
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[first:])
        return lob_cell(self._lobs.lead_to(place, new))


def _next(state: StoredLob) -> StoredLob:
    """Return the state of the LOB with the next version."""
    return replace(state, version=state.version % VERSION_MAX + 1)


def _cut(runs: Sequence[tuple[int, int]], pages: int) -> tuple[tuple[int, int], ...]:
    """Return the runs of the first `pages` blocks."""
    kept = list[tuple[int, int]]()
    for first, blocks in runs:
        if pages > 0:
            kept.append((first, min(blocks, pages)))
        pages -= blocks
    return tuple(kept)


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

        Rows of several pieces are not loaded. If `logged` is False, the load is NOLOGGING. Return
        False if the table may not be loaded, or if no row can be.
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
            The number of loaded rows. The loaded rows are the last rows in `SimTable.live`; if the
            table has one segment, in the order of `rows`.
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
        """Return whether a table may be loaded: `can_be_loaded` returns True, and no transaction
        locks the table.
        """
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
