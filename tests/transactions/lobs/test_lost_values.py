"""Which rows LOB values are left out of: what the applier is told beside the protocol."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.datatypes.number import encode_number
from olr_pg.decoding.split import decode_split, open_for_decoding, subscribe
from olr_pg.scalars import format_rowid
from olr_pg.simulator.fields.cells import BLOB, CLOB, secure_extents, secure_in_row
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from tests.lobs.lob_decoding import decode
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, table
from tests.split_results import blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.transactions.row_fault import RowFault

SIZE = 256 * 9_000
OLD = secure_extents(BLOB, 7, SIZE, ((0x100, 40),))
NEW = secure_extents(BLOB, 7, SIZE, ((0x200, 40),), 2)


def two_transactions() -> LobRedo:
    """One with changes that lack values between others, one with nothing else."""
    redo = LobRedo()
    redo.begin()
    redo.insert(Decimal(1), secure_in_row(CLOB, 1, "hi".encode("utf-16-be")), None)
    redo.insert(Decimal(2), b"no locator", OLD)
    redo.update(0, Decimal(1), {3: OLD}, {3: NEW})
    redo.insert(Decimal(3), None, None)
    redo.end()
    redo.begin()
    redo.update(2, Decimal(3), {3: OLD}, {3: NEW})
    redo.end()
    return redo


def key(number: int) -> tuple[tuple[str, bytes | None], ...]:
    return (("ID", encode_number(number)),)


def rowid(slot: int) -> str:
    return format_rowid(TABLE_OBJ, BLOCK, slot)


INSERTED, UPDATED = DmlKind.INSERT, DmlKind.UPDATE
EXPECTED = [
    (
        LostLob("TEXT", 2122, rowid(1), INSERTED, True, (1, 0, 0), key(2)),
        LostLob("IMAGE", 2120, rowid(1), INSERTED, True, (1, 0, 0), key(2)),
        LostLob("IMAGE", 2120, rowid(0), UPDATED, False, (2, 0, 0), key(1)),
    ),
    (LostLob("IMAGE", 2120, rowid(2), UPDATED, False, (0, 0, 0), key(3)),),
]


@pytest.mark.parametrize("split_blocks", [1 << 20, 1])
def test_the_row_and_the_place_of_every_value(tmp_path: Path, split_blocks: int) -> None:
    log = open_for_decoding(str(two_transactions().write(tmp_path)))
    subscription = subscribe((table(),), 0)
    driver = Assembler(subscription.row_plan, subscription.tables, is_split=False)
    faults: list[RowFault] = []
    for start in range(2, log.header.nab or 0, split_blocks):
        result = decode_split(subscription, log, blocks_of(start, start + split_blocks))
        finished = driver.feed(result.remainder)
        faults += [*result.faults, *(finished.faults if finished else ())]
    assert [fault.lobs for fault in faults] == EXPECTED
    assert driver.account.undecoded == 0
    assert faults[0].commit_scn < faults[1].commit_scn


def test_changes_that_are_left_out_do_not_count() -> None:
    lob = EXPECTED[0][2]
    assert lob.place == 2
    inserts = lob.without(np.array([True, False, False]))
    assert inserts is not None
    assert inserts.place == 0
    assert lob.without(np.array([False, False, True])) is None


def test_a_transaction_in_parts_tells_the_same(tmp_path: Path) -> None:
    decoded = decode(two_transactions(), tmp_path)  # both ways
    assert [lobs for _, lobs in decoded.lost] == EXPECTED
