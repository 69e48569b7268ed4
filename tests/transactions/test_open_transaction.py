"""Which XIDs on one slot of an undo segment can be the same transaction."""

from __future__ import annotations

import numpy as np
import pytest

from olr_pg.transactions.open_transaction import (
    OpenTransaction,
    is_recovered_elsewhere,
    may_be_one_on_slot,
)
from tests.transactions.event_model import Workload, batch_of

ANY = 0x0005_0003_0000_0000


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(7, 7, True), (7, 8, False), (0, 8, True), (7, 0, True)],
)
def test_an_undo_marker_has_no_sequence(one: int, other: int, *, same: bool) -> None:
    assert may_be_one_on_slot(ANY | one, ANY | other) is same


@pytest.mark.parametrize(
    ("thread", "xid", "elsewhere"), [(2, ANY | 8, True), (2, ANY | 7, False), (1, ANY | 8, False)]
)
def test_another_thread_rolls_back_another_transaction(
    thread: int, xid: int, *, elsewhere: bool
) -> None:
    batch = batch_of(Workload(1, 10).events)
    waiting = OpenTransaction(3, ANY | 7, 100)
    waiting.chunks.append(batch)
    chunk = batch_of(Workload(1, 10).events)
    chunk.events.thread[:] = np.uint16(thread)
    assert is_recovered_elsewhere(waiting, chunk, xid) is elsewhere
    assert waiting.changes > 0
