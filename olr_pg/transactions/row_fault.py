"""Faults: if a row change cannot be assembled, all changes of its table are left out of the
transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.redo.commit_position import CommitPosition
    from olr_pg.transactions.lobs.lost_values import LostLob


class RowFault(NamedTuple):
    """All changes of one table in a committed transaction, which are left out because of an error.

    Attributes:
        con_id, xid, begin_scn, commit_scn: from the transaction; the XID is packed.
        position: position of the transaction's commit record.
        serial, session: serial and session number of the transaction, 0 if unknown.
        table: index of the table in the row plan.
        error: 2011, 2015, 2016, 2060 to 2062, 2140, 2141, 2160, 2161: the reason, with the position
            of the first change that cannot be assembled.
        lobs: if not empty, only these LOB values are left out and the changes are delivered.
            `error` is the error of the first of these values.
        view: the only view from which the changes are left out; None if they are left out of all
            views.
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
