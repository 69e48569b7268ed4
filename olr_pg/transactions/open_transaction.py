"""Open transactions. Each occupies one slot of an undo segment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from olr_pg.transactions.waiting_storage import Waiting

if TYPE_CHECKING:
    from olr_pg.redo.batch import ChangeBatch


@dataclass(slots=True)
class OpenTransaction:
    """A transaction whose end was not read yet.

    Attributes:
        begin_scn: SCN of its begin, None if the begin was not read.
        chunks: its events that were read so far.
    """

    con_id: int
    xid: int
    begin_scn: int | None
    chunks: Waiting = field(default_factory=Waiting)

    @property
    def changes(self) -> int:
        """The number of its changes that were read so far, including undone ones."""
        return self.chunks.changes


def is_recovered_elsewhere(waiting: OpenTransaction, chunk: ChangeBatch, xid: int) -> bool:
    """Return whether events without a BEGIN do not belong to the open transaction on their slot,
    but to one that another Oracle instance rolled back.

    If an instance dies, a surviving instance rolls back the dead instance's transactions. The redo
    of this rollback is in the surviving instance's thread. Redo threads are read in any order, so
    the open transaction can be older or newer than the one that is rolled back. Only the end of the
    rollback contains an XID. The undo markers before the end name only the slot; they are not
    needed.
    """
    own = waiting.chunks.batches[0].events.thread[0]
    return bool(chunk.events.thread[0] != own and waiting.xid != xid)


def may_be_one_on_slot(one: int, other: int) -> bool:
    """Return whether two XIDs on the same slot can belong to one transaction. The sequence in the
    XID of an undo marker is 0, because it is unknown.
    """
    a, b = one & 0xFFFFFFFF, other & 0xFFFFFFFF
    return a == 0 or b == 0 or a == b
