"""Writes changes of rows piece by piece, including chained and migrated rows.

A change is a list of steps; each step is one record. The first record has the supplemental flag F,
the last one L. Facts: redo-format §5.3–§5.10, §7.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.fields.row_fields import (
    DEPENDENCIES,
    FB_HEAD,
    GROUP_FIRST,
    GROUP_LAST,
    OP_CFA,
    OP_DRP,
    OP_IRP,
    OP_LKR,
    OP_LMN,
    OP_ORP,
    OP_URP,
    SLOT_SIZE,
    SUPPLEMENTAL_LOCK,
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
    lock_kdo,
    log_kdo,
    stub_image,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.fields.vector_fields import OPC_ROW
from olr_pg.simulator.model.tables import DataBlock, Logging, Row, SimTable, StoredPiece
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.transaction_writer import BlockChange, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair, PieceSpan
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter
    from olr_pg.transactions.finished_columns import DmlKind

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
        fields: returns the fields of undo and redo from the KDO on, without supplemental data. Its
            arguments are the KDO base and the lock byte of the undo.
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
        """Return the field with the row's SCN for undo; none without row dependencies."""
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
        """Return the 11.3 of a piece; its slot is freed when the transaction commits."""
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
