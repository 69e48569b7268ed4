"""What a crash has kept from being written whole, behind the end of finished logs."""

from __future__ import annotations

from random import Random

import pytest

from olr_pg.simulator.online_redo.written_redo import EndedLog, find_lwns, read_header, redo_of_logs
from olr_pg.simulator.writer.log_file import checksum
from tests.simulator.online_redo.lost_tails import with_crashes
from tests.simulator.online_redo.played import Source


@pytest.mark.parametrize("which", ["shop", "cluster"])
def test_lost_blocks_follow_the_end_of_their_log(
    request: pytest.FixtureRequest, which: str
) -> None:
    source: Source = request.getfixturevalue(which)
    logs = with_crashes(source.logs, Random(1), 1.0)
    size = source.redo.block_size
    last = {read_header(log.data).thread: log for log in logs}
    assert [log.data for log in logs] == [log.data for log in source.logs]
    for log in logs:
        header = read_header(log.data)
        assert bool(log.lost) == (log is not last[header.thread])
        for at in range(0, len(log.lost), size):
            block = log.lost[at : at + size]
            number = header.nab + at // size
            assert source.redo.unpack("II", block, 4) == (number, header.sequence)
            assert checksum(block) == 0
    ends = [item for item in redo_of_logs(logs) if isinstance(item, EndedLog)]
    for end in ends:
        if end.lost is not None:
            assert end.lost.block == end.header.nab
            lwns = list(find_lwns(source.redo, end.lost.data, end.lost.block))
            assert lwns[0].scn >= end.header.next_scn
            assert lwns[-1].end == end.lost.end


def test_no_log_crashes_without_a_chance(shop: Source) -> None:
    assert with_crashes(shop.logs, Random(1), 0.0) == shop.logs
