"""An event of a table between its transactions: DDL, or changes that cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.dictionary.evolution import Evolution
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.lobs.lost_values import LostLob


class LaterFaults(NamedTuple):
    """Further transactions whose changes of a table cannot be decoded, with nothing in between.

    Attributes:
        transactions: how many.
        commit_scn, xid: of the last one.
    """

    transactions: int
    commit_scn: int
    xid: int


class SchemaEvent(NamedTuple):
    """A change of a table's definition, or row changes of it that cannot be decoded.

    Attributes:
        table: ``OWNER.NAME`` as clients know it.
        commit_scn, xid, begin_scn: of the DDL's transaction; the XID is packed.
        evolution: what it means for the target.
        definition: the table from there on, None where there is none.
        past: it lies before the SCN where decoding started.
        statement: the DDL's text, as far as it was logged.
        is_fault: it is no DDL: the table's changes of the transaction cannot be decoded.
        later: of a held fault, those that were held as one with it.
        lobs: it is no DDL: LOB values that are left out of the table's changes of the transaction.
        view: of a fault, number of the view that it concerns; None: all.
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
        """The facts that are the same when the event is published again."""
        return self.table, self.commit_scn, self.xid

    @property
    def barrier(self) -> int:
        """The event comes before the transactions that commit at this SCN or later."""
        return self.commit_scn if self.is_of_rows else self.commit_scn + 1

    @property
    def due(self) -> int:
        """The applier applies it, where it goes alone, in front of what commits at this SCN."""
        return self.commit_scn if self.is_fault else self.commit_scn + 1

    @property
    def is_of_rows(self) -> bool:
        """True if it is about row changes, not about a definition."""
        return self.is_fault or bool(self.lobs)
