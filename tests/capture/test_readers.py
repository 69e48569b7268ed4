from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import map_log, read_blocks, read_header, same_content
from olr_pg.errors import OlrPgError

from .conftest import BLOCK, RealLogs


def code_of(path: str) -> int:
    with pytest.raises(OlrPgError) as caught:
        map_log(path)
    assert caught.value.where["file"] == path
    return caught.value.code


def test_the_header_of_a_real_log(logs: RealLogs) -> None:
    header, size = read_header(logs.put("x", logs.first))

    assert (header.thread, header.sequence, header.resetlogs_id) == (1, 15, 1224959854)
    assert (header.first_scn, header.next_scn, header.nab) == (2266630, 2267717, 598)
    assert size == 306176


def test_a_mapping_shows_the_bytes_and_cannot_be_written(logs: RealLogs) -> None:
    data = map_log(logs.put("x", logs.second))

    assert data.dtype == np.uint8
    assert data.tobytes() == logs.second
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


def test_a_mapping_outlives_its_file(logs: RealLogs) -> None:
    path = logs.put("x", logs.second)
    data = map_log(path)
    Path(path).unlink()

    assert data.tobytes() == logs.second


def test_a_mapping_leaves_no_descriptor_open(logs: RealLogs) -> None:
    path = logs.put("x", logs.second)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OlrPgError):
        read_header(logs.put("text", b"#" * 600))
    data = map_log(path)
    del data

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_files_that_cannot_be_mapped(logs: RealLogs) -> None:
    os.mkfifo(logs.folder / "pipe")

    assert code_of(str(logs.folder / "none")) == 2002
    assert code_of(str(logs.folder)) == 2002
    assert code_of(str(logs.folder / "pipe")) == 2002
    assert code_of("a\0b") == 2002
    assert code_of(logs.put("empty", b"")) == 2004


@pytest.mark.parametrize(("first", "stop"), [(0, 2), (2, 5), (7, 10), (3, 3)])
def test_a_range_of_blocks(logs: RealLogs, first: int, stop: int) -> None:
    log = open_log(logs.put("x", logs.second))

    assert read_blocks(log, first, stop).tobytes() == logs.second[first * BLOCK : stop * BLOCK]


def test_a_log_that_shrinks_while_it_is_read(logs: RealLogs) -> None:
    log = open_log(logs.put("x", logs.second))
    os.truncate(log.path, 5 * BLOCK + 100)
    with pytest.raises(OlrPgError) as caught:
        read_blocks(log, 2, 8)

    assert (caught.value.code, caught.value.where["block"]) == (2004, 5)


def test_a_log_that_vanishes_while_it_is_read(logs: RealLogs) -> None:
    log = open_log(logs.put("x", logs.second))
    Path(log.path).unlink()
    with pytest.raises(OlrPgError) as caught:
        read_blocks(log, 2, 8)

    assert caught.value.code == 2002


def test_copies_are_compared_up_to_the_last_block_in_use(logs: RealLogs) -> None:
    log = open_log(logs.put("a", logs.second))
    longer = open_log(logs.put("b", logs.second + bytes(BLOCK)))
    flipped = bytearray(logs.second)
    flipped[-1] ^= 1
    other = open_log(logs.put("c", bytes(flipped)))

    assert same_content(log, longer)
    assert not same_content(log, other)
    assert not same_content(log, open_log(logs.put("d", logs.first)))
