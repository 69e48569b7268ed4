"""Which operation a pair is: rows of a block at once, changes of no row, operations unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import DRP, IRP, QMD, QMI
from olr_pg.redo.format.row_fields import KDO_BDBA, KDO_DELETE_SLOT, KDO_MULTI_SLOTS, KDO_PIECE_SLOT
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    UNDO_SIDE,
    KdoBase,
    RowPiece,
    column_fields,
    delete_kdo,
    insert_kdo,
    multi_kdo,
    multi_rows,
)
from tests.lobs.lob_redo import BLOCK, LobRedo
from tests.redo.hand_made import values_of, walked

if TYPE_CHECKING:
    from pathlib import Path

BASE = KdoBase(BLOCK, BLOCK, 100, 1)
ROWS = [RowPiece(FB_ROW, (b"\xc1\x02", None)), RowPiece(FB_ROW, (b"\xc1\x03", b"z"))]


def sides(redo: LobRedo, code: int) -> tuple[list[bytes], list[bytes]]:
    """(undo, redo) of both rows at slots 3 and 5: the values are on one side only."""
    full = multi_rows(redo.redo, ROWS, 1)
    inverse = {QMI: QMD, QMD: QMI}[code]
    undo = [multi_kdo(redo.redo, BASE, inverse | UNDO_SIDE, [3, 5], 1)]
    new = [multi_kdo(redo.redo, BASE, code, [3, 5], 1)]
    return (undo, new + full) if code == QMI else (undo + full, new)


@pytest.mark.parametrize(("code", "role"), [(QMI, Role.AFTER), (QMD, Role.BEFORE)])
def test_rows_of_a_block_are_a_piece_each(tmp_path: Path, code: int, role: Role) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair(*sides(redo, code), code)
    batch, _ = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.CHANGE]
    assert batch.pieces.slot.tolist() == [3, 5]
    assert batch.pieces.entry_count.tolist() == [2, 2]
    assert values_of(batch) == [
        (role, 1, b"\xc1\x02"), (role, 2, None), (role, 1, b"\xc1\x03"), (role, 2, b"z"),
    ]  # fmt: skip


def flipped(image: bytes, at: int) -> bytes:
    """The field with another byte."""
    return image[:at] + bytes([image[at] ^ 0x11]) + image[at + 1 :]


@pytest.mark.parametrize("code", [QMI, QMD])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("at", [*range(4), *range(20, 24)])
def test_rows_of_a_block_that_both_sides_name_differently_are_undecoded(
    tmp_path: Path, code: int, side: int, at: int
) -> None:
    """Block and slots are their ROWIDs, and nothing else tells them."""
    assert (KDO_BDBA, KDO_MULTI_SLOTS) == (0, 20)
    redo = LobRedo()
    redo.begin()
    pair = sides(redo, code)
    pair[side][0] = flipped(pair[side][0], at)
    redo.pair(*pair, code)
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.UNDECODED]
    assert events.session[1] == ChangeStatus.CONTRADICTION


SINGLE = {
    IRP: (lambda redo: delete_kdo(redo, BASE, DRP | UNDO_SIDE, 3), KDO_DELETE_SLOT),
    DRP: (lambda redo: insert_kdo(redo, BASE, IRP | UNDO_SIDE, ROWS[1], 3, 1), KDO_PIECE_SLOT),
}


@pytest.mark.parametrize("code", list(SINGLE))
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("at", [None, 0, 1, 2, 3, "slot", "slot's high byte"])
def test_a_row_that_both_sides_name_differently_is_undecoded(
    tmp_path: Path, code: int, side: int, at: int | str | None
) -> None:
    redo = LobRedo()
    redo.begin()
    pieces = {IRP: insert_kdo(redo.redo, BASE, IRP, ROWS[1], 3, 1),
              DRP: delete_kdo(redo.redo, BASE, DRP, 3)}  # fmt: skip
    slots = {IRP: KDO_PIECE_SLOT, DRP: KDO_DELETE_SLOT}
    image, undo_slot = SINGLE[code][0](redo.redo), SINGLE[code][1]
    values = column_fields(ROWS[1].columns)
    undo = [image, *(values if code == DRP else [])]
    new = [pieces[code], *(values if code == IRP else [])]
    if at is not None:
        slot = slots[code] if side else undo_slot
        chosen = at if isinstance(at, int) else slot + (at != "slot")
        changed = new if side else undo
        changed[0] = flipped(changed[0], chosen)
    redo.pair(undo, new, code)
    events = walked(redo, tmp_path)[0].events
    kind = EventKind.CHANGE if at is None else EventKind.UNDECODED
    assert events.kind.tolist() == [EventKind.BEGIN, kind]
    if at is None:
        assert (events.session[1], events.serial[1]) == (BLOCK, 3)
    else:
        assert events.session[1] == ChangeStatus.CONTRADICTION


def test_a_change_of_the_block_alone_is_counted_without_a_row(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair([BASE.image(redo.redo, 14)], [BASE.image(redo.redo, 14)], 14)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN]
    assert (tally.without_row, tally.changes) == (1, 0)


def test_an_unknown_operation_is_an_undecoded_change(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair([BASE.image(redo.redo, 30)], [BASE.image(redo.redo, 30)], 30)
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.UNDECODED]
    assert events.session[1] == ChangeStatus.OPERATION
