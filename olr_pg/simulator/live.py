"""A named workload that runs on: its redo gets into online logs, from there into the archive.

Redo comes at a rate. It is made a little before it is played, or all of it before the first flush
(`LiveOptions.ahead`), so that playing it takes next to no work.
"""

from __future__ import annotations

import itertools
import mmap
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation, log_blocks_max
from olr_pg.simulator.online_redo.flush import FlushStyle
from olr_pg.simulator.online_redo.flush_times import timed
from olr_pg.simulator.online_redo.named_feed import FeedPlan, NamedFeed
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import OnlineFiles
from olr_pg.simulator.online_redo.player import Pacing, note_flush, play
from olr_pg.simulator.online_redo.redo_spool import spooled
from olr_pg.simulator.online_redo.steps import Archived, Event, OnlineEventKind
from olr_pg.simulator.online_redo.written_redo import WrittenLog, redo_of_logs
from olr_pg.simulator.simulated_files import SimulatedFiles, Summary, prepare_directory
from olr_pg.simulator.stamping.stamped_simulation import (
    COPIED_FROM,
    copy_template,
    template_for,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.steps import Step
    from olr_pg.simulator.online_redo.written_redo import Redo
    from olr_pg.simulator.writer.instance import LogSink

TICK: Final = 0.2
"""Seconds of redo that are generated in one step."""

HEARTBEAT_SECONDS: Final = 3.0
"""An instance without sessions writes a record so often."""

ONLINE: Final = "online"
LOGS: Final = "logs"
FLUSHES: Final = "flushes.jsonl"
MADE: Final = "made"
"""Folder of the logs that are made ahead."""

_SECONDS_AHEAD: Final = 30
"""The tables are made for as much redo as this time brings."""


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

    @property
    def is_copied(self) -> bool:
        """Tell whether its redo is made as copies: so much ahead that the model would take long."""
        disturbed = self.crash_seconds or self.resetlogs_seconds or self.idle_threads
        return self.ahead and not disturbed and (self.size or 0) >= COPIED_FROM

    def online_options(self, blocks: int) -> OnlineOptions:
        """Return what its online logs are like, which have no more than so many blocks."""
        return OnlineOptions(
            groups=self.groups,
            members=self.members,
            blocks=blocks,
            archive_lag=self.archive_lag,
            style=self.style,
            member_faults=self.member_faults,
        )

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

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        """Look at a database that is about to work."""

    def made(self, files: SimulatedFiles) -> None:
        """Look at redo that was made, and is going to be flushed."""

    def stepped(self, step: Step) -> None:
        """Look at a step that was carried out."""


def simulate_live(
    seed: int,
    out_dir: Path,
    stop: threading.Event,
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
        watch: called with the progress of the work.

    Raises:
        OlrPgError: 8050 the workload cannot run on, 8002 the directory cannot be used.
    """
    if workload not in NAMED:
        raise OlrPgError(Code.WORKLOAD_NOT_LIVE, f"{workload} is not among {', '.join(NAMED)}")
    directory = prepare_directory(out_dir)
    database = OnlineDatabase(
        *(shape.redo, range(1, shape.threads + 1)),
        options.online_options(log_blocks_max(shape)),
        seed,
    )
    asked = _Asked(seed, directory, options, workload, shape, prefilled, truth)
    work: _CopiedWork | _ModelWork
    if options.is_copied and watch is None and shape.rows.can_be_copied:
        work = _CopiedWork(asked)
    else:
        work = _ModelWork(asked, watch)
        if watch is not None:
            watch.begin(work.files, database)
    live = _LiveDatabase(directory, options, shape.redo, database, watch)
    live.run(work, stop)
    return replace(work.summary(), shape=shape, logs=tuple(live.logs), log_bytes=live.log_bytes)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The database that is asked for; as of `simulate_live`."""

    seed: int
    directory: Path
    options: LiveOptions
    workload: str
    shape: DatabaseShape
    prefilled: bool
    truth: bool

    @property
    def plan(self) -> FeedPlan:
        """The planned actions, by bytes of redo."""
        return self.options.feed_plan(self.shape.redo.block_size)


class _ModelWork:
    """The model at work."""

    def __init__(self, asked: _Asked, watch: LiveWatch | None) -> None:
        options, idle = asked.options, asked.options.idle_threads
        size = options.size or options.rate * _SECONDS_AHEAD

        def make(sink: LogSink) -> NamedSimulation:
            of = asked.seed, asked.workload, asked.shape, size, sink
            return NamedSimulation(*of, prefilled=asked.prefilled, idle_threads=idle)

        self._feed = NamedFeed(
            *(make, asked.plan, asked.seed), threads=asked.shape.threads, idle_threads=idle
        )
        self._options, self._watch, self._directory = options, watch, asked.directory
        self.files = SimulatedFiles(
            self._feed.simulation, asked.directory, truth=asked.truth, forgets=True
        )
        self._summary: Summary | None = None
        self.zone = self._feed.simulation.instance.zone

    def redo(self, stop: threading.Event) -> Iterator[Redo]:
        """Make redo; ahead of all, if that is asked for."""
        made = self._making(stop)
        yield from spooled(made, self._directory / "redo.part") if self._options.ahead else made

    def _making(self, stop: threading.Event) -> Iterator[Redo]:
        options, made = self._options, 0
        tick = max(int(options.rate * TICK), 1)
        while not stop.is_set() and (options.size is None or made < options.size):
            self._feed.simulation.set_clock(time.time())
            redo = self._feed.work(tick)
            made += tick
            self._tell_made()
            yield from redo
        redo = self._feed.end()
        self._tell_made()
        self._summary = self.files.end()
        yield from redo

    def _tell_made(self) -> None:
        self.files.write_truth()
        if self._watch is not None:
            self._watch.made(self.files)

    def summary(self) -> Summary:
        """Return how much was written."""
        assert self._summary is not None
        return self._summary


class _CopiedWork:
    """Copies of the model's redo, created before the first of them is flushed."""

    def __init__(self, asked: _Asked) -> None:
        size, plan, shape = asked.options.size, asked.plan, asked.shape
        assert size is not None
        blocks = (plan.switch or size) // shape.redo.block_size
        pace = replace(shape.pace, log_blocks=max(min(blocks, shape.pace.log_blocks), 1))
        own = replace(shape, pace=pace)
        template = template_for(asked.seed, asked.workload, own, size, prefilled=asked.prefilled)
        self._plan, self._folder = plan, asked.directory / MADE
        self._folder.mkdir()
        self._summary = copy_template(
            template, size, asked.directory, truth=asked.truth, logs=self._folder
        )
        self.zone = template.zone

    def redo(self, stop: threading.Event) -> Iterator[Redo]:
        """Yield the redo of the logs that were written, and remove them."""
        logs = list[WrittenLog]()
        for path in self._summary.logs:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            logs.append(WrittenLog(memoryview(mapped)))
        shutil.rmtree(self._folder)
        yield from redo_of_logs(logs, itertools.repeat(self._plan.flush_blocks))

    def summary(self) -> Summary:
        """Return how much was written."""
        return self._summary


class _LiveDatabase:
    """A database at work.

    Attributes:
        logs: the archived ones, and `log_bytes` of all of them.
    """

    def __init__(
        self,
        directory: Path,
        options: LiveOptions,
        redo: RedoFormat,
        database: OnlineDatabase,
        watch: LiveWatch | None,
    ) -> None:
        self._directory, self._options, self._redo = directory, options, redo
        self._database, self._watch = database, watch
        self._flushes: BinaryIO
        self.logs: list[Path] = []
        self.log_bytes = 0

    def run(self, work: _CopiedWork | _ModelWork, stop: threading.Event) -> None:
        """Work until `stop` is set or the time is over."""
        zone = work.zone

        def now() -> int:
            return encode_redo_time(datetime.now(UTC).replace(microsecond=0).astimezone(zone))

        redo = timed(self._redo, work.redo(stop), now)
        making = None if self._options.growing else self._directory / "archiving"
        with ExitStack() as open_files:
            path = self._directory / FLUSHES
            self._flushes = open_files.enter_context(path.open("wb"))
            files = OnlineFiles(self._directory / ONLINE, self._directory / LOGS, making)
            open_files.enter_context(files)
            steps = self._database.steps(redo)
            play(steps, files, Pacing(self._options.rate, stop), self._stepped)

    def _stepped(self, step: Step) -> None:
        if isinstance(step, Event) and step.kind is OnlineEventKind.FLUSHED:
            note_flush(self._flushes, step)
        if isinstance(step, Archived):
            path = self._directory / LOGS / step.name
            self.logs.append(path)
            # Whoever reads the logs may delete them.
            self.log_bytes += step.header.nab * self._redo.block_size
        if self._watch is not None:
            self._watch.stepped(step)
