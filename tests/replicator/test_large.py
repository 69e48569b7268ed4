"""One transaction of many small rows: what it takes of memory does not grow with them."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Final

from olr_pg.capture.logs import discover_logs
from olr_pg.replicator.merge import Merger
from olr_pg.replicator.spill import SpillFiles
from olr_pg.replicator.split import (
    decode_split,
    open_for_decoding,
    plan_splits,
    subscribe,
)
from olr_pg.server.queue import ReadyQueue
from tests.large_transaction import large_snapshot, write_logs
from tests.split_results import through_bytes

if TYPE_CHECKING:
    from pathlib import Path

ROWS: Final = 20_000
TEXT: Final = 20
SPLIT_BYTES: Final = 1 << 20
WAITING_BYTES: Final = 1 << 20
PART_BYTES: Final = 1 << 18
BYTES_PER_ROW: Final = 50
"""The bound. Kept in memory, a row of this table takes over 500."""


def peak_of(folder: Path, rows: int) -> int:
    """The most bytes that Python and NumPy had at a time, from the redo to the messages."""
    folder.mkdir()
    write_logs(folder, rows, TEXT)
    subscription = subscribe(large_snapshot().tables, 0)
    storage = SpillFiles(folder / "spill", WAITING_BYTES, part_bytes=PART_BYTES)
    merger = Merger(subscription, 0, {1: 0}, storage=storage)
    queue = ReadyQueue()
    (archived,) = discover_logs([str(folder)])
    log = open_for_decoding(archived.path)
    tracemalloc.start()
    try:
        for split in plan_splits(archived, SPLIT_BYTES):
            result = decode_split(subscription, log, split.first_block, split.end_block)
            assert queue.put_all(merger.feed(1, through_bytes(result)))
        messages = 0
        while taken := queue.take(1000, bytes_max=WAITING_BYTES).messages:
            messages += taken
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert messages == rows + 2
    assert merger.accounting().account.rows == rows
    return peak


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peak_of(tmp_path / "warm", ROWS // 4)
    small, large = (peak_of(tmp_path / str(rows), rows) for rows in (ROWS, 3 * ROWS))
    assert large - small < BYTES_PER_ROW * 2 * ROWS
