"""The logs that a run has decoded, in a bounded space: a run may last for years."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import LogPosition


class DecodedLogs:
    """The positions of decoded logs, as runs of consecutive sequences.

    A thread's logs are decoded in order and without gaps, so that it has one run per incarnation.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[LogPosition, LogPosition]] = []

    def __contains__(self, position: LogPosition) -> bool:
        return any(
            first._replace(sequence=position.sequence) == position
            and first.sequence <= position.sequence <= last.sequence
            for first, last in self._runs
        )

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def add(self, position: LogPosition) -> None:
        """Note that a log has been decoded."""
        before = position._replace(sequence=position.sequence - 1)
        for at, (first, last) in enumerate(self._runs):
            if last == before:
                self._runs[at] = first, position
                return
        if position not in self:
            self._runs.append((position, position))

    def newest(self, thread: int) -> LogPosition | None:
        """Return the last log of a redo thread, None where none was decoded."""
        return max((last for _, last in self._runs if last.thread == thread), default=None)
