"""A named workload that runs on: its redo gets into online logs, from there into the archive.

Redo comes at a rate. It is made a little before it is played, or all of it before the first flush
(`LiveOptions.ahead`), so that playing it takes next to no work.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.named.named_tables import NAMED
from olr_pg.simulator.named.named_workload import NamedSimulation
from olr_pg.simulator.online_redo.flush import FlushStyle
from olr_pg.simulator.online_redo.flush_times import timed
from olr_pg.simulator.online_redo.named_feed import FeedPlan, NamedFeed
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import OnlineFiles
from olr_pg.simulator.online_redo.player import FlushLog, Pacing, play
from olr_pg.simulator.online_redo.redo_spool import RedoSpool
from olr_pg.simulator.online_redo.steps import Archived, Event, EventKind
from olr_pg.simulator.simulation import Summary, prepare_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.named.engine import LogSink
    from olr_pg.simulator.online_redo.player import Stop
    from olr_pg.simulator.online_redo.steps import Step
    from olr_pg.simulator.online_redo.written_redo import Redo

TICK: Final = 0.2
"""Seconds of redo that are made at once."""

HEARTBEAT_SECONDS: Final = 3.0
"""An instance without sessions writes a record so often."""

ONLINE: Final = "online"
LOGS: Final = "logs"
FLUSHES: Final = "flushes.jsonl"
_SECONDS_AHEAD: Final = 30
"""The tables and the kernels are made for as much redo as this time brings."""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a database that runs on.

    Attributes:
        rate: bytes of redo per second.
        switch_seconds: a log is switched after this time if it is not full before.
        growing: archived logs grow in place instead of appearing whole.
        groups: of each thread, and `members` of each group.
        flush_ms: between two flushes.
        archive_lag: switches by which archiving is late, at most; None: nothing is archived.
        seconds: for which it runs on; None: until it is stopped.
        ahead: all redo is made before it is played; with `seconds` only.
        crash_seconds: between two crashes of an instance; None: none crashes.
        resetlogs_seconds: between two times that the database is opened with RESETLOGS.
        idle_threads: the last redo threads, so many of them, have no sessions.
        member_faults: probability, at each switch, that something happens to a member.
        style: how untidily blocks are written.
    """

    rate: int
    switch_seconds: float = 2.0
    growing: bool = False
    groups: int = 3
    members: int = 2
    flush_ms: float = 10.0
    archive_lag: int | None = 0
    seconds: float | None = None
    ahead: bool = False
    crash_seconds: float | None = None
    resetlogs_seconds: float | None = None
    idle_threads: int = 0
    member_faults: float = 0.0
    style: FlushStyle = field(default_factory=FlushStyle)

    @property
    def size(self) -> int | None:
        """Bytes of redo that it writes; None: until it is stopped."""
        return None if self.seconds is None else int(self.rate * self.seconds)

    def feed_plan(self, block_size: int) -> FeedPlan:
        """Return what happens, by bytes of redo."""

        def bytes_of(seconds: float | None) -> int | None:
            return None if seconds is None else max(int(seconds * self.rate), 1)

        return FeedPlan(
            switch=bytes_of(self.switch_seconds),
            crash=bytes_of(self.crash_seconds),
            resetlogs=bytes_of(self.resetlogs_seconds),
            heartbeat=bytes_of(HEARTBEAT_SECONDS),
            flush_blocks=max(int(self.rate * self.flush_ms / 1000) // block_size, 1),
        )


class LiveWatch(Protocol):
    """Looks on while a database works."""

    def begin(self, simulation: NamedSimulation, database: OnlineDatabase) -> None:
        """Look at a database that is about to work."""

    def made(self, simulation: NamedSimulation) -> None:
        """Look at redo that was made, and is going to be flushed."""

    def stepped(self, step: Step) -> None:
        """Look at a step that was carried out."""


def simulate_live(
    seed: int,
    out_dir: Path,
    stop: Stop,
    options: LiveOptions,
    *,
    workload: str,
    shape: DatabaseShape,
    prefilled: bool = False,
    truth: bool = True,
    watch: LiveWatch | None = None,
) -> Summary:
    """Simulate as `simulate` does, until `stop` is set; then commit and archive what is open.

    Args:
        watch: is told how the work goes on.

    Raises:
        OlrPgError: 8050 the workload cannot run on, 8002 the directory cannot be used.
    """
    if workload not in NAMED:
        raise OlrPgError(Code.WORKLOAD_NOT_LIVE, f"{workload} is not among {', '.join(NAMED)}")
    directory = prepare_directory(out_dir)

    def make(sink: LogSink) -> NamedSimulation:
        size = options.size or options.rate * _SECONDS_AHEAD
        return NamedSimulation(
            *(seed, directory, workload, shape, size, sink),
            prefilled=prefilled,
            truth=truth,
            idle_threads=options.idle_threads,
        )

    idle, plan = options.idle_threads, options.feed_plan(shape.redo.block_size)
    feed = NamedFeed(make, plan, seed, threads=shape.threads, idle_threads=idle)
    live = _LiveDatabase(seed, directory, options, feed, shape, watch)
    live.run(stop)
    simulation = feed.simulation
    return Summary(
        *(seed, shape, simulation.start, tuple(live.logs)),
        live.log_bytes,
        *(simulation.transactions, simulation.changes, live.rows, simulation.tables),
    )


class _LiveDatabase:
    """A database at work.

    Attributes:
        logs: the archived ones, and `log_bytes` of all of them.
        rows: of each table, in the end.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        options: LiveOptions,
        feed: NamedFeed,
        shape: DatabaseShape,
        watch: LiveWatch | None,
    ) -> None:
        self._directory, self._options, self._feed, self._watch = directory, options, feed, watch
        self._redo = shape.redo
        online = OnlineOptions(
            groups=options.groups,
            members=options.members,
            blocks=feed.simulation.log_blocks,
            archive_lag=options.archive_lag,
            style=options.style,
            member_faults=options.member_faults,
        )
        threads = range(1, shape.threads + 1)
        self._database = OnlineDatabase(shape.redo, threads, online, seed)
        self._flush_log: FlushLog | None = None
        self.logs: list[Path] = []
        self.log_bytes = 0
        self.rows = dict[str, int]()

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set or the time is over."""
        if self._watch is not None:
            self._watch.begin(self._feed.simulation, self._database)
        redo = self._made_ahead(stop) if self._options.ahead else self._making(stop)
        instance = self._feed.simulation.instance
        redo = timed(self._redo, redo, lambda: instance.redo_time_at(int(time.time())))
        making = None if self._options.growing else self._directory / "archiving"
        with ExitStack() as open_files:
            file = open_files.enter_context((self._directory / FLUSHES).open("wb"))
            self._flush_log = FlushLog(file)
            files = OnlineFiles(self._directory / ONLINE, self._directory / LOGS, making)
            open_files.enter_context(files)
            steps = self._database.steps(redo)
            play(steps, files, Pacing(self._options.rate, stop), self._stepped)

    def _made_ahead(self, stop: Stop) -> Iterator[Redo]:
        spool = RedoSpool(self._directory / "redo.part")
        spool.fill(self._making(stop))
        yield from spool.empty()

    def _making(self, stop: Stop) -> Iterator[Redo]:
        simulation, options, made = self._feed.simulation, self._options, 0
        tick = max(int(options.rate * TICK), 1)
        while not stop.is_set() and (options.size is None or made < options.size):
            simulation.set_clock(time.time())
            redo = self._feed.work(tick)
            made += tick
            self._tell_made()
            yield from redo
        self.rows, redo = self._feed.end()
        self._tell_made()
        yield from redo

    def _tell_made(self) -> None:
        if self._watch is not None:
            self._watch.made(self._feed.simulation)

    def _stepped(self, step: Step) -> None:
        if isinstance(step, Event) and step.kind is EventKind.FLUSHED:
            assert self._flush_log is not None
            self._flush_log.note(step)
        if isinstance(step, Archived):
            path = self._directory / LOGS / step.name
            self.logs.append(path)
            # Whoever reads the logs may delete them.
            self.log_bytes += step.header.nab * self._redo.block_size
        if self._watch is not None:
            self._watch.stepped(step)
