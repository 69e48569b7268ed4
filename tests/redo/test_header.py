"""Blocks 0 and 1 of logs laid out by hand: what is read of them, and what is refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.header import LogHeader, block_checksum, parse_log_header, probe_geometry
from tests.redo.log_builder import LogBuilder, seal


def header_of(raw: npt.NDArray[np.uint8]) -> LogHeader:
    data = raw.tobytes()
    size, _ = probe_geometry(data, path="a.arc")
    return parse_log_header(data[:size], data[size : 2 * size], path="a.arc")


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("size", [512, 1024, 4096])
def test_a_header_is_read_in_every_geometry(big: bool, size: int) -> None:
    built = LogBuilder(big=big, block_size=size, sequence=77, thread=2, first_scn=5, next_scn=9)
    header = header_of(built.build())
    assert (header.big_endian, header.block_size) == (big, size)
    assert (header.sequence, header.thread, header.db_name) == (77, 2, "FREE")
    assert (header.first_scn, header.next_scn, header.nab) == (5, 9, 2)
    assert header.version == "23.6.0.0"


def test_a_log_that_is_being_written_has_no_end() -> None:
    raw = LogBuilder().build()
    raw[512 + 156 : 512 + 160] = 0xFF
    raw[512 + 192 : 512 + 198] = 0xFF
    raw[512 + 14 : 512 + 16] = 0
    header = header_of(seal(raw, 512))
    assert header.nab is None
    assert header.next_scn is None


def wrong(at: int, value: int, *, sealed: bool = True) -> npt.NDArray[np.uint8]:
    raw = LogBuilder().build()
    raw[at] = value
    if sealed:
        number = at // 512
        words = raw[512 * number : 512 * number + 512].view(np.uint16)
        words[7 if number else 8] ^= np.bitwise_xor.reduce(words)
    return raw


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (wrong(28, 0), Code.NOT_A_REDO_LOG),
        (wrong(20, 1), Code.NOT_A_REDO_LOG),
        (wrong(512 + 40, 1, sealed=False), Code.BLOCK_CORRUPT),
        (wrong(512 + 4, 2), Code.BLOCK_CORRUPT),
        (wrong(512 + 23, 0x18), Code.REDO_VERSION_UNSUPPORTED),
        (LogBuilder(compat=0).build(), Code.LOG_COPIED_TOO_EARLY),
        (LogBuilder().build()[:20], Code.LOG_TRUNCATED),
    ],
)
def test_what_is_no_header_is_refused(raw: npt.NDArray[np.uint8], code: Code) -> None:
    with pytest.raises(OlrPgError) as caught:
        header_of(raw)
    assert caught.value.code == code


def test_the_checksum_sees_one_bit() -> None:
    block = LogBuilder().build()[512:1024].copy()
    assert block_checksum(block.tobytes()) == 0
    block[100] ^= 4
    assert block_checksum(block.tobytes()) == 4
