"""A row change that cannot be put together costs its table's part of its transaction: a fault."""

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
        serial, session: of its session, 0 where none was seen.
        table: index into the row plan.
        error: 2011, 2015, 2016, 2060 to 2062, 2140, 2141, 2160, 2161: why, and where the first such
            change is.
        lobs: not empty where the changes are delivered, but for these LOB values; the error is that
            of the first one then.
        view: number of the subscription's view that it concerns; None: all.
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
