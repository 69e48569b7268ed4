"""Online logs at any instant: lawful, and with a prefix of the truth in them.

Copies of logs that have ended.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.online_redo.online_database import Archiver, OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import (
    CURRENT,
    Archived,
    ControlFile,
    CopyToArchive,
    Event,
    OnlineEventKind,
    Step,
    Write,
    WriteArchive,
)
from olr_pg.simulator.online_redo.written_redo import FlushStyle, redo_of_logs
from olr_pg.simulator.writer.log_file import UNKNOWN_NAB, OsHeader
from tests.simulator.laws import broken_laws
from tests.simulator.online_redo.completeness import TruthPrefix, read_online_log
from tests.simulator.online_redo.lost_tails import with_crashes
from tests.simulator.online_redo.played import Playing, Source
from tests.simulator.reader import ParsedLog, parse_log

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


def test_a_current_log_has_no_end_and_a_stale_tail(shop: Source, tmp_path: Path) -> None:
    playing, redo = Playing(shop, tmp_path, 1, OnlineOptions()), shop.redo
    stale = 0
    for step in playing.play():
        if not (isinstance(step, Event) and step.kind is OnlineEventKind.FLUSHED):
            continue
        for group in playing.database.control.groups.values():
            if group.header is None:
                continue
            data = playing.file(group.written[0])
            content = read_online_log(redo, data)
            assert content is not None
            assert content.header == group.header
            assert redo.unpack("I", data, 24) == (len(data) // redo.block_size - 1,)
            if group.status == CURRENT:
                assert content.header.nab == UNKNOWN_NAB
                assert content.header.next_scn == SCN_NONE
                assert content.header.header_writes == 1
            else:
                assert content.end == content.header.nab
                assert content.header.next_scn < SCN_NONE
                assert content.header.header_writes == 2
            blocks = np.frombuffer(data, "<u4").reshape(-1, redo.block_size // 4)[content.end :]
            behind = {int(sequence) for sequence in blocks[:, 2]} - {0}
            assert all(sequence < content.header.sequence for sequence in behind)
            stale += bool(behind)
    assert stale


def test_groups_are_used_in_turn(shop: Source, tmp_path: Path) -> None:
    playing = Playing(shop, tmp_path, 1, OnlineOptions(groups=4, members=1))
    used = []
    for step in playing.play():
        if isinstance(step, Event) and step.kind is OnlineEventKind.SWITCHED:
            groups = playing.database.control.groups.values()
            used += [group.number for group in groups if group.status == CURRENT]
    assert used == [1, 2, 3, 4, 1, 2]
    assert [log.header.group for log in map(parse, playing.archived())] == used


def parse(path: Path) -> ParsedLog:
    return parse_log(path.read_bytes())


def test_a_thread_waits_for_the_archiver_before_it_overwrites(shop: Source, tmp_path: Path) -> None:
    playing = Playing(shop, tmp_path, 2, OnlineOptions(groups=3))
    playing.database.archiver.stop()
    waited = 0
    for step in playing.play():
        if isinstance(step, Event) and step.kind is OnlineEventKind.WAITING:
            waited += 1
            if waited <= 5:
                groups = playing.database.control.groups.values()
                assert {group.is_archived for group in groups} == {False}
                assert playing.archived() == []
            if waited == 5:
                playing.database.archiver.start()
    assert waited >= 5
    assert len(playing.archived()) == len(shop.logs)


def test_without_archiving_groups_are_overwritten(shop: Source, tmp_path: Path) -> None:
    playing = Playing(shop, tmp_path, 3, OnlineOptions(archive_lag=None))
    kinds = {step.kind for step in playing.play() if isinstance(step, Event)}
    assert kinds == {OnlineEventKind.FLUSHED, OnlineEventKind.SWITCHED}
    assert playing.archived() == []


def test_archiving_is_late_by_few_switches(shop: Source, tmp_path: Path) -> None:
    behind = set()
    for seed in range(4):
        options = OnlineOptions(groups=6, archive_lag=2)
        playing = Playing(shop, tmp_path / str(seed), seed, options)
        for step in playing.play():
            if isinstance(step, Archived):
                behind.add(playing.database.flushed()[1].sequence - step.header.sequence)
    assert behind >= {1, 2}
    assert max(behind) <= 4


@pytest.mark.parametrize("which", ["shop", "cluster"])
def test_a_crashed_log_ends_before_what_was_lost(
    request: pytest.FixtureRequest, tmp_path: Path, which: str
) -> None:
    source: Source = request.getfixturevalue(which)
    rng = Random(3)
    crashed = replace(source, logs=with_crashes(source.logs, rng, 1.0))
    for seed in range(3):
        playing = Playing(crashed, tmp_path / str(seed), seed, OnlineOptions())
        events = list[tuple[int, OnlineEventKind]]()
        for step in playing.play():
            if isinstance(step, Write):
                check_current(playing, written_logs(source))
            if isinstance(step, Event) and step.kind not in (
                OnlineEventKind.FLUSHED,
                OnlineEventKind.WAITING,
            ):
                events.append((step.thread, step.kind))
        assert [kind for thread, kind in events if thread == 1][:4] == [
            *(
                OnlineEventKind.SWITCHED,
                OnlineEventKind.CRASHED,
                OnlineEventKind.RECOVERED,
                OnlineEventKind.SWITCHED,
            ),
        ]
        assert broken_laws([parse(path) for path in playing.archived()]) == []


def test_the_same_seed_gives_the_same_steps(cluster: Source, tmp_path: Path) -> None:
    def steps(seed: int, name: str) -> list[Step]:
        playing = Playing(cluster, tmp_path / name, seed, replace(WILD, member_faults=0.5))
        return list(playing.play())

    assert steps(1, "a") == steps(1, "b") != steps(2, "c")


def test_a_log_that_does_not_fit_its_file_is_refused(shop: Source) -> None:
    database = OnlineDatabase(shop.redo, [1], OnlineOptions(blocks=shop.blocks - 1), 1)
    with pytest.raises(ValueError, match="do not fit"):
        list(database.steps(redo_of_logs(shop.logs)))


def test_up_to_the_current_scn_every_commit_is_flushed(cluster: Source, tmp_path: Path) -> None:
    prefix = TruthPrefix(cluster.truth, cluster.logs)
    playing = Playing(cluster, tmp_path, 5, WILD)
    commits = [
        int(line.split(b'"commit_scn":')[1].split(b",")[0])
        for line in cluster.truth.splitlines()
        if line.startswith(b'{"op":"commit"')
    ]
    seen = set()
    for step in playing.play():
        if isinstance(step, Event):
            complete = prefix.complete(playing.database.flushed()).count(b'"op":"commit"')
            scn = playing.database.current_scn()
            assert sum(commit <= scn for commit in commits) <= complete
            seen.add(complete)
    assert len(seen) > 5
    assert prefix.complete(playing.database.flushed()) == cluster.truth


def archiver_of(shop: Source, lag: int | None) -> tuple[Archiver, ControlFile]:
    control = ControlFile(shop.redo, [1], 3, 2, 100)
    return Archiver(shop.redo, control, Random(1), lag), control


def all_steps(archiver: Archiver) -> list[Step]:
    return [step for _ in range(1_000) for step in archiver.step()]


def test_a_log_is_copied_whole_from_a_member_that_is_written(shop: Source) -> None:
    archiver, control = archiver_of(shop, 0)
    header = parse_log(bytes(shop.logs[0].data)).header
    control.switch(1, header)
    control.change_member(1, "redo01a.log", is_written=False)
    archiver.add(1, header)
    assert archiver.is_working
    assert not archiver.may_reuse(1)
    first, *copies, last = all_steps(archiver)
    name = f"arch1_{header.sequence}_{header.resetlogs}.dbf"
    assert first == WriteArchive(name, OsHeader(header.nab - 1).image(shop.redo))
    end = shop.redo.block_size
    for copy in copies:
        assert isinstance(copy, CopyToArchive)
        assert (copy.name, copy.member, copy.offset) == (name, "redo01b.log", end)
        end += copy.size
    assert end == header.nab * shop.redo.block_size
    assert last == Archived(name, header)
    assert control.groups[1].is_archived
    assert archiver.may_reuse(1)
    assert not archiver.is_working


def test_a_copy_waits_for_its_switches_unless_its_group_is_needed(shop: Source) -> None:
    header = parse_log(bytes(shop.logs[0].data)).header
    for needed in (False, True):
        archiver, _ = archiver_of(shop, 9)
        archiver.add(1, header)
        assert not archiver.is_working
        if needed:
            assert not archiver.may_reuse(1)
        else:
            for _ in range(9):
                archiver.switched()
        assert archiver.is_working


def test_two_logs_are_copied_at_a_time(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    headers = [parse_log(bytes(log.data)).header for log in shop.logs[:3]]
    for number, header in enumerate(headers, 1):
        archiver.add(number, replace(header, nab=40_000))
    steps = all_steps(archiver)
    begun = [at for at, step in enumerate(steps) if isinstance(step, WriteArchive)]
    ended = [at for at, step in enumerate(steps) if isinstance(step, Archived)]
    assert begun[1] < ended[0] < begun[2]


def test_a_stopped_archiver_does_nothing(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    archiver.stop()
    assert all_steps(archiver) == []
    archiver.start()
    assert all_steps(archiver)


def test_what_is_left_may_be_forgotten(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    archiver.forget()
    assert all_steps(archiver) == []


def test_without_archiving_every_group_may_be_reused(shop: Source) -> None:
    archiver, _ = archiver_of(shop, None)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    assert archiver.may_reuse(1)
    assert not archiver.is_working
