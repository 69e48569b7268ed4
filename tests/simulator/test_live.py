"""A database that runs on: its online and archived logs."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.live import FeedPlan, LiveOptions, NamedFeed, simulate_live
from olr_pg.simulator.named_simulation import NamedSimulation, log_blocks_max
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import (
    Event,
    OnlineEventKind,
    OnlineFiles,
    OpenResetlogs,
)
from olr_pg.simulator.simulated_files import SimulatedFiles, Summary
from olr_pg.simulator.truth import read_table
from olr_pg.simulator.writer.instance import Pace
from tests.simulator.laws import broken_laws
from tests.simulator.online_redo.completeness import read_online_log
from tests.simulator.reader import ParsedLog, parse_log
from tests.simulator.test_named_simulation import decoded

if TYPE_CHECKING:
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.online_redo.online_files import Step

RATE = 60_000
OPTIONS = LiveOptions(RATE, switch_seconds=0.5, seconds=2.0)


class NoWaiting(threading.Event):
    """What waits for it goes on at once."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


def small_logs(threads: int = 1) -> DatabaseShape:
    return replace(demo_shape(), pace=Pace(log_blocks=100), threads=threads)


def run(folder: Path, options: LiveOptions, threads: int = 1) -> Summary:
    shape = small_logs(threads)
    return simulate_live(2, folder, NoWaiting(), options, workload="orders", shape=shape)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("growing", [False, True])
def test_the_logs_of_a_running_database_tell_the_truth(
    tmp_path: Path, growing: bool, ahead: bool
) -> None:
    summary = run(tmp_path, replace(OPTIONS, growing=growing, ahead=ahead))
    assert {path.parent for path in summary.logs} == {tmp_path / "logs"}
    assert sorted((tmp_path / "logs").iterdir()) == sorted(summary.logs)
    assert summary.log_bytes == sum(path.stat().st_size for path in summary.logs)
    logs = sorted(
        (parse_log(path.read_bytes()) for path in summary.logs),
        key=lambda log: log.header.sequence,
    )
    assert len(logs) > 2
    assert broken_laws(logs) == []
    for own, following in itertools.pairwise(log.header for log in logs):
        assert following.sequence == own.sequence + 1
        assert following.first_scn == own.next_scn
        assert following.first_time == own.next_time
    assert decoded(tmp_path) == (tmp_path / "truth.jsonl").read_bytes()


class Held:
    """Counts what the model holds while it works."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.blocks: list[int] = []

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        pass

    def made(self, files: SimulatedFiles) -> None:
        tables = files.simulation.tables
        self.rows.append(sum(len(table.live) for table in tables))
        self.blocks.append(sum(len(table.blocks) for table in tables))

    def stepped(self, step: Step) -> None:
        pass


@pytest.mark.parametrize("workload", ["orders", "bulk", "wide"])
def test_rows_that_nothing_changes_any_more_take_no_memory(tmp_path: Path, workload: str) -> None:
    held, options = Held(), LiveOptions(200_000, switch_seconds=0.5, seconds=8.0)
    summary = simulate_live(
        *(2, tmp_path, NoWaiting(), options),
        workload=workload,
        shape=small_logs(),
        prefilled=True,
        watch=held,
    )
    total = sum(summary.rows.values())
    # What it updates, and of each session an open transaction and the orders that wait.
    assert max(held.rows) < {"orders": 3_000, "bulk": 9_000, "wide": 100}[workload]
    assert max(held.blocks) <= 3 * len(summary.tables)
    if workload == "orders":
        assert total > 1.3 * held.rows[-1]
    final = {t.full_name: read_table(tmp_path / "final", t.full_name) for t in summary.tables}
    assert {name: table.num_rows for name, table in final.items()} == summary.rows
    assert_final_is_truth(tmp_path, final)


def assert_final_is_truth(folder: Path, final: dict[str, pa.Table]) -> None:
    """The final tables have the ROWIDs that the truth leads to."""
    rowids = {name: set(read_table(folder / "tables", name)["ROWID"].to_pylist()) for name in final}
    for line in (folder / "truth.jsonl").read_text("utf-8").splitlines():
        change = json.loads(line)
        if change["op"] == "insert":
            rowids[change["table"]].add(change["rowid"])
        elif change["op"] == "delete":
            rowids[change["table"]].remove(change["rowid"])
    assert {name: set(table["ROWID"].to_pylist()) for name, table in final.items()} == rowids


def test_every_flush_is_written_down(tmp_path: Path) -> None:
    summary = run(tmp_path, OPTIONS)
    lines = (tmp_path / "flushes.jsonl").read_text().splitlines()
    flushes = [json.loads(line) for line in lines]
    size = summary.shape.redo.block_size
    logs = [parse_log(path.read_bytes()) for path in summary.logs]
    assert sum(flush["bytes"] for flush in flushes) == size * sum(
        log.header.nab - 2 for log in logs
    )
    ends = {log.header.sequence: log.header.nab for log in logs}
    last = {flush["sequence"]: flush["block"] for flush in flushes}
    assert last == ends
    scns = [flush["scn"] for flush in flushes]
    assert scns == sorted(scns)


def test_faults_of_every_kind_leave_the_truth(tmp_path: Path) -> None:
    options = replace(
        OPTIONS,
        crash_seconds=0.7,
        idle_threads=1,
        member_faults=0.7,
        members=3,
        archive_lag=2,
    )
    run(tmp_path, options, threads=3)
    assert decoded(tmp_path) == (tmp_path / "truth.jsonl").read_bytes()


def test_without_archiving_the_last_logs_are_in_the_groups(tmp_path: Path) -> None:
    summary = run(tmp_path, replace(OPTIONS, archive_lag=None, members=1))
    assert summary.logs == ()
    files = sorted((tmp_path / "online").iterdir())
    assert [path.name for path in files] == ["redo01a.log", "redo02a.log", "redo03a.log"]
    found = [read_online_log(summary.shape.redo, path.read_bytes()) for path in files]
    contents = [content for content in found if content is not None]
    sequences = sorted(content.header.sequence for content in contents)
    assert sequences == list(range(sequences[0], sequences[0] + 3))
    assert sequences[0] > 18
    assert all(content.end == content.header.nab for content in contents)


def test_the_random_workload_does_not_run_on(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        simulate_live(1, tmp_path, NoWaiting(), OPTIONS, workload="random", shape=demo_shape())
    assert caught.value.code == 8050


STEP = 10_000


class Played:
    """A feed, played into a folder."""

    def __init__(
        self, folder: Path, plan: FeedPlan, *, threads: int = 1, idle: int = 0, size: int = 120_000
    ) -> None:
        self.folder, self.events = folder, list[Event | OpenResetlogs]()
        shape = replace(demo_shape(), threads=threads, pace=Pace(log_blocks=60))
        feed = NamedFeed(
            lambda sink: NamedSimulation(
                *(5, "orders", shape, size, sink), prefilled=True, idle_threads=idle
            ),
            *(plan, 5),
            threads=threads,
            idle_threads=idle,
        )
        made = SimulatedFiles(feed.simulation, folder, truth=True)
        options = OnlineOptions(blocks=log_blocks_max(shape))
        self.database = OnlineDatabase(shape.redo, range(1, threads + 1), options, 5)
        redo = itertools.chain(
            itertools.chain.from_iterable(map(feed.work, itertools.repeat(STEP, size // STEP))),
            (item for end in [feed.end] for item in end()),
        )
        with OnlineFiles(folder / "online", folder / "logs") as files:
            for step in self.database.steps(redo):
                files.apply(step)
                if isinstance(step, Event | OpenResetlogs):
                    self.events.append(step)
        made.end()

    def logs(self) -> list[ParsedLog]:
        """The archived logs in their order."""
        logs = [parse_log(path.read_bytes()) for path in (self.folder / "logs").iterdir()]
        key: Callable[[ParsedLog], tuple[int, ...]] = lambda log: (  # noqa: E731
            log.header.resetlogs_scn,
            log.header.thread,
            log.header.sequence,
        )
        return sorted(logs, key=key)

    def count(self, kind: OnlineEventKind) -> int:
        """How often something happened."""
        return sum(isinstance(event, Event) and event.kind is kind for event in self.events)


def check_truth(played: Played) -> None:
    assert broken_laws(played.logs()) == []
    truth = (played.folder / "truth.jsonl").read_bytes()
    assert truth.count(b'"op":"commit"') > 10
    assert decoded(played.folder) == truth


def test_a_crash_takes_back_what_was_not_whole(tmp_path: Path) -> None:
    played = Played(tmp_path, FeedPlan(crash=30_000))
    assert played.count(OnlineEventKind.CRASHED) == played.count(OnlineEventKind.RECOVERED) > 1
    check_truth(played)


def test_a_thread_without_sessions_writes_now_and_then(tmp_path: Path) -> None:
    played = Played(tmp_path, FeedPlan(heartbeat=30_000), threads=2, idle=1)
    check_truth(played)
    idle = [log for log in played.logs() if log.header.thread == 2]
    assert 2 <= sum(len(log.records) for log in idle) <= 4


def test_an_idle_thread_may_be_silent(tmp_path: Path) -> None:
    played = Played(tmp_path, FeedPlan(heartbeat=None), threads=2, idle=1)
    assert [len(log.records) for log in played.logs() if log.header.thread == 2] == [0]
    assert decoded(tmp_path) == (tmp_path / "truth.jsonl").read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_resetlogs_begins_an_incarnation(tmp_path: Path, threads: int) -> None:
    played = Played(tmp_path, FeedPlan(resetlogs=50_000, crash=40_000), threads=threads)
    opened = [event for event in played.events if isinstance(event, OpenResetlogs)]
    assert len(opened) == 2
    logs = played.logs()
    assert (
        len({log.header.resetlogs for log in logs}) == len({o.header.resetlogs for o in opened}) + 1
    )
    for _, own in itertools.groupby(logs, lambda log: (log.header.resetlogs, log.header.thread)):
        sequences = [log.header.sequence for log in own]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    assert {log.header.sequence for log in logs if log.header.resetlogs_scn > 1} >= {1}
    incarnations = tuple(sorted({log.header.resetlogs for log in logs}, reverse=True))
    snapshot = load_snapshot(str(tmp_path / "dictionary.json"))
    database = replace(snapshot.database, resetlogs=incarnations, activation=None)
    blobs = decode_logs(replace(snapshot, database=database), [str(tmp_path / "logs")])
    found = b"".join(map(JsonLines(database).render, blobs))
    assert found == (tmp_path / "truth.jsonl").read_bytes()
