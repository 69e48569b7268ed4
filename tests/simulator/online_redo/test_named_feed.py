"""The redo of a workload as it is made: crashes, RESETLOGS, idle threads; the truth of them.

Redo in a file, and out of it again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.named_simulation import NamedSimulation, log_blocks_max
from olr_pg.simulator.online_redo.named_feed import FeedPlan, NamedFeed, spooled
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import (
    Event,
    OnlineEventKind,
    OnlineFiles,
    OpenResetlogs,
)
from olr_pg.simulator.online_redo.written_redo import redo_of_logs
from olr_pg.simulator.simulated_files import SimulatedFiles
from olr_pg.simulator.writer.instance import Pace
from tests.simulator.laws import broken_laws
from tests.simulator.online_redo.played import Source
from tests.simulator.reader import ParsedLog, parse_log
from tests.simulator.test_named_simulation import decoded

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


def test_redo_comes_out_as_it_was_put_in(shop: Source, tmp_path: Path) -> None:
    assert list(spooled(redo_of_logs(shop.logs), tmp_path / "spool")) == list(
        redo_of_logs(shop.logs)
    )
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_redo_is_empty(tmp_path: Path) -> None:
    assert list(spooled([], tmp_path / "spool")) == []
