"""The order of commits: by SCN, then by the positions of their commit records. Parallel DML is an
exception.

Transactions with the same commit SCN are in the order of their commit records. The children of
parallel DML commit at the SCN of their coordinator. This SCN is already past when the 5.4 of a
child is written (`redo.boundaries`, `ordering.merger`).

Facts: redo-format §4.4, §4.7, taken from a printed dump of 19c.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import take

_USN: Final = 48
_SLOT: Final = 32
"""Bit offset of the slot in a packed XID."""


class CommitPosition(NamedTuple):
    """The position of a commit record in the redo. The position defines the order of transactions
    with the same commit SCN.

    Attributes:
        delay: SCN of the record minus the commit SCN: 0, except for the children of parallel DML
            (redo-format §4.4). The children are ordered after their coordinator in every redo
            thread, because they may have changed rows that the coordinator changed before.
        thread, sequence, block, offset: position of the commit record.
    """

    delay: int
    thread: int
    sequence: int
    block: int
    offset: int

    def place(self) -> dict[str, Any]:
        """Return the position of the record, for error messages."""
        return {name: value for name, value in self._asdict().items() if name != "delay"}


class ParallelCommit(NamedTuple):
    """A commit of parallel DML that begins, or that may have ended.

    Attributes:
        segment: container and undo segment of the coordinator.
        slot: slot of the coordinator in that undo segment.
        scn: the commit SCN; if the commit may have ended, the SCN of the record that shows this.
        begins: True if the commit begins, so its children have not committed yet.
    """

    segment: tuple[int, int]
    slot: int
    scn: int
    begins: bool


def take_parallel(batch: ChangeBatch) -> tuple[ChangeBatch, tuple[ParallelCommit, ...]]:
    """Remove the PARALLEL events from a batch; return the batch and the parallel commits."""
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
