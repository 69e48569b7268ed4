"""Large transactions wait in files: same messages, bounded memory, nothing left behind."""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import RowKey, sealing
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.redo.batch import EVENT, ChangeBatch, columns_of, empty_batch
from olr_pg.simulator.fields.cells import (
    BASIC_PAGE,
    BLOB,
    CLOB,
    PAGE,
    basic_outside,
    index_data,
    index_key,
    secure_extents,
    secure_in_row,
)
from olr_pg.transactions.waiting_storage import (
    IN_MEMORY,
    Storage,
    Waiting,
    batch_cells,
    spill_largest,
)
from tests.files.limits import small_files
from tests.lobs.lob_redo import LobRedo, table
from tests.lobs.packed import secure_packed_extents
from tests.split_results import packed_split

MIB = 1 << 20
RANDOM = np.random.default_rng(5)
KEY = RowKey(bytes(range(32)))
LARGE = RANDOM.bytes(3 * MIB)
SPLIT_BLOCKS = 1 << 10


def large_direct(redo: LobRedo) -> None:
    runs = tuple((0x10_0000 + 0x1000 * k, 200) for k in range(2))
    redo.direct_pages(3, 1, LARGE, *runs)
    redo.insert(Decimal(1), None, secure_extents(BLOB, 1, len(LARGE), runs))


def large_basicfile(redo: LobRedo) -> None:
    blocks = list(range(0x900, 0x900 + -(-len(LARGE) // BASIC_PAGE)))
    redo.long_fields(3, 7, LARGE, blocks)
    redo.index_insert(3, index_key(7, 0), index_data(0, len(LARGE), blocks[:4]))
    for page in range(4, len(blocks), 8):
        redo.index_insert(3, index_key(7, page), index_data(page, 0, blocks[page : page + 8]))
    redo.insert(Decimal(1), None, basic_outside(BLOB, 7))


def large_packed(redo: LobRedo) -> None:
    content = LARGE[:MIB] + bytes(8 * MIB)
    packed = zlib.compress(content, 1)
    redo.direct_pages(3, 9, packed, (0x3000, 200))
    redo.insert(
        Decimal(1),
        None,
        secure_packed_extents(BLOB, 9, len(content), len(packed), 0x3000, chunked=False),
    )


def pieced(redo: LobRedo) -> None:
    content = LARGE[: 190 * PAGE]
    for k in range(190):
        page = content[k * PAGE : (k + 1) * PAGE]
        fills = redo.fill(0, page[:4000]), redo.fill(4000, page[4000:])
        redo.page_change(3, 0x20_0000 + k, redo.info(5), *fills)
    runs = ((0x20_0000, 190),)
    redo.insert(
        Decimal(1), secure_in_row(CLOB, 6, b"\0a"), secure_extents(BLOB, 5, len(content), runs)
    )


def messages(folder: Path, storage: Storage) -> list[bytes]:
    log = open_for_decoding(str(folder / "lobs_1_1.arc"))
    subscription = subscribe((table(securefile=False),), 0)
    merger = Merger(subscription, 0, {1: 0}, storage=storage)
    blocks = log.header.nab or 0
    found: list[bytes] = []
    for start in range(2, blocks, SPLIT_BLOCKS):
        packed = packed_split(subscription, log, start, min(start + SPLIT_BLOCKS, blocks))
        ready = merger.feed(1, read_result(packed))
        found += [bytes(one.blob) for one in transactions_of(ready)]
        waiting = [one.chunks for one in merger._assembler.open_transactions]
        waiting.append(merger._assembler._unowned.waiting)
        assert sum(one.in_memory for one in waiting) <= storage.memory_max
    assert merger.account.lob_unavailable == 0
    assert merger.failure is None
    return found


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("write", [large_direct, large_basicfile, large_packed, pieced])
def test_spilled_transactions_are_the_same(
    write: Callable[[LobRedo], None], key: RowKey | None, tmp_path: Path
) -> None:
    redo = LobRedo()
    redo.begin()
    write(redo)
    redo.end()
    redo.write(tmp_path)
    spilled = SpillFiles(tmp_path / "spill", MIB, MIB // 4)
    with sealing(key):
        found = messages(tmp_path, spilled)
    assert found == messages(tmp_path, IN_MEMORY)
    assert len(found) == 1
    assert len(found[0]) > MIB
    assert key or spilled.spilled_bytes > 2 * MIB
    assert key or list((tmp_path / "spill").iterdir()) == []


def batch_of(size: int) -> ChangeBatch:
    """One event, with so many bytes of data."""
    none = empty_batch()
    events = columns_of(EVENT, 1)
    for column in batch_cells(none._replace(events=events)):
        column[:] = 0
    return none._replace(events=events, data=np.full(size, size % 251, np.uint8))


def test_the_largest_go_first_and_share_a_file(tmp_path: Path) -> None:
    held = []
    for size in (1600, 70_400, 3200, 40_000, 0):
        one = Waiting()
        one.append(batch_of(size))
        held.append(one)
    sizes = [one.in_memory for one in held]
    storage = SpillFiles(tmp_path, 100_000)
    spill_largest(held, storage)
    assert [one.in_memory for one in held] == [sizes[0], 0, *sizes[2:]]
    assert storage.spilled_bytes == sizes[1]
    assert held[1].batches[0].data.tolist() == [70_400 % 251] * 70_400
    spill_largest(held, storage)
    assert storage.spilled_bytes == sizes[1]


def test_the_pages_are_given_back_and_the_thread_ends(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, MIB)
    room = storage.allocate(8 * MIB)
    room[:] = 7
    thread = next(one for one in threading.enumerate() if one.name == "olr-spill")
    assert int(room.sum()) == 7 * 8 * MIB
    assert storage.waiting_bytes == room.size
    del room
    gc.collect()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert storage.waiting_bytes == 0


def test_the_bytes_on_disk_are_counted_until_they_are_dropped(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0)
    assert storage.waiting_bytes == 0
    kept = storage.keep(np.zeros(8192, np.uint8))
    assert storage.waiting_bytes == 8192
    del kept
    gc.collect()
    assert storage.waiting_bytes == 0


def test_the_bytes_are_counted_while_another_thread_begins_files(tmp_path: Path) -> None:
    storage, ended = SpillFiles(tmp_path, 0), threading.Event()
    held = [storage.gather() for _ in range(100)]

    def begin() -> None:
        held.extend(storage.gather() for _ in range(300))
        ended.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    beginning = threading.Thread(target=begin)
    beginning.start()
    try:
        while not ended.is_set():
            assert storage.waiting_bytes == 0
    finally:
        sys.setswitchinterval(interval)
        beginning.join()


def gathered(storage: SpillFiles) -> object:
    gathering = storage.gather()
    gathering.append(np.zeros(7 * MIB, np.uint8))
    return gathering


WRITES: list[Callable[[SpillFiles], object]] = [
    lambda storage: storage.keep(np.zeros(7 * MIB, np.uint8)),
    lambda storage: storage.store([batch_of(7 * MIB)]),
    gathered,
    lambda storage: storage.allocate(7 * MIB),
]
"""Each way to the disk."""


@pytest.mark.parametrize("write", WRITES)
def test_a_place_that_cannot_be_written_is_said(
    tmp_path: Path, write: Callable[[SpillFiles], object]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OlrPgError, match="OLR-02081"):
        write(SpillFiles(tmp_path / "file" / "spill", 0, 0))
    with small_files(MIB), pytest.raises(OlrPgError, match="OLR-02081"):
        write(SpillFiles(tmp_path, 0, 0))


@pytest.mark.parametrize("write", WRITES)
def test_the_limit_of_the_disk_counts_what_is_in_use(
    tmp_path: Path, write: Callable[[SpillFiles], object]
) -> None:
    storage = SpillFiles(tmp_path, 0, 0, disk_max=16 * MIB)
    first, second = write(storage), storage.keep(np.zeros(5 * MIB, np.uint8))
    with pytest.raises(OlrPgError) as caught:
        write(storage)
    assert caught.value.code == 1097
    assert storage.waiting_bytes >= 5 * MIB
    del first, second, caught
    gc.collect()
    write(storage)


def test_the_bytes_of_what_has_ended_do_not_count_up_to_the_limit(tmp_path: Path) -> None:
    """A shared file is small enough for the limit."""
    storage = SpillFiles(tmp_path, 0, disk_max=16 * MIB)
    kept = storage.keep(np.zeros(10, np.uint8))
    for _ in range(20):
        storage.keep(np.zeros(2 * MIB, np.uint8))
    assert kept.read(0, 10) == bytes(10)


def test_what_waits_takes_few_descriptors(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, disk_max=100 * MIB)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    waiting = [storage.keep(np.full(8192, number % 251, np.uint8)) for number in range(2000)]
    assert len(list(descriptors.iterdir())) - before < 150
    assert all(
        bytes(one.read(0, 8192)) == bytes([number % 251]) * 8192
        for number, one in enumerate(waiting)
    )
    assert storage.waiting_bytes == 2000 * 8192
    del waiting
    gc.collect()
    assert storage.waiting_bytes == 0


@pytest.mark.parametrize("fault", ["zeros", "cut off", "unreadable"])
def test_a_page_that_the_disk_has_lost_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A mapping would return zeros, or end the process."""
    storage = SpillFiles(tmp_path, 0)
    (batch,) = storage.store([batch_of(3 * MIB)])
    messages = storage.gather()
    messages.append(np.full(3 * MIB, 7, np.uint8))
    kept = storage.keep(np.full(3 * MIB, 7, np.uint8))
    for file in Path("/proc/self/fd").iterdir():
        if str(tmp_path) not in str(file.readlink() if file.is_symlink() else ""):
            continue
        if fault == "zeros":
            for page in range(0, file.stat().st_size, MIB):
                with file.open("r+b") as opened:
                    opened.seek(page + 4096)
                    opened.write(bytes(4096))
        elif fault == "cut off":
            os.truncate(file, MIB)
    if fault == "unreadable":

        def refuse(*_: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "preadv", refuse)
    gathered = messages.finish()
    assert not isinstance(gathered, np.ndarray)
    for read in (
        batch.open,
        lambda: gathered.read(0, gathered.size),
        lambda: kept.read(0, kept.size),
    ):
        with pytest.raises(OlrPgError) as caught:
            read()
        assert caught.value.code == Code.SPILL_DAMAGED


def test_gathered_bytes_are_in_a_file_and_counted(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, disk_max=MIB)
    gathering = storage.gather()
    for number in range(3):
        gathering.append(np.full(1000, number, np.uint8))
    assert storage.waiting_bytes == 3000
    with pytest.raises(OlrPgError, match="OLR-01097"):
        gathering.append(np.zeros(MIB, np.uint8))
    found = gathering.finish()
    assert not isinstance(found, np.ndarray)
    assert bytes(found.read(0, 3000)) == b"".join(bytes([number]) * 1000 for number in range(3))
    assert storage.waiting_bytes == 3000
    dropped = storage.gather()
    dropped.append(np.zeros(10, np.uint8))
    assert storage.waiting_bytes == 3010
    del found, gathering, dropped
    gc.collect()
    assert storage.waiting_bytes == 0
