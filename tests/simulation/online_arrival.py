"""How redo gets to an appliance that reads online logs: they are written, switched and archived."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

import numpy as np

from olr_pg.capture.logs import open_log, scan_logs
from olr_pg.capture.online_file import OnlineFile
from olr_pg.errors import OlrPgError
from olr_pg.redo.log_end import find_end
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import Event, OnlineEventKind, OnlineFiles, Write
from olr_pg.simulator.online_redo.written_redo import FlushStyle, WrittenLog, redo_of_logs
from tests.simulator.reader import parse_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.simulator.online_redo.online_files import Step
    from tests.simulation.arrival import SourceLog

FOLDER: Final = "online"
_FIRST: Final = 2
_HEADERS: Final = 8_192
"""Bytes that blocks 0 and 1 take at most."""
_WAITS: Final = 0.4
_HALVES: Final = 4
"""Instants at which a flush is half written, and the reader looks."""
_LEAPS: Final = 0.6
"""How many readers are so far behind once that the log they read is overwritten."""


class OnlineStep(NamedTuple):
    """A step of the arrival.

    Attributes:
        writes: how many there are.
        waits: for the transactions that can be there by then.
        holds: until the reader has most probably looked at what is there.
        hides: the reader sees nothing of the writes before all are done, as if it had stood still,
            and what was archived meanwhile comes later.
    """

    writes: int
    waits: bool
    holds: bool = False
    hides: bool = False


class OnlineArrival:
    """The folders of archived and online logs, written step by step.

    Args:
        folder: of the seed; the archived logs come into its ``logs``.
        logs: of the source, in order of archiving.
        seed: decides the pace.
    """

    def __init__(self, folder: Path, logs: Sequence[SourceLog], seed: int) -> None:
        self._folder = folder
        self._logs = {(log.thread, log.sequence): log for log in logs}
        self._threads = sorted({log.thread for log in logs})
        written = [WrittenLog(memoryview(log.path.read_bytes())) for log in logs]
        redo = parse_log(bytes(written[0].data)).format
        rng = Random(seed ^ 0x0E17)
        blocks = max(log.path.stat().st_size for log in logs) // redo.block_size
        own = Random(seed ^ 0x0E21)
        options = OnlineOptions(
            groups=own.choice((2, 3)),
            members=rng.choice((1, 2)),
            blocks=blocks + rng.randrange(1, 20),
            archive_lag=rng.choice((0, 1, 2)),
            style=FlushStyle(pieces=rng.choice((1, 4)), torn=rng.choice((0.0, 0.5))),
            member_faults=own.choice((0.0, 0.4)),
        )
        database = OnlineDatabase(redo, self._threads, options, seed)
        self._writes = list(database.steps(redo_of_logs(written)))
        places = [(_apart(self._writes, at), waits) for at, waits in _pace(rng, len(self._writes))]
        leap = _leap(own, self._writes, options.groups) if own.random() < _LEAPS else None
        held = _half_flushes(own, self._writes) | _reuses(own, self._writes, options.groups)
        self._steps = list(_steps(places, held, leap))
        self._done = self._written = 0
        self._rng = rng
        self._shown = rng.choice((0.2, 0.5, 1.0))
        self._archive = folder / "archive"
        self._files = OnlineFiles(folder / FOLDER, self._archive, folder / "making")
        self._files.__enter__()

    @property
    def left(self) -> int:
        """How many steps are left."""
        return len(self._steps) - self._done

    def close(self) -> None:
        """Close the files."""
        self._files.__exit__(None, None, None)

    def place_every_thread(self) -> int:
        """Do steps until there is a log of each redo thread; how many."""
        while set(self._reached()) != set(self._threads):
            self.step()
        return self._done

    def step(self) -> OnlineStep:
        """Do the next step; what was done."""
        step = self._steps[self._done]
        self._done += 1
        writes = self._writes[self._written : self._written + step.writes]
        if step.hides:
            self._write_aside(writes)
        else:
            for write in writes:
                self._files.apply(write)
        self._written += step.writes
        self._show_archived(step.hides)
        return step

    def _write_aside(self, writes: Sequence[Step]) -> None:
        """Do writes in copies of the online logs, which take their places then."""
        online, aside = self._folder / FOLDER, self._folder / "aside"
        shutil.copytree(online, aside)
        with OnlineFiles(aside, self._archive, self._folder / "making") as files:
            for write in writes:
                files.apply(write)
        self._files.__exit__(None, None, None)
        for path in online.iterdir():
            if not (aside / path.name).exists():
                path.unlink()
        for path in aside.iterdir():
            path.replace(online / path.name)
        aside.rmdir()

    def _show_archived(self, hides: bool) -> None:
        """Let archived logs get into the folder that is watched, some of them late.

        Not the first ones of a thread: who starts at SCN 0 begins with the oldest log that is here.
        """
        for path in sorted(self._archive.iterdir()):
            is_shown = self._rng.random() < self._shown and not hides
            if not self.left or is_shown or _is_first(path, self._logs):
                path.rename(self._folder / "logs" / path.name)

    @property
    def readable_scn(self) -> int:
        """Transactions that commit below this SCN are in what is there now."""
        reached = self._reached()
        return min(reached.get(thread, 0) for thread in self._threads)

    def _reached(self) -> dict[int, int]:
        """Up to which SCN each thread can be read, from its first log on."""
        ends = dict[tuple[int, int], tuple[int, bool]]()
        for log in scan_logs([str(self._folder / "logs")]).logs:
            ends[log.header.thread, log.header.sequence] = log.next_scn, True
        for path in sorted((self._folder / FOLDER).iterdir()):
            found = self._online(path)
            if found is not None:
                at, end = found
                ends[at] = max(end, ends.get(at, (0, False)), key=lambda one: (one[1], one[0]))
        reached = dict[int, int]()
        for thread in self._threads:
            for at in sorted(key for key in self._logs if key[0] == thread):
                if at not in ends:
                    break
                reached[thread], is_whole = ends[at]
                if not is_whole:
                    break
        return reached

    def _online(self, path: Path) -> tuple[tuple[int, int], tuple[int, bool]] | None:
        try:
            with OnlineFile(str(path)) as file:
                header, _ = file.read_header()
        except OlrPgError:
            return None
        data = np.frombuffer(path.read_bytes(), np.uint8)
        end = find_end(data[_FIRST * header.block_size :], _FIRST, header, header.first_scn)
        at = header.thread, header.sequence
        if header.nab is None or end.block < header.nab:
            return at, (max(end.scn, header.first_scn), False)
        return at, (header.next_scn or 0, True)


def _is_first(path: Path, logs: Iterable[tuple[int, int]]) -> bool:
    header = open_log(str(path)).header
    return header.sequence == min(sequence for thread, sequence in logs if thread == header.thread)


def _pace(rng: Random, writes: int) -> Iterator[tuple[int, bool]]:
    """Places of some two dozen steps, of one write up to a good part of all; which are waited for.

    A place is a number of writes.
    """
    done = 0
    while done < writes:
        done += min(writes - done, int(10 ** rng.uniform(0.0, 2.6)) + writes // 40)
        yield done, rng.random() < _WAITS


def _apart(writes: Sequence[Step], place: int) -> int:
    """The next place that is not between the writes of one header: who starts there lacks a log."""
    while place < len(writes):
        before, behind = writes[place - 1], writes[place]
        if not (isinstance(before, Write) and isinstance(behind, Write)):
            break
        if (before.member, before.offset) != (behind.member, behind.offset):
            break
        place += 1
    return place


def _half_flushes(rng: Random, writes: Sequence[Step]) -> set[int]:
    """Places between two pieces of a flush to one member."""
    halves = [
        place
        for place, (before, behind) in enumerate(pairwise(writes), 1)
        if isinstance(before, Write)
        and isinstance(behind, Write)
        and before.member == behind.member
        and min(before.offset, behind.offset) > _HEADERS
    ]
    return set(rng.sample(halves, min(_HALVES, len(halves))))


def _reuses(rng: Random, writes: Sequence[Step], groups: int) -> set[int]:
    """A place at which a log has just begun in the file of another; none where no log ever does."""
    begins = [(place, step.thread) for place, step in enumerate(writes, 1) if _is_switch(step)]
    found = [
        place
        for number, (place, thread) in enumerate(begins)
        if sum(of == thread for _, of in begins[:number]) >= groups
    ]
    return set(rng.sample(found, min(1, len(found))))


def _is_switch(step: Step) -> TypeGuard[Event]:
    return isinstance(step, Event) and step.kind is OnlineEventKind.SWITCHED


def _leap(rng: Random, writes: Sequence[Step], groups: int) -> tuple[int, int] | None:
    """A place within a log, and one at which that log is overwritten; None: no log ever is."""
    begins = list[tuple[int, int]]()
    flushes = list[tuple[int, int, int]]()
    for place, step in enumerate(writes, 1):
        if _is_switch(step):
            begins.append((step.thread, place))
        if isinstance(step, Event) and step.kind is OnlineEventKind.FLUSHED:
            flushes.append((step.thread, len(begins), place))
    leaps = list[tuple[int, int]]()
    for thread, seen, place in flushes:
        if sum(of == thread for of, _ in begins[:seen]) == 1:
            continue  # of a thread's first log: see `_show_archived`
        later = [begin for of, begin in begins[seen:] if of == thread]
        if len(later) >= groups:
            leaps.append((place, later[groups - 1]))
    return rng.choice(leaps) if leaps else None


def _steps(
    places: Sequence[tuple[int, bool]], held: set[int], leap: tuple[int, int] | None
) -> Iterator[OnlineStep]:
    """Join all places; in a leap there is none.

    Args:
        held: places at which the reader is to look.
    """
    first, last = leap or (0, 0)
    waited = dict(places)
    done = 0
    for place in sorted({*waited, *held, *(leap or ())}):
        if first < place < last:
            continue
        holds = place in held or place in (leap or ())
        waits = holds or waited[place]
        yield OnlineStep(place - done, waits, holds, bool(leap) and place == last)
        done = place
