"""Online logs at any instant: lawful, and with a prefix of the truth in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from olr_pg.simulator.laws import broken_laws
from olr_pg.simulator.online_redo.completeness import read_online_log
from olr_pg.simulator.online_redo.control_file import CURRENT
from olr_pg.simulator.online_redo.flush import FlushStyle
from olr_pg.simulator.online_redo.online_database import OnlineOptions
from olr_pg.simulator.online_redo.steps import Write
from olr_pg.simulator.reader import parse_log
from tests.simulator.online_redo.played import Playing, Source

WILD = OnlineOptions(style=FlushStyle(pieces=6, torn=0.6), archive_lag=2)


def written_logs(source: Source) -> dict[tuple[int, int], bytes]:
    """The data blocks of each log by thread and sequence."""
    logs = [parse_log(bytes(log.data)) for log in source.logs]
    size = 2 * source.redo.block_size
    return {(log.header.thread, log.header.sequence): log.blocks[size:] for log in logs}


def check_current(playing: Playing, written: dict[tuple[int, int], bytes]) -> None:
    """Check what a reader finds in the members of each thread's current group."""
    flushed, reached = playing.database.flushed(), playing.database.reached()
    for group in playing.database.control.groups.values():
        if group.status != CURRENT or group.header is None:
            continue
        low, high = flushed[group.thread], reached[group.thread]
        assert low <= high
        for name in group.written:
            data = playing.file(name)
            content = read_online_log(playing.source.redo, data)
            if content is None or content.header.sequence != low.sequence:
                continue  # its header is being written
            assert low.block <= content.end <= high.block
            size = playing.source.redo.block_size
            own = written[group.thread, low.sequence]
            assert data[2 * size : content.end * size] == own[: (content.end - 2) * size]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("which", ["shop", "cluster"])
def test_at_any_instant_whole_lwns_are_those_of_the_log(
    request: pytest.FixtureRequest, tmp_path: Path, which: str, seed: int
) -> None:
    source: Source = request.getfixturevalue(which)
    written = written_logs(source)
    playing = Playing(source, tmp_path, seed, replace(WILD, member_faults=0.5))
    for step in playing.play():
        if isinstance(step, Write):
            check_current(playing, written)
    archived = [parse_log(path.read_bytes()) for path in playing.archived()]
    assert broken_laws(archived) == []
    size = 2 * source.redo.block_size
    assert {
        (log.header.thread, log.header.sequence): log.blocks[size:] for log in archived
    } == written
