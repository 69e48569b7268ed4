"""Blocks: what is checked of each, and where groups and records are found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from olr_pg.redo.blocks import BlockStatus, find_group, unpack_blocks, window_end
from tests.redo.log_builder import LogBuilder, seal

SIZE = 512
RECORD = (24).to_bytes(4, "little") + bytes(20)


def blocks(groups: int = 3) -> npt.NDArray[np.uint8]:
    """A log of one-block groups in blocks 2, 3, …"""
    builder = LogBuilder(sequence=15)
    for number in range(groups):
        builder.add_group([[RECORD, RECORD]], 100 + number)
    return builder.build()


def unpacked(raw: npt.NDArray[np.uint8], *, verify: bool = True) -> tuple[int, int]:
    payload = np.zeros(3 * (SIZE - 16), np.uint8)
    status, block = unpack_blocks(
        raw, raw.view(np.uint64), SIZE, 2, 5, 15, False, verify, 2, payload
    )
    if status == BlockStatus.OK:
        assert payload.tobytes() == raw.reshape(-1, SIZE)[2:5, 16:].tobytes()
    return status, block


def test_sound_blocks_are_unpacked() -> None:
    assert unpacked(blocks()) == (BlockStatus.OK, 5)


@pytest.mark.parametrize(
    ("at", "value", "status"),
    [
        (0, 2, BlockStatus.TYPE),
        (1, 0x82, BlockStatus.TYPE),
        (4, 9, BlockStatus.NUMBER),
        (8, 16, BlockStatus.SEQUENCE),
    ],
)
def test_a_header_of_another_block_is_told(at: int, value: int, status: BlockStatus) -> None:
    raw = blocks()
    raw[3 * SIZE + at] = value
    assert unpacked(seal(raw, SIZE)) == (status, 3)


def test_a_block_that_was_never_written_is_told() -> None:
    raw = blocks()
    raw[4 * SIZE : 5 * SIZE] = 0
    assert unpacked(raw) == (BlockStatus.EMPTY, 4)


def test_the_checksum_is_looked_at_where_it_is_asked_for() -> None:
    raw = blocks()
    raw[3 * SIZE + 300] ^= 1
    assert unpacked(raw) == (BlockStatus.CHECKSUM, 3)
    assert unpacked(raw, verify=False)[0] == BlockStatus.OK


def test_a_window_takes_whole_groups() -> None:
    builder = LogBuilder()
    builder.add_group([[RECORD], [RECORD]], 100)
    builder.add_group([[RECORD]], 101)
    raw = builder.build()
    assert window_end(raw, SIZE, 2, 5, 5, 1, False) == (BlockStatus.OK, 4, 2, 2)
    assert window_end(raw, SIZE, 2, 5, 5, 100, False) == (BlockStatus.OK, 5, 3, 2)
    assert window_end(raw, SIZE, 2, 5, 3, 100, False)[0] == BlockStatus.LWN_CHUNK


def test_the_next_group_is_found_from_anywhere() -> None:
    builder = LogBuilder(sequence=15)
    builder.add_group([[RECORD], [RECORD]], 100)
    builder.add_group([[RECORD]], 101)
    raw = builder.build()
    words = raw.view(np.uint64)
    found = [find_group(raw, words, SIZE, first, 5, 15, False, True) for first in (2, 3, 4, 5)]
    assert found == [(0, 2), (0, 4), (0, 4), (0, 5)]
