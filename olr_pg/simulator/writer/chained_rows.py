"""Writes changes of rows, which have one or several pieces, including chained and migrated rows.

A change is a list of steps; each step is one record. The first record has the supplemental flag F,
the last one L. Facts: redo-format §5.3–§5.10.

The groups of records are those of redo-format §7.5. Without supplemental logging, the writer makes
only the changes that redo contains completely; `transactions.chains` lists them.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import OPC_ROW, SourceMode
from olr_pg.simulator.fields.row_fields import (
    DEPENDENCIES,
    FB_FIRST,
    FB_FROM_PREVIOUS,
    FB_HEAD,
    FB_LAST,
    FB_ROW,
    FB_TO_NEXT,
    GROUP_FIRST,
    GROUP_LAST,
    OP_CFA,
    OP_DRP,
    OP_IRP,
    OP_LKR,
    OP_LMN,
    OP_ORP,
    OP_URP,
    PIECE_COLUMNS_MAX,
    SLOT_SIZE,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_LOCK,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    ColumnChange,
    KdoBase,
    RowAddress,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    forward_kdo,
    insert_kdo,
    lay_out,
    lock_kdo,
    log_kdo,
    stored_columns,
    stored_sizes,
    stub_image,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.model.tables import NOWHERE, DataBlock, Logging, Row, SimTable, StoredPiece
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.transaction_writer import BlockChange, nothing
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair, PieceSpan
    from olr_pg.simulator.model.transactions import Image
    from olr_pg.simulator.writer.iot_writer import IndexWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter


MAX_FREE_ROW: Final = 4858
STUB_IMAGES: Final = 0.7
"""Probability that undo contains a stub in the form of its block, in the mode STUB_IMAGES."""

FLAGLESS: Final = 0.3
"""Probability that a change of one piece has no supplemental flags, in the mode FLAGLESS."""

NAMED: Final = 0.2
"""Probability that the supplemental data of a change of one record contain the row's address."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One step of a row change, which is written as one record.

    Attributes:
        fields: returns the fields of undo and redo from the KDO on, without supplemental data. The
            arguments of `fields` are the KDO base and the lock byte of the undo.
        apply, revert: make the change in the model, and undo it.
        before, after: SEGCOL# of the first column in the undo and in the redo, 0 for none.
        logged: (SEGCOL#, value) of supplemental columns.
        cut: the supplemental flags P and N.
        dependency: the undo contains the row's SCN if the table has row dependencies.
    """

    block: DataBlock
    op: int
    undo_op: int
    fields: Callable[[KdoBase, int], FieldPair]
    apply: Callable[[], None] = nothing
    revert: Callable[[], None] = nothing
    before: int = 0
    after: int = 0
    logged: tuple[tuple[int, Value], ...] = field(default=())
    cut: int = 0
    dependency: bool = True


class PieceWriter:
    """Writes the records of row changes, piece by piece."""

    def __init__(self, tx: TransactionWriter) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng

    def kdo(self, table: SimTable, block: DataBlock) -> Callable[[int], KdoBase]:
        """Return a function that makes the beginning of a KDO for an ITL entry."""
        dependencies = DEPENDENCIES if table.row_scn else 0
        return lambda itli: KdoBase(block.dba, block.segment_dba, MAX_FREE_ROW, itli, dependencies)

    def row_scn_field(self, table: SimTable) -> list[bytes]:
        """Return the field with the row's SCN for undo; no field without row dependencies."""
        size = 8 if self._redo.has_container else 6
        return [self._redo.scn8(self._tx.instance.scn)[:size]] if table.row_scn else []

    def row_change(
        self,
        table: SimTable,
        block: DataBlock,
        op: int,
        undo_op: int,
        fields: Callable[[int], FieldPair],
        revert: Callable[[], None],
        *delivers: Change,
    ) -> BlockChange:
        """Return the undo and redo of a row change."""
        return BlockChange(
            *(block, block.obj, block.dataobj, table.tablespace, OPC_ROW),
            *((11, op), (11, undo_op), fields, revert, delivers),
        )

    def delivered(
        self,
        kind: DmlKind,
        row: Row,
        scn: int,
        before: dict[int, Cell | None],
        after: dict[int, Cell | None],
    ) -> Change:
        """Return the row change that decoding must deliver."""
        block = row.block
        return Change(kind, row.table, block.dataobj, block.dba, row.slot, scn, before, after)

    def run(
        self,
        row: Row,
        kind: int,
        steps: Sequence[ChangeRecord],
        deliver: Callable[[int], Sequence[Change]],
        *,
        head: RowAddress | None = None,
        extra: int = 0,
    ) -> None:
        """Write the steps of one change.

        Args:
            kind: `SUPPLEMENTAL_INSERT` and so on.
            steps: the steps, in the order of their records; a row of one piece mostly has one.
            deliver: returns the delivered changes, given the SCN of the first record.
            head: the address in the supplemental headers; None for the row's address.
            extra: further bits of the supplemental flags.
        """
        table, held = row.table, row.owner is self._tx.transaction
        may_omit = len(steps) == 1 and (kind == SUPPLEMENTAL_LOCK or not row.chain)
        is_whole = may_omit and kind != SUPPLEMENTAL_LOCK and not (extra or steps[0].cut)
        changes: Sequence[Change] = ()
        for number, step in enumerate(steps):
            record = self._tx.record()
            if number == 0:
                changes = deliver(record.scn)
            group = extra | step.cut
            group |= GROUP_FIRST if number == 0 else 0
            last = number == len(steps) - 1
            group |= GROUP_LAST if last else 0
            if is_whole and self._tx.instance.chooses(SourceMode.FLAGLESS, FLAGLESS):
                group = 0
            supplemental = list[bytes]()
            if table.logging is not Logging.NONE:
                where: RowAddress | None = head or RowAddress(row.block.dba, row.slot)
                if may_omit and self._rng.random() >= NAMED and group:
                    where = None
                supplemental = Supplemental(
                    kind, group, step.before, step.after, step.logged, where
                ).fields(self._redo)
            base = self.kdo(table, step.block)
            dependency = self.row_scn_field(table) if step.dependency else []

            def fields(
                itli: int,
                step: ChangeRecord = step,
                base: Callable[[int], KdoBase] = base,
                rest: tuple[bytes, ...] = (*dependency, *supplemental),
            ) -> FieldPair:
                undo, redo = step.fields(base(itli), itli if held else 0)
                return [*undo, *rest], redo

            step.apply()
            # An 11.16 does not change the block, so only the marker undoes it.
            self._tx.write(
                record,
                replace(
                    self.row_change(
                        table, step.block, step.op, step.undo_op, fields, step.revert,
                        *(changes if last else ()),
                    ),
                    undone_by=None if step.op == OP_LMN else (11, step.undo_op),
                ),
            )  # fmt: skip
            record.emit()

    def place(
        self, row: Row, parts: Sequence[PieceSpan], hrid: RowAddress | None
    ) -> list[StoredPiece]:
        """Place the pieces of a row in blocks; see `SimTable.place`."""
        return row.table.place(row, parts, hrid, self._tx.instance.scn)

    def insert_step(self, piece: StoredPiece) -> ChangeRecord:
        """Return the 11.2 of a piece that is placed."""
        image, slot = piece.image, piece.slot

        def fields(base: KdoBase, _: int) -> FieldPair:
            undo = delete_kdo(self._redo, base, OP_DRP | UNDO_SIDE, slot)
            redo = insert_kdo(self._redo, base, OP_IRP, image, slot, base.itli)
            return [undo], [redo, *column_fields(image.columns)]

        def revert() -> None:
            piece.block.release(slot)
            piece.block.used -= image.size + SLOT_SIZE

        return ChangeRecord(
            piece.block, OP_IRP, OP_DRP, fields, nothing, revert, 0, piece.first + 1
        )

    def delete_step(self, piece: StoredPiece) -> ChangeRecord:
        """Return the vector 11.3 that deletes a row piece; the piece's slot is freed when the
        transaction commits.
        """
        image, slot = piece.image, piece.slot
        transaction = self._tx.current

        def fields(base: KdoBase, lock: int) -> FieldPair:
            undo = insert_kdo(self._redo, base, OP_IRP | UNDO_SIDE, image, slot, lock)
            redo = delete_kdo(self._redo, base, OP_DRP, slot)
            return [undo, *self._undo_columns(image)], [redo]

        def finish(committed: bool) -> None:
            if committed:
                piece.block.release(slot)
                piece.block.used -= image.size + SLOT_SIZE

        def apply() -> None:
            transaction.on_end.append(finish)

        def revert() -> None:
            transaction.on_end.remove(finish)

        starts = piece.first + 1 if image.columns else 0
        return ChangeRecord(piece.block, OP_DRP, OP_IRP, fields, apply, revert, starts)

    def overwrite_step(
        self, block: DataBlock, slot: int, old: RowPiece, new: RowPiece
    ) -> ChangeRecord:
        """Return the 11.6 that replaces a head piece in place."""

        def fields(base: KdoBase, lock: int) -> FieldPair:
            undo = insert_kdo(self._redo, base, OP_ORP | UNDO_SIDE, old, slot, lock)
            redo = insert_kdo(self._redo, base, OP_ORP, new, slot, base.itli)
            return [undo, *self._undo_columns(old)], [redo, *column_fields(new.columns)]

        def apply() -> None:
            block.used += new.size - old.size

        def revert() -> None:
            block.used -= new.size - old.size

        before, after = (1 if piece.columns else 0 for piece in (old, new))
        return ChangeRecord(block, OP_ORP, OP_ORP, fields, apply, revert, before, after)

    def _undo_columns(self, piece: RowPiece) -> list[bytes]:
        """Return the fields of a piece's columns for undo; for a stub, sometimes the piece itself.

        The form of such a stub in a table with row dependencies is unknown.
        """
        is_stub = piece.fb == FB_HEAD and not piece.row_scn
        if is_stub and self._tx.instance.chooses(SourceMode.STUB_IMAGES, STUB_IMAGES):
            return [stub_image(piece)]
        return column_fields(piece.columns)

    def update_step(
        self, piece: StoredPiece, undo_side: ColumnChange, redo_side: ColumnChange
    ) -> ChangeRecord:
        """Return the 11.5 of a piece."""
        slot = piece.slot

        def fields(base: KdoBase, lock: int) -> FieldPair:
            undo = update_kdo(self._redo, base, OP_URP | UNDO_SIDE, undo_side, slot, lock)
            redo = update_kdo(self._redo, base, OP_URP, redo_side, slot, base.itli)
            return (
                [undo, *update_fields(self._redo, undo_side)],
                [redo, *update_fields(self._redo, redo_side)],
            )

        def apply() -> None:
            piece.block.used += redo_side.size

        def revert() -> None:
            piece.block.used -= redo_side.size

        return ChangeRecord(
            *(piece.block, OP_URP, OP_URP, fields, apply, revert),
            *(piece.first + undo_side.numbers[0] + 1, piece.first + redo_side.numbers[0] + 1),
        )

    def lock_step(self, row: Row) -> ChangeRecord:
        """Return the 11.4 that locks a row."""
        slot, owner = row.slot, row.owner

        def fields(base: KdoBase, _: int) -> FieldPair:
            undo = lock_kdo(self._redo, base, OP_LKR | UNDO_SIDE, slot, 0)
            return [undo], [lock_kdo(self._redo, base, OP_LKR, slot, base.itli)]

        def apply() -> None:
            row.owner = self._tx.transaction

        def revert() -> None:
            row.owner = owner

        return ChangeRecord(row.block, OP_LKR, OP_LKR, fields, apply, revert)

    def forward_step(
        self, block: DataBlock, slot: int, old: RowAddress, new: RowAddress
    ) -> ChangeRecord:
        """Return the 11.8 that changes the address of a piece's next piece."""

        def fields(base: KdoBase, lock: int) -> FieldPair:
            undo = forward_kdo(self._redo, base, OP_CFA | UNDO_SIDE, slot, old, lock)
            return [undo], [forward_kdo(self._redo, base, OP_CFA, slot, new, base.itli)]

        return ChangeRecord(block, OP_CFA, OP_CFA, fields, dependency=False)

    def log_step(self, piece: StoredPiece) -> ChangeRecord:
        """Return an 11.16, to which the caller adds supplemental columns."""

        def fields(base: KdoBase, _: int) -> FieldPair:
            return (
                [log_kdo(self._redo, base, OP_LMN | UNDO_SIDE)],
                [log_kdo(self._redo, base, OP_LMN)],
            )

        return ChangeRecord(piece.block, OP_LMN, OP_LMN, fields, dependency=False)


class ChainWriter:
    """Writes rows; a row that does not fit into one piece has several.

    Attributes:
        rewrites: if no other form is possible, an update writes all pieces of a row again. We have
            seen no real redo of this. So only SQL uses this form, because SQL statements cannot be
            skipped.
    """

    def __init__(self, tx: TransactionWriter, indexes: IndexWriter, pieces: PieceWriter) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._indexes = indexes
        self._pieces = pieces
        self.rewrites = False

    @staticmethod
    def parts(table: SimTable, cells: Sequence[Cell | None]) -> list[PieceSpan]:
        """Return the pieces into which a row must be cut."""
        return lay_out(stored_columns(cells), table.piece_max)

    @staticmethod
    def pieces(row: Row) -> tuple[StoredPiece, ...]:
        """Return the pieces of a row, head first."""
        if row.chain:
            return row.chain
        image = RowPiece(FB_ROW, stored_columns(row.cells), row_scn=row.table.row_scn)
        return (StoredPiece(row.block, row.slot, image, 0),)

    def insert(self, table: SimTable, cells: Sequence[Cell | None], extra: int) -> Row:
        """INSERT, last piece first."""
        parts = self.parts(table, cells)
        row = Row(table, NOWHERE, 0, list(cells), self._tx.transaction)
        if len(parts) > 1:  # so that the block of the first written piece has enough space
            table.block_for(table.segment_of(cells), table.piece_max, self._tx.instance.scn)
        pieces = self._pieces.place(row, parts, None)
        row.block, row.slot = pieces[0].block, pieces[0].slot
        if len(pieces) > 1:
            row.chain, row.chain_owner = tuple(pieces), self._tx.transaction
        steps = [self._pieces.insert_step(piece) for piece in reversed(pieces)]
        table.add_live(row)
        undo_last = steps[0].revert

        def revert() -> None:
            undo_last()
            table.drop_live(row)

        steps[0] = replace(steps[0], revert=revert)
        after = dict(enumerate(cells))
        self._pieces.run(
            row,
            SUPPLEMENTAL_INSERT,
            steps,
            lambda scn: [self._pieces.delivered(DmlKind.INSERT, row, scn, {}, after)],
            head=pieces[-1].address,
            extra=extra,
        )
        self._indexes.maintain(row, row.cells, insert=True)
        return row

    def delete(self, row: Row, extra: int) -> bool:
        """DELETE, head first."""
        steps = [self._pieces.delete_step(piece) for piece in self.pieces(row)]
        table, owner = row.table, row.owner
        undo_first, apply_first = steps[0].revert, steps[0].apply

        def apply() -> None:
            apply_first()
            row.deleted, row.owner = True, self._tx.transaction
            table.drop_live(row)

        def revert() -> None:
            row.deleted, row.owner = False, owner
            table.add_live(row)
            undo_first()

        steps[0] = replace(steps[0], revert=revert, apply=apply)
        before = dict(enumerate(row.cells))
        self._pieces.run(
            row,
            SUPPLEMENTAL_DELETE,
            steps,
            lambda scn: [self._pieces.delivered(DmlKind.DELETE, row, scn, before, {})],
            extra=extra,
        )
        self._indexes.maintain(row, row.cells, insert=False)
        return True

    def update_whole(self, row: Row, cells: list[Cell | None], changed: list[int]) -> bool:
        """UPDATE of a row of one piece; if it does not fit any more, it is moved or chained.

        Args:
            changed: the columns that are set, from 0.
        """
        table, old, block = row.table, list(row.cells), row.block
        (piece,) = self.pieces(row)
        sides = self._piece_sides(piece, stored_columns(cells), list(changed))
        too_long = len(self.parts(table, cells)) > 1
        if too_long or block.used + sides[1].size > table.row_space + table.update_reserve:
            return self.spread(row, cells)
        # All columns whose old value is not in the undo, also NULLs after the old end of the row.
        in_undo = listed_in(piece, changed)
        logged = [number for number in table.logged if number not in in_undo]
        before = {number: old[number] for number in sorted({*sides[0].numbers, *logged})}
        after = {number: cells[number] for number in sorted(changed)}
        values = tuple(
            (number + 1, cell.raw if (cell := old[number]) else None) for number in logged
        )
        step = replace(self._pieces.update_step(piece, *sides), logged=values)
        return self._finish_update(row, cells, (), [step], (before, after), rewritten=False)

    def _finish_update(
        self,
        row: Row,
        cells: list[Cell | None],
        chain: Sequence[StoredPiece],
        steps: list[ChangeRecord],
        images: tuple[Image, Image],
        *,
        rewritten: bool = True,
    ) -> bool:
        """Write the steps of an update; the last step changes the row in the model.

        `images` are the delivered images of the row before and after the update. `rewritten` is
        True if all pieces except the head are new.
        """
        old, owner, pieces, chain_owner = list(row.cells), row.owner, row.chain, row.chain_owner
        undo_last, apply_last = steps[-1].revert, steps[-1].apply

        def apply() -> None:
            apply_last()
            row.cells, row.owner, row.chain = cells, self._tx.transaction, tuple(chain)
            if rewritten:
                row.chain_owner = self._tx.transaction

        def revert() -> None:
            row.cells, row.owner, row.chain, row.chain_owner = old, owner, pieces, chain_owner
            undo_last()

        steps[-1] = replace(steps[-1], revert=revert, apply=apply)
        if rewritten:
            beyond = tuple((number + 1, None) for number in self._beyond(row))
            steps[-1] = replace(steps[-1], logged=beyond, cut=0)
        self._pieces.run(
            *(row, SUPPLEMENTAL_UPDATE, steps),
            lambda scn: [self._pieces.delivered(DmlKind.UPDATE, row, scn, *images)],
        )
        self._indexes.maintain_changed(row, old, cells)
        return True

    @staticmethod
    def _beyond(row: Row) -> list[int]:
        """Return the supplementally logged columns after the old end of a row."""
        end = len(stored_columns(row.cells))
        return [number for number in row.table.logged if number >= end]

    def _whole(self, row: Row, cells: list[Cell | None]) -> tuple[Image, Image]:
        """Return the delivered images of an update whose redo contains both whole rows.

        LogMiner shows all columns, also unchanged ones (seen for real records that move a row).
        """
        old = row.cells
        stored = len(stored_columns(old))
        width = max(stored, len(stored_columns(cells)))
        before = {number: old[number] for number in (*range(stored), *self._beyond(row))}
        return before, {number: cells[number] for number in range(width)}

    def spread(self, row: Row, cells: list[Cell | None]) -> bool:
        """Move or chain a row of one piece that no longer fits into its block."""
        table = row.table
        parts = self.parts(table, cells)
        old = RowPiece(FB_ROW, stored_columns(row.cells), row_scn=table.row_scn)
        head = RowAddress(row.block.dba, row.slot)
        keeps_head = len(parts) > 1 and self._rng.random() < 0.5
        if keeps_head:
            growth = stored_sizes(parts[0].columns) - stored_sizes(old.columns)
            keeps_head = row.block.used + growth + 16 <= table.row_space + table.update_reserve
        pieces = self._pieces.place(
            row, parts[1:] if keeps_head else parts, None if keeps_head else head
        )
        if keeps_head:
            fb = FB_HEAD | FB_FIRST | parts[0].cut
            # The head stays the first piece.
            pieces = [self._later(row, piece) for piece in pieces]
            new = RowPiece(fb, parts[0].columns, pieces[0].address, row_scn=table.row_scn)
        else:
            new = RowPiece(FB_HEAD, (), pieces[0].address, row_scn=table.row_scn)
        steps = [self._pieces.insert_step(piece) for piece in reversed(pieces)]
        steps.append(self._pieces.overwrite_step(row.block, row.slot, old, new))
        chain = [StoredPiece(row.block, row.slot, new, 0), *pieces]
        return self._finish_update(row, cells, chain, steps, self._whole(row, cells))

    @staticmethod
    def _later(row: Row, piece: StoredPiece) -> StoredPiece:
        """Return a piece without the flags of a first piece."""
        image = piece.image
        fb = image.fb & ~(FB_HEAD | FB_FIRST)
        later = RowPiece(fb, image.columns, image.nrid, None, image.row_scn)
        piece.block.used += later.size - image.size
        return StoredPiece(piece.block, piece.slot, later, piece.first)

    def update(self, row: Row, new: Mapping[int, Cell | None]) -> bool:
        """UPDATE of a row of several pieces; False if the model cannot write it."""
        cells = [new.get(number, cell) for number, cell in enumerate(row.cells)]
        chain = self._in_place(row, cells, new)
        if chain is not None:
            return self._update_pieces(row, cells, new, chain)
        is_stub = not row.chain[0].image.fb & FB_FIRST
        parts = self.parts(row.table, cells)
        if len(parts) == 1 and self._fits_head(row, parts[0]) and self._rng.random() < 0.7:
            return self._return_home(row, cells, parts[0])
        if is_stub:
            single = row.chain[1].image.fb & FB_LAST
            if row.table.logging is Logging.NONE and not single:
                return False
            return self._move_on(row, cells, parts)
        if row.table.logging is Logging.NONE:
            return False
        if self._replace_tail(row, cells, new):
            return True
        return self.rewrites and self._rewrite(row, cells, parts)

    def _fits_head(self, row: Row, part: PieceSpan) -> bool:
        head = row.chain[0]
        growth = stored_sizes(part.columns) - stored_sizes(head.image.columns)
        return head.block.used + growth <= row.table.row_space + row.table.update_reserve

    def _return_home(self, row: Row, cells: list[Cell | None], part: PieceSpan) -> bool:
        """Move a row back to its head: 11.6 of the head with the whole row, 11.3 of the other
        pieces.
        """
        head, *others = row.chain
        new = RowPiece(FB_ROW, part.columns, row_scn=row.table.row_scn)
        steps = [self._pieces.overwrite_step(head.block, head.slot, head.image, new)]
        steps += [self._pieces.delete_step(piece) for piece in others]
        return self._finish_update(row, cells, (), steps, self._whole(row, cells))

    def _rewrite(self, row: Row, cells: list[Cell | None], parts: list[PieceSpan]) -> bool:
        """Write all pieces again: 11.2 of new pieces, 11.6 of the head, 11.3 of the old pieces."""
        head, *others = row.chain
        fits = self._fits_head(row, parts[0])
        if len(parts) == 1 and fits:
            return self._return_home(row, cells, parts[0])
        rest, at = (parts[1:], None) if fits else (parts, head.address)
        pieces = self._pieces.place(row, rest, at)
        if fits:
            pieces = [self._later(row, piece) for piece in pieces]
            fb, columns = FB_HEAD | FB_FIRST | parts[0].cut, parts[0].columns
        else:
            fb, columns = FB_HEAD, ()
        new = RowPiece(fb, columns, pieces[0].address, row_scn=row.table.row_scn)
        steps = [self._pieces.insert_step(piece) for piece in reversed(pieces)]
        steps.append(self._pieces.overwrite_step(head.block, head.slot, head.image, new))
        steps += [self._pieces.delete_step(piece) for piece in others]
        chain = [StoredPiece(head.block, head.slot, new, 0), *pieces]
        return self._finish_update(row, cells, chain, steps, self._whole(row, cells))

    def _move_on(self, row: Row, cells: list[Cell | None], parts: list[PieceSpan]) -> bool:
        """Migrate a migrated row again: write new pieces, delete old ones, change the stub."""
        stub, *old = row.chain
        pieces = self._pieces.place(row, parts, stub.address)
        steps = [self._pieces.insert_step(piece) for piece in reversed(pieces)]
        steps += [self._pieces.delete_step(piece) for piece in old]
        steps.append(
            self._pieces.forward_step(stub.block, stub.slot, old[0].address, pieces[0].address)
        )
        image = RowPiece(FB_HEAD, (), pieces[0].address, row_scn=row.table.row_scn)
        chain = [StoredPiece(stub.block, stub.slot, image, 0), *pieces]
        return self._finish_update(row, cells, chain, steps, self._whole(row, cells))

    def _replace_tail(
        self, row: Row, cells: list[Cell | None], new: Mapping[int, Cell | None]
    ) -> bool:
        """Replace the pieces after the head: 11.5 or 11.16, 11.2, 11.3, 11.8."""
        table, (head, *others) = row.table, row.chain
        start = others[0].first
        old, values = stored_columns(row.cells), stored_columns(cells)
        own = [number for number in sorted(new) if number < start]
        joined = head.image.fb & FB_TO_NEXT
        if joined or len(values) <= start:
            return False
        image = RowPiece(head.image.fb, values[:start], head.image.nrid, row_scn=table.row_scn)
        growth = image.size - head.image.size
        if head.block.used + growth > table.row_space + table.update_reserve:
            return False
        if growth > 0 and image.size > table.piece_max:
            return False
        laid = lay_out(values[start:], table.piece_max)
        parts = [type(part)(part.first + start, part.columns, part.cut) for part in laid]
        before: Image = {}
        steps = list[ChangeRecord]()
        if own:
            change = self._piece_sides(head, image.columns, own)
            steps.append(self._with_logged(row, self._pieces.update_step(head, *change), head, own))
            before.update((number, row.cells[number]) for number in own)
        elif self._logged_of(table, head, ()):
            step = self._pieces.log_step(head)
            steps.append(self._with_logged(row, step, head, ()))
        before.update((number, row.cells[number]) for number in self._logged_of(table, head, own))
        pieces = [self._later(row, piece) for piece in self._pieces.place(row, parts, None)]
        steps += [self._pieces.insert_step(piece) for piece in reversed(pieces)]
        steps += [self._pieces.delete_step(piece) for piece in others]
        steps.append(
            self._pieces.forward_step(head.block, head.slot, others[0].address, pieces[0].address)
        )
        image = RowPiece(image.fb, image.columns, pieces[0].address, row_scn=table.row_scn)
        behind = [*range(start, len(old)), *self._beyond(row)]
        before.update((number, row.cells[number]) for number in behind)
        width = max(len(old), len(values))
        after = {number: cells[number] for number in [*own, *range(start, width)]}
        chain = [StoredPiece(head.block, head.slot, image, 0), *pieces]
        return self._finish_update(row, cells, chain, steps, (dict(sorted(before.items())), after))

    def _in_place(
        self, row: Row, cells: list[Cell | None], new: Mapping[int, Cell | None]
    ) -> list[StoredPiece] | None:
        """Return the pieces after an update in place; None if a column would change its piece."""
        table, values = row.table, stored_columns(cells)
        last = row.chain[-1]
        if len(values) <= last.first + bool(last.image.fb & FB_FROM_PREVIOUS):
            return None
        chain = list[StoredPiece]()
        for piece in row.chain:
            fb, columns = piece.image.fb, piece.image.columns
            end = len(values) if piece is last else piece.first + len(columns)
            fixed = {piece.first} if fb & FB_FROM_PREVIOUS else set[int]()
            fixed |= {end - 1} if fb & FB_TO_NEXT else set()
            if fixed & {*new} or end - piece.first > PIECE_COLUMNS_MAX:
                return None
            updated = tuple(
                columns[number - piece.first] if number in fixed else values[number]
                for number in range(piece.first, end)
            )
            image = RowPiece(fb, updated, piece.image.nrid, piece.image.hrid, table.row_scn)
            growth = image.size - piece.image.size
            room = table.row_space + table.update_reserve - piece.block.used
            if growth > 0 and (growth > room or image.size > table.piece_max):
                return None
            chain.append(StoredPiece(piece.block, piece.slot, image, piece.first))
        if table.logging is Logging.NONE and row.chain_owner is not self._tx.transaction:
            # Only in the head are columns numbered from 1, so no later piece may change.
            others = (one for one, two in zip(row.chain[1:], chain[1:], strict=True) if one != two)
            if any(others) or not row.chain[0].image.fb & FB_FIRST:
                return None
            if any(number >= row.chain[1].first for number in new):
                return None
        return chain

    def _update_pieces(
        self,
        row: Row,
        cells: list[Cell | None],
        new: Mapping[int, Cell | None],
        chain: list[StoredPiece],
    ) -> bool:
        """Write 11.5 of each changed piece, and 11.16 of others with supplemental columns."""
        table = row.table
        steps = list[ChangeRecord]()
        changes: list[tuple[Image, list[int]]] = []
        for piece, after in zip(row.chain, chain, strict=True):
            end = piece.first + max(len(piece.image.columns), len(after.image.columns))
            own = [number for number in sorted(new) if piece.first <= number < end]
            own = [number for number in own if number - piece.first not in _cut_at(piece)]
            logged = self._logged_of(table, piece, own)
            before = {number: row.cells[number] for number in logged}
            if own:
                sides = self._piece_sides(piece, after.image.columns, own)
                listed = [number + piece.first for number in sides[0].numbers]
                logged = self._logged_of(table, piece, listed_in(piece, listed))
                before = {number: row.cells[number] for number in [*listed, *logged]}
                step = self._pieces.update_step(piece, *sides)
                steps.append(self._with_logged(row, step, piece, listed_in(piece, listed)))
            elif logged:
                steps.append(self._with_logged(row, self._pieces.log_step(piece), piece, ()))
            changes.append((before, own))
        changed = sum(bool(own) for _, own in changes)
        if not changed or (table.logging is Logging.NONE and changed > 1):
            return False
        known = dict(sorted(ChainMap(*(before for before, _ in reversed(changes))).items()))
        new = {at: cells[at] for _, own in changes for at in own}
        return self._finish_update(row, cells, chain, steps, (known, new), rewritten=False)

    def _piece_sides(
        self, piece: StoredPiece, columns: Sequence[Value], changed: Sequence[int]
    ) -> tuple[ColumnChange, ColumnChange]:
        """Return both sides of a URP; `changed` are columns of the row, from 0."""
        numbers = [number - piece.first for number in changed]
        if self._rng.random() < 0.2:
            numbers.reverse()
        old = piece.image.columns
        growth = stored_sizes(columns) - stored_sizes(old)
        with_surplus = self._rng.random() < 0.5
        fb = piece.image.fb
        return (
            side_of(old, numbers, fb, -growth, with_surplus=with_surplus),
            side_of(columns, numbers, fb, growth, with_surplus=with_surplus),
        )

    def _logged_of(self, table: SimTable, piece: StoredPiece, in_undo: Sequence[int]) -> list[int]:
        """Return the supplementally logged columns of a piece that are not in the undo."""
        end = piece.first + len(piece.image.columns)
        if piece.image.fb & FB_LAST:
            end = len(table.columns)
        own = range(piece.first, end)
        return [at for at in table.logged if at in own and at not in in_undo]

    def _with_logged(
        self, row: Row, step: ChangeRecord, piece: StoredPiece, in_undo: Sequence[int]
    ) -> ChangeRecord:
        """Add the supplemental columns of its piece to a step, cut as in the piece."""
        logged = self._logged_of(row.table, piece, in_undo)
        columns, cut = piece.image.columns, 0
        if row.table.logs_whole_rows:
            cut = piece.image.fb & (FB_FROM_PREVIOUS | FB_TO_NEXT)
        values = tuple(
            (number + 1, columns[number - piece.first] if number - piece.first < len(columns)
             else None)
            for number in logged
        )  # fmt: skip
        return replace(step, logged=values, cut=cut)


def listed_in(piece: StoredPiece, listed: Sequence[int]) -> list[int]:
    """Return the listed columns that exist in the piece; the undo has values only for these."""
    return [number for number in listed if number < piece.first + len(piece.image.columns)]


def side_of(
    columns: Sequence[Value], changed: Sequence[int], fb: int, size: int, *, with_surplus: bool
) -> ColumnChange:
    """Return one side of a URP; `with_surplus`, it also lists columns after the piece's end."""
    given = [number for number in changed if number < len(columns)]
    beyond = [number for number in changed if number >= len(columns)]
    numbers = given + beyond if with_surplus else given or beyond[:1]
    values = tuple(columns[number] for number in given)
    return ColumnChange(fb, len(columns), tuple(numbers), values, size)


def _cut_at(piece: StoredPiece) -> set[int]:
    """Return the columns of a piece, from 0, of which the piece contains only a part."""
    fb, cut = piece.image.fb, set[int]()
    if fb & FB_FROM_PREVIOUS:
        cut.add(0)
    return cut | ({len(piece.image.columns) - 1} if fb & FB_TO_NEXT else set())
