"""Events of a table between its transactions: DDL, changes that cannot be decoded, or missing LOB
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.dictionary.evolution import Evolution
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.lobs.lost_values import LostLob


class LaterFaults(NamedTuple):
    """Later faults of a stopped table. The later faults were combined with an earlier fault while
    the table's changes were held (`applier.stopped.hold`).

    Attributes:
        transactions: number of transactions with these faults.
        commit_scn, xid: commit SCN and XID of the last one.
    """

    transactions: int
    commit_scn: int
    xid: int


class SchemaEvent(NamedTuple):
    """A change of a table's definition, or row changes or LOB values of the table that cannot be
    decoded.

    Attributes:
        table: ``OWNER.NAME``, with the name that clients receive.
        commit_scn, xid, begin_scn: from the transaction of the DDL, or of the row changes; the XID
            is packed.
        evolution: what the change means for the target.
        definition: the definition of the table after the change, None if the table does not exist
            then.
        past: whether the event is before the SCN at which decoding started.
        statement: the text of the DDL, empty if it was not logged.
        is_fault: True if the event is not DDL: changes of the table in the transaction cannot be
            decoded.
        later: for a fault, the later faults of the table that were combined with this fault while
            the table's changes were held.
        lobs: if not empty, the event is not DDL: these LOB values are missing in the changes of the
            table in the transaction.
        view: for a fault, the only view that receives it; None for all views.
    """

    table: str
    commit_scn: int
    xid: int
    begin_scn: int
    evolution: Evolution
    definition: Table | None
    past: bool = False
    statement: str = ""
    is_fault: bool = False
    later: LaterFaults | None = None
    lobs: tuple[LostLob, ...] = ()
    view: int | None = None

    @property
    def identity(self) -> tuple[str, int, int]:
        """The properties that identify the event. The properties are the same if the event is
        published again.
        """
        return self.table, self.commit_scn, self.xid

    @property
    def barrier(self) -> int:
        """The lowest commit SCN of transactions that follow the event."""
        return self.commit_scn if self.is_of_rows else self.commit_scn + 1

    @property
    def is_of_rows(self) -> bool:
        """True if the event concerns row changes, and not the definition of the table."""
        return self.is_fault or bool(self.lobs)
