"""What stands of a large transaction, stretch by stretch: the same as looked at whole."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from olr_pg.decoding.spill import SpillFiles
from olr_pg.files.sealed import RowKey, sealing
from olr_pg.redo.batch import ChangeBatch, EventKind, empty_batch, empty_events
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, live_changes
from olr_pg.transactions.standing_changes import StandingChanges
from olr_pg.transactions.unseen_ends import left_of_large
from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.redo.batch import EventColumns

STRETCH: Final = 1 << 9
EVENTS: Final = 5 * UNDO_SEARCH_DEPTH
BATCH: Final = 1500
KEYS: Final = {"plain": None, "encrypted": RowKey(bytes(range(32)))}

Fields = tuple[int, int, int, int, int]


def history(seed: int) -> EventColumns:
    """Changes and rollbacks to savepoints: some markers are out of order, or of no change."""
    rng = random.Random(seed)
    made: list[tuple[int, Fields]] = []
    standing: list[Fields] = []
    while len(made) < EVENTS:
        for _ in range(rng.choice((1, 300, 3000))):
            number = len(made)
            # What is logged without undo nothing takes back; few rows, changed again and again.
            undo = 0 if rng.random() < 0.1 else 50 + number // 5
            fields = (undo, number % 5, rng.choice((0, 7)), rng.randrange(50), number)
            made.append((EventKind.CHANGE, fields))
            if undo:
                standing.append(fields)
        for _ in range(min(rng.choice((0, 2, 200, 4000)), len(standing))):
            fields = standing.pop(-1 if rng.random() < 0.97 else rng.randrange(len(standing)))
            undo = fields[0] if rng.random() < 0.98 else 10
            made.append((EventKind.UNDONE, (undo, *fields[1:])))
    events = empty_events(len(made))
    events.view(np.uint8)[:] = 0
    events.kind[:] = [kind for kind, _ in made]
    for at, name in enumerate(("undo_dba", "rci", "session", "serial", "offset")):
        events[name] = np.array([fields[at] for _, fields in made]).astype(events[name].dtype)
    return events


@pytest.mark.parametrize("key", [*KEYS, "in memory"])
@pytest.mark.parametrize("seed", range(2))
def test_the_same_is_taken_back_as_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, key: str
) -> None:
    events = history(seed)
    live, undoable = np.empty((2, events.size), np.int64)
    count, undone, unmatched = live_changes(
        events, np.arange(events.size), 0, events.size, live, undoable
    )
    assert undone > UNDO_SEARCH_DEPTH
    assert unmatched > 0
    monkeypatch.setattr("olr_pg.transactions.standing_changes.STRETCH", STRETCH)
    standing = StandingChanges(SpillFiles(tmp_path, 0) if key in KEYS else IN_MEMORY)
    gone = [np.zeros(0, np.int64)]
    with sealing(KEYS.get(key)):
        for start in range(0, events.size, BATCH):
            gone += standing.feed(take(events, slice(start, start + BATCH)))
        left = joined_rows(list(standing.stretches()))
    whole = take(events, live[:count])
    assert (standing.undone, standing.unmatched) == (undone, unmatched)
    expected = np.setdiff1d(np.flatnonzero(events.kind == EventKind.CHANGE), live[:count])
    assert np.sort(np.concatenate(gone)).tolist() == expected.tolist()
    assert left.offset.tolist() == whole.offset[whole.undo_dba != 0].tolist()


class Chunks(Sequence[ChangeBatch]):
    """So many chunks of changes, and behind them what takes them back; each is made when read."""

    def __init__(self, count: int, *, is_taken_back: bool) -> None:
        self._changes, self._is_taken_back = count, is_taken_back

    def __len__(self) -> int:
        return self._changes * (2 if self._is_taken_back else 1)

    def __getitem__(self, place: int) -> ChangeBatch:  # type: ignore[override]
        if place >= len(self):
            raise IndexError
        is_change = place < self._changes
        block = place if is_change else 2 * self._changes - 1 - place
        events = empty_events(STRETCH)
        events.view(np.uint8)[:] = 0
        events.kind[:] = EventKind.CHANGE if is_change else EventKind.UNDONE
        events.undo_dba[:] = 1 + block
        events.rci[:] = np.arange(STRETCH)[:: 1 if is_change else -1] % 256
        events.wrp[:] = np.arange(STRETCH)[:: 1 if is_change else -1] // 256
        return empty_batch()._replace(events=events)


@pytest.mark.parametrize("is_taken_back", [True, False])
def test_memory_does_not_grow_with_the_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken_back: bool
) -> None:
    """With a key; kept in memory, a change takes over 100 bytes."""
    monkeypatch.setattr("olr_pg.transactions.standing_changes.STRETCH", STRETCH)

    def peak_of(count: int) -> int:
        chunks = Chunks(count, is_taken_back=is_taken_back)
        tracemalloc.start()
        try:
            told = left_of_large(chunks, head(chunks[0].events, 1), SpillFiles(tmp_path, 0))
            assert len(told) == (not is_taken_back)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with sealing(KEYS["encrypted"]):
        peak_of(20)
        small, large = peak_of(20), peak_of(60)
    assert large - small < 10 * 40 * STRETCH
