"""Writes index maintenance, which a decoder of tables must skip (redo-format §6.1, §9.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.vector_fields import (
    KDILK_PURGE,
    KDILK_RESTORE,
    OPC_INDEX,
    index_row,
    kdilk,
)
from olr_pg.simulator.model.tables import Row, SimIndex
from olr_pg.simulator.writer.transaction_writer import BlockChange, nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter


class IndexWriter:
    """Writes the redo of indexes."""

    def __init__(self, tx: TransactionWriter) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng

    def maintain(self, row: Row, cells: Sequence[Cell | None], *, insert: bool) -> None:
        """Write the index changes for a row that is inserted or deleted."""
        for index in row.table.indexes:
            if any(cells[number] is not None for number in index.columns):
                self._write_index(row, index, cells, insert=insert)

    def maintain_changed(
        self, row: Row, old: Sequence[Cell | None], new: Sequence[Cell | None]
    ) -> None:
        """Write the index changes for a row whose columns change."""
        for index in row.table.indexes:
            before, after = ([c[n] for n in index.columns] for c in (old, new))
            if before == after:
                continue
            if any(cell is not None for cell in before):
                self._write_index(row, index, old, insert=False)
            if any(cell is not None for cell in after):
                self._write_index(row, index, new, insert=True)

    def _write_index(
        self, row: Row, index: SimIndex, cells: Sequence[Cell | None], *, insert: bool
    ) -> None:
        key = b"".join(
            bytes((len(cell.raw),)) + cell.raw if cell else b"\xff"
            for cell in (cells[number] for number in index.columns)
        )
        rowid = row.block.dba.to_bytes(4, "big") + row.slot.to_bytes(2, "big")
        tail = [rowid] if index.unique else []
        if not index.unique:
            key += b"\x06" + rowid
        # Computed only from values that are the same in all copies of redo (`simulator.stamping`).
        spot = row.slot + sum(cell.raw[-1] for at in index.columns if (cell := cells[at]))
        block = index.blocks[spot % len(index.blocks)]
        size = len(key) + 6 * index.unique + 4

        def fields(itli: int) -> FieldPair:
            info = index_row(self._redo, itli, 7 * spot & 0x1FF, size)
            if insert:
                undo = kdilk(self._redo, KDILK_PURGE, itli, index.segment_dba, block.dba)
                return [undo, key], [info, key, *tail]
            undo = kdilk(self._redo, KDILK_RESTORE, itli, index.segment_dba, block.dba)
            return [undo, key, *tail], [info]

        record = self._tx.record()
        self._tx.write(
            record,
            BlockChange(
                *(block, index.obj, index.obj, row.table.tablespace, OPC_INDEX),
                *((10, 2 if insert else 4), (10, 4) if insert else None, fields, nothing),
            ),
        )
        record.emit()
