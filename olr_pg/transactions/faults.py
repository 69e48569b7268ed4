"""Row changes of committed transactions that cannot be put together.

Where one turns up, its table's part of its transaction is left out and everything else goes on. The
table's copy is not right from there on: who delivers has to say so (`replicator.merge`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.errors import OlrPgError
from olr_pg.redo.pieces import REASONS, ChangeStatus, error_code
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished import transactions_of
from olr_pg.transactions.row_job import RowStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.columns import Table as Rows
    from olr_pg.transactions.delimit import Instances
    from olr_pg.transactions.lobs import Owners

_REASONS: Final = {
    RowStatus.UNKNOWN_COLUMN: "the redo names a column that the dictionary does not know",
    RowStatus.MULTI_PIECE: "its redo does not tell the row or its columns",
    RowStatus.INCOMPLETE: "not all redo records of a row change are there",
    RowStatus.PACKED: "a compressed row was logged without supplemental columns",
}
_CODES: Final = {
    RowStatus.UNKNOWN_COLUMN: 2016,
    RowStatus.MULTI_PIECE: 2061,
    RowStatus.INCOMPLETE: 2011,
    RowStatus.PACKED: 2015,
}


class RowFault(NamedTuple):
    """A table's part of a committed transaction that is left out.

    Attributes:
        con_id, xid, begin_scn, commit_scn: of the transaction; the XID is packed.
        position: thread, sequence, block and offset of its commit record.
        serial, session: of its session, 0 where none was seen.
        table: index into the row plan.
        error: 2011, 2015, 2016, 2060 to 2062: why, and where the first such change is.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: tuple[int, int, int, int]
    serial: int
    session: int
    table: int
    error: OlrPgError


def row_faults(
    faults: Rows,
    events: EventColumns,
    instances: Instances,
    closed: npt.NDArray[np.int64],
    tables: Sequence[Table],
) -> tuple[RowFault, ...]:
    """What an assembly left out, in commit order.

    Args:
        faults: of the assembly.
        events, instances: what it was made of.
        closed: its transactions, as rows of `instances`.
        tables: of the row plan.
    """
    if faults.size == 0:
        return ()
    concerned, owner = np.unique(faults.transaction, return_inverse=True)
    of = transactions_of(events, instances, closed[concerned], np.zeros(0, np.int64))
    found = []
    for at, event, status in zip(
        owner.tolist(), faults.event.tolist(), faults.status.tolist(), strict=True
    ):
        table = int(events.table[event])
        place = (of.commit_thread, of.commit_sequence, of.commit_block, of.commit_offset)
        thread, sequence, block, offset = (int(column[at]) for column in place)
        found.append(
            RowFault(
                int(of.con_id[at]),
                int(of.xid[at]),
                int(of.begin_scn[at]),
                int(of.commit_scn[at]),
                (thread, sequence, block, offset),
                int(of.serial[at]),
                int(of.session[at]),
                table,
                _error(events, event, RowStatus(status), int(of.xid[at]), tables[table]),
            )
        )
    return tuple(found)


def _error(
    events: EventColumns, event: int, status: RowStatus, xid: int, table: Table
) -> OlrPgError:
    if status is RowStatus.UNDECODED:
        why = ChangeStatus(int(events.session[event]))
        code, detail = error_code(why), REASONS[why]
    else:
        code, detail = _CODES[status], _REASONS[status]
    return OlrPgError(
        code,
        detail,
        thread=int(events.thread[event]),
        sequence=int(events.sequence[event]),
        block=int(events.block[event]),
        offset=int(events.offset[event]),
        scn=int(events.scn[event]),
        xid=format_xid(xid),
        table=table.full_name,
    )


def without_faulty(owners: Owners, faults: Rows, events: EventColumns) -> Owners:
    """The owners of LOBs without the events of the tables that are left out: no row claims them."""
    if faults.size == 0:
        return owners
    keep = np.ones(owners.order.size, np.bool_)
    for at, event in zip(faults.transaction.tolist(), faults.event.tolist(), strict=True):
        part = slice(int(owners.first[at]), int(owners.end[at]))
        keep[part] &= events.table[owners.order[part]] != events.table[event]
    running = np.concatenate([[0], np.cumsum(keep)])
    return owners._replace(
        order=owners.order[keep], first=running[owners.first], end=running[owners.end]
    )
