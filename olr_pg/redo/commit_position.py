"""The order of commits: by the positions of their records, with parallel DML, which commits before
its record.

Transactions with the same commit SCN are in the order of their commit records. The children of
parallel DML commit at their coordinator's SCN, which is in the past when their 5.4 is written
(`redo.boundaries`, `ordering.parallel_commits`).

Facts: redo-format §4.4, §4.7; from the text of a dump of 19c.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import take

_USN: Final = 48
_SLOT: Final = 32
"""Bit offset of the slot in a packed XID."""


class CommitPosition(NamedTuple):
    """The position of a commit record in the redo; orders transactions with the same commit SCN.

    Attributes:
        delay: by how many SCNs the record is later than the commit SCN: 0, except for the children
            of parallel DML (redo-format §4.4). They come after their coordinator, in any redo
            thread, because they can have changed rows that it changed before.
        thread, sequence, block, offset: of the record.
    """

    delay: int
    thread: int
    sequence: int
    block: int
    offset: int

    def place(self) -> dict[str, Any]:
        """Return the position of the record for errors."""
        return {name: value for name, value in self._asdict().items() if name != "delay"}


class ParallelCommit(NamedTuple):
    """A parallel commit that begins, or that may have ended.

    Attributes:
        segment: container and undo segment of the coordinator.
        slot: its slot there.
        scn: the commit SCN; for one that may have ended, the SCN of the record.
        begins: whether its children have not committed yet.
    """

    segment: tuple[int, int]
    slot: int
    scn: int
    begins: bool


def take_parallel(batch: ChangeBatch) -> tuple[ChangeBatch, tuple[ParallelCommit, ...]]:
    """Remove the PARALLEL events from a batch; they have no pieces."""
    events = batch.events
    chosen = events.kind == EventKind.PARALLEL
    found = tuple(
        ParallelCommit(
            (int(one["undo_con_id"]), int(one["xid"]) >> _USN),
            int(one["xid"]) >> _SLOT & 0xFFFF,
            int(one["scn"]),
            bool(one["serial"]),
        )
        for one in take(events, chosen)
    )
    return batch._replace(events=take(events, ~chosen)), found
