"""A split begins where the one before it ends, whatever its block headers say."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from structlog.testing import capture_logs

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.split import plan_splits, subscribe
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.merger_state import ThreadSplit
from olr_pg.ordering.split_merging import merge_splits
from olr_pg.redo.format.file_fields import BLOCK_HEADER, FIRST_DATA_BLOCK
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.simulator.fields.lob_layout import BLOB, secure_in_row
from tests.lobs.lob_redo import LobRedo, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

ROWS: Final = 60
BLOCK: Final = 512
GROUP: Final = 24
"""Records of an LWN group, several blocks."""

LONG: Final = b"\xee" * 3 * BLOCK

FIRST_RECORD_AT: Final = 6
CHECKSUM_AT: Final = 7
"""Where a block header has the offset of its first record, and its checksum, in words of 16 bits
(redo-format §1.3)."""


def write_log(folder: Path) -> Path:
    """A transaction for every row; the row of the middle has a long value."""
    redo = LobRedo()
    for number in range(ROWS):
        redo.begin()
        image = secure_in_row(BLOB, 7, LONG) if number == ROWS // 2 else None
        redo.insert(Decimal(number), None, image)
        redo.end()
    return redo.write(folder, group=GROUP)


def words_of(path: Path) -> npt.NDArray[np.uint16]:
    """Its blocks, shape (blocks, words of 16 bits)."""
    return np.frombuffer(path.read_bytes(), np.uint16).copy().reshape(-1, BLOCK // 2)


def write_words(path: Path, words: npt.NDArray[np.uint16]) -> None:
    """The file with every checksum right."""
    words[1:, CHECKSUM_AT] = 0
    words[1:, CHECKSUM_AT] = np.bitwise_xor.reduce(words[1:], axis=1)
    path.write_bytes(words.tobytes())


def decoded(folder: Path, split_blocks: int, *, follows: bool) -> tuple[list[int], int]:
    """(how many rows were decoded, and how many left; how often a split was decoded again)."""
    dictionary = snapshot()
    follower = DictionaryFollower(dictionary) if follows else None
    if follower is None:
        subscription = subscribe(dictionary.tables, 0)
    else:
        subscription = follower.subscribe(dictionary.tables)
    merger = Merger(subscription, 0, {1: 0}, follower)
    (log,) = discover_logs([str(folder)])
    splits = [ThreadSplit(1, split) for split in plan_splits(log, split_blocks * BLOCK)]
    released = 0
    with capture_logs() as logged:
        for step in merge_splits(merger, splits, decode_splits):
            assert merger.failure is None
            released += sum(map(len, step.released))
    again = sum(one["event"].startswith("decoding a part of a log again") for one in logged)
    return [merger.account.rows, released], again


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("split_blocks", [1, 7, 40])
def test_redo_without_first_record_offsets_is_whole(
    tmp_path: Path, split_blocks: int, follows: bool
) -> None:
    path = write_log(tmp_path)
    words = words_of(path)
    words[FIRST_DATA_BLOCK + 1 :, FIRST_RECORD_AT] = 0
    write_words(path, words)
    found, again = decoded(tmp_path, split_blocks, follows=follows)
    assert found == [ROWS, ROWS]
    assert again > 0


@pytest.mark.parametrize("split_blocks", [1, 7, 40])
def test_an_ordinary_log_is_decoded_once(tmp_path: Path, split_blocks: int) -> None:
    path = write_log(tmp_path)
    with path.open("ab") as file:
        file.write(bytes(20 * BLOCK))  # the file may be larger than its redo
    assert decoded(tmp_path, split_blocks, follows=True) == ([ROWS, ROWS], 0)


def test_a_group_that_only_seems_to_begin_is_none(tmp_path: Path) -> None:
    """What looks like an LWN header in the middle of a group is not taken for one."""
    path = write_log(tmp_path)
    words = words_of(path)
    value = np.frombuffer(LONG[: BLOCK - BLOCK_HEADER], np.uint16)
    (inner,) = np.flatnonzero((words[:, BLOCK_HEADER // 2 :] == value).all(axis=1))[:1]
    words[inner, BLOCK_HEADER // 2 :] = words[FIRST_DATA_BLOCK, BLOCK_HEADER // 2 :]
    words[inner, FIRST_RECORD_AT] = words[FIRST_DATA_BLOCK, FIRST_RECORD_AT]
    write_words(path, words)
    found, again = decoded(tmp_path, 1, follows=True)
    assert found == [ROWS, ROWS]
    assert again > 0
