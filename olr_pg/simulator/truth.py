"""The truth: what decoding the logs must print, and what the tables hold at the end.

The old values of a changed row are those that its redo tells: the columns that the undo gives and
the supplemental ones. Where an update makes a row longer, its undo need not name the columns behind
the old end of the row; unless they are logged supplementally, they are then absent from ``before``,
though SQL would have found NULL in them. Real records say the same: the WHERE that LogMiner shows
for such an update lists no such column. Old LOB values are never told (`lobs.delivered_changes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.scalars import format_rowid, format_xid, pack_xid
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.simulator.tables import SimTable
    from olr_pg.simulator.transactions import Change, Image, Transaction

    Rows = dict[str, Image]
    """The rows of a table by ROWID, or by their key where they have none."""

_OPERATION = {DmlKind.INSERT: "insert", DmlKind.UPDATE: "update", DmlKind.DELETE: "delete"}


def _image(table: SimTable, image: Image) -> str:
    parts = (
        f'"{table.columns[number].name}":{cell.json if cell else "null"}'
        for number, cell in sorted(image.items())
    )
    return "{" + ",".join(parts) + "}"


def _identity(change: Change) -> str:
    """The ROWID of the row, or its key where it has none."""
    if change.dataobj:
        return format_rowid(change.dataobj, change.dba, change.slot)
    image = change.after if change.kind is DmlKind.INSERT else change.before
    return ",".join(cell.json for at in change.table.key if (cell := image[at]))


def _change_line(change: Change, commit_scn: int, xid: str) -> str:
    rowid = format_rowid(change.dataobj, change.dba, change.slot) if change.dataobj else ""
    line = (
        f'{{"op":"{_OPERATION[change.kind]}","scn":{change.scn},"commit_scn":{commit_scn},'
        f'"xid":"{xid}","table":"{change.table.full_name}","rowid":"{rowid}"'
    )
    if change.kind is not DmlKind.INSERT:
        line += f',"before":{_image(change.table, change.before)}'
    if change.kind is not DmlKind.DELETE:
        line += f',"after":{_image(change.table, change.after)}'
    return line + "}"


def truth_lines(transactions: Iterable[Transaction]) -> Iterator[str]:
    """The JSON lines of committed transactions, which come in commit order."""
    for transaction in transactions:
        if not transaction.delivered:
            continue
        xid = format_xid(pack_xid(transaction.segment.usn, transaction.slot, transaction.sequence))
        scn, commit = transaction.begin_scn, transaction.commit_scn
        yield f'{{"op":"begin","scn":{scn},"commit_scn":{commit},"xid":"{xid}"}}'
        for change in transaction.delivered:
            yield _change_line(change, commit, xid)
        yield f'{{"op":"commit","scn":{commit},"commit_scn":{commit},"xid":"{xid}"}}'


def tables_at(
    tables: Iterable[SimTable], transactions: Iterable[Transaction], scn: int
) -> dict[str, Rows]:
    """Every table's rows as of an SCN, as a query with ``AS OF SCN`` finds them.

    Args:
        tables: whose rows are wanted.
        transactions: all that have committed, in commit order.
        scn: commits at it count.
    """
    contents: dict[str, Rows] = {table.full_name: {} for table in tables}
    for transaction in transactions:
        if transaction.commit_scn > scn:
            continue
        for change in transaction.changes:
            if change.table.full_name not in contents:
                continue
            rows = contents[change.table.full_name]
            rowid = _identity(change)
            if change.kind is DmlKind.DELETE:
                del rows[rowid]
            else:
                rows[rowid] = {**rows.get(rowid, {}), **change.after}
    return contents
