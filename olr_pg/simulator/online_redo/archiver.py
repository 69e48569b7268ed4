"""The archiver: copies of logs that have ended, late by some switches, two at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.headers import OsHeader
from olr_pg.simulator.online_redo.steps import Archived, CopyToArchive, WriteArchive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from olr_pg.simulator.fields.headers import HeaderBlock
    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.control_file import ControlFile
    from olr_pg.simulator.online_redo.steps import Step

AT_A_TIME: Final = 2
PIECE_BLOCKS: Final = 1_024
"""Blocks that one step copies at most."""


@dataclass(slots=True)
class _Job:
    """A group that is to be archived, once so many switches are over."""

    number: int
    header: HeaderBlock
    due: int
    copy: Iterator[Step] | None = None


class Archiver:
    """Archives groups.

    Args:
        lag: switches by which it is late at most; None: it archives nothing, and groups are
            overwritten.
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
        """Whether there is something to do now."""
        return bool(self._due())

    def stop(self) -> None:
        """Archive nothing until `start`."""
        self._is_stopped = True

    def start(self) -> None:
        """Archive again."""
        self._is_stopped = False

    def add(self, number: int, header: HeaderBlock) -> None:
        """Take a group whose log has ended."""
        if self._lag is not None:
            due = self._switches + self._rng.randint(0, self._lag)
            self._jobs.append(_Job(number, header, due))

    def switched(self) -> None:
        """Count a switch."""
        self._switches += 1

    def may_reuse(self, number: int) -> bool:
        """Tell whether a group's log is archived or need not be; if not, it is due immediately."""
        jobs = [job for job in self._jobs if job.number == number]
        for job in jobs:
            job.due = 0
        return not jobs

    def hurry(self) -> None:
        """Let everything be due."""
        for job in self._jobs:
            job.due = 0

    def forget(self) -> None:
        """Leave the rest unarchived."""
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
        """Return a member that has everything."""
        return next(m.name for m in self._control.groups[number].members if m.is_written)
