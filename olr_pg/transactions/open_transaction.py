"""Transactions that wait for their end, each on its slot of an undo segment."""

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
        begin_scn: None where its begin was not read.
        chunks: its events so far.
    """

    con_id: int
    xid: int
    begin_scn: int | None
    chunks: Waiting = field(default_factory=Waiting)

    @property
    def changes(self) -> int:
        """The number of changes that it has so far, undone ones too."""
        return self.chunks.changes


def is_recovered_elsewhere(waiting: OpenTransaction, chunk: ChangeBatch, xid: int) -> bool:
    """Tell whether events without a BEGIN are of another transaction than the slot's.

    They are of one that was open in an instance that died, if another redo thread has them: then a
    surviving instance rolled it back. Threads are read in any order, so what is open may have come
    before it or behind it. Only its end tells its XID; what it undid before needs not be known.
    """
    own = waiting.chunks.batches[0].events.thread[0]
    return bool(chunk.events.thread[0] != own and waiting.xid != xid)


def may_be_one_on_slot(one: int, other: int) -> bool:
    """Tell whether two XIDs on a slot can be of one transaction: undo markers have no sequence."""
    a, b = one & 0xFFFFFFFF, other & 0xFFFFFFFF
    return a == 0 or b == 0 or a == b
