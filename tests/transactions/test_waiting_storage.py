"""What waits moves out of memory, the largest first, and stays what it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.transactions.select import copied
from olr_pg.transactions.waiting_storage import (
    IN_MEMORY,
    InMemory,
    OpenTransaction,
    Waiting,
    batch_bytes,
    is_recovered_elsewhere,
    joined,
    may_be_one_on_slot,
    spill_largest,
)
from tests.transactions.event_model import Workload, batch_of


class Bounded(InMemory):
    """Memory that says when it is full, and counts what goes elsewhere."""

    def __init__(self, memory_max: int) -> None:
        self.memory_max = memory_max  # type: ignore[misc]
        self.spilled: list[int] = []

    def store(self, batches: Sequence[ChangeBatch]) -> list[ChangeBatch]:
        self.spilled += map(batch_bytes, batches)
        return [copied([batch]) for batch in batches]


def waiting_of(seed: int, transactions: int) -> Waiting:
    waiting = Waiting()
    waiting.append(batch_of(Workload(seed, transactions).events))
    return waiting


def test_the_largest_go_until_half_is_left() -> None:
    small, large = waiting_of(1, 5), waiting_of(2, 80)
    before = sum(map(batch_bytes, large.batches))
    events = large.batches[0].events.copy()
    storage = Bounded(small.in_memory + large.in_memory - 1)
    spill_largest([small, large], storage)
    assert (small.is_spilled, large.is_spilled) == (False, True)
    assert large.in_memory == 0
    assert sum(storage.spilled) == before
    assert np.array_equal(large.batches[0].events, events)


def test_nothing_goes_while_there_is_room() -> None:
    waiting = waiting_of(1, 20)
    storage = Bounded(2 * waiting.in_memory)
    spill_largest([waiting], storage)
    assert not waiting.is_spilled
    assert storage.spilled == []


def test_only_chosen_events_are_kept_and_counted() -> None:
    waiting = waiting_of(3, 30)
    changes = waiting.changes
    waiting.keep(lambda batch: batch.events.kind != EventKind.BEGIN)
    assert waiting.changes == changes
    waiting.keep(lambda batch: batch.events.kind == EventKind.COMMIT)
    assert waiting.changes == 0
    assert all((batch.events.kind == EventKind.COMMIT).all() for batch in waiting.batches)


def test_parts_are_joined_in_order() -> None:
    parts = [np.array([1, 2], np.uint8), np.array([], np.uint8), np.array([3], np.uint8)]
    assert joined(parts, IN_MEMORY.allocate).tolist() == [1, 2, 3]


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
