"""Writes rows of index-organised tables: leaf rows of the primary key's index (redo-format §6.1).

The columns of the primary key are the table's first columns. The vectors 10.30 and 10.35 and the
supplemental data follow real records of 19c; the other vectors follow only the page redo-format.
Tables with an overflow segment are not modelled.

`IndexWriter` writes index maintenance, which a decoder of tables must skip (redo-format §6.1,
§9.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.redo_format import (
    KDILK_COLUMNS,
    KDILK_KEY_DATA,
    KDILK_PURGE,
    KDILK_RESTORE,
    KDILK_WHOLE,
    OPC_INDEX,
    index_row,
    kdilk,
)
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
    RowAddress,
    Supplemental,
    Value,
    column_fields,
    null_bitmap,
    stored_columns,
)
from olr_pg.simulator.model.tables import Logging, Row, SimIndex, SimTable
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.transaction_writer import BlockChange, mark_deleted, nothing
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.model.tables import DataBlock
    from olr_pg.simulator.model.transactions import Image
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter

LEAF_ROW_OVERHEAD = 8


def prefixed(redo: RedoFormat, value: Value) -> bytes:
    """Return a column of a key or of an index row after its length (redo-format §6.1)."""
    if value is None:
        return b"\xff"
    if len(value) <= 250:
        return bytes((len(value),)) + value
    return b"\xfe" + redo.pack("H", len(value)) + value


class LeafWriter:
    """Changes the rows of index-organised tables."""

    def __init__(self, tx: TransactionWriter) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng

    def insert(self, table: SimTable, cells: Sequence[Cell | None], *, revive: bool = False) -> Row:
        """INSERT: 10.2, or with `revive` 10.18, if the deleted leaf row of the key still exists."""
        key, others = self.leaf_row(table, cells)
        space = len(key) + len(others) + LEAF_ROW_OVERHEAD
        block = table.block_for(table.segment_of(cells), space, self._tx.instance.scn)
        row = Row(table, block, block.next_slot(), list(cells), self._tx.transaction)
        supplemental = self._leaf_log(table, SUPPLEMENTAL_INSERT, 0, 1)

        def fields(itli: int) -> FieldPair:
            info = index_row(self._redo, itli, row.slot, space, others=True)
            code = KDILK_KEY_DATA if revive else KDILK_PURGE
            undo = self._leaf_undo(table, code, itli, block)
            if revive:
                gone = bytes((FB_ROW, 0, 0))
                return [undo, key, gone, *supplemental], [info, others]
            return [undo, key, *supplemental], [info, key, others]

        def revert() -> None:
            table.drop_live(row)
            block.release(row.slot)
            block.used -= space

        block.put(row.slot, row)
        block.used += space
        table.add_live(row)
        self._leaf_change(
            *(row, 18 if revive else 2, fields, revert),
            *(DmlKind.INSERT, {}, dict(enumerate(cells))),
        )
        return row

    def delete(self, row: Row) -> bool:
        """DELETE: 10.4."""
        table, block = row.table, row.block
        key, others = self.leaf_row(table, row.cells)
        space = len(key) + len(others) + LEAF_ROW_OVERHEAD
        supplemental = self._leaf_log(table, SUPPLEMENTAL_DELETE, 1, 0)

        def fields(itli: int) -> FieldPair:
            undo = self._leaf_undo(table, KDILK_RESTORE, itli, block)
            info = index_row(self._redo, itli, row.slot, space)
            return [undo, key, others, *supplemental], [info]

        revert = mark_deleted(self._tx, row, space)
        before = dict(enumerate(row.cells))
        self._leaf_change(row, 4, fields, revert, DmlKind.DELETE, before, {})
        return True

    def update(self, row: Row, new: Mapping[int, Cell | None]) -> bool:
        """UPDATE: 10.35 or 10.30; if the key changes, the row is deleted and inserted."""
        table, keys = row.table, len(row.table.key)
        cells = [new.get(number, cell) for number, cell in enumerate(row.cells)]
        if any(number < keys for number in new):
            return self.delete(row) and self.insert(table, cells) is not None
        if table.logging is not Logging.NONE and self._rng.random() < 0.1:
            # Only supplemental data distinguish an insert from an update in a 10.18.
            return self.delete(row) and bool(self.insert(table, cells, revive=True))
        before, after = (stored_columns(c)[keys:] for c in (row.cells, cells))
        set_ = [number for number in sorted(new) if number - keys < max(len(before), len(after))]
        if not set_:
            return False
        listed = len(after) >= len(before) and all(n - keys < len(after) for n in set_)
        if listed and self._rng.random() < 0.6:
            self._update_columns(row, cells, set_)
        else:
            self._update_whole(row, cells)
        return True

    def _update_whole(self, row: Row, cells: list[Cell | None]) -> None:
        """Write 10.30, which contains all columns after the key."""
        table, keys = row.table, len(row.table.key)
        key, old = self.leaf_row(table, row.cells)
        _, new = self.leaf_row(table, cells)
        width = max(len(stored_columns(row.cells)), len(stored_columns(cells)), keys)
        supplemental = self._leaf_log(table, SUPPLEMENTAL_UPDATE, 1, keys + 1)

        def fields(itli: int) -> FieldPair:
            undo = self._leaf_undo(table, KDILK_WHOLE, itli, row.block)
            size = len(key) + len(new) + LEAF_ROW_OVERHEAD
            info = index_row(self._redo, itli, row.slot, size, others=True)
            return [undo, key, old, *supplemental], [info, new]

        before = {number: row.cells[number] for number in range(width)}
        after = {number: cells[number] for number in range(keys, width)}
        revert = self._set_cells(row, cells, len(new) - len(old))
        self._leaf_change(row, 30, fields, revert, DmlKind.UPDATE, before, after)

    def _update_columns(self, row: Row, cells: list[Cell | None], changed: list[int]) -> None:
        """Write 10.35 with the columns `changed`; the undo lists only those in the old row."""
        redo, table, keys = self._redo, row.table, len(row.table.key)
        key, old_row = self.leaf_row(table, row.cells)
        _, new_row = self.leaf_row(table, cells)
        growth = len(new_row) - len(old_row)
        old, new = (stored_columns(c)[keys:] for c in (row.cells, cells))
        numbers = [number - keys for number in changed]
        undone = [number for number in numbers if number < len(old)]
        logged = list[int]()
        if table.logging is Logging.ALL:
            logged = [at for at in range(keys, len(table.columns)) if at - keys not in undone]
        values = tuple((at + 1, cell.raw if (cell := row.cells[at]) else None) for at in logged)
        supplemental = self._leaf_log(table, SUPPLEMENTAL_UPDATE, 1, keys + 1, values)
        was = [old[number] for number in undone]
        becomes = [new[number] for number in numbers]

        def fields(itli: int) -> FieldPair:
            tail = bytes((2, len(old), len(undone), 0)) + redo.pack("h", -growth)
            tail += null_bitmap(was) + bytes(2)
            undo = self._leaf_undo(table, KDILK_COLUMNS, itli, row.block) + tail
            size = len(key) + len(new_row) + LEAF_ROW_OVERHEAD
            info = index_row(redo, itli, row.slot, size, others=True)
            info += bytes((2, len(new), len(numbers), 0)) + redo.pack("h", growth)
            info += null_bitmap(becomes)
            return (
                [undo, key, redo.pack(f"{len(undone)}H", *undone), *column_fields(was),
                 *supplemental],
                [info, redo.pack(f"{len(numbers)}H", *numbers), *column_fields(becomes)],
            )  # fmt: skip

        known = sorted({*range(keys), *changed, *logged})
        before = {number: row.cells[number] for number in known}
        after = {number: cells[number] for number in changed}
        revert = self._set_cells(row, cells, growth)
        self._leaf_change(row, 35, fields, revert, DmlKind.UPDATE, before, after)

    def _set_cells(self, row: Row, cells: list[Cell | None], growth: int) -> Callable[[], None]:
        """Change the row in the model; return a function that undoes the change."""
        old, owner, block = row.cells, row.owner, row.block

        def revert() -> None:
            row.cells, row.owner = old, owner
            block.used -= growth

        row.cells, row.owner = cells, self._tx.transaction
        block.used += growth
        return revert

    def _leaf_change(
        self,
        row: Row,
        code: int,
        fields: Callable[[int], FieldPair],
        revert: Callable[[], None],
        kind: DmlKind,
        before: Image,
        after: Image,
    ) -> None:
        record, block = self._tx.record(), row.block
        change = Change(kind, row.table, 0, block.dba, row.slot, record.scn, before, after)
        self._tx.write(
            record,
            BlockChange(
                *(block, block.obj, block.dataobj, row.table.tablespace, OPC_INDEX),
                *((10, code), (10, 4) if code == 2 else None, fields, revert),
                (change,),
            ),
        )
        record.emit()

    def leaf_row(self, table: SimTable, cells: Sequence[Cell | None]) -> tuple[bytes, bytes]:
        """Return the encoded key, and the rest of the row: flags, lock, count, columns."""
        keys, stored = len(table.key), stored_columns(cells)
        key = b"".join(prefixed(self._redo, value) for value in stored[:keys])
        others = stored[keys:]
        body = b"".join(prefixed(self._redo, value) for value in others)
        return key, bytes((FB_ROW, 0, len(others))) + body

    def _leaf_undo(self, table: SimTable, code: int, itli: int, block: DataBlock) -> bytes:
        logs = table.logging is not Logging.NONE
        return kdilk(self._redo, code, itli, block.segment_dba, block.dba, logs=logs)

    def _leaf_log(
        self,
        table: SimTable,
        kind: int,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        if table.logging is Logging.NONE:
            return []
        group = GROUP_FIRST | GROUP_LAST
        nowhere = RowAddress(0, 0)
        return Supplemental(kind, group, before, after, columns, nowhere).fields(self._redo)


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
            prefixed(self._redo, cell.raw if cell else None)
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
