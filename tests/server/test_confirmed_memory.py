"""Real mapped files; what is in memory is read from the system."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from olr_pg.files.mapped import MappedFile, release_pages
from olr_pg.ordering.ready_transactions import ReadyBatch, ReadyColumns, whole
from olr_pg.server.queue import ReadyQueue

MIB = 1 << 20


def _resident(mapped: MappedFile) -> int:
    """Bytes of a mapped file that are in this process's memory."""
    maps = Path("/proc/self/smaps").read_text()
    found = re.search(rf"^{mapped.address:x}-.*?^Rss: *(\d+) kB", maps, re.MULTILINE | re.DOTALL)
    assert found
    return int(found[1]) * 1024


@pytest.fixture
def mapped(tmp_path: Path) -> MappedFile:
    path = tmp_path / "file"
    np.arange(MIB, dtype=np.uint32).tofile(path)
    return MappedFile.of(path, 4 * MIB)


def test_pages_are_let_go_of_and_come_back(mapped: MappedFile) -> None:
    values = np.frombuffer(mapped, np.uint32)
    before = values.sum()
    assert _resident(mapped) == 4 * MIB
    release_pages(values[: MIB // 2].data.cast("B"))
    assert _resident(mapped) == 2 * MIB
    assert values.sum() == before


@pytest.mark.parametrize(("first", "end"), [(1, 4095), (4095, 4097), (5, 5)])
def test_less_than_a_page_stays(mapped: MappedFile, first: int, end: int) -> None:
    data = np.frombuffer(mapped, np.uint8).data
    data.tobytes()
    release_pages(data[first:end])
    assert _resident(mapped) == 4 * MIB


def test_any_part_may_be_let_go_of(mapped: MappedFile) -> None:
    """Where the system has put pages together, more than they may go; nothing else changes."""
    data = np.frombuffer(mapped, np.uint8).data
    before = data.tobytes()
    release_pages(data[1:-1])
    assert _resident(mapped) <= 2 * mmap.PAGESIZE
    assert data.tobytes() == before


def test_other_memory_stays_as_it_is() -> None:
    anonymous = mmap.mmap(-1, MIB)
    anonymous.write(b"\1" * MIB)
    for data in (
        memoryview(anonymous),
        memoryview(bytearray(b"\1" * MIB)),
        np.ones(MIB, np.uint8).data,
        np.frombuffer(anonymous, np.uint8).data,
    ):
        release_pages(data)
        assert np.frombuffer(data, np.uint8).all()


@pytest.mark.parametrize("together", [1, 300])
def test_what_is_confirmed_is_let_go_of(tmp_path: Path, together: int) -> None:
    """Transactions of 10 kB; the last one keeps the batch."""
    blobs = [framed(number, 10_000) for number in range(400)]
    (tmp_path / "file").write_bytes(b"".join(blobs))
    mapped = MappedFile.of(tmp_path / "file", sum(map(len, blobs)))
    queue = ReadyQueue(bytes_max=1 << 30)
    assert queue.put(whole(batch_of(blobs, np.frombuffer(mapped, np.uint8).data)))
    for first in range(0, 300, together):
        for _ in range(together):
            assert bytes(queue.take(1).framed)
        queue.confirm(first + together - 1)
    assert _resident(mapped) <= 2 * MIB, "of 3 MB that were read"
    assert [bytes(queue.take(1).framed) for _ in range(100)] == blobs[300:]


def framed(number: int, size: int) -> bytes:
    """A message of this size, with its length."""
    return size.to_bytes(4, "little") + bytes([number % 256]) * size


def batch_of(blobs: list[bytes], blob: memoryview) -> ReadyBatch:
    """Transactions of one message; each commits at its number as SCN."""
    numbers = np.arange(len(blobs))
    first = np.cumsum([0, *map(len, blobs)])
    columns = ReadyColumns(
        numbers.astype(np.uint64),
        numbers.astype(np.uint64),
        numbers.astype(np.uint64),
        np.zeros(len(blobs), np.uint32),
        np.ones(len(blobs), np.uint16),
        np.ones(len(blobs), np.uint32),
        numbers.astype(np.uint32),
        np.zeros(len(blobs), np.uint16),
    )
    return ReadyBatch(columns, first, np.arange(len(blobs) + 1), blob)
