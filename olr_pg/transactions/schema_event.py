"""What the bundled applier receives in one order with the transactions, but not as part of the
protocol (architecture, “Events in band”).

`SchemaEvent`: an event of a table between its transactions: DDL, changes that cannot be decoded, or
missing LOB values.

`Ancestry`: the incarnations of the source, the current one and those that it descends from. An SCN
alone does not identify a state of the source: after an OPEN RESETLOGS, the new incarnation reaches
the same SCNs again, with other transactions. So whoever keeps an SCN must also keep the incarnation
that it belongs to, and must ask here whether the current incarnation contains it.
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


class Incarnation(NamedTuple):
    """An incarnation of the database.

    Attributes:
        resetlogs_id: the number that identifies the incarnation in log headers.
        resetlogs_scn: the SCN at which the incarnation began; its parent's redo from there on is
            orphaned.
    """

    resetlogs_id: int
    resetlogs_scn: int


class Ancestry(NamedTuple):
    """The current incarnation, and the earlier ones.

    Attributes:
        line: the incarnations, the current one first.
        is_whole: True if `line` is the source's own list, which contains every ancestor. False if
            `line` comes from log headers: these do not name parents, and the logs of an ancestor
            may be deleted. So each incarnation is assumed to descend from all earlier ones.
    """

    line: tuple[Incarnation, ...]
    is_whole: bool

    @property
    def current(self) -> Incarnation:
        """The current incarnation."""
        return self.line[0]

    def end_of(self, resetlogs_id: int) -> int | None:
        """Return the SCN at which the given incarnation's redo stops being part of the current
        incarnation: 0 if none of the redo is part of it, None if the given incarnation is the
        current one.
        """
        if resetlogs_id == self.current.resetlogs_id:
            return None
        later = [one for one in self.line if one.resetlogs_id > resetlogs_id]
        is_known = any(one.resetlogs_id == resetlogs_id for one in self.line)
        if not later or (self.is_whole and not is_known):
            return 0
        return min(one.resetlogs_scn for one in later)
