"""Direct-path inserts: whole formatted blocks (redo-format §6.2), in a transaction of their own.

Their undo is none of rows: where the transaction is rolled back, the blocks were never in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.lob_session import LobSession
from olr_pg.simulator.rows import FB_ROW, SLOT_SIZE, RowPiece, packed_row, stored_columns
from olr_pg.simulator.storage import CLASS_DATA, DATABASE_BLOCK_SIZE, DataBlock, ItlEntry, Row
from olr_pg.simulator.vectors import TYP_NEW
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.cells import Cell
    from olr_pg.simulator.tables import SimSegment, SimTable

IMAGE_SIZE: Final = DATABASE_BLOCK_SIZE - 24
"""A block without its cache header and its tail."""

TABLE_DATA: Final = 1
TRANSACTIONAL: Final = b"\x06"
ITL_ENTRY_SIZE: Final = 24
PLAIN, ASSM = 0x02, 0x22
ASSM_SIZE: Final = 8
DATA_HEADER_SIZE: Final = 18

NOWHERE: Final = DataBlock(0, 0, 0)
"""The block of rows that have none yet."""


class DirectSession(LobSession):
    """A session that can write blocks past the high-water mark."""

    def load(
        self, table: SimTable, rows: Sequence[Sequence[Cell | None]], *, committed: bool = True
    ) -> bool:
        """INSERT with APPEND and its COMMIT or ROLLBACK; what the session has open is committed.

        Rows of several pieces are left out. False where it may not be.
        """
        self.commit()
        whole = [cells for cells in rows if len(self._parts(table, cells)) == 1]
        if not whole or not can_be_loaded(table) or self.container.is_locked(table):
            return False
        if not self.begin_empty():
            return False
        transaction = self.transaction
        assert transaction is not None
        made = [Row(table, NOWHERE, 0, list(cells)) for cells in whole]

        def finish(kept: bool) -> None:
            for row in () if kept else made:
                table.drop_live(row)
                row.block.rows = []
                row.block.used = table.row_space

        transaction.on_end.append(finish)
        for row, scn in self._load(table, made):
            table.add_live(row)
            transaction.changes.append(
                self._delivered(DmlKind.INSERT, row, scn, {}, dict(enumerate(row.cells)))
            )
        for row in made:
            self._maintain_indexes(row, row.cells, insert=True)
        if committed:
            self.commit()
        else:
            self.rollback()
        return True

    def _load(self, table: SimTable, rows: Sequence[Row]) -> list[tuple[Row, int]]:
        """Place rows in new blocks of their segments; each with its record's SCN, in redo order."""
        loaded = list[tuple[Row, int]]()
        for segment in table.segments:
            waiting = [row for row in rows if table.segment_of(row.cells) is segment]
            while waiting:
                block, taken = self._fill(table, segment, waiting)
                scn = self._write_block(block, taken)
                loaded += [(row, scn) for row in taken]
                waiting = waiting[len(taken) :]
        return loaded

    def _fill(
        self, table: SimTable, segment: SimSegment, rows: list[Row]
    ) -> tuple[DataBlock, list[Row]]:
        """A new block with the first of some rows, as many as go in."""
        block = table.new_block(segment, self.instance.scn)
        for number, row in enumerate(rows):
            size = RowPiece(FB_ROW, stored_columns(row.cells)).size + SLOT_SIZE
            if number and block.used + size > table.row_space:
                return block, rows[:number]
            row.block, row.slot, row.owner = block, number, self.transaction
            block.put(number, row)
            block.used += size
        return block, rows

    def _write_block(self, block: DataBlock, rows: Sequence[Row]) -> int:
        """19.1 with the 24.6 of its transaction; the record's SCN."""
        assert self.transaction is not None
        block.itl[0] = ItlEntry(self.transaction, cleaned=False)
        record = self._record()
        record.vector((24, 6), [bytes(8) + self.transaction.xid_bytes])
        image = self._block_image(block, rows, record.scn)
        where = block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_NEW)
        record.vector((19, 1), [image, TRANSACTIONAL], where)
        record.emit()
        return record.scn

    def _block_image(self, block: DataBlock, rows: Sequence[Row], scn: int) -> bytes:
        redo, count = self._redo, len(rows)
        assert self.transaction is not None
        flags = self._rng.choice((PLAIN, ASSM))
        head = redo.pack("BxxxI", TABLE_DATA, block.dataobj) + redo.scn8(scn)
        head += redo.pack("HBxI", len(block.itl), flags, block.dba)
        entry = self.transaction.xid_bytes + bytes(8) + redo.pack("HHI", count, 0, 0)
        head += entry + bytes(ITL_ENTRY_SIZE * (len(block.itl) - 1))
        head += bytes(ASSM_SIZE if flags == ASSM else 0)
        space = IMAGE_SIZE - len(head)
        images = [packed_row(redo, RowPiece(FB_ROW, stored_columns(row.cells)), 1) for row in rows]
        offsets, end = list[int](), space
        for image in images:
            end -= len(image)
            offsets.append(end)
        directory = DATA_HEADER_SIZE + SLOT_SIZE * count
        free = end - directory
        data = redo.pack("BBHhHHHH", 0, 1, count, -1, directory, end, free, free)
        data += redo.pack("HH", 0, count) + redo.pack(f"{count}H", *offsets)
        return head + data + bytes(free) + b"".join(reversed(images))


def can_be_loaded(table: SimTable) -> bool:
    """Whether a table's blocks are modelled: heap tables without LOBs and row dependencies."""
    return not (table.lobs or table.index_organised or table.row_scn)
