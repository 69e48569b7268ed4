"""The logs that a run has decoded, in a bounded space: a run may last for years."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition, Reached


class DecodedLogs:
    """The positions of decoded logs, as runs of consecutive sequences.

    A thread's logs are decoded in order and without gaps, so that it has one run per incarnation.
    Behind them there may be one log of it that was read while it was being written, up to a block.
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
        """Tell whether everything that is known of a log has been decoded."""
        if log.position in self:
            return True
        return log.grows and self.next_block(log.position) >= log.blocks

    def next_block(self, position: LogPosition) -> int:
        """Return the block of a log up to which it was decoded."""
        begun = self._begun.get(position.thread)
        return begun[1] if begun is not None and begun[0] == position else FIRST_DATA_BLOCK

    def read_up_to(self, position: LogPosition, block: int) -> None:
        """Note that a log that grows has been decoded up to an LWN group."""
        self._begun[position.thread] = position, block

    def expect(self, logs: Iterable[ArchivedLog]) -> None:
        """Note with which of some logs decoding of each thread begins, where that is not known yet.

        Its file may be used again before anything of it is decoded; then it is missing.
        """
        for position in sorted(log.position for log in logs):
            if position.thread not in self._begun and self.newest(position.thread) is None:
                self._begun[position.thread] = position, FIRST_DATA_BLOCK

    def goes_on_at(self, log: ArchivedLog) -> int:
        """Return the block of a log at which decoding goes on: an LWN group's first, or its end.

        Raises:
            OlrPgError: 2251, more of it was read online than there is of it now.
        """
        block = self.next_block(log.position)
        if block > log.blocks:
            raise OlrPgError(
                Code.LOG_SHORTER_THAN_READ,
                f"it has {log.blocks} blocks, {block} were read while it was being written",
                file=log.path,
                thread=log.header.thread,
                sequence=log.header.sequence,
            )
        return block

    def begin_at(self, marks: Iterable[Reached]) -> None:
        """Start from the place that another run has come to, in the logs that it had begun."""
        for mark in marks:
            if mark.block:
                behind = mark.log._replace(sequence=mark.log.sequence + 1)
                self.read_up_to(behind, mark.block)

    def add(self, position: LogPosition) -> None:
        """Note that a log has been decoded."""
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
        """Return the last log of a redo thread, None where none was decoded.

        Before a log that was begun first of all, that is the one before it.
        """
        ends = [last for _, last in self._runs if last.thread == thread]
        if thread in self._begun:
            begun = self._begun[thread][0]
            ends.append(begun._replace(sequence=begun.sequence - 1))
        return max(ends, default=None)
