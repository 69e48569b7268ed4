"""The truth: the output that decoding of the logs must have, and the final rows of the tables.

The old values of a changed row are those that its redo contains: the columns of the undo and the
supplemental columns. If an update makes a row longer, its undo need not name the columns after the
old end of the row. If these columns are not logged supplementally either, they are missing from
``before``, although they are NULL in SQL. Real records agree: the WHERE that LogMiner shows for
such an update does not contain these columns. Old LOB values are never included
(`transactions.delivered_changes`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import format_rowid, format_xid, pack_xid
from olr_pg.simulator.fields.cells import json_text
from olr_pg.simulator.model.transactions import (
    DROP_TABLE,
    EXCHANGE_NAMES,
    RENAME_TABLE,
    TRUNCATE,
)
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import SimColumn, SimTable
    from olr_pg.simulator.model.transactions import Change, DdlEffect, Image, Transaction
    from olr_pg.simulator.writer.instance import UndecodedVector, UnloggedRange

    Rows = dict[str, Image]
    """The rows of a table by ROWID, or by their key if they have none."""

DATAOBJ_LETTERS: Final = 6
"""Number of characters of a ROWID that identify the segment."""

_OPERATION = {DmlKind.INSERT: "insert", DmlKind.UPDATE: "update", DmlKind.DELETE: "delete"}


def _image(columns: Sequence[SimColumn], image: Image) -> str:
    parts = (
        f"{json_text(columns[number].name)}:{_value(columns[number], cell)}"
        for number, cell in sorted(image.items())
        if number < len(columns) and not columns[number].unused
    )
    return "{" + ",".join(parts) + "}"


def _value(column: SimColumn, cell: Cell | None) -> str:
    cell = cell or column.default
    return cell.json if cell else "null"


def _identity(change: Change) -> str:
    """Return the ROWID of the row, or its key if it has none."""
    if change.dataobj:
        return format_rowid(change.dataobj, change.dba, change.slot)
    image = change.after if change.kind is DmlKind.INSERT else change.before
    return change.table.key_text(image)


def _change_line(change: Change, commit_scn: int, xid: str) -> str:
    rowid = format_rowid(change.dataobj, change.dba, change.slot) if change.dataobj else ""
    line = (
        f'{{"op":"{_OPERATION[change.kind]}","scn":{change.scn},"commit_scn":{commit_scn},'
        f'"xid":"{xid}","table":{json_text(change.table.full_name_at(change.scn))},"rowid":"{rowid}"'
    )
    columns = change.table.columns_at(change.scn)
    if change.kind is not DmlKind.INSERT:
        line += f',"before":{_image(columns, change.before)}'
    if change.kind is not DmlKind.DELETE:
        line += f',"after":{_image(columns, change.after)}'
    return line + "}"


def truth_lines(transactions: Iterable[Transaction]) -> Iterator[str]:
    """Yield the JSON lines of committed transactions, in the given order."""
    for transaction in transactions:
        if not transaction.delivered:
            continue
        xid = format_xid(pack_xid(transaction.segment.usn, transaction.slot, transaction.sequence))
        scn, commit = transaction.begin_scn, transaction.commit_scn
        yield f'{{"op":"begin","scn":{scn},"commit_scn":{commit},"xid":"{xid}"}}'
        for change in transaction.delivered:
            yield _change_line(change, commit, xid)
        yield f'{{"op":"commit","scn":{commit},"commit_scn":{commit},"xid":"{xid}"}}'


def ddl_lines(transactions: Iterable[Transaction]) -> Iterator[str]:
    """Yield the JSON lines of DDL, with its effects, in the order of the transactions."""
    for transaction in transactions:
        xid = format_xid(pack_xid(transaction.segment.usn, transaction.slot, transaction.sequence))
        for effect in transaction.ddl:
            line = (
                f'{{"op":"{effect.operation}","scn":{transaction.begin_scn},'
                f'"commit_scn":{transaction.commit_scn},"xid":"{xid}",'
                f'"table":"{effect.table.full_name_at(transaction.begin_scn)}",'
                f'"moved":{json.dumps(effect.moved)}'
            )
            if effect.column is not None:
                columns = effect.table.columns_at(transaction.commit_scn)
                column = columns[effect.column]
                line += f',"column":{json_text(column.name)},"default":{_value(column, None)}'
            if effect.names is not None:
                line += f',"names":{json.dumps(effect.names)}'
            if effect.columns:
                line += f',"columns":{json.dumps(effect.columns)}'
            if effect.other is not None:
                other = effect.other.full_name_at(transaction.begin_scn)
                line += f',"other":"{other}","exchanged":{json.dumps(effect.exchanged)}'
            if effect.virtual is not None:
                line += f',"virtual":{json.dumps(effect.virtual)}'
            if effect.stops:
                line += ',"stops":true'
            if effect.emptied:
                line += f',"emptied":{json.dumps(sorted(effect.emptied))}'
            yield line + "}"


def unlogged_lines(ranges: Iterable[UnloggedRange]) -> Iterator[str]:
    """Yield the JSON lines of ranges without redo; `stop_scn` is null if no rows were lost."""
    for one in ranges:
        yield json.dumps(
            {
                "table": one.table, "scn": one.scn, "stop_scn": one.stop_scn,
                "object": one.dataobj, "dba": one.dba, "blocks": one.blocks,
            }
        )  # fmt: skip


def undecoded_lines(vectors: Iterable[UndecodedVector]) -> Iterator[str]:
    """Yield the JSON lines of vectors that cannot be decoded; `stop_scn` as in `unlogged_lines`."""
    for one in vectors:
        yield json.dumps(
            {
                "table": one.table.full_name, "scn": one.scn, "stop_scn": one.stop_scn,
                "object": one.dataobj, "opcode": f"{one.opcode[0]}.{one.opcode[1]}",
                "reason": one.reason,
            }
        )  # fmt: skip


def tables_at(
    tables: Iterable[SimTable], transactions: Iterable[Transaction], scn: int
) -> dict[str, Rows]:
    """Return the rows of every table as of an SCN, as a query with ``AS OF SCN`` finds them.

    Args:
        tables: the tables; if several tables had the same name, the first of them is the one that
            existed at the start.
        transactions: all committed transactions, in commit order.
        scn: transactions with this commit SCN are included.
    """
    contents: dict[str, Rows] = {}
    transactions = list(transactions)
    effects = [effect for transaction in transactions for effect in transaction.ddl]
    # A rename moves the rows to another name.
    renamed = [effect.table for effect in effects if effect.operation == RENAME_TABLE]
    for table in (*tables, *renamed):
        contents.setdefault(table.full_name_at(0), dict(table.at_start))
    for transaction in transactions:
        if transaction.commit_scn > scn:
            continue
        for change in transaction.changes:
            name = change.table.full_name_at(change.scn)
            if name not in contents:
                continue
            rows = contents[name]
            rowid = _identity(change)
            if change.kind is DmlKind.DELETE:
                del rows[rowid]
            else:
                rows[rowid] = {**rows.get(rowid, {}), **change.after}
        for effect in transaction.ddl:
            name = effect.table.full_name_at(transaction.begin_scn)
            if name not in contents:
                continue
            _carry_out(effect, contents[name], transaction.commit_scn)
            if effect.operation == RENAME_TABLE and effect.names is not None:
                now = f"{effect.table.owner}.{effect.names[1]}"
                contents[now], contents[name] = contents[name], {}
            elif effect.other is not None:
                other = effect.other.full_name_at(transaction.begin_scn)
                if effect.operation == EXCHANGE_NAMES:
                    contents[name], contents[other] = contents.get(other, {}), contents[name]
                    continue
                _exchange(effect, contents[name], contents.setdefault(other, {}))
    return contents


def _letters(dataobj: int) -> str:
    """Return the first characters of the ROWIDs of a segment's rows."""
    return format_rowid(dataobj, 0, 0)[:DATAOBJ_LETTERS]


def _exchange(effect: DdlEffect, own: Rows, others: Rows) -> None:
    """Exchange the rows of two segments between their tables."""
    came, went = map(_letters, effect.exchanged)
    for rows, letters, to in ((own, went, others), (others, came, own)):
        for rowid in [rowid for rowid in rows if rowid.startswith(letters)]:
            to[rowid] = rows.pop(rowid)


def _carry_out(effect: DdlEffect, rows: Rows, commit_scn: int) -> None:
    if effect.operation in (TRUNCATE, DROP_TABLE):
        rows.clear()  # also rows without ROWID, of index-organised tables
    gone = set(map(_letters, effect.emptied))
    for rowid in [rowid for rowid in rows if rowid[:DATAOBJ_LETTERS] in gone]:
        del rows[rowid]
    for key in effect.emptied_keys:
        del rows[key]
    for old, new in effect.moved.items():
        rows[new] = rows.pop(old)
    if effect.column is not None:
        default = effect.table.columns_at(commit_scn)[effect.column].default
        for rowid, image in rows.items():
            rows[rowid] = {effect.column: default, **image}
    if effect.removed:
        for rowid, image in rows.items():
            rows[rowid] = without_columns(image, effect.removed)


def without_columns(image: Image, removed: Sequence[int]) -> dict[int, Cell | None]:
    """Return the values of a row without some columns; the later columns get lower numbers."""
    return {
        number - sum(other < number for other in removed): cell
        for number, cell in image.items()
        if number not in removed
    }
