"""The online logs of a database and their archiver, as a sequence of steps.

This module reads no clock and no file. A seed decides everything that redo does not decide: how
flushes are cut, torn and reordered, how two threads overlap, when a log is archived, which member
is lost. The caller must carry out each step before it requests the next one. Then the state of the
database always agrees with the files.

Each thread has a queue of tasks, such as a flush or a switch, and does them one after the other. A
task is a generator of steps. The archiver's copies are also generators of steps.

`Archiver` copies an ended log a few log switches later, up to two logs at the same time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.online_redo.online_files import (
    Archived,
    ControlFile,
    CopyToArchive,
    CreateFile,
    Event,
    LwnPosition,
    MemberFaults,
    OnlineEventKind,
    OpenResetlogs,
    WriteArchive,
)
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
)
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK, UNKNOWN_NAB, OsHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.online_files import Group, Step
    from olr_pg.simulator.online_redo.written_redo import Redo
    from olr_pg.simulator.writer.log_file import HeaderBlock

AT_A_TIME: Final = 2
PIECE_BLOCKS: Final = 1_024
"""Maximum number of blocks that one step copies."""


@dataclass(slots=True)
class _Job:
    """A group that must be archived; it is due after `due` switches."""

    number: int
    header: HeaderBlock
    due: int
    copy: Iterator[Step] | None = None


class Archiver:
    """Archives groups.

    Args:
        lag: maximum number of switches by which it is late; None: it archives nothing, and groups
            are overwritten.
    """

    def __init__(
        self, redo: RedoFormat, control: ControlFile, rng: Random, lag: int | None
    ) -> None:
        self._redo, self._control, self._rng, self._lag = redo, control, rng, lag
        self._jobs = list[_Job]()
        self._switches = 0
        self._is_stopped = False

    @property
    def is_working(self) -> bool:
        """Whether a log is due to be archived."""
        return bool(self._due())

    def stop(self) -> None:
        """Stop archiving until `start` is called."""
        self._is_stopped = True

    def start(self) -> None:
        """Resume archiving."""
        self._is_stopped = False

    def add(self, number: int, header: HeaderBlock) -> None:
        """Schedule a group whose log has ended."""
        if self._lag is not None:
            due = self._switches + self._rng.randint(0, self._lag)
            self._jobs.append(_Job(number, header, due))

    def switched(self) -> None:
        """Count a log switch; archiving is late by a number of switches."""
        self._switches += 1

    def may_reuse(self, number: int) -> bool:
        """Return whether a group need not be archived any more; if it must, make it due
        immediately.
        """
        jobs = [job for job in self._jobs if job.number == number]
        for job in jobs:
            job.due = 0
        return not jobs

    def hurry(self) -> None:
        """Make all groups due immediately."""
        for job in self._jobs:
            job.due = 0

    def forget(self) -> None:
        """Discard all scheduled groups without archiving them."""
        self._jobs.clear()

    def step(self) -> Iterator[Step]:
        """Yield the next step of a copy that is due, if there is one."""
        due = self._due()[:AT_A_TIME]
        if not due:
            return
        job = self._rng.choice(due)
        job.copy = job.copy or self._copy(job)
        step = next(job.copy, None)
        if step is not None:
            yield step

    def _due(self) -> list[_Job]:
        if self._is_stopped:
            return []
        return [job for job in self._jobs if job.due <= self._switches]

    def _copy(self, job: _Job) -> Iterator[Step]:
        header, size = job.header, self._redo.block_size
        name = header.archived_name
        yield WriteArchive(name, OsHeader(header.nab - 1).image(self._redo))
        at = 1
        while at < header.nab:
            blocks = min(self._rng.randint(1, PIECE_BLOCKS), header.nab - at)
            yield CopyToArchive(name, self._source(job.number), at * size, blocks * size)
            at += blocks
        self._jobs.remove(job)
        self._control.change(job.number, is_archived=True)
        yield Archived(name, header)

    def _source(self, number: int) -> str:
        """Return a member that contains the complete log."""
        return next(m.name for m in self._control.groups[number].members if m.is_written)


_NOWHERE: Final = LwnPosition(0, 0, 0)


@dataclass(frozen=True, slots=True)
class OnlineOptions:
    """The layout of a database's online logs, and their faults.

    Attributes:
        groups: number of groups of each thread, at least 2.
        members: number of files of each group.
        blocks: number of blocks of each file, including blocks 0 and 1.
        archive_lag: maximum number of switches by which archiving is late; None: nothing is
            archived, and groups are overwritten (NOARCHIVELOG).
        style: how flushes are cut, torn and reordered.
        overlap: maximum number of pending tasks when the next redo is taken. With pending tasks,
            several redo threads write at the same time.
        member_faults: probability, at each switch, that a member gets a fault or is repaired.
    """

    groups: int = 3
    members: int = 2
    blocks: int = 2_048
    archive_lag: int | None = 1
    style: FlushStyle = field(default_factory=FlushStyle)
    overlap: int = 3
    member_faults: float = 0.0


@dataclass(slots=True)
class _Thread:
    """A redo thread.

    Attributes:
        group: number of the current group; 0 before the first log.
        position: end of the last LWN that is complete in every member in use.
        scn: an SCN above those of all flushed records.
        flush: the flush in progress.
        queued: the first SCN of each pending flush, including the one in progress.
        ending: its log has ended, and the next one has not begun.
    """

    number: int
    tasks: deque[Iterator[Step]] = field(default_factory=deque)
    group: int = 0
    position: LwnPosition = _NOWHERE
    scn: int = 0
    flush: FlushInProgress | None = None
    queued: deque[int] = field(default_factory=deque)
    ending: EndedLog | None = None


class OnlineDatabase:
    """The online logs of a database.

    Args:
        threads: numbers of its redo threads.
        seed: decides everything that redo does not decide.

    Attributes:
        control: groups and members, and the views on them.
        archiver: can be stopped; a thread then waits when its next group is not archived.
    """

    def __init__(
        self, redo: RedoFormat, threads: Sequence[int], options: OnlineOptions, seed: int
    ) -> None:
        self._redo, self._options = redo, options
        self._rng = Random(seed)  # noqa: S311 - reproducible, not secret
        sizes = options.groups, options.members, options.blocks
        self.control = ControlFile(redo, threads, *sizes)
        self.archiver = Archiver(redo, self.control, self._rng, options.archive_lag)
        self._faults = MemberFaults(self.control, self._rng, options.member_faults)
        self._threads = {number: _Thread(number) for number in threads}
        self._resetlogs = 0

    def steps(self, redo: Iterable[Redo]) -> Iterator[Step]:
        """Yield the steps that write redo to the online logs and archive these logs.

        Args:
            redo: in the order in which it was generated; the next item is requested when the
                earlier items are almost written.

        Raises:
            ValueError: a log does not fit its file.
        """
        for name in [name for group in self.control.groups.values() for name in group.written]:
            yield self._created(name)
        for item in redo:
            if isinstance(item, LogStart) and item.header.resetlogs != self._resetlogs:
                yield from self._reset(item.header)
            self._take(item)
            bound = self._rng.randint(0, self._options.overlap) if len(self._threads) > 1 else 0
            while self._left() > bound:
                yield from self._advance()
        yield from self._finish()

    @property
    def is_open(self) -> bool:
        """Whether every thread has a current log."""
        return all(thread.group for thread in self._threads.values())

    def flushed(self) -> dict[int, LwnPosition]:
        """Return, by thread, the end of the last LWN that is complete in every member in use."""
        return {number: thread.position for number, thread in self._threads.items()}

    def reached(self) -> dict[int, LwnPosition]:
        """Return, by thread, the end of the last LWN that is complete in at least one member.

        A reader may have read at most up to this position, and can always read up to `flushed`.
        """
        return {
            number: thread.position
            if thread.flush is None
            else thread.position._replace(block=thread.flush.whole_end())
            for number, thread in self._threads.items()
        }

    def current_scn(self) -> int:
        """Return an SCN up to which all commits are flushed; 0 before the first flush."""
        flushed = max(thread.scn for thread in self._threads.values())
        waiting = [min(thread.queued) for thread in self._threads.values() if thread.queued]
        if len(self._threads) > 1:
            waiting.append(self._taken_scn)  # another thread's next flush may begin there
        # The next record of a thread may still have the SCN of its last one.
        return max(min([flushed - 1, *waiting]) - 1, 0)

    def _take(self, item: Redo) -> None:
        thread = self._threads[item.thread]
        match item:
            case LogStart():
                self._taken_scn = item.header.first_scn
                thread.tasks.append(self._switch(thread, thread.ending, item.header))
                thread.ending = None
            case FlushedLwns():
                self._taken_scn = item.scn
                thread.queued.append(item.scn)
                thread.tasks.append(self._flush(thread, item))
            case EndedLog():
                self._taken_scn = item.header.next_scn
                # The switch to the next log closes it, before or after the next log begins.
                thread.ending = item

    def _left(self) -> int:
        return sum(len(thread.tasks) for thread in self._threads.values())

    def _advance(self) -> Iterator[Step]:
        """Yield the next step of a thread or the archiver."""
        working = [thread for thread in self._threads.values() if thread.tasks]
        if self.archiver.is_working and self._rng.random() < 0.5:
            yield from self.archiver.step()
            return
        thread = self._rng.choice(working)
        step = next(thread.tasks[0], None)
        if step is None:
            thread.tasks.popleft()
        else:
            yield step

    def _finish(self) -> Iterator[Step]:
        """Yield the remaining steps: flushes, ends of logs, copies of the archiver."""
        for thread in self._threads.values():
            if thread.ending is not None:
                thread.tasks.append(self._close(thread, thread.ending))
                thread.ending = None
        while self._left():
            yield from self._advance()
        self.archiver.hurry()
        while self.archiver.is_working:
            yield from self.archiver.step()

    def _created(self, member: str) -> CreateFile:
        blocks = self._options.blocks
        block_0 = OsHeader(blocks - 1).image(self._redo)
        return CreateFile(member, block_0, blocks * self._redo.block_size)

    def _reset(self, header: HeaderBlock) -> Iterator[Step]:
        """Open a new incarnation: end all logs of the previous one, and clear the groups."""
        if self._resetlogs:
            yield from self._finish()
            self.archiver.forget()
            self.control.reset()
            for group in self.control.groups.values():
                for name in group.written:
                    yield self._created(name)
            for thread in self._threads.values():
                thread.group = 0
            yield OpenResetlogs(header)
        self._resetlogs = header.resetlogs

    def _flush(self, thread: _Thread, part: FlushedLwns) -> Iterator[Step]:
        size, group = self._redo.block_size, self.control.groups[thread.group]
        if part.end > self._options.blocks:
            raise ValueError(f"{part.end} blocks do not fit a file of {self._options.blocks}")
        thread.flush = FlushInProgress(self._redo, part)
        style, offset = self._options.style, part.block * size
        for write in flush_writes(self._rng, style, group.written, offset, part.data, size):
            thread.flush.note(write)
            yield write
        thread.flush = None
        thread.queued.popleft()
        thread.position = thread.position._replace(block=part.end)
        thread.scn = part.next_scn
        yield self._event(OnlineEventKind.FLUSHED, thread, len(part.data))

    def _event(self, kind: OnlineEventKind, thread: _Thread, size: int = 0) -> Event:
        _, sequence, block = thread.position
        return Event(kind, thread.number, sequence, block, size, thread.scn)

    def _switch(
        self, thread: _Thread, ending: EndedLog | None, header: HeaderBlock
    ) -> Iterator[Step]:
        """Yield the switch to the next log; the headers of both are written in either order."""
        if ending is not None and ending.lost is not None:
            yield from self._crash(thread, ending.lost)
        group = self._next_group(thread)
        while not self.archiver.may_reuse(group.number):
            yield self._event(OnlineEventKind.WAITING, thread)
            yield from self.archiver.step()
        yield from self._faults.at_switch(group.number, self._created)
        later = ending is not None and ending.lost is None and self._rng.random() < 0.3
        if ending is not None and not later:
            yield from self._close(thread, ending, crash=False)
        before = thread.group
        yield from self._open(thread, self.control.groups[group.number], header)
        if ending is not None and later:
            yield from self._write_end(thread, before, ending)

    def _next_group(self, thread: _Thread) -> Group:
        ring = self.control.ring(thread.number)
        numbers = [group.number for group in ring]
        if not thread.group:
            return ring[0]
        return ring[(numbers.index(thread.group) + 1) % len(ring)]

    def _open(self, thread: _Thread, group: Group, header: HeaderBlock) -> Iterator[Step]:
        current = replace(
            header,
            group=group.number,
            online_blocks=self._options.blocks,
            nab=UNKNOWN_NAB,
            header_writes=1,
            next_scn=SCN_NONE,
            next_time=0,
            largest_lwn=0,
        )
        image = current.image(self._redo)
        yield from header_writes(self._rng, self._options.style, group.written, image)
        thread.group = group.number
        thread.position = LwnPosition(header.resetlogs, header.sequence, FIRST_DATA_BLOCK)
        thread.scn = max(thread.scn, header.first_scn)
        self.control.switch(group.number, current)
        self.archiver.switched()
        yield self._event(OnlineEventKind.SWITCHED, thread)

    def _close(self, thread: _Thread, ending: EndedLog, *, crash: bool = True) -> Iterator[Step]:
        """Yield the end of the current log. If the instance crashed in it, yield the writes of the
        interrupted flush first, unless `crash` is False.
        """
        if crash and ending.lost is not None:
            yield from self._crash(thread, ending.lost)
        yield from self._write_end(thread, thread.group, ending)
        if ending.lost is not None:
            yield self._event(OnlineEventKind.RECOVERED, thread)

    def _write_end(self, thread: _Thread, number: int, ending: EndedLog) -> Iterator[Step]:
        """Yield the last writes of a log's header, and schedule the log for archiving."""
        # Records of the next log have at least the SCN that ends this log.
        thread.scn = max(thread.scn, ending.header.next_scn + 1)
        header = replace(ending.header, group=number, online_blocks=self._options.blocks)
        written, image = self.control.groups[number].written, header.image(self._redo)
        yield from header_writes(self._rng, self._options.style, written, image)
        self.control.change(number, header=header)
        self.archiver.add(number, header)

    def _crash(self, thread: _Thread, lost: FlushedLwns) -> Iterator[Step]:
        """Yield the writes of a flush that a crash interrupts."""
        group, style = self.control.groups[thread.group], self._options.style
        first = next(find_lwns(self._redo, lost.data, lost.block))
        if lost.end <= self._options.blocks:
            written, size = group.written, self._redo.block_size
            yield from crash_writes(self._rng, style, written, (first, lost.data), size)
        yield self._event(OnlineEventKind.CRASHED, thread)
