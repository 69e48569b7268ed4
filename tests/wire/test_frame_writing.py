"""Integers and the head of an element, as the kernels write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from olr_pg.kernels.compile import kernel
from olr_pg.wire.elements import Commit, ElementCode, encode_element
from olr_pg.wire.frame_writing import put_head
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer


@kernel
def head(out: Any, code: int, scn: Any, commit_scn: Any, xid: Any, time: int, big: bool) -> None:
    put_head(out, 0, out.size, code, scn, commit_scn, xid, time, big)


def test_a_commit_is_its_head(order: ByteOrder) -> None:
    """It has nothing behind it; SCN and XID use all of their 64 bits."""
    scn, commit_scn, xid, time = 2**64 - 2, 2**63 + 5, 0xFEDC_BA98_7654_3210, 2**32 - 3
    wanted = encode_answer(Data(encode_element(Commit(scn, commit_scn, xid, time), order)), order)
    out = np.zeros(len(wanted), np.uint8)
    wide = (np.uint64(scn), np.uint64(commit_scn), np.uint64(xid))
    head(out, int(ElementCode.COMMIT), *wide, time, order.is_big)
    assert out.tobytes() == wanted
