"""Large transactions wait in files: same messages, bounded memory, nothing left behind."""

from __future__ import annotations

import gc
import threading
import zlib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, sealing
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.simulator.fields.lob_layout import (
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
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage
from tests.lobs.lob_redo import LobRedo, table
from tests.lobs.packed import secure_packed_extents
from tests.split_results import packed_split

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_the_largest_go_first_and_share_a_file(tmp_path: Path) -> None:
    from olr_pg.redo.batch import empty_batch
    from olr_pg.transactions.waiting_storage import Waiting, spill_largest

    sizes = [16, 704, 32, 400, 0]
    held = []
    for size in sizes:
        one = Waiting()
        one.append(empty_batch()._replace(data=np.full(size, size % 251, np.uint8)))
        held.append(one)
    storage = SpillFiles(tmp_path, 1000)
    spill_largest(held, storage)
    assert [one.in_memory for one in held] == [16, 0, 32, 400, 0]
    assert storage.spilled_bytes == 704
    assert held[1].batches[0].data.tolist() == [704 % 251] * 704
    spill_largest(held, storage)
    assert storage.spilled_bytes == 704


def test_the_pages_are_given_back_and_the_thread_ends(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0)
    room = storage.spill(8 * MIB)
    room[:] = 7
    thread = next(one for one in threading.enumerate() if one.name == "olr-spill")
    assert int(room.sum()) == 7 * 8 * MIB
    del room
    gc.collect()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_the_bytes_on_disk_are_counted_until_they_are_dropped(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0)
    assert storage.waiting_bytes == 0
    room = storage.spill(8192)
    assert storage.waiting_bytes == 8192
    del room
    gc.collect()
    assert storage.waiting_bytes == 0


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OlrPgError, match="OLR-02081"):
        SpillFiles(tmp_path / "file" / "spill", 0).spill(10)
    with pytest.raises(OlrPgError, match="OLR-02081"):
        SpillFiles(tmp_path, 0).spill(1 << 60)


def test_the_limit_of_the_disk_counts_what_is_in_use(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, disk_max=3 * MIB)
    first, second = storage.spill(MIB), storage.spill(2 * MIB)
    with pytest.raises(OlrPgError) as caught:
        storage.spill(1)
    assert caught.value.code == 1097
    assert storage.waiting_bytes == first.size + second.size
    del first
    gc.collect()
    assert storage.spill(MIB).size == MIB


def test_what_waits_takes_few_descriptors(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    waiting = [storage.spill(8192) for _ in range(2000)]
    assert len(list(descriptors.iterdir())) - before < 150
    for number, room in enumerate(waiting):
        room[:] = number % 251
    assert [int(room[-1]) for room in waiting] == [number % 251 for number in range(2000)]
    assert all((room == room[0]).all() for room in waiting)
    assert storage.waiting_bytes < 1.1 * 2000 * 8192
    del waiting, room
    gc.collect()
    assert storage.waiting_bytes == 0


def test_a_shared_file_that_would_be_too_large_is_as_small_as_it_can_be(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, disk_max=20 * MIB + 8192)
    first = storage.spill(20 * MIB)
    assert storage.spill(8192).size == 8192
    assert first.size == 20 * MIB


def test_gathered_bytes_are_in_a_file_and_counted(tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, disk_max=MIB)
    gathering = storage.gather()
    for number in range(3):
        gathering.append(np.full(1000, number, np.uint8))
    assert storage.waiting_bytes == 3000
    with pytest.raises(OlrPgError, match="OLR-01097"):
        gathering.append(np.zeros(MIB, np.uint8))
    room = gathering.finish()
    assert isinstance(room, np.ndarray)
    assert room.tolist() == [number for number in range(3) for _ in range(1000)]
    assert storage.waiting_bytes == 3000
    dropped = storage.gather()
    dropped.append(np.zeros(10, np.uint8))
    assert storage.waiting_bytes == 3010
    del room, gathering, dropped
    gc.collect()
    assert storage.waiting_bytes == 0
    (tmp_path / "file").touch()
    with pytest.raises(OlrPgError, match="OLR-02081"):
        SpillFiles(tmp_path / "file" / "spill", 0).gather()
