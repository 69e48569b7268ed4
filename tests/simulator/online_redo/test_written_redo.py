"""Finished logs as redo that is on its way to online logs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from olr_pg.simulator.fields.block_layout import FIRST_DATA_BLOCK
from olr_pg.simulator.live import spooled
from olr_pg.simulator.online_redo.written_redo import (
    EndedLog,
    FlushedLwns,
    LogStart,
    find_lwns,
    read_format,
    redo_of_logs,
)
from tests.simulator.online_redo.played import Source
from tests.simulator.reader import parse_log


@pytest.mark.parametrize("which", ["shop", "cluster"])
@pytest.mark.parametrize("size", [1, 9])
def test_the_redo_of_logs_comes_by_scn_and_whole(
    request: pytest.FixtureRequest, which: str, size: int
) -> None:
    source: Source = request.getfixturevalue(which)
    found: dict[tuple[int, int], bytes] = {}
    current: dict[int, LogStart] = {}
    scns = []
    for item in redo_of_logs(source.logs, itertools.repeat(size)):
        match item:
            case LogStart(header):
                current[item.thread] = item
                found[item.thread, header.sequence] = b""
                scns.append(header.first_scn)
            case FlushedLwns():
                own = item.thread, current[item.thread].header.sequence
                blocks = source.redo.block_size
                assert item.block == FIRST_DATA_BLOCK + len(found[own]) // blocks
                found[own] += bytes(item.data)
                lwns = list(find_lwns(source.redo, item.data, item.block))
                assert (lwns[0].scn, lwns[-1].next_scn) == (item.scn, item.next_scn)
                assert lwns[-1].end == item.end
                assert item.end - item.block >= size or item.end == last(source, own)
                scns.append(item.scn)
            case EndedLog(header):
                assert header == current.pop(item.thread).header
                scns.append(header.next_scn)
    assert not current
    assert scns == sorted(scns)
    size = 2 * source.redo.block_size
    for log in (parse_log(bytes(log.data)) for log in source.logs):
        assert found.pop((log.header.thread, log.header.sequence)) == log.blocks[size:]
    assert not found


def last(source: Source, own: tuple[int, int]) -> int:
    headers = [parse_log(bytes(log.data)).header for log in source.logs]
    return next(h.nab for h in headers if (h.thread, h.sequence) == own)


def test_the_format_is_read_from_the_headers(shop: Source, cluster: Source) -> None:
    assert read_format(shop.logs[0].data) == shop.redo
    assert read_format(cluster.logs[0].data) == cluster.redo


def test_redo_comes_out_as_it_was_put_in(shop: Source, tmp_path: Path) -> None:
    assert list(spooled(redo_of_logs(shop.logs), tmp_path / "spool")) == list(
        redo_of_logs(shop.logs)
    )
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_redo_is_empty(tmp_path: Path) -> None:
    assert list(spooled([], tmp_path / "spool")) == []
