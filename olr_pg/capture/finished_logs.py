"""Records which logs a run has decoded. The record needs little memory, even if a run lasts for
years.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition, Reached


class DecodedLogs:
    """The positions of decoded logs, stored as ranges (runs) of consecutive sequence numbers.

    A thread's logs are decoded in order and without gaps, so each thread has one run per
    incarnation. The log after the run can be partly decoded: it was decoded up to a block while
    Oracle was still writing it.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[LogPosition, LogPosition]] = []
        self._begun: dict[int, tuple[LogPosition, int]] = {}

    def __contains__(self, position: LogPosition) -> bool:
        return any(
            first._replace(sequence=position.sequence) == position
            and first.sequence <= position.sequence <= last.sequence
            for first, last in self._runs
        )

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def has_all(self, log: ArchivedLog) -> bool:
        """Return whether the log, or the part of it that is present, has been decoded to its
        end.
        """
        if log.position in self:
            return True
        return log.grows and self.next_block(log.position) >= log.blocks

    def next_block(self, position: LogPosition) -> int:
        """Return the block of a log up to which it was decoded."""
        begun = self._begun.get(position.thread)
        return begun[1] if begun is not None and begun[0] == position else FIRST_DATA_BLOCK

    def read_up_to(self, position: LogPosition, block: int) -> None:
        """Record that a growing log has been decoded up to a block at which an LWN group begins."""
        self._turn_to(position)
        self._begun[position.thread] = position, block

    def _turn_to(self, position: LogPosition) -> None:
        """Record a partly decoded log as decoded if its thread continues in a new incarnation.

        By then, the log was decoded up to the RESETLOGS: before that, `capture.wanted_logs` reports
        a gap, and no redo of the new incarnation is decoded.
        """
        begun, _ = self._begun.get(position.thread, (position, 0))
        if begun.resetlogs_id < position.resetlogs_id:
            self.add(begun)

    def expect(self, logs: Iterable[ArchivedLog]) -> None:
        """Record which log of each thread is decoded first, unless that is already known.

        If Oracle reuses that log's file before any of its redo is decoded, the log counts as
        missing.
        """
        for position in sorted(log.position for log in logs):
            if position.thread not in self._begun and self.newest(position.thread) is None:
                self._begun[position.thread] = position, FIRST_DATA_BLOCK

    def goes_on_at(self, log: ArchivedLog) -> int:
        """Return the block of a log at which decoding continues: the first block of an LWN group,
        or the log's end.

        Raises:
            OlrPgError: 2251, more blocks were read while the log was written than it contains now.
        """
        block = self.next_block(log.position)
        if block > log.blocks:
            raise OlrPgError(
                Code.LOG_SHORTER_THAN_READ,
                f"the archived log has {log.blocks} blocks, but {block} blocks were read while"
                " Oracle was writing the log",
                file=log.path,
                thread=log.header.thread,
                sequence=log.header.sequence,
            )
        return block

    def begin_at(self, marks: Iterable[Reached]) -> None:
        """Continue partly read logs at the blocks that an earlier run reached."""
        for mark in marks:
            if mark.block:
                behind = mark.log._replace(sequence=mark.log.sequence + 1)
                self.read_up_to(behind, mark.block)

    def add(self, position: LogPosition) -> None:
        """Record that a log has been decoded."""
        self._turn_to(position)
        if position == self._begun.get(position.thread, (None, 0))[0]:
            del self._begun[position.thread]
        before = position._replace(sequence=position.sequence - 1)
        for at, (first, last) in enumerate(self._runs):
            if last == before:
                self._runs[at] = first, position
                return
        if position not in self:
            self._runs.append((position, position))

    def newest(self, thread: int) -> LogPosition | None:
        """Return the last decoded log of a redo thread; None if none was decoded.

        If the thread's first log is only partly decoded, return the position before that log.
        """
        ends = [last for _, last in self._runs if last.thread == thread]
        if thread in self._begun:
            begun = self._begun[thread][0]
            ends.append(begun._replace(sequence=begun.sequence - 1))
        return max(ends, default=None)
