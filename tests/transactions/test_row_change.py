"""Rows stored compressed: their values are in the supplemental data, or nowhere.

Facts: redo-format §5.4.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.format.opcodes import DRP, IRP, LKR, LMN, QMD, QMI, URP
from olr_pg.simulator.fields.row_fields import (
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    OP_ORP,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    Address,
    KdoBase,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
)
from olr_pg.transactions import row_change
from olr_pg.transactions.finished_columns import DmlKind
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

KEY: Final = b"\xc1\x02"
ROW: Final[tuple[Value, ...]] = (KEY, b"a", b"b")
BASE: Final = KdoBase(BLOCK, BLOCK, 100, 1)
HEAD: Final = 0
ELSEWHERE: Final = 5
"""Slots of the row, and of where it moves to."""
COUNT: Final = 18
TL: Final = 40
TABLE_NUMBER: Final = 44
"""Where a KDO has the number of columns, the length of the row and its table in the block."""
ALONE: Final = GROUP_FIRST | GROUP_LAST


def documents() -> Snapshot:
    """``APP.DOCS (ID NUMBER, A RAW, B RAW)``."""
    raws = [Column(name, at, at, at, 23, 100) for at, name in enumerate("AB", 2)]
    columns = (Column("ID", 1, 1, 1, 2, 22, nullable=False), *raws)
    return snapshot(
        Table("APP", "DOCS", TABLE_OBJ, TABLE_OBJ, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    )


def plain(redo: LobRedo, op: int, slot: int, fb: int = FB_ROW) -> list[bytes]:
    """KDO and columns of a row image as it is."""
    return [insert_kdo(redo.redo, BASE, op, RowPiece(fb, ROW), slot, 1), *column_fields(ROW)]


def compressed(redo: LobRedo, op: int, slot: int, fb: int = FB_ROW) -> list[bytes]:
    """The same compressed: one field as long as the row."""
    row = bytes((fb, 1, len(ROW))) + b"\xcfrefers to the block"
    kdo = insert_kdo(redo.redo, BASE, op, RowPiece(fb, ROW), slot, 1)
    return [kdo[:TL] + redo.redo.pack("H", len(row)) + kdo[TL + 2 :], row]


def logged(redo: LobRedo, kind: int, group: int, columns: int, after: int = 0) -> list[bytes]:
    """Supplemental data with the first columns of the row."""
    numbered = tuple(enumerate(ROW[:columns], 1))
    before = 0 if kind == SUPPLEMENTAL_INSERT else 1
    header = Supplemental(kind, group, before, after, numbered, Address(BLOCK, HEAD))
    return header.fields(redo.redo)


def as_one_entry(image: list[bytes]) -> list[bytes]:
    """A compressed row that is nothing but an entry of the block's dictionary, for all columns."""
    kdo, row = bytearray(image[0]), bytearray(image[1])
    kdo[COUNT], kdo[TABLE_NUMBER], row[2] = 1, 1, 1
    return [bytes(kdo), bytes(row)]


def insert(redo: LobRedo, columns: int) -> None:
    """INSERT of a compressed row with so many columns in the supplemental data."""
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, HEAD)]
    undo += logged(redo, SUPPLEMENTAL_INSERT, ALONE, columns)
    redo.pair(undo, compressed(redo, OP_IRP, HEAD), OP_IRP)


def delete(redo: LobRedo, columns: int) -> None:
    """DELETE of such a row."""
    undo = compressed(redo, OP_IRP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_DELETE, ALONE, columns)
    redo.pair(undo, [delete_kdo(redo.redo, BASE, OP_DRP, HEAD)], OP_DRP)


def overwrite(redo: LobRedo, columns: int) -> None:
    """UPDATE that leaves a compressed row where one was."""
    undo = compressed(redo, OP_ORP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_UPDATE, ALONE, columns, after=1)
    redo.pair(undo, compressed(redo, OP_ORP, HEAD), OP_ORP)


def migrate(redo: LobRedo, columns: int) -> None:
    """UPDATE that moves a row to where it is stored compressed."""
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, ELSEWHERE)]
    undo += logged(redo, SUPPLEMENTAL_UPDATE, GROUP_FIRST, 0, after=1)
    redo.pair(undo, compressed(redo, OP_IRP, ELSEWHERE, FB_FIRST | FB_LAST), OP_IRP)
    stub = RowPiece(FB_HEAD, (), nrid=Address(BLOCK, ELSEWHERE))
    undo = plain(redo, OP_ORP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_UPDATE, GROUP_LAST, columns)
    redo.pair(undo, [insert_kdo(redo.redo, BASE, OP_ORP, stub, HEAD, 1)], OP_ORP)


def test_whole_rows_are_taken_from_the_supplemental_data(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    insert(redo, len(ROW))
    delete(redo, len(ROW))
    redo.end()
    row = {"ID": 1, "A": "61", "B": "62"}
    inserted, deleted = decode(redo, tmp_path, documents()).changes
    assert (inserted["after"], deleted["before"]) == (row, row)


@pytest.mark.parametrize("columns", [0, 1, 2])
@pytest.mark.parametrize("change", [insert, delete])
def test_a_row_of_which_columns_are_missing_is_a_fault(
    tmp_path: Path, change: Callable[[LobRedo, int], None], columns: int
) -> None:
    redo = LobRedo()
    redo.begin()
    change(redo, columns)
    redo.end()
    assert outcome(redo, tmp_path, documents()) == (2015, 0)


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("change", [overwrite, migrate])
def test_an_update_to_a_compressed_row_is_a_fault(
    tmp_path: Path, change: Callable[[LobRedo, int], None], columns: int
) -> None:
    redo = LobRedo()
    redo.begin()
    change(redo, columns)
    redo.end()
    assert outcome(redo, tmp_path, documents()) == (2015, 0)


def test_a_row_that_is_one_entry_of_the_dictionary(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, HEAD)]
    undo += logged(redo, SUPPLEMENTAL_INSERT, ALONE, len(ROW))
    redo.pair(undo, as_one_entry(compressed(redo, OP_IRP, HEAD)), OP_IRP)
    undo = as_one_entry(compressed(redo, OP_IRP | UNDO_SIDE, HEAD))
    undo += logged(redo, SUPPLEMENTAL_DELETE, ALONE, len(ROW))
    redo.pair(undo, [delete_kdo(redo.redo, BASE, OP_DRP, HEAD)], OP_DRP)
    redo.end()
    row = {"ID": 1, "A": "61", "B": "62"}
    inserted, deleted = decode(redo, tmp_path, documents()).changes
    assert (inserted["after"], deleted["before"]) == (row, row)


@pytest.mark.parametrize(
    ("operations", "kind"),
    [
        ((IRP,), DmlKind.INSERT),
        ((IRP, IRP), DmlKind.INSERT),
        ((LKR, DRP), DmlKind.DELETE),
        ((DRP, IRP), DmlKind.UPDATE),
        ((IRP, DRP), DmlKind.UPDATE),
        ((IRP, URP), DmlKind.UPDATE),
        ((LMN,), DmlKind.UPDATE),
        ((IRP, LMN), DmlKind.INSERT),
        ((QMI,), DmlKind.INSERT),
        ((QMD,), DmlKind.DELETE),
    ],
)
def test_what_the_pieces_of_a_row_do_together(operations: tuple[int, ...], kind: DmlKind) -> None:
    """Without supplemental data, which says it otherwise."""
    count = len(operations)
    pieces = SimpleNamespace(op=operations, supplemental=[0] * count, sup_type=[0] * count)
    links = SimpleNamespace(next_piece=[*range(1, count), -1])
    job: Any = SimpleNamespace(batch=SimpleNamespace(pieces=pieces), links=links)
    assert interpreted(row_change._kind_of)(job, 0) == kind
    logged = {SUPPLEMENTAL_INSERT: DmlKind.INSERT, SUPPLEMENTAL_UPDATE: DmlKind.UPDATE,
              SUPPLEMENTAL_DELETE: DmlKind.DELETE}  # fmt: skip
    if operations[0] in (QMI, QMD):
        return
    pieces.supplemental[0] = 1
    for sup_type, told in logged.items():
        pieces.sup_type[0] = sup_type
        assert interpreted(row_change._kind_of)(job, 0) == told
