"""An event of a table between its transactions: DDL, or changes that cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.dictionary.evolution import Evolution
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.lobs.lost_values import LostLob


class LaterFaults(NamedTuple):
    """Further consecutive transactions whose changes of a table cannot be decoded.

    Attributes:
        transactions: their number.
        commit_scn, xid: of the last one.
    """

    transactions: int
    commit_scn: int
    xid: int


class SchemaEvent(NamedTuple):
    """A change of a table's definition, or row changes of it that cannot be decoded.

    Attributes:
        table: ``OWNER.NAME`` as for clients.
        commit_scn, xid, begin_scn: of the DDL's transaction; the XID is packed.
        evolution: its meaning for the target.
        definition: the table after it, None if there is none.
        past: whether it is before the SCN at which decoding started.
        statement: the DDL's text, if it was logged.
        is_fault: whether it is not DDL but changes of the table in the transaction that cannot be
            decoded.
        later: for a held fault, later faults that are combined with it.
        lobs: if not empty, it is not DDL but missing LOB values of the table's changes in the
            transaction.
        view: for a fault, the view that it concerns; None for all.
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
        """The properties that stay the same when the event is published again."""
        return self.table, self.commit_scn, self.xid

    @property
    def barrier(self) -> int:
        """The event precedes the transactions that commit at this SCN or later."""
        return self.commit_scn if self.is_of_rows else self.commit_scn + 1

    @property
    def due(self) -> int:
        """The SCN of the commits before which the applier applies it, if it is applied alone."""
        return self.commit_scn if self.is_fault else self.commit_scn + 1

    @property
    def is_of_rows(self) -> bool:
        """True if it concerns row changes, not a definition."""
        return self.is_fault or bool(self.lobs)
