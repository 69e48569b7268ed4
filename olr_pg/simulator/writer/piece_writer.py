"""Changes of rows, piece by piece: those of one, and those of chained and migrated rows.

A change is a list of steps, one record each; supplemental flags F and L enclose them. Facts:
redo-format §5.3–§5.10, §7.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

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
from olr_pg.simulator.model.source_modes import SourceMode
from olr_pg.simulator.model.tables import DataBlock, Logging, Row, SimTable, StoredPiece
from olr_pg.simulator.model.transactions import Change
from olr_pg.simulator.writer.transaction_writer import BlockChange, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.model.row_layout import PieceSpan
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter
    from olr_pg.transactions.finished_columns import DmlKind

MAX_FREE_ROW: Final = 4858
STUB_IMAGES: Final = 0.7
"""How many heads that only lead on are in the undo as they are where some are."""

FLAGLESS: Final = 0.3
"""How many changes of one piece have no flags in the supplemental data where some have none."""

NAMED: Final = 0.2
"""How many of the changes of one record have the row's address in the supplemental data, too."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """A record of a row change.

    Attributes:
        fields: from the KDO base and the lock byte of the undo image to the KDOs and columns of
            undo and redo, without the supplemental ones.
        apply, revert: carry it out in the model, and take it back.
        before, after: 1-based column of the first one in the undo and in the redo, 0 for none.
        logged: supplemental columns by 1-based number.
        cut: P and N of the supplemental flags.
        dependency: whether the undo has the row's SCN.
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
        """Return what makes the beginning of a KDO, by the entry of the block's ITL."""
        dependencies = DEPENDENCIES if table.row_scn else 0
        return lambda itli: KdoBase(block.dba, block.segment_dba, MAX_FREE_ROW, itli, dependencies)

    def row_scn_field(self, table: SimTable) -> list[bytes]:
        """Encode the row's SCN as the undo of a table with row dependencies has it."""
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
        """Return the pair of a row change."""
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
        """Return the change of a row as it must be delivered."""
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
            steps: in the order of their records; of a row of one piece mostly one.
            deliver: from the SCN of the first record to the change, or none.
            head: the row's address in the supplemental headers.
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
            # Nothing in the block tells of an 11.16: it is undone by the marker alone.
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
        """Room for the pieces of a row: see `SimTable.place`."""
        return row.table.place(row, parts, hrid, self._tx.instance.scn)

    def insert_step(self, piece: StoredPiece) -> ChangeRecord:
        """Make 11.2 of a piece that has its place."""
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
        """Make 11.3 of a piece; its slot is free when the transaction has committed."""
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
        """Make 11.6: a head piece is replaced in place."""

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
        """Encode the columns of a piece in the undo, or the piece itself if it has none.

        Its form in a table with row dependencies is unknown.
        """
        is_stub = piece.fb == FB_HEAD and not piece.row_scn
        if is_stub and self._tx.instance.chooses(SourceMode.STUB_IMAGES, STUB_IMAGES):
            return [stub_image(piece)]
        return column_fields(piece.columns)

    def update_step(
        self, piece: StoredPiece, undo_side: ColumnChange, redo_side: ColumnChange
    ) -> ChangeRecord:
        """Make 11.5 of a piece."""
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
        """Make 11.4: a row is locked."""
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
        """Make 11.8: a piece leads to another next piece."""

        def fields(base: KdoBase, lock: int) -> FieldPair:
            undo = forward_kdo(self._redo, base, OP_CFA | UNDO_SIDE, slot, old, lock)
            return [undo], [forward_kdo(self._redo, base, OP_CFA, slot, new, base.itli)]

        return ChangeRecord(block, OP_CFA, OP_CFA, fields, dependency=False)

    def log_step(self, piece: StoredPiece) -> ChangeRecord:
        """Make 11.16: only supplemental columns, which the caller adds."""

        def fields(base: KdoBase, _: int) -> FieldPair:
            return (
                [log_kdo(self._redo, base, OP_LMN | UNDO_SIDE)],
                [log_kdo(self._redo, base, OP_LMN)],
            )

        return ChangeRecord(piece.block, OP_LMN, OP_LMN, fields, dependency=False)
