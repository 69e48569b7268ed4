from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE, RedoFormat
from olr_pg.simulator.writer.log_file import (
    RECORD_HEADER_SIZE,
    LogIdentity,
    LwnGroup,
    OpenLog,
    RedoRecord,
    checksum,
)
from tests.simulator.laws import broken_headers
from tests.simulator.reader import parse_log
from tests.simulator.relayout import laid_out_again

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["arch1_15_1224959854.dbf", "arch1_16_1224959854.dbf"])
def test_real_headers_and_records_laid_out_again_give_the_real_blocks(
    shared_dir: Path, name: str
) -> None:
    data = (shared_dir / "real" / "oracle-free-23ai" / name).read_bytes()
    ours, real = laid_out_again(data)
    size = real.shape[1]
    assert ours.shape == real.shape
    assert (ours[:2] == real[:2]).all()  # the headers, out of their fields
    # The < 24 bytes after the last record of a block are memory that the database never
    # cleared, and the checksum goes with them (redo-format §11.2).
    differing = np.flatnonzero((ours != real).any(axis=1))
    for block in differing:
        columns = np.flatnonzero(ours[block] != real[block])
        body = [int(column) for column in columns if column not in (14, 15)]
        assert min(body) > size - RECORD_HEADER_SIZE
    assert len(differing) <= 5


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_records_are_read_back(data: st.DataObject) -> None:
    redo = RedoFormat(
        data.draw(st.sampled_from(sorted(COMPATIBLE.values()))),
        data.draw(st.booleans()),
        data.draw(st.sampled_from(BLOCK_SIZES)),
    )
    header = redo.vector_header_size
    groups = data.draw(
        st.lists(st.lists(st.integers(0, 3 * redo.block_size), min_size=1), min_size=1, max_size=6)
    )
    log = OpenLog(redo, IDENTITY, 9, 5000, 1)
    expected = list[bytes]()
    subscn = 0
    for sizes in groups:
        records = list[RedoRecord]()
        for size in sizes:
            subscn += 1
            length = -(-size // 4) * 4
            body = bytes([5, 1]) + bytes(header - 2) + redo.pack("HHI", 4, size, 0)[:4]
            expected.append(body + bytes([subscn & 0xFF]) * length)
            records.append(RedoRecord(5000, subscn, expected[-1]))
        log.write(LwnGroup(tuple(records), 5000, 7, 5001))
    image = log.close(6000, 8)
    parsed = parse_log(image)
    bodies = [r.raw[68 if r.vld & 4 else 24 :] for r in parsed.records]
    assert bodies == expected
    assert [r.subscn for r in parsed.records] == list(range(1, subscn + 1))
    assert (parsed.header.first_scn, parsed.header.next_scn, parsed.header.sequence) == (
        5000,
        6000,
        9,
    )
    assert len(image) == parsed.header.nab * redo.block_size
    for start in range(0, len(image), redo.block_size):
        assert checksum(image[start : start + redo.block_size]) == 0


IDENTITY = LogIdentity(1, "SIM", 77, 1224959854, 1000)


def test_log_names_have_thread_sequence_and_incarnation() -> None:
    assert OpenLog(RedoFormat(), IDENTITY, 15, 1, 1).name == "arch1_15_1224959854.dbf"


@pytest.mark.parametrize("place", [40, 512 + 16, 512 + 60, 512 + 150, 512 + 233, 512 + 400])
def test_a_byte_of_a_header_that_no_field_explains_is_found(shared_dir: Path, place: int) -> None:
    path = shared_dir / "real" / "oracle-free-23ai" / "arch1_16_1224959854.dbf"
    data = bytearray(path.read_bytes())
    assert list(broken_headers(parse_log(bytes(data)))) == []
    data[place] ^= 1
    faults = list(broken_headers(parse_log(bytes(data))))
    assert faults == [f"block {place // 512}: another layout"]
