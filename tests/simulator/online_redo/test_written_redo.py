"""Finished logs as redo that is on its way to online logs."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.simulator.live import spooled
from olr_pg.simulator.online_redo.online_database import OnlineOptions
from olr_pg.simulator.online_redo.online_files import Write
from olr_pg.simulator.online_redo.written_redo import (
    EndedLog,
    FlushedLwns,
    FlushInProgress,
    FlushStyle,
    LogStart,
    crash_writes,
    find_lwns,
    flush_writes,
    header_writes,
    read_format,
    redo_of_logs,
    timed,
)
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK, checksum
from tests.simulator.laws import broken_laws
from tests.simulator.online_redo.played import Playing, Source
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


SIZE = 512
styles = st.builds(FlushStyle, st.integers(1, 9), st.floats(0, 1), st.floats(0, 1))


def carry_out(writes: list[Write], files: dict[str, bytearray]) -> None:
    for write in writes:
        end = write.offset + len(write.data)
        files[write.member][write.offset : end] = write.data


@given(st.integers(0, 2**32), styles, st.integers(1, 3), st.integers(1, 12))
def test_every_member_gets_everything(
    seed: int, style: FlushStyle, members: int, blocks: int
) -> None:
    rng = Random(seed)
    data = rng.randbytes(blocks * SIZE)
    files = {f"member {number}": bytearray((blocks + 5) * SIZE) for number in range(members)}
    writes = list(flush_writes(rng, style, [*files], 3 * SIZE, data, SIZE))
    carry_out(writes, files)
    assert {bytes(file) for file in files.values()} == {bytes(3 * SIZE) + data + bytes(2 * SIZE)}
    assert sum(len(write.data) for write in writes) == members * len(data)


def test_a_tidy_flush_is_one_write_per_member() -> None:
    rng = Random(1)
    writes = list(
        flush_writes(rng, FlushStyle(1, 0.0, 0.0), ["a", "b"], SIZE, bytes(4 * SIZE), SIZE)
    )
    assert sorted((write.member, len(write.data)) for write in writes) == [("a", 2048), ("b", 2048)]


@given(st.integers(0, 2**32), styles)
def test_a_header_is_whole_in_every_member_in_the_end(seed: int, style: FlushStyle) -> None:
    rng = Random(seed)
    image = rng.randbytes(SIZE)
    files = {"a": bytearray(3 * SIZE), "b": bytearray(3 * SIZE)}
    carry_out(list(header_writes(rng, style, [*files], image)), files)
    assert {bytes(file) for file in files.values()} == {bytes(SIZE) + image + bytes(SIZE)}


def first_part(shop: Source) -> FlushedLwns:
    """The flush of the most blocks."""
    parts = [item for item in redo_of_logs(shop.logs) if isinstance(item, FlushedLwns)]
    return max(parts, key=lambda part: part.end - part.block)


def test_a_crash_leaves_the_first_lwn_broken(shop: Source) -> None:
    part = first_part(shop)
    first = next(find_lwns(shop.redo, part.data, part.block))
    broken = set[int]()
    for seed in range(40):
        rng = Random(seed)
        files = {"a": bytearray(part.end * SIZE), "b": bytearray(part.end * SIZE)}
        writes = crash_writes(rng, FlushStyle(), [*files], (first, part.data), SIZE)
        carry_out(list(writes), files)
        for file in files.values():
            bad = [
                number
                for number in range(first.block, first.end)
                if not any(block := file[number * SIZE : (number + 1) * SIZE])
                or checksum(bytes(block))
            ]
            assert bad
            broken.update(bad)
    assert len(broken) > 1


def test_a_flush_in_progress_knows_what_may_be_whole(shop: Source) -> None:
    part = first_part(shop)
    flush = FlushInProgress(shop.redo, part)
    assert flush.whole_end() == part.block
    behind = (part.end - 1) * SIZE
    rest = part.data[(part.end - 1 - part.block) * SIZE :]
    flush.note(Write("a", behind, rest))
    assert flush.whole_end() == part.block
    flush.note(Write("b", part.block * SIZE, part.data[: len(part.data) - SIZE]))
    assert flush.whole_end() == part.block
    flush.note(Write("a", part.block * SIZE, part.data[: len(part.data) - SIZE]))
    assert flush.whole_end() == part.end


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
