"""A stream whose logs come late, are missed, or belong to another incarnation.

Offsets come back out of a checkpoint as they went in.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.datasource.redo_stream import (
    BEGINNING,
    FirstLog,
    Limit,
    RedoStream,
    SourceOptions,
    StreamOffset,
    ThreadOffset,
    parse_offset,
    parse_options,
)
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.datasource.survey import Bounds, Place, survey
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.advice import followed
from tests.datasource.source_rows import in_spark
from tests.oracle.live_source import reincarnated
from tests.ordering.test_new_incarnation import NEW, Copied, rac, with_new_incarnation
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.replicator.scripted_source import Rac

__all__ = ["rac"]
ALL = Limit()


class Archive:
    """A folder of logs, some of which are there, and the streams that read it."""

    def __init__(self, folder: Path, made: Rac) -> None:
        self.folder = folder
        self.logs = [Path(log.path) for log in made.one]
        self.dictionary = folder / "dictionary.json"
        write_snapshot(with_new_incarnation(made.snapshot), str(self.dictionary))

    def stream(self, start_scn: int = 0) -> RedoStream:
        """The stream of a query that was just started."""
        places = (str(self.folder / "logs"),)
        options = SourceOptions(
            places, (str(self.dictionary),), bounds=Bounds(start_scn), split_bytes=20_000
        )
        return RedoStream(options, IN_MEMORY)

    def add(self, *numbers: int) -> None:
        (self.folder / "logs").mkdir(exist_ok=True)
        for number in numbers:
            shutil.copy(self.logs[number], self.folder / "logs")

    def halve(self, number: int) -> None:
        """As if a copy of a log was in progress."""
        whole = self.logs[number].read_bytes()
        (self.folder / "logs" / self.logs[number].name).write_bytes(whole[: len(whole) // 2])

    def remove(self, number: int) -> None:
        for file in (self.folder / "logs").glob(f"{self.logs[number].name}*"):
            file.unlink()

    def compress(self, number: int) -> None:
        """Compress a log, as a job does with old ones."""
        name = self.logs[number].name
        packed = gzip.compress(self.logs[number].read_bytes(), 1)
        (self.folder / "logs" / f"{name}.gz").write_bytes(packed)
        (self.folder / "logs" / name).unlink(missing_ok=True)


def scns(stream: RedoStream, start: StreamOffset, end: StreamOffset) -> list[int]:
    """The commits of a batch."""
    return sorted(scn for scn, _ in commits(stream, start, end))


def commits(stream: RedoStream, start: StreamOffset, end: StreamOffset) -> set[tuple[int, str]]:
    found = set[tuple[int, str]]()
    for one in stream.splits(start, end):
        decoding, bounds = stream.decoding(), stream.bounds
        reader = SplitReader(decoding, in_spark(), bounds)
        for batch in reader.read(one.split, since=one.since, until=one.until):
            rows: list[dict[str, Any]] = batch.to_pylist()
            found |= {(row["commit_scn"], row["xid"]) for row in rows}
    return found


def images(stream: RedoStream, start: StreamOffset, end: StreamOffset) -> list[str]:
    """The rows after each change of a batch."""
    found = list[str]()
    for one in stream.splits(start, end):
        reader = SplitReader(stream.decoding(), in_spark(), stream.bounds)
        for batch in reader.read(one.split, since=one.since, until=one.until):
            found += map(str, batch.column("after").to_pylist())
    return sorted(found)


class DdlArchive:
    """A folder to which the logs of a source with DDL are copied one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = DdlSource(folder / "source", threads=2)
        self.source.create("A", {"ID": NUMBER, "N": NUMBER})
        self.source.take_snapshot()
        (folder / "logs").mkdir()

    def stream(self) -> RedoStream:
        """The stream of a query that was just started."""
        dictionary = str(self.source.directory / "dictionary.json")
        options = SourceOptions((str(self.folder / "logs"),), (dictionary,))
        return RedoStream(options, IN_MEMORY)

    def add(self, thread: int, *numbers: int) -> None:
        for number in numbers:
            shutil.copy(self._log(thread, number), self.folder / "logs")

    def remove(self, thread: int, number: int) -> None:
        (self.folder / "logs" / self._log(thread, number).name).unlink()

    def _log(self, thread: int, number: int) -> Path:
        return sorted((self.source.directory / "logs").glob(f"*arch{thread}_*"))[number]


def code(stream: RedoStream, start: StreamOffset) -> int:
    with pytest.raises(OlrPgError) as caught:
        stream.latest(start, ALL)
    return caught.value.code


def test_logs_behind_a_gap_wait_for_it(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(0, 1, 3)
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    assert stream.latest(first, ALL) == first
    archive.add(2)
    second = stream.latest(first, ALL)
    assert second.threads[1].place > first.threads[1].place
    assert second == archive.stream().latest(BEGINNING, ALL)
    both = commits(stream, BEGINNING, first) | commits(stream, first, second)
    assert both == commits(archive.stream(), BEGINNING, second)
    assert not commits(stream, BEGINNING, first) & commits(stream, first, second)


def test_a_query_over_a_gap_fails(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(0, 1, 3)
    with pytest.raises(OlrPgError) as caught:
        survey(rac.snapshot, [str(tmp_path / "logs")])
    assert caught.value.code == Code.LOG_MISSING


def test_what_is_available_now_ends_with_the_gap_in_it(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(0, 2)
    stream = archive.stream()
    stream.fix()
    archive.add(1)
    first = stream.latest(BEGINNING, ALL)
    assert code(stream, first) == Code.LOG_MISSING
    assert archive.stream().latest(first, ALL) != first


def test_a_log_that_is_copied_yet_is_waited_for(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(0, 1)
    half = tmp_path / "logs" / archive.logs[1].name
    whole = half.read_bytes()
    half.write_bytes(whole[: len(whole) // 2])
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    assert stream.latest(first, ALL) == first
    half.write_bytes(whole)
    assert stream.latest(first, ALL) != first


@pytest.mark.parametrize("unreadable", [Archive.halve, Archive.compress])
def test_a_stream_does_not_begin_behind_a_log_that_cannot_be_read_yet(
    tmp_path: Path, rac: Rac, unreadable: Callable[[Archive, int], None]
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(1, 2, 3)
    unreadable(archive, 0)
    stream, fixed = archive.stream(), archive.stream()
    assert stream.latest(BEGINNING, ALL) == BEGINNING
    fixed.fix()
    assert code(fixed, BEGINNING) in {Code.LOG_TRUNCATED, Code.LOG_COMPRESSED}
    archive.add(0)
    end = stream.latest(BEGINNING, ALL)
    assert end.firsts[1].sequence == 18
    assert end == archive.stream().latest(BEGINNING, ALL)


def test_compressed_logs_that_were_delivered_or_are_not_wanted_end_no_stream(
    tmp_path: Path, rac: Rac
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    end = archive.stream().latest(BEGINNING, ALL)
    assert end.threads[1].open_sequence > 18
    archive.compress(0)
    stream = archive.stream()
    stream.fix()
    assert stream.latest(end, ALL) == end
    archive.compress(3)
    stream = archive.stream()
    stream.fix()
    assert code(stream, end) in {Code.LOG_COMPRESSED, Code.LOG_MISSING}
    archive.add(3)
    stream = archive.stream(start_scn=rac.one[0].next_scn)
    stream.fix()
    assert stream.latest(BEGINNING, ALL).scn == end.scn


def test_a_gap_in_logs_that_were_delivered_ends_no_stream(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(5))
    stream = archive.stream()
    end = stream.latest(BEGINNING, ALL)
    assert end.threads[1].open_sequence > 19
    archive.compress(1)
    archive.add(5)
    after = stream.latest(end, ALL)
    assert after != end
    restarted = archive.stream()
    restarted.fix()
    assert restarted.latest(end, ALL) == after
    assert commits(archive.stream(), end, after) == commits(stream, end, after)


def test_a_log_from_before_the_begin_of_a_stream_ends_it(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(1, 2, 3)
    stream = archive.stream()
    end = stream.latest(BEGINNING, ALL)
    assert end != BEGINNING
    written = commits(stream, BEGINNING, end)
    archive.add(0)
    assert code(stream, end) == code(archive.stream(), end) == Code.STREAM_LOG_TOO_LATE
    error = OlrPgError(Code.STREAM_LOG_TOO_LATE, "")
    followed(error, Code.STREAM_LOG_TOO_LATE, "another checkpointLocation")
    again = archive.stream()
    whole = commits(again, BEGINNING, again.latest(BEGINNING, ALL))
    assert written < whole
    followed(error, Code.STREAM_LOG_TOO_LATE, "move the log out of the directory")
    archive.remove(0)
    assert archive.stream().latest(end, ALL) == end


def test_batches_are_the_same_although_a_log_before_the_first_one_exists_now(
    tmp_path: Path, rac: Rac
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(1, 2, 3)
    scn = rac.one[0].next_scn
    first = archive.stream(scn).latest(BEGINNING, Limit(files=1))
    second = archive.stream(scn).latest(first, ALL)
    offsets = [(BEGINNING, first), (first, second)]
    without = [commits(archive.stream(scn), *one) for one in offsets]
    archive.add(0)
    assert [commits(archive.stream(scn), *one) for one in offsets] == without
    assert archive.stream(scn).latest(first, ALL) == second
    assert any(without)


def test_a_batch_that_was_planned_before_a_restart_needs_its_first_log(
    tmp_path: Path, rac: Rac
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    end = archive.stream().latest(BEGINNING, ALL)
    archive.compress(0)
    with pytest.raises(OlrPgError) as caught:
        archive.stream().splits(BEGINNING, end)
    assert caught.value.code == Code.LOG_MISSING


def test_a_batch_that_was_planned_before_a_restart_knows_ddl_of_other_redo_threads(
    tmp_path: Path,
) -> None:
    archive = DdlArchive(tmp_path)
    source = archive.source
    source.insert("A", 1, 1)
    source.insert("A", 2, 2, thread=2)
    source.threads[0].switch()
    source.rename_column("A", 1, "M")
    source.insert("A", 3, 3, thread=2)
    source.threads[1].switch()
    source.insert("A", 4, 4)
    source.finish()
    archive.add(1, 0, 1)
    archive.add(2, 0)
    stream = archive.stream()
    end = stream.latest(BEGINNING, ALL)
    # The log with the DDL is no part of the batch.
    assert end.threads[1].place.sequence == 10
    expected = ['{"ID":1,"N":1}', '{"ID":2,"N":2}', '{"ID":3,"M":3}']
    assert images(stream, BEGINNING, end) == expected
    assert images(archive.stream(), BEGINNING, end) == expected
    archive.remove(1, 1)
    with pytest.raises(OlrPgError) as caught:
        archive.stream().splits(BEGINNING, end)
    assert caught.value.code == Code.LOG_MISSING


@pytest.mark.parametrize("is_first_there", [False, True])
def test_a_running_stream_needs_the_logs_of_what_is_open_if_a_redo_thread_appears(
    tmp_path: Path, *, is_first_there: bool
) -> None:
    archive = DdlArchive(tmp_path)
    source = archive.source
    source.insert("A", 1, 1)
    source.threads[0].switch()
    long = source.open_session()
    assert long.insert(source.tables["A"], [sys_cell(2), sys_cell(2)]) is not None
    for number in (3, 4):
        source.insert("A", number, number)
        source.threads[0].switch()
    source.insert("A", 5, 5, thread=2)
    long.commit()
    source.finish()
    archive.add(1, 0, 1, 2)
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    assert (first.threads[1].open_sequence, first.threads[1].place.sequence) == (11, 12)
    archive.remove(1, 1)
    if not is_first_there:
        archive.remove(1, 0)
    archive.add(1, 3)
    archive.add(2, 0)
    if is_first_there:
        assert stream.latest(first, ALL) == first  # it waits for the gap
    else:
        assert code(stream, first) == Code.LOG_MISSING
    archive.add(1, 1)
    second = stream.latest(first, ALL)
    assert second == archive.stream().latest(first, ALL)
    assert images(stream, first, second) == ['{"ID":2,"N":2}']


def test_a_batch_has_as_many_logs_as_it_may(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    stream, offset, found = archive.stream(), BEGINNING, list[set[tuple[int, str]]]()
    while (end := stream.latest(offset, Limit(files=1))) != offset:
        found.append(commits(stream, offset, end))
        offset = end
    assert len(found) == 4
    assert sum(map(len, found)) == len(set.union(*found))
    assert set.union(*found) == commits(archive.stream(), BEGINNING, offset)


def test_a_batch_has_as_many_bytes_as_it_may(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    stream, offset, found = archive.stream(), BEGINNING, list[set[tuple[int, str]]]()
    places = [BEGINNING]
    while (end := stream.latest(offset, Limit(size=1))) != offset:
        found.append(commits(stream, offset, end))
        places.append(offset := end)
    assert len(found) == 4
    assert sum(map(len, found)) == len(set.union(*found))
    assert set.union(*found) == commits(archive.stream(), BEGINNING, offset)
    assert archive.stream().latest(BEGINNING, Limit(size=1 << 40)) == offset
    # Two splits of 20,000 bytes each fit.
    assert archive.stream().latest(BEGINNING, Limit(size=50_000)) == places[2]


def test_a_redo_thread_that_is_ahead_waits_for_the_other_one(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(6))
    for log in rac.two[:2]:
        shutil.copy(log.path, archive.folder / "logs")
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    assert set(first.threads) == {1, 2}
    assert first.scn <= rac.two[1].next_scn < rac.one[5].next_scn
    for log in rac.two[2:]:
        shutil.copy(log.path, archive.folder / "logs")
    second = stream.latest(first, ALL)
    before, behind = commits(stream, BEGINNING, first), commits(stream, first, second)
    assert before
    assert not before & behind
    assert before | behind == commits(archive.stream(), BEGINNING, second)
    assert commits(archive.stream(), first, second) == behind


def test_a_redo_thread_that_appears_later_is_read_from_its_first_log(
    tmp_path: Path, rac: Rac
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(3))
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    before = commits(stream, BEGINNING, first)
    archive.add(*range(3, 8))
    for log in rac.two:
        shutil.copy(log.path, archive.folder / "logs")
    second = stream.latest(first, ALL)
    assert second.firsts[2].sequence == rac.two[0].header.sequence
    behind = commits(stream, first, second)
    assert not before & behind
    assert behind == commits(archive.stream(), first, second) != set()
    assert before == commits(archive.stream(), BEGINNING, first)


def test_a_stream_does_not_begin_while_a_log_of_an_unknown_place_is_damaged(
    tmp_path: Path, rac: Rac
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    damaged = archive.folder / "logs" / archive.logs[0].name
    damaged.write_bytes(b"\x5a" * damaged.stat().st_size)
    stream = archive.stream()
    assert stream.latest(BEGINNING, ALL) == BEGINNING
    archive.add(0)
    end = stream.latest(BEGINNING, ALL)
    assert end.firsts[1].sequence == 18
    damaged.write_bytes(b"\x5a" * damaged.stat().st_size)
    archive.add(4)
    assert stream.latest(end, ALL) == archive.stream().latest(end, ALL) != end


def test_an_offset_of_an_earlier_version_goes_on_without_first_logs(
    tmp_path: Path, rac: Rac
) -> None:
    archive, _, end = reopened(rac, tmp_path)
    written = archive.stream().latest(BEGINNING, Limit(files=1)).as_json()
    del written["first"]
    old = parse_offset(written)
    assert not old.firsts
    after = archive.stream().latest(old, ALL)
    assert (after.threads, after.firsts) == (end.threads, {})
    assert archive.stream().latest(after, ALL) == after


def test_a_restart_needs_the_logs_of_what_is_open(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(4))
    offset = archive.stream().latest(BEGINNING, Limit(files=3))
    shutil.rmtree(tmp_path / "logs")
    archive.add(*range(4, 6))
    assert code(archive.stream(), offset) == Code.LOG_MISSING


def test_a_new_incarnation_is_followed(tmp_path: Path, rac: Rac) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    copied.reopen()
    second = stream.latest(first, ALL)
    assert first.incarnation < second.incarnation
    before, behind = scns(stream, BEGINNING, first), scns(stream, first, second)
    assert max(before) < copied.scn <= min(behind)
    delivered = sorted({one.commit_scn for one in copied.decode()})
    assert sorted({*before, *behind}) == delivered
    copied.orphans()
    assert scns(archive.stream(), first, second) == behind


def test_a_new_incarnation_that_gave_up_what_was_delivered_ends_the_stream(
    tmp_path: Path, rac: Rac
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    copied.orphans()
    stream = archive.stream()
    first = stream.latest(BEGINNING, ALL)
    assert first.scn > copied.scn
    written = commits(stream, BEGINNING, first)
    copied.reopen()
    assert code(stream, first) == Code.STREAM_PAST_RESETLOGS
    assert code(archive.stream(), first) == Code.STREAM_PAST_RESETLOGS
    with pytest.raises(OlrPgError) as caught:
        archive.stream().splits(first, first)
    followed(
        caught.value, Code.STREAM_PAST_RESETLOGS, "committed at the RESETLOGS SCN or later",
        'another checkpointLocation and .option("startScn", that SCN)',
    )  # fmt: skip
    assert f"from SCN {copied.scn} on" in caught.value.detail
    kept = {one for one in written if one[0] < copied.scn}
    assert kept < written
    again = archive.stream(start_scn=copied.scn)
    behind = commits(again, BEGINNING, again.latest(BEGINNING, ALL))
    assert not kept & behind
    assert sorted({scn for scn, _ in kept | behind}) == sorted(
        {one.commit_scn for one in copied.decode()}
    )


@pytest.mark.parametrize("behind", [0, 1])
def test_a_resetlogs_gives_up_the_commits_from_its_scn_on(
    tmp_path: Path, rac: Rac, behind: int
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    first = archive.stream().latest(BEGINNING, ALL)
    copied.scn = first.scn + behind
    copied.reopen()
    if behind:
        assert archive.stream().latest(first, ALL).incarnation == NEW
    else:
        assert code(archive.stream(), first) == Code.STREAM_PAST_RESETLOGS


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_batch_that_was_planned_before_a_resetlogs_orphaned_it_ends_the_stream(
    tmp_path: Path, rac: Rac, ahead: int
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    copied.orphans()
    start = archive.stream().latest(BEGINNING, Limit(files=2))
    end = archive.stream().latest(start, ALL)
    copied.scn += ahead
    copied.reopen()
    assert start.scn < copied.scn <= end.scn
    with pytest.raises(OlrPgError) as caught:
        archive.stream().splits(start, end)
    assert caught.value.code == Code.STREAM_PAST_RESETLOGS


def reopened(rac: Rac, folder: Path) -> tuple[Archive, Copied, StreamOffset]:
    """An archive whose stream has delivered all redo up to the new incarnation."""
    archive, copied = Archive(folder, rac), Copied(rac, folder)
    copied.reopen()
    end = archive.stream().latest(BEGINNING, ALL)
    assert end.incarnation == NEW
    return archive, copied, end


@pytest.mark.parametrize("lost", [[0], [1], [3], [0, 2], [2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("is_packed", [False, True])
def test_delivered_logs_of_an_earlier_incarnation_can_go_in_any_order(
    tmp_path: Path, rac: Rac, lost: list[int], *, is_packed: bool
) -> None:
    archive, copied, end = reopened(rac, tmp_path)
    running = archive.stream()
    assert running.latest(end, ALL) == end
    for number in lost:
        archive.compress(number) if is_packed else archive.remove(number)
    copied.go_on()
    restarted = archive.stream()
    restarted.fix()
    after = restarted.latest(end, ALL)
    assert after.threads[1].place.sequence == 2
    assert restarted.latest(after, ALL) == after == running.latest(end, ALL)
    assert commits(archive.stream(), end, after) == commits(running, end, after) != set()


@pytest.mark.parametrize("late", [Archive.add, Archive.compress])
def test_a_log_of_an_earlier_incarnation_that_comes_too_late_ends_the_stream(
    tmp_path: Path, rac: Rac, late: Callable[[Archive, int], None]
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    for number in (0, 1, 2, 3):
        archive.remove(number)
    copied.reopen()
    stream = archive.stream()
    only_new = stream.latest(BEGINNING, ALL)
    assert only_new.firsts == {1: FirstLog(NEW, 1)}
    planned = commits(stream, BEGINNING, only_new)
    late(archive, 3)
    for one in (stream, archive.stream()):
        assert code(one, only_new) == Code.STREAM_LOG_TOO_LATE
    assert commits(archive.stream(), BEGINNING, only_new) == planned
    archive.remove(3)
    archive.add(1, 2, 3)
    begun = archive.stream().latest(BEGINNING, ALL)
    assert (begun.incarnation, begun.firsts[1].sequence) == (NEW, 19)
    planned = commits(archive.stream(), BEGINNING, begun)
    late(archive, 0)
    assert code(archive.stream(), begun) == Code.STREAM_LOG_TOO_LATE
    assert commits(archive.stream(), BEGINNING, begun) == planned


@pytest.mark.parametrize("late", [Archive.add, Archive.compress])
def test_a_log_that_a_resetlogs_orphaned_does_not_come_too_late(
    tmp_path: Path, rac: Rac, late: Callable[[Archive, int], None]
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    for number in range(4):
        archive.remove(number)
    copied.reopen()
    stream = archive.stream()
    end = stream.latest(BEGINNING, ALL)
    assert end.firsts == {1: FirstLog(NEW, 1)}
    assert rac.one[4].header.first_scn == copied.scn
    late(archive, 4)
    late(archive, 5)
    assert stream.latest(end, ALL) == archive.stream().latest(end, ALL) == end
    assert archive.stream().latest(BEGINNING, ALL) == end
    late(archive, 3)
    assert code(stream, end) == Code.STREAM_LOG_TOO_LATE


def test_a_thread_of_an_earlier_incarnation_that_comes_too_late_ends_the_stream(
    tmp_path: Path, rac: Rac
) -> None:
    archive, _, end = reopened(rac, tmp_path)
    shutil.copy(rac.two[0].path, archive.folder / "logs")
    assert code(archive.stream(), end) == Code.STREAM_LOG_TOO_LATE
    unwanted = archive.stream(start_scn=rac.two[0].next_scn)
    assert unwanted.latest(end, ALL) == end


def test_logs_without_redo_do_not_come_too_late(tmp_path: Path, rac: Rac) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    empty = rac.two[1]
    assert empty.header.nab == 2
    shutil.copy(empty.path, archive.folder / "logs")
    archive.add(4)
    shutil.copy(rac.two[2].path, archive.folder / "logs")
    both = archive.stream().latest(BEGINNING, ALL)
    assert both.firsts[2].sequence == empty.header.sequence
    assert archive.stream().latest(both, ALL) == both
    archive.remove(4)
    (archive.folder / "logs" / Path(rac.two[2].path).name).unlink()
    copied.scn = empty.next_scn + 1
    copied.reopen()
    second = reincarnated(
        *(Path(rac.two[3].path), tmp_path), resetlogs=NEW, scn=copied.scn, activation=99, sequence=1
    )
    shutil.copy(second, archive.folder / "logs" / f"2_1_{NEW}.arc")
    end = archive.stream().latest(BEGINNING, ALL)
    assert end.incarnation == NEW
    assert end.firsts[2] == FirstLog(empty.header.resetlogs_id, empty.header.sequence)
    assert archive.stream().latest(end, ALL) == end


def test_an_incomplete_log_of_an_earlier_incarnation_is_waited_for(
    tmp_path: Path, rac: Rac
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    for number in (0, 1, 2, 3):
        archive.remove(number)
    archive.halve(3)
    copied.reopen()
    stream = archive.stream()
    assert stream.latest(BEGINNING, ALL) == BEGINNING
    archive.add(3)
    assert stream.latest(BEGINNING, ALL).firsts[1].incarnation < NEW


def test_changes_before_an_incomplete_log_are_delivered(tmp_path: Path, rac: Rac) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(0, 1, 3)
    archive.halve(2)
    stream = archive.stream()
    stream.fix()
    end = stream.latest(BEGINNING, ALL)
    assert end.threads[1].place.sequence == 19
    assert code(stream, end) == Code.LOG_TRUNCATED


@pytest.mark.parametrize("unreadable", [Archive.remove, Archive.compress])
def test_a_stream_ignores_gaps_before_its_start_scn(
    tmp_path: Path, rac: Rac, unreadable: Callable[[Archive, int], None]
) -> None:
    archive = Archive(tmp_path, rac)
    archive.add(*range(5))
    unreadable(archive, 1)
    scn = rac.one[1].next_scn
    stream = archive.stream(start_scn=scn)
    stream.fix()
    end = stream.latest(BEGINNING, ALL)
    assert stream.latest(end, ALL) == end
    assert (end.firsts[1].sequence, end.threads[1].place.sequence) == (20, 22)


def test_a_stream_ignores_the_lost_end_of_an_incarnation_that_ended_before_its_start_scn(
    tmp_path: Path, rac: Rac
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    copied.reopen()
    shutil.copy(rac.two[0].path, archive.folder / "logs")
    assert rac.two[0].next_scn + 2 < copied.scn
    for start_scn in (0, copied.scn - 1):
        waiting = archive.stream(start_scn)
        waiting.fix()
        assert waiting.latest(BEGINNING, ALL).incarnation < NEW
    end = archive.stream(copied.scn).latest(BEGINNING, ALL)
    assert end.incarnation == NEW
    found = scns(archive.stream(copied.scn), BEGINNING, end)
    assert found == [one for one in scns(*alone(tmp_path / "alone", rac)) if one >= copied.scn]


def alone(folder: Path, rac: Rac) -> tuple[RedoStream, StreamOffset, StreamOffset]:
    """A batch with all redo of the first thread and of the new incarnation."""
    folder.mkdir()
    archive, _, end = reopened(rac, folder)
    return archive.stream(), BEGINNING, end


def test_commits_that_a_resetlogs_orphaned_do_not_count_as_delivered(
    tmp_path: Path, rac: Rac
) -> None:
    archive, copied = Archive(tmp_path, rac), Copied(rac, tmp_path)
    copied.scn = rac.one[3].header.first_scn + 4
    copied.reopen()
    stream, offset, found = archive.stream(), BEGINNING, set[tuple[int, str]]()
    while (end := stream.latest(offset, Limit(files=1))) != offset:
        found |= commits(archive.stream(), offset, end)
        offset = end
    assert offset.incarnation == NEW
    assert {scn for scn, _ in found} == {one.commit_scn for one in copied.decode()}
    assert commits(archive.stream(), BEGINNING, stream.latest(BEGINNING, ALL)) == found


@pytest.mark.parametrize(
    "offset",
    [
        BEGINNING,
        StreamOffset(
            *(7, 9, {1: ThreadOffset(Place(3, 2), 2), 12: ThreadOffset(Place(4, 5), 4)}),
            {1: FirstLog(7, 2), 3: FirstLog(5, 1)},
        ),
    ],
)
def test_an_offset_comes_back(offset: StreamOffset) -> None:
    assert parse_offset(json.loads(json.dumps(offset.as_json()))) == offset


@pytest.mark.parametrize(
    "other", [{}, {"index": 3}, {"incarnation": 1, "scn": 2, "threads": []}, 7]
)
def test_what_is_no_offset_is_refused(other: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_offset(other)
    assert caught.value.code == Code.STREAM_OFFSET


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": ""},
        {"paths": '["a", ""]'},
        {"dictionary": ""},
        {"dictionary": "[1]"},
        {"dictionary": "[]"},
        {"dictionary": '["a"'},
        {"startScn": "-1"},
        {"endScn": "1e9"},
        {"splitBytes": "1 MB"},
        {"maxFilesPerTrigger": "0"},
        {"maxBytesPerTrigger": "0"},
        {"invalidDate": "zero"},
        {"startScm": "1"},
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_options({"path": "logs", "dictionary": "d.json"} | wrong)
    assert caught.value.code == Code.DATA_SOURCE_OPTION


def test_the_options_of_a_query() -> None:
    given = {"path": "logs", "dictionary": '["a", "b"]', "startscn": "5", "maxBytesPerTrigger": "7"}
    chosen = parse_options(given)
    assert (chosen.logs, chosen.dictionary) == (("logs",), ("a", "b"))
    assert (chosen.bounds.first_scn, chosen.max_bytes, chosen.max_files) == (5, 7, None)
