"""Makes faults for row changes of committed transactions that cannot be assembled.

If one change of a table cannot be assembled, all changes of this table are left out of the
transaction. The other tables are not affected. From this transaction on, the target table differs
from the source, so the fault must be reported to clients (`ordering.merger`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.events import names_no_transaction
from olr_pg.redo.pieces import REASONS, ChangeStatus, error_code
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished import Closed, transactions_of
from olr_pg.transactions.row_fault import RowFault
from olr_pg.transactions.row_job import RowStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.redo.batch import EventColumns
    from olr_pg.redo.column_tables import ColumnTable
    from olr_pg.transactions.finished_columns import TransactionColumns
    from olr_pg.transactions.lobs.assembly import Owners
    from olr_pg.transactions.lobs.lost_values import LostLob, LostOf

_REASONS: Final = {
    RowStatus.UNKNOWN_COLUMN: "the redo names a column that the dictionary does not know",
    RowStatus.MULTI_PIECE: "the redo does not identify the row or its columns",
    RowStatus.INCOMPLETE: "some redo records of a row change are missing",
    RowStatus.CONTRADICTS: "the redo records of a row change contradict each other about the kind"
    " of statement",
    RowStatus.PACKED: "a compressed row was logged without supplemental columns",
}
_CODES: Final = {
    RowStatus.UNKNOWN_COLUMN: Code.ROW_DOES_NOT_FIT_TABLE,
    RowStatus.MULTI_PIECE: Code.PIECES_WITHOUT_SUPPLEMENTAL_LOGGING,
    RowStatus.INCOMPLETE: Code.CHANGE_UNDECODABLE,
    RowStatus.CONTRADICTS: Code.CHANGE_UNDECODABLE,
    RowStatus.PACKED: Code.COMPRESSED_ROW_WITHOUT_VALUES,
}


def row_faults(
    faults: ColumnTable, closed: Closed, tables: Sequence[Table], ranges: Mapping[int, str]
) -> tuple[RowFault, ...]:
    """Return the faults of an assembly, in commit order.

    Args:
        closed: the assembled transactions.
        tables: the tables of the row plan.
        ranges: descriptions of unlogged ranges among the events, by event.
    """
    if faults.size == 0:
        return ()
    concerned, owner = np.unique(faults.transaction, return_inverse=True)
    events = closed.events
    of = transactions_of(closed.part(concerned), np.zeros(0, np.int64))
    found = []
    for at, event, status in zip(
        owner.tolist(), faults.event.tolist(), faults.status.tolist(), strict=True
    ):
        table = int(events.table[event])
        xid = int(of.xid[at])
        error = _error(events, event, RowStatus(status), xid, tables[table], ranges.get(event, ""))
        found.append(_fault(of, at, table, error))
    return tuple(found)


def lob_faults(
    lost: Sequence[LostOf], closed: Closed, tables: Sequence[Table]
) -> tuple[RowFault, ...]:
    """Return a fault for each table and transaction with left-out LOB values.

    Args:
        lost: the left-out values; `owner` is the index of the transaction in `closed`.
    """
    if not lost:
        return ()
    owners = np.array([one.owner for one in lost])
    of = transactions_of(closed.part(owners), np.zeros(0, np.int64))
    return tuple(
        _fault(of, at, one.table, _lob_error(one, tables[one.table], int(of.xid[at])), one.lobs)
        for at, one in enumerate(lost)
    )


def _fault(
    of: TransactionColumns,
    at: int,
    table: int,
    error: OlrPgError,
    lobs: tuple[LostLob, ...] = (),
) -> RowFault:
    return RowFault(
        int(of.con_id[at]),
        int(of.xid[at]),
        int(of.begin_scn[at]),
        int(of.commit_scn[at]),
        of.position(at),
        int(of.serial[at]),
        int(of.session[at]),
        table,
        error,
        lobs,
    )


def _lob_error(lost: LostOf, table: Table, xid: int) -> OlrPgError:
    first = lost.lobs[0]
    return OlrPgError(
        first.code,
        f"number of LOB values of the transaction: {len(lost.lobs)}",
        table=table.full_name,
        column=first.column,
        xid=format_xid(xid),
    )


def _error(
    events: EventColumns, event: int, status: RowStatus, xid: int, table: Table, text: str
) -> OlrPgError:
    if status is RowStatus.UNDECODED:
        why = ChangeStatus(int(events.session[event]))
        code, detail = error_code(why), REASONS[why]
    else:
        code, detail = _CODES[status], _REASONS[status]
    where: dict[str, str] = {}
    if not names_no_transaction(xid):
        where["xid"] = format_xid(xid)
    if code == Code.LOB_PAGES_WITHOUT_REDO:
        where["column"] = _lob_column(table, int(events.dataobj[event]))
    return OlrPgError(
        code,
        f"{detail}: {text}" if text else detail,
        thread=int(events.thread[event]),
        sequence=int(events.sequence[event]),
        block=int(events.block[event]),
        offset=int(events.offset[event]),
        scn=int(events.scn[event]),
        **where,
        table=table.full_name,
    )


def _lob_column(table: Table, dataobj: int) -> str:
    """Return the name of the column whose LOB segment or LOB index has this data object number."""
    for column in table.columns:
        segments = () if column.lob is None else column.lob.segments
        if any(dataobj in (part.dataobj, part.index_dataobj) for part in segments):
            return column.name
    return "?"


def without_faulty(owners: Owners, faults: ColumnTable, events: EventColumns) -> Owners:
    """Remove the events of left-out tables from `owners`. No row change refers to the LOBs of these
    changes, and these LOBs must not be reported as unclaimed.
    """
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
