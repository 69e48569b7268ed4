"""Runs that read online logs, archived ones, and go from one to the other at any place."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.logs import discover_logs
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.redo.window import Log, read_windows
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.spark.session import SparkSettings
from tests.online_source import OnlineGroups, SmallLogs, small_logs
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.scripted_source import PATIENCE_SECONDS, Delivered, Reader, ScriptedSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.capture.archived_log import ArchivedLog


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallLogs:
    return small_logs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def truth(made: SmallLogs) -> list[Delivered]:
    source = ScriptedSource(made.snapshot, None)
    source.logs = made.logs
    with Reader(source, once=True) as reader:
        reader.drain()
        return reader.take()


class Following:
    """A reader of a folder of archived logs, and of groups of online logs."""

    def __init__(self, folder: Path, made: SmallLogs) -> None:
        self.made = made
        self.archive = folder / "archive"
        self.archive.mkdir()
        self.groups = OnlineGroups(folder / "groups", made.logs)
        self.folder = folder
        self.readers = 0

    def source(self) -> OfflineDatabase:
        self.readers += 1
        return OfflineDatabase(
            self.made.snapshot,
            [str(self.archive)],
            poll_seconds=0.01,
            online=OnlineLogs(self.folder / f"spool-{self.readers}"),
            online_specs=[str(self.groups.folder)],
        )

    def read(self, scn: int = 0, **options: Any) -> Reader:
        return Reader(self.source(), scn, **options)

    def archived(self, number: int) -> ArchivedLog:
        """Archive a log; there is only now."""
        log = self.made.logs[number]
        new = self.archive / ".new"
        shutil.copy(log.path, new)
        new.rename(self.archive / Path(log.path).name)
        return log


def await_true(is_true: Callable[[], bool], reader: Reader) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert reader.failure() is None, reader.failure()
        assert time.monotonic() < end
        time.sleep(0.002)


def await_count(got: list[Delivered], reader: Reader, count: int) -> None:
    def enough() -> bool:
        got.extend(reader.take())
        return len(got) >= count

    await_true(enough, reader)


def commits_within(log: ArchivedLog, blocks: int, truth: list[Delivered]) -> int:
    """How many transactions have committed when so many blocks of a log are written."""
    raw = Path(log.path).read_bytes()
    import numpy as np

    windows = read_windows(Log(log.path, log.header, np.frombuffer(raw, np.uint8)))
    highest = log.header.first_scn - 1
    for window in windows:
        ends = [*window.lwns.block[1:].tolist(), window.end]
        for row, end in enumerate(ends):
            if end <= blocks:
                highest = int(window.records.scn[window.records.lwn == row].max())
    return sum(one.commit_scn <= highest for one in truth)


def test_a_commit_is_delivered_with_its_lwn(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    following = Following(tmp_path, made)
    got: list[Delivered] = []
    following.groups.switch()
    with following.read() as reader:
        for number, log in enumerate(made.logs):
            for _ in range(log.blocks - 2):
                following.groups.current.write(1)
                count = commits_within(log, following.groups.current.written, truth)
                await_count(got, reader, count)
                assert got == truth[:count]
            if number + 1 < len(made.logs):
                following.groups.switch()
    assert got == truth


def test_a_first_start_waits_for_a_log_behind_the_dictionary_that_is_copied_late(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    """The first logs are in no group any more, and their copies are still on the way."""
    first, *_ = made.logs
    assert 0 < made.snapshot.scn < first.next_scn  # so nobody would miss the first log otherwise
    following = Following(tmp_path, made)
    for _ in made.logs:
        following.groups.switch()
        following.groups.current.write()
    got: list[Delivered] = []
    with following.read() as reader:
        monitor = reader.delivery.monitor
        await_true(lambda: monitor.state.phase is CapturePhase.WAITING_FOR_REDO, reader)
        reason = monitor.state.reason
        assert reason is not None
        assert (reason.code, reason.where["scn"]) == (2010, made.snapshot.scn)
        assert not reader.take()
        for number in range(len(made.logs)):
            following.archived(number)
        await_count(got, reader, len(truth))
    assert got == truth


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 30)),
        st.tuples(st.just("switch"), st.just(0)),
        st.tuples(st.just("archive"), st.just(0)),
        st.tuples(st.just("settle"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=25,
)


class Course:
    """Steps of writer, archiver and reader, whose transactions are kept over restarts."""

    def __init__(self, folder: Path, made: SmallLogs, truth: list[Delivered]) -> None:
        self.following = Following(folder, made)
        self.truth = truth
        self.got: list[Delivered] = []
        self.following.groups.switch()
        self.begun = 1
        self.archived = 0
        self.reader = self.following.read()
        self.look()

    def do(self, what: str, blocks: int) -> None:
        if what == "write":
            self.following.groups.current.write(blocks)
        elif what == "switch" and self.begun < len(self.following.made.logs):
            self.following.groups.switch()
            self.begun += 1
        elif what == "archive" and self.archived < self.begun - 1:
            self.following.archived(self.archived)
            self.archived += 1
        elif what == "settle":
            self.settle()
        elif what == "restart":
            self.settle()
            # A start needs the log that holds its SCN.
            while self.archived < self.begun - 1:
                self.do("archive", 0)
            scn = min((one.begin_scn for one in self.truth[len(self.got) :]), default=1 << 40)
            self.end()
            self.reader = self.following.read(min(scn, self.highest_scn), resumed=True)
        self.take()

    def look(self) -> None:
        """Wait for the first look: who starts at SCN 0 begins with the oldest log that it sees."""
        await_true(lambda: bool(self.reader.delivery.progress.source.threads), self.reader)

    @property
    def highest_scn(self) -> int:
        return self.truth[-1].begin_scn

    def settle(self) -> None:
        """Wait until everything that can be read is read, as far as a look tells."""
        source = self.reader.decoder.logs
        for _ in range(3):
            source.has_news()
        time.sleep(0.03)
        self.take()

    def take(self) -> None:
        assert self.reader.failure() is None, self.reader.failure()
        for one in self.reader.take():
            if one not in self.got:
                self.got.append(one)
        assert self.got == self.truth[: len(self.got)]

    def finish(self) -> None:
        """Write and archive the rest: everything must come."""
        for _ in range(self.archived, len(self.following.made.logs)):
            self.following.archived(self.archived)
            self.archived += 1

        def done() -> bool:
            self.take()
            return len(self.got) == len(self.truth)

        await_true(done, self.reader)

    def end(self) -> None:
        self.reader.__exit__(None, None, None)


@given(steps=STEPS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_in_between_everything_comes_once_in_one_order(
    tmp_path_factory: pytest.TempPathFactory,
    made: SmallLogs,
    truth: list[Delivered],
    steps: list[tuple[str, int]],
) -> None:
    course = Course(tmp_path_factory.mktemp("course"), made, truth)
    try:
        for what, blocks in steps:
            course.do(what, blocks)
        course.finish()
    finally:
        course.end()


def test_who_is_overtaken_waits_for_the_archived_logs_and_says_which(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    following = Following(tmp_path, made)
    got: list[Delivered] = []
    for _ in range(2):
        following.groups.switch()
    following.groups.current.write(9)
    with following.read() as reader:
        before = commits_within(made.logs[1], 11, truth)
        await_count(got, reader, before)
        # Its files are used again while it looks on, one after the other, before it looks again.
        for _ in range(3):
            following.groups.switch()
        monitor = reader.delivery.monitor

        def waits() -> bool:
            got.extend(reader.take())
            return monitor.state.phase is CapturePhase.WAITING_FOR_REDO

        missing = len(made.logs) - 1
        if len(got) < commits_within(made.logs[1], 10**6, truth):
            await_true(waits, reader)
            assert monitor.state.reason is not None
            assert monitor.state.reason.code == 2010
            assert monitor.state.reason.where["sequence"] == made.logs[1].header.sequence
        for number in range(missing + 1):
            following.archived(number)
        await_count(got, reader, len(truth))
    assert got == truth


def test_who_begins_where_all_was_overwritten_waits_for_archived_logs(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    following = Following(tmp_path, made)
    following.archived(0)
    for _ in range(5):
        following.groups.switch().write()
    got: list[Delivered] = []
    with following.read() as reader:
        monitor = reader.delivery.monitor
        await_true(lambda: monitor.state.phase is CapturePhase.WAITING_FOR_REDO, reader)
        assert monitor.state.reason is not None
        assert monitor.state.reason.where["sequence"] == made.logs[1].header.sequence
        got.extend(reader.take())
        assert got == truth[: len(got)]
        following.archived(1)
        following.groups.switch().write()
        await_count(got, reader, commits_within(made.logs[4], 10**6, truth))
    assert got == truth[: len(got)]


def test_who_goes_on_where_nothing_is_any_more_waits_for_the_log_that_holds_its_scn(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    following = Following(tmp_path, made)
    for _ in range(5):
        following.groups.switch().write()
    scn = made.logs[1].header.first_scn + 1
    readable = truth[: commits_within(made.logs[4], 10**6, truth)]
    wanted = [one for one in readable if one.begin_scn >= scn]
    with following.read(scn, resumed=True) as reader:
        monitor = reader.delivery.monitor
        await_true(lambda: monitor.state.phase is CapturePhase.WAITING_FOR_REDO, reader)
        assert monitor.state.reason is not None
        assert monitor.state.reason.code == 2010
        assert monitor.state.reason.where["scn"] == scn
        assert reader.take() == []
        following.archived(1)
        got: list[Delivered] = []
        await_count(got, reader, len(wanted))
    assert got == wanted


@pytest.mark.usefixtures("one_session")
def test_a_backlog_of_online_logs_is_decoded_by_spark(
    tmp_path: Path, made: SmallLogs, truth: list[Delivered]
) -> None:
    following = Following(tmp_path, made)
    for _ in range(2):
        following.groups.switch().write()
    following.groups.current.write()
    following.groups.switch().write(5)
    splits = SparkDecoding(SparkSettings(), here_bytes=0)
    got: list[Delivered] = []
    with following.read(decode=splits.decode) as reader:
        await_count(got, reader, commits_within(made.logs[2], 7, truth))
        # The same file again, which has grown meanwhile.
        following.groups.current.write()
        await_count(got, reader, commits_within(made.logs[2], 10**6, truth))
    assert got == truth[: len(got)]
    # The backlog, whose small logs are decoded together, and what the last log grew by.
    assert splits.counts.by_spark > 1
    assert splits.counts.here == 0


def test_ddl_within_an_online_log_is_followed(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "source")
    source.create("T", {"ID": NUMBER, "TXT": TEXT})
    snapshot = source.take_snapshot()
    source.threads[0].switch()
    source.insert("T", 1, "before")
    source.add_column("T", "MORE", NUMBER)
    source.insert("T", 2, "behind", 22)
    source.rename_column("T", 1, "WORDS")
    source.insert("T", 3, "at last", 33)
    source.finish()
    logs = discover_logs([str(source.directory / "logs")])
    scripted = ScriptedSource(snapshot, None)
    scripted.logs = logs
    with Reader(scripted, once=True) as reader:
        reader.drain()
        whole = reader.take_messages()
    following = Following(tmp_path, SmallLogs(source.directory, snapshot, logs))
    got = b""
    # Who starts at SCN 0 begins with the oldest log of the first look: it must find the first one.
    following.groups.switch()
    with following.read() as reader:
        for number, log in enumerate(logs):
            if number:
                following.groups.switch()
            for _ in range(log.blocks):
                following.groups.current.write(1)
                got += reader.take_messages()

        def all_came() -> bool:
            nonlocal got
            got += reader.take_messages()
            return len(got) >= len(whole)

        await_true(all_came, reader)
    assert got == whole
