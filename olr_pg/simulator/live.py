"""A named workload that runs until it is stopped, with online logs that are archived.

Redo is flushed at a given rate. The redo is generated shortly before its flush. With
`LiveOptions.ahead`, all of it is generated before the first flush, so that the flushes need little
processor time; a file keeps it. Log switches, crashes and RESETLOGS happen after a number of bytes
of redo, not after a time. So the same seed and sizes always give the same redo.
"""

from __future__ import annotations

import heapq
import itertools
import mmap
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation, log_blocks_max
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import (
    Archived,
    Event,
    OnlineEventKind,
    OnlineFiles,
    Pacing,
    note_flush,
    play,
)
from olr_pg.simulator.online_redo.written_redo import (
    EndedLog,
    FlushedLwns,
    FlushStyle,
    LogStart,
    WrittenLog,
    log_parts,
    lost_part,
    redo_of_logs,
    timed,
)
from olr_pg.simulator.simulated_files import SimulatedFiles, Summary, prepare_directory
from olr_pg.simulator.stamping.redo_copies import COPIED_FROM, copy_template, template_for
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.online_files import Step
    from olr_pg.simulator.online_redo.written_redo import Redo
    from olr_pg.simulator.writer.instance import LogSink
    from olr_pg.simulator.writer.log_file import HeaderBlock, OpenLog

LOST_BYTES: Final = 40_000
"""Approximate bytes of redo that a crash loses."""


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """The planned actions, each after a number of bytes of redo; None: never.

    Attributes:
        switch: every thread switches its log.
        crash: an instance crashes and recovers.
        resetlogs: the database is opened with RESETLOGS.
        heartbeat: threads without sessions write a record.
        flush_blocks: minimum number of blocks of a flush, which always has whole LWNs.
    """

    switch: int | None = None
    crash: int | None = None
    resetlogs: int | None = None
    heartbeat: int | None = 20_000
    flush_blocks: int = 1


@dataclass(slots=True)
class _Taken:
    """The part of a thread's log that was taken: `log` is (resetlogs id, sequence), `blocks` the
    number of data blocks.
    """

    log: tuple[int, int] = (0, 0)
    blocks: int = 0


class NamedFeed:
    """Runs a named workload, and takes its redo.

    Args:
        make: makes the simulation; its argument is the sink that receives ended logs.
        threads: number of redo threads.
        idle_threads: number of redo threads without sessions; these are the last ones.
    """

    def __init__(
        self,
        make: Callable[[LogSink], NamedSimulation],
        plan: FeedPlan,
        seed: int,
        *,
        threads: int = 1,
        idle_threads: int = 0,
    ) -> None:
        self._plan, self._threads, self._busy = plan, threads, threads - idle_threads
        self._rng = Random(seed ^ 0xC4A5)  # noqa: S311 - reproducible, not secret
        self._taken = [_Taken() for _ in range(threads)]
        self._items: list[list[tuple[tuple[int, int], Redo]]] = [[] for _ in range(threads)]
        self._lost = dict[int, bytes]()
        self._made = 0
        self._due = {name: every for name, every in self._events() if every is not None}
        if plan.crash is not None:
            self._due["crash"] = plan.crash * 3 // 5  # so that crashes and switches do not coincide
        self._sizes = itertools.repeat(plan.flush_blocks)
        self.simulation = make(self._log_ended)

    def _events(self) -> tuple[tuple[str, int | None], ...]:
        plan = self._plan
        return (
            ("heartbeat", plan.heartbeat if self._busy < self._threads else None),
            ("switch", plan.switch),
            ("crash", plan.crash),
            ("resetlogs", plan.resetlogs),
        )

    def work(self, size: int) -> Iterator[Redo]:
        """Write about `size` more bytes of redo; yield the redo that was flushed, in SCN order."""
        self.simulation.work(size)
        self._made += size
        for name, every in self._events():
            if every is not None and self._made >= self._due[name]:
                self._due[name] = self._made + every
                getattr(self, f"_{name}")()
        self.simulation.flush()
        for thread in range(self._threads):
            self._take(thread)
        return self._merged()

    def end(self) -> Iterator[Redo]:
        """Commit all open transactions and end the logs; return the rest of the redo."""
        self.simulation.end()
        return self._merged()

    def _heartbeat(self) -> None:
        for thread in range(self._busy, self._threads):
            self.simulation.heartbeat(thread)

    def _switch(self) -> None:
        self.simulation.switch_logs()

    def _crash(self) -> None:
        simulation, thread = self.simulation, self._rng.randrange(self._busy)
        simulation.flush()
        self._lost[thread] = simulation.lost_redo(thread, LOST_BYTES)
        simulation.threads[thread].switch()
        simulation.roll_back(thread)

    def _resetlogs(self) -> None:
        time = self.simulation.instance.redo_time
        self.simulation.open_resetlogs(time, self._rng.randrange(1, 1 << 31))

    def _merged(self) -> Iterator[Redo]:
        items = [list(own) for own in self._items]
        for own in self._items:
            own.clear()
        for _, redo in heapq.merge(*items, key=lambda keyed: keyed[0]):
            yield redo

    def _log_ended(self, log: OpenLog, next_scn: int, time: int) -> None:
        header = log.closed(next_scn, time)
        thread = header.thread - 1
        self._begin(thread, header)
        self._add_parts(thread, header, log.sealed(self._taken[thread].blocks))
        end = EndedLog(header, lost_part(log.redo, header, self._lost.pop(thread, b"")))
        self._add(thread, header, header.next_scn, end)

    def _take(self, thread: int) -> None:
        """Take the redo that a thread has written since the last call."""
        log = self.simulation.threads[thread].log
        header = log.header()
        self._begin(thread, header)
        first = self._taken[thread].blocks
        if log.blocks > first:
            self._add_parts(thread, header, log.sealed(first))

    def _begin(self, thread: int, header: HeaderBlock) -> None:
        taken, own = self._taken[thread], (header.resetlogs, header.sequence)
        if taken.log != own:
            taken.log, taken.blocks = own, 0
            self._add(thread, header, header.first_scn, LogStart(header))

    def _add_parts(self, thread: int, header: HeaderBlock, data: bytes) -> None:
        taken, redo = self._taken[thread], self.simulation.shape.redo
        block = FIRST_DATA_BLOCK + taken.blocks
        for part in log_parts(redo, header.thread, memoryview(data), block, self._sizes):
            self._add(thread, header, part.scn, part)
        taken.blocks += len(data) // redo.block_size

    def _add(self, thread: int, header: HeaderBlock, scn: int, item: Redo) -> None:
        self._items[thread].append(((header.resetlogs_scn, scn), item))


def spooled(redo: Iterable[Redo], path: Path) -> Iterator[Redo]:
    """Generate all redo into a file, and then yield it; the file is unlinked before that."""
    items: list[tuple[Redo, int]] = []
    with path.open("w+b") as file:
        for item in redo:
            if isinstance(item, FlushedLwns):
                size = file.write(item.data)
                items.append((replace(item, data=memoryview(b"")), size))
            else:
                items.append((item, 0))
        file.flush()
        path.unlink()
        size = file.tell()
        data = memoryview(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) if size else b"")
    at = 0
    for item, length in items:
        yield replace(item, data=data[at : at + length]) if isinstance(item, FlushedLwns) else item
        at += length


TICK: Final = 0.2
"""Seconds of redo that are generated in one step."""

HEARTBEAT_SECONDS: Final = 3.0
"""Seconds between two records of a thread without sessions."""

ONLINE: Final = "online"
LOGS: Final = "logs"
FLUSHES: Final = "flushes.jsonl"
MADE: Final = "made"
"""Folder of the logs that are generated ahead."""

_SECONDS_AHEAD: Final = 30
"""If the workload runs until it is stopped, the size of the tables is chosen for this many seconds
of redo.
"""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of `simulate_live`.

    Attributes:
        rate: bytes of redo per second.
        switch_seconds: after this time, a log is switched even if it is not full.
        growing: archived logs grow in their final place instead of appearing there complete.
        groups: log groups of each thread; each group has `members` files.
        flush_ms: milliseconds between two flushes.
        archive_lag: maximum number of log switches by which archiving is late; None: nothing is
            archived.
        seconds: duration of the run; None: until it is stopped.
        ahead: all redo is generated before the first flush; requires `seconds`.
        crash_seconds: seconds between two crashes of an instance; None: no crashes.
        resetlogs_seconds: seconds between two RESETLOGS; None: no RESETLOGS.
        idle_threads: number of redo threads without sessions; these are the last ones.
        member_faults: probability, at each switch, that a member of the group gets a fault.
        style: how flushes are cut, torn and reordered.
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
        """Bytes of redo that the run writes; None if it runs until it is stopped."""
        return None if self.seconds is None else int(self.rate * self.seconds)

    @property
    def is_copied(self) -> bool:
        """Return whether redo is copied because the model would take long to generate all of it."""
        disturbed = self.crash_seconds or self.resetlogs_seconds or self.idle_threads
        return self.ahead and not disturbed and (self.size or 0) >= COPIED_FROM

    def online_options(self, blocks: int) -> OnlineOptions:
        """Return the options of the online logs; a log has at most `blocks` blocks."""
        return OnlineOptions(
            groups=self.groups,
            members=self.members,
            blocks=blocks,
            archive_lag=self.archive_lag,
            style=self.style,
            member_faults=self.member_faults,
        )

    def feed_plan(self, block_size: int) -> FeedPlan:
        """Return the planned actions, each after a number of bytes of redo."""

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
    """Is notified of the progress of a live simulation."""

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        """Record a database that is about to start."""

    def made(self, files: SimulatedFiles) -> None:
        """Record that redo was generated and will be flushed."""

    def stepped(self, step: Step) -> None:
        """Record a step that was carried out."""


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
    """Simulate until `stop` is set; then commit the open transactions and archive all redo.

    Args:
        watch: notified of the progress.

    Raises:
        OlrPgError: 8050 the workload cannot run live, 8002 the directory cannot be used.
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
    """The requested database: the arguments of `simulate_live`."""

    seed: int
    directory: Path
    options: LiveOptions
    workload: str
    shape: DatabaseShape
    prefilled: bool
    truth: bool

    @property
    def plan(self) -> FeedPlan:
        """The planned actions, each after a number of bytes of redo."""
        return self.options.feed_plan(self.shape.redo.block_size)


class _ModelWork:
    """Redo that the model generates row by row."""

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
        """Yield generated redo; if the options say so, all of it is generated first."""
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
        """Return the summary of the simulation's output."""
        assert self._summary is not None
        return self._summary


class _CopiedWork:
    """Redo that is copies of the model's redo, all made before the first flush."""

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
        """Yield the redo of the copied logs, and remove these logs."""
        logs = list[WrittenLog]()
        for path in self._summary.logs:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            logs.append(WrittenLog(memoryview(mapped)))
        shutil.rmtree(self._folder)
        yield from redo_of_logs(logs, itertools.repeat(self._plan.flush_blocks))

    def summary(self) -> Summary:
        """Return the summary of the simulation's output."""
        return self._summary


class _LiveDatabase:
    """The online logs and the archive of a live simulation.

    Attributes:
        logs: the archived logs; `log_bytes` is their total size.
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
        """Run until `stop` is set or the time is over."""
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
            # Computed from the header, because a reader of the logs may already have deleted the
            # file.
            self.log_bytes += step.header.nab * self._redo.block_size
        if self._watch is not None:
            self._watch.stepped(step)
