"""Redo that was made ahead gets the times of its flushes, and stays lawful."""

from __future__ import annotations

import itertools
from pathlib import Path

from olr_pg.simulator.online_redo.flush_times import timed
from olr_pg.simulator.online_redo.online_database import OnlineOptions
from olr_pg.simulator.online_redo.written_redo import redo_of_logs
from tests.simulator.laws import broken_laws
from tests.simulator.online_redo.played import Playing, Source
from tests.simulator.reader import parse_log


def check_times(source: Source, folder: Path) -> None:
    times = itertools.count(1_300_000_000)
    redo = timed(source.redo, redo_of_logs(source.logs), lambda: next(times))
    playing = Playing(source, folder, 1, OnlineOptions(), redo)
    for _ in playing.play():
        pass
    logs = [parse_log(path.read_bytes()) for path in playing.archived()]
    assert broken_laws(logs) == []
    for log in logs:
        flushed = [lwn.time for lwn in log.lwns]
        assert flushed == sorted(flushed)
        assert 1_300_000_000 <= log.header.first_time < flushed[0]
        assert flushed[-1] < log.header.next_time


def test_the_times_are_those_at_which_redo_is_asked_for(
    shop: Source, cluster: Source, tmp_path: Path
) -> None:
    check_times(shop, tmp_path / "shop")
    check_times(cluster, tmp_path / "cluster")
