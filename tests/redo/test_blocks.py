"""Blocks: what is checked of each, and where groups and records are found."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.blocks import (
    BlockStatus,
    LwnColumns,
    RecordColumns,
    find_group,
    scan_records,
    unpack_blocks,
    window_end,
)
from tests.redo.log_builder import LogBuilder, seal

SIZE = 512
WIDTH = SIZE - 16
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
        (0, 0, BlockStatus.TYPE),
        (1, 0, BlockStatus.TYPE),
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
    # It is that of the block alone, and the payload goes where the window has it.
    words, payload = raw.view(np.uint64), np.zeros(2 * WIDTH, np.uint8)
    found = unpack_blocks(raw, words, SIZE, 4, 5, 15, False, True, 3, payload)
    assert found == (BlockStatus.OK, 5)
    assert payload.tobytes() == bytes(WIDTH) + raw[4 * SIZE + 16 : 5 * SIZE].tobytes()


def test_a_window_takes_whole_groups() -> None:
    builder = LogBuilder()
    builder.add_group([[RECORD], [RECORD]], 100)
    builder.add_group([[RECORD]], 101)
    raw = builder.build()
    assert window_end(raw, SIZE, 2, 5, 5, 1, False) == (BlockStatus.OK, 4, 2, 2)
    assert window_end(raw, SIZE, 2, 5, 5, 2, False) == (BlockStatus.OK, 4, 2, 2)
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


# --- records laid out by hand, as redo-format §2.2 and §2.3 say ---

SCN = 0x1234_89ABCDEF
TIME = 0x49261288


def record(order: str, length: int, scn: int, subscn: int, vld: int = 1) -> bytes:
    """A record: u32 length, VLD, garbage, SCN wrap and base, SUBSCN, garbage, content."""
    head = struct.pack(order + "IBBHIH", length, vld, 0xEE, scn >> 32, scn & 0xFFFFFFFF, subscn)
    return (head + b"\xee" * 10).ljust(length, b"\xcc")


def opening(order: str, vld: int, chunk: tuple[int, int, int], scn: int, more: int = 0) -> bytes:
    """The record that opens an LWN chunk (number, of how many, blocks); 68 bytes and more."""
    number, of, size = chunk
    head = record(order, 68 + more, scn + 1, 1, vld)[:24]
    lwn = struct.pack(order + "HHIIB3xIHH16xI", number, of, size, 9, 10, scn & 0xFFFFFFFF,
                      scn >> 32, 0, TIME + number)  # fmt: skip
    return (head + lwn).ljust(68 + more, b"\xcc")


def laid(*blocks: bytes) -> npt.NDArray[np.uint8]:
    """The payload of a window: the bytes of each block padded with zeros, as they are read."""
    return np.frombuffer(b"".join(block.ljust(WIDTH, b"\0") for block in blocks), np.uint8)


def scanned(
    payload: npt.NDArray[np.uint8], order: str, room: int = 20
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """(what the kernel returns, rows of LWN chunks, rows of records) of a window at block 7."""
    lwns = LwnColumns(*np.full((4, 9), -1))
    records = RecordColumns(*(np.full(room, 99, kind) for kind in ("i8",) * 4 + ("u1", "i8")))
    end = 7 + payload.size // WIDTH
    found = interpreted(scan_records)(payload, SIZE, 7, end, order == ">", lwns, records)
    _, _, chunks, count = found
    return (
        found,
        list(zip(*(column[:chunks].tolist() for column in lwns), strict=True)),
        list(zip(*(column[:count].tolist() for column in records), strict=True)),
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_records_of_two_groups(order: str) -> None:
    """The first has two chunks; a void record may open one (redo-format §2.2), and one goes over
    blocks.
    """
    long = record(order, 2 * WIDTH + 4, SCN + 3, 7)
    chunk = opening(order, 5, (1, 2, 4), SCN) + record(order, 24, SCN + 2, 3) + long
    payload = laid(
        opening(order, 6, (0, 2, 1), SCN) + record(order, 24, SCN, 2),
        *(chunk[WIDTH * at : WIDTH * (at + 1)] for at in range(4)),
        opening(order, 6, (0, 1, 1), SCN + 50, 4),
    )
    found, lwns, records = scanned(payload, order)
    second = 5 * WIDTH
    assert found == (BlockStatus.OK, 6 * WIDTH, 3, 6)
    assert lwns == [
        (7, 0, SCN, TIME), (8, 0, SCN, TIME + 1), (12, 1, SCN + 50, TIME),
    ]  # fmt: skip
    assert records == [
        (0, 68, SCN + 1, 1, 6, 0),
        (68, 24, SCN, 2, 1, 0),
        (WIDTH, 68, SCN + 1, 1, 5, 1),
        (WIDTH + 68, 24, SCN + 2, 3, 1, 1),
        (WIDTH + 92, 2 * WIDTH + 4, SCN + 3, 7, 1, 1),
        (second, 72, SCN + 51, 1, 6, 2),
    ]


@pytest.mark.parametrize("left", [0, 4, 20, 24, 28])
def test_where_the_next_record_begins(left: int) -> None:
    """A header of 24 bytes never goes over blocks: where less is left, it is in the next
    (redo-format §2.3).
    """
    first = opening("<", 5, (0, 1, 2), SCN, WIDTH - 68 - left)
    if left < 24:
        first += b"\xee" * left
    data = first + record("<", 32, SCN, 4)
    payload = laid(data[:WIDTH], data[WIDTH:])
    found, _, records = scanned(payload, "<")
    at = WIDTH - left if left >= 24 else WIDTH
    assert found == (BlockStatus.OK, 2 * WIDTH, 1, 2)
    assert records[1][:2] == (at, 32)


def test_a_length_is_rounded_up_to_four_bytes() -> None:
    payload = laid(opening("<", 5, (0, 1, 1), SCN)
                   + record("<", 30, SCN, 2) + bytes(2) + record("<", 24, SCN, 3))  # fmt: skip
    assert [row[:2] for row in scanned(payload, "<")[2]] == [(0, 68), (68, 32), (100, 24)]


def test_records_that_cannot_be_are_told() -> None:
    start = opening("<", 5, (0, 1, 1), SCN)

    def told(*more: bytes, begin: bytes = start, room: int = 20) -> tuple[int, ...]:
        return scanned(laid(begin + b"".join(more)), "<", room)[0]

    rest = WIDTH - 68
    assert told(record("<", rest, SCN, 2)) == (0, WIDTH, 1, 2)
    assert told(record("<", 24, SCN, 2), record("<", rest, SCN, 2)) == (
        BlockStatus.RECORD_LENGTH, 92, 0, 2,
    )  # fmt: skip
    assert told(record("<", 24, SCN, 2)[:24].replace(b"\x18", b"\x14", 1)) == (
        BlockStatus.RECORD_LENGTH, 68, 0, 1,
    )  # fmt: skip
    # One that opens a chunk has at least 68 bytes, and stands at its beginning alone.
    assert told(begin=record("<", 64, SCN, 2, 5)[:28] + start[28:]) == (
        BlockStatus.RECORD_LENGTH, 0, 0, 0,
    )  # fmt: skip
    assert told(start) == (BlockStatus.RECORD_LWN, 68, 0, 1)
    assert told(begin=record("<", 68, SCN, 2)[:24] + start[24:]) == (
        BlockStatus.RECORD_LWN, 0, 0, 0,
    )  # fmt: skip
    assert told(room=1) == (0, WIDTH, 1, 1)
    assert told(record("<", 24, SCN, 2), room=1) == (BlockStatus.CAPACITY, 68, 0, 1)


def test_groups_that_cannot_be_are_told() -> None:
    """As `window_end` meets them: chunks in their order, whole, each opened by its header."""

    def ends(*blocks: bytes, nab: int | None = None, split_end: int = 99) -> tuple[int, ...]:
        raw = b"".join(b"\0" * 16 + block.ljust(WIDTH, b"\0") for block in (b"", b"", *blocks))
        last = len(blocks) + 2 if nab is None else nab
        return interpreted(window_end)(
            np.frombuffer(raw, np.uint8), SIZE, 2, split_end, last, 100, False
        )

    one, zero = opening("<", 5, (0, 1, 1), SCN), opening("<", 6, (0, 0, 1), SCN)
    pair = opening("<", 5, (0, 2, 2), SCN), b"", opening("<", 5, (1, 2, 1), SCN)
    assert ends(one, *pair, zero) == (0, 7, 4, 3)
    assert ends(one, *pair, zero, split_end=3) == (0, 3, 1, 1)
    assert ends(one, *pair, zero, split_end=4) == (0, 6, 3, 3)
    assert ends(one, *pair, zero, nab=6) == (0, 6, 3, 3)
    assert ends(one, *pair[:2], nab=4) == (BlockStatus.LWN_SIZE, 3, 1, 1)
    assert ends(one, *pair[:2]) == (BlockStatus.LWN_CHUNK, 5, 2, 1)
    assert ends(one, *pair[:2], one) == (BlockStatus.LWN_CHUNK, 5, 2, 1)
    assert ends(one, *pair[:2], b"") == (BlockStatus.NO_LWN, 5, 2, 1)
    assert ends(record("<", 68, SCN, 1)[:24] + one[24:]) == (BlockStatus.NO_LWN, 2, 0, 0)
    assert ends(record("<", 64, SCN, 1, 5)[:24] + one[24:]) == (BlockStatus.NO_LWN, 2, 0, 0)
    assert ends(opening("<", 5, (0, 1, 0), SCN)) == (BlockStatus.LWN_SIZE, 2, 0, 0)
    assert ends(opening("<", 5, (0, 1, 2), SCN)) == (BlockStatus.LWN_SIZE, 2, 0, 0)
