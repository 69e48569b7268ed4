"""A fault: if a row change cannot be assembled, its table's part of its transaction is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.redo.commit_position import CommitPosition
    from olr_pg.transactions.lobs.lost_values import LostLob


class RowFault(NamedTuple):
    """A table's part of a committed transaction that is left out.

    Attributes:
        con_id, xid, begin_scn, commit_scn: of the transaction; the XID is packed.
        position: of its commit record.
        serial, session: of its session, 0 if unknown.
        table: index into the row plan.
        error: 2011, 2015, 2016, 2060 to 2062, 2140, 2141, 2160, 2161: the reason, and the position
            of the first such change.
        lobs: if not empty, the changes are delivered without these LOB values, and the error is
            that of the first one.
        view: the subscription's view that it concerns; None for all.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: CommitPosition
    serial: int
    session: int
    table: int
    error: OlrPgError
    lobs: tuple[LostLob, ...] = ()
    view: int | None = None
