"""Where the complete LWN groups of a log that is being written end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.redo.log_end import Behind, LogEnd, find_end
from olr_pg.redo.window import read_windows
from tests.online_group import sealed

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.redo.window import Log

FIRST = 2
BLOCK = 512


def groups(log: Log) -> dict[int, int]:
    """The highest SCN of the records of each LWN group, by the block behind it."""
    window = next(read_windows(log))
    starts = [*window.lwns.block.tolist(), window.end]
    highest = [
        int(window.records.scn[window.records.lwn == number].max())
        for number in range(window.lwns.block.size)
    ]
    return dict(zip(starts[1:], highest, strict=True))


def data_of(log: Log, end: int | None = None) -> npt.NDArray[np.uint8]:
    last = log.header.nab if end is None else end
    assert last is not None
    return log.raw[FIRST * BLOCK : last * BLOCK].copy()


def restamped(block: bytes, sequence: int) -> bytes:
    changed = bytearray(block)
    changed[8:12] = sequence.to_bytes(4, "little")
    return sealed(changed)


def find(log: Log, data: npt.NDArray[np.uint8], scn: int = 0) -> LogEnd:
    return find_end(data, FIRST, log.header, scn)


def test_all_groups_of_real_logs_are_complete_and_the_next_scn_is_behind_them(
    real_logs: tuple[Log, Log],
) -> None:
    for log in real_logs:
        end = find(log, data_of(log), log.header.first_scn)
        assert end.block == log.header.nab
        assert end.behind is Behind.NOTHING_YET
        last = groups(log)[end.block]
        assert end.scn == last + 1  # Oracle's LWN headers name a next SCN that is higher
        assert log.header.next_scn is not None
        assert end.scn <= log.header.next_scn


@given(st.data())
@settings(max_examples=60)
def test_a_group_counts_with_its_last_block_and_nothing_of_it_before(
    real_logs: tuple[Log, Log], draw: st.DataObject
) -> None:
    log = real_logs[0]
    ends = groups(log)
    stop = draw.draw(st.integers(FIRST, log.header.nab or 0))
    data = data_of(log)
    what = draw.draw(st.sampled_from(["empty", "stale", "torn", "short"]))
    at = (stop - FIRST) * BLOCK
    if what == "empty":
        data[at:] = 0
    elif what == "stale":
        for block in range(at, data.size, BLOCK):
            old = restamped(data[block : block + BLOCK].tobytes(), log.header.sequence - 3)
            data[block : block + BLOCK] = np.frombuffer(old, np.uint8)
    elif what == "torn":
        data[at + 100 : at + 140] ^= 1
        data[at + 140 : at + 141] ^= 2
    else:
        data = data[:at]
    complete = max((end for end in ends if end <= stop), default=FIRST)
    end = find(log, data)
    assert end.block == complete
    assert end.behind is Behind.NOTHING_YET
    assert end.scn == (0 if complete == FIRST else ends[complete] + 1)
    assert end.sound == stop or what == "torn"


def test_a_hole_in_a_group_is_waited_for(real_logs: tuple[Log, Log]) -> None:
    log = real_logs[1]
    first, *_ = groups(log)
    assert first > FIRST + 2
    data = data_of(log)
    data[BLOCK : 2 * BLOCK] = 0
    assert find(log, data).block == FIRST


def test_a_sound_block_of_a_later_sequence_says_that_the_file_was_used_again(
    real_logs: tuple[Log, Log],
) -> None:
    log = real_logs[1]
    first, *_ = groups(log)
    data = data_of(log)
    at = (first - FIRST) * BLOCK
    later = restamped(data[at : at + BLOCK].tobytes(), log.header.sequence + 3)
    data[at : at + BLOCK] = np.frombuffer(later, np.uint8)
    end = find(log, data)
    assert (end.block, end.behind) == (first, Behind.ANOTHER_LOG)
    data[at + 100] ^= 1
    assert find(log, data).behind is Behind.NOTHING_YET


def test_a_sound_block_without_a_group_is_told(real_logs: tuple[Log, Log]) -> None:
    log = real_logs[1]
    first, *_ = groups(log)
    data = data_of(log)
    at = (first - FIRST) * BLOCK
    broken = bytearray(data[at : at + BLOCK].tobytes())
    broken[20] &= ~4
    data[at : at + BLOCK] = np.frombuffer(sealed(broken), np.uint8)
    assert find(log, data).behind is Behind.NO_GROUP


def test_a_group_of_another_incarnation_with_the_same_sequence_is_stale(
    real_logs: tuple[Log, Log],
) -> None:
    log = real_logs[1]
    end = find(log, data_of(log), (log.header.next_scn or 0) + 1)
    assert (end.block, end.behind) == (FIRST, Behind.NOTHING_YET)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1])
def test_nothing_is_not_there_yet(real_logs: tuple[Log, Log], size: int) -> None:
    end = find(real_logs[1], data_of(real_logs[1])[:size])
    assert end == LogEnd(FIRST, 0, FIRST, Behind.NOTHING_YET)
