"""Which operation a pair is: rows of a block at once, changes of no row, operations unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import QMD, QMI
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    UNDO_SIDE,
    KdoBase,
    RowPiece,
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
