"""The archiver: copies ended logs, some switches late, two logs at a time."""

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
        """Count a switch."""
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
