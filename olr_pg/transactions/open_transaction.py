"""Open transactions, each on its slot of an undo segment."""

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
        begin_scn: None if its begin was not read.
        chunks: its events so far.
    """

    con_id: int
    xid: int
    begin_scn: int | None
    chunks: Waiting = field(default_factory=Waiting)

    @property
    def changes(self) -> int:
        """The number of its changes so far, including undone ones."""
        return self.chunks.changes


def is_recovered_elsewhere(waiting: OpenTransaction, chunk: ChangeBatch, xid: int) -> bool:
    """Return whether events without a BEGIN belong to another transaction than the slot's open one.

    If another redo thread contains them, they belong to a transaction of an instance that died: a
    surviving instance rolled it back. Threads are read in any order, so the open transaction can be
    from before or after it. Only its end contains its XID; its earlier undo does not matter.
    """
    own = waiting.chunks.batches[0].events.thread[0]
    return bool(chunk.events.thread[0] != own and waiting.xid != xid)


def may_be_one_on_slot(one: int, other: int) -> bool:
    """Return whether two XIDs on a slot can belong to one transaction; undo markers have no
    sequence.
    """
    a, b = one & 0xFFFFFFFF, other & 0xFFFFFFFF
    return a == 0 or b == 0 or a == b
