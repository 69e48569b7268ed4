"""LOBs of a table with a row change that cannot be put together: nobody else gets them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from olr_pg.decoding.split import decode_split, encode, open_for_decoding, subscribe
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import BLOB, secure_extents
from olr_pg.transactions.assembler import Assembler
from olr_pg.wire.output import Collected
from tests.lobs.lob_decoding import Decoded
from tests.lobs.lob_redo import LobRedo, snapshot, table
from tests.split_results import blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.transactions.row_fault import RowFault

CONTENT = bytes(range(256)) * 100
OTHER = bytes(reversed(range(256))) * 100
EXTENTS = ((0x100, 2), (0x200, 5))
WHOLE = 1 << 20


@pytest.mark.parametrize("split_blocks", [WHOLE, 8, 1])
def test_the_lobs_of_a_faulty_row_are_nobodys_loss(tmp_path: Path, split_blocks: int) -> None:
    redo = LobRedo()
    redo.begin()
    redo.operation(0x66, 3, 6, 28)
    redo.direct_pages(3, 7, CONTENT, *EXTENTS)
    # One column more than the dictionary has.
    image = secure_extents(BLOB, 7, len(CONTENT), EXTENTS)
    redo.insert_row(cells.number(Decimal(1)).raw, None, image, b"x")
    redo.end()
    redo.begin()
    redo.direct_pages(3, 8, OTHER, *EXTENTS)
    redo.insert(Decimal(2), None, secure_extents(BLOB, 8, len(OTHER), EXTENTS))
    redo.end()
    log = open_for_decoding(str(redo.write(tmp_path)))
    subscription = subscribe((table(),), 0)
    driver = Assembler(subscription.row_plan, subscription.tables, is_split=False)
    blocks = log.header.nab or 0
    faults: list[RowFault] = []
    blobs: list[bytes] = []
    losses = driver.losses
    for start in range(2, blocks, split_blocks):
        result = decode_split(
            subscription, log, blocks_of(start, min(start + split_blocks, blocks))
        )
        assert result.failure is None
        finished = driver.feed(result.remainder)
        parts = [
            *result.encoded,
            *(
                encode(subscription, finished, lambda write: write(Collected()), faults)
                if finished
                else ()
            ),
        ]
        blobs += [part.messages.blob.tobytes() for part in parts]
        faults += [*result.faults, *(finished.faults if finished else ())]
        losses = losses.plus(result.losses)
    assert [fault.error.code for fault in faults] == [2016]
    assert not losses.plus(driver.losses).any
    decoded = Decoded([], driver.account, snapshot())
    decoded.blobs = blobs
    assert decoded.after == [{"ID": 2, "TEXT": None, "IMAGE": OTHER.hex()}]
