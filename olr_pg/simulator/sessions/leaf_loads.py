"""CREATE TABLE … ORGANIZATION INDEX AS SELECT: writes whole leaf blocks (19.1).

We have seen that the first byte of such a block is 2. The rest follows block dumps of leaves (index
header of 32 bytes, row directory, rows from the block's end). No decoder reads these blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.vector_fields import TYP_NEW
from olr_pg.simulator.model.storage import CLASS_DATA, ItlEntry
from olr_pg.simulator.model.tables import NOWHERE, Row
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.sessions.direct_loads import (
    IMAGE_OVERHEAD,
    ITL_ENTRY_SIZE,
    PLAIN,
    TRANSACTIONAL,
)
from olr_pg.simulator.writer.iot_writer import LEAF_ROW_OVERHEAD
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import DataBlock, SimTable
    from olr_pg.simulator.writer.iot_writer import LeafWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter

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
