"""The truth: the output that decoding of the logs must have, and the rows of the tables in files.

The old values of a changed row are those that its redo contains: the columns of the undo and the
supplemental columns. If an update makes a row longer, its undo need not name the columns after the
old end of the row. If these columns are not logged supplementally either, they are missing from
``before``, although they are NULL in SQL. Real records agree: the WHERE that LogMiner shows for
such an update does not contain these columns. Old LOB values are never included
(`transactions.delivered_changes`).

The rows are in Parquet files, one for each table, as an initial load would read them. The first
column is ROWID; the others are the table's, in their order. The columns have the types of
`olr_pg.rendering.arrow_types`.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.scalars import format_rowid, format_xid, pack_xid
from olr_pg.simulator.fields.cells import json_text
from olr_pg.simulator.model.transactions import DROP_TABLE, EXCHANGE_NAMES, RENAME_TABLE, TRUNCATE
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import ColumnType, SimColumn, SimTable
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


NUMBER: Final = 2
ROWID: Final = "ROWID"
GROUP_ROWS: Final = 1 << 16
"""Minimum rows of a row group."""

BATCH_ROWS: Final = 1_000
"""Minimum rows that are converted to columns together, if they are added one by one."""

SCN_KEYS: Final = ("olr_pg.scn", "olr_pg.start_scn")
"""Keys of the metadata: the SCN as of which the rows are, and the SCN at which the oldest open
transaction began.
"""


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE: Final = timedelta(days=146_097)
"""400 years."""
_UNITS: Final = {"s": timedelta(seconds=1), "us": timedelta(microseconds=1)}


def cell_value(kind: ColumnType, cell: Cell | None) -> Any:
    """Return a cell as a value of its column's Parquet type."""
    if cell is None:
        return None
    target = arrow_type(kind)
    if pa.types.is_binary(target):
        return cell.content
    if pa.types.is_decimal(target):
        return Decimal(cell.json)
    if kind.type_code == NUMBER:
        return cell.json
    value = json.loads(cell.json)
    if pa.types.is_timestamp(target):
        return _timestamp(value, target)
    if pa.types.is_floating(target):
        return float(value)  # NaN and the infinities are strings
    return value


def _timestamp(text: str, target: pa.TimestampType[Any]) -> datetime | int:
    """Return a date and time, in UTC if the type has a zone; outside of the years 1 to 9999,
    which Python supports, as an integer in the type's unit.
    """
    before = text.startswith("-")
    year = 1 - int(text[1:5]) if before else int(text[:4])  # astronomical: 1 BC is the year 0
    if not before:
        with suppress(OverflowError):  # in UTC, the year can be 0 or 10000
            when = datetime.fromisoformat(text)
            return when.astimezone(UTC) if target.tz else when
    cycles = (year - 2000) // 400
    moved = datetime.fromisoformat(f"{year - 400 * cycles}{text[5 if before else 4 :]}")
    since = moved.replace(tzinfo=moved.tzinfo or UTC) - _EPOCH + cycles * _CYCLE
    return since // _UNITS[target.unit]


def table_schema(table: SimTable) -> pa.Schema:
    """Return the schema of a table's file: ROWID and the table's columns."""
    fields = (
        pa.field(column.name, arrow_type(column.type), nullable=column.nullable)
        for column in table.columns
    )
    return pa.schema([pa.field(ROWID, pa.string(), nullable=False), *fields])


class TableFile:
    """Writes ``OWNER.NAME.parquet`` batch by batch; all rows are as of one SCN.

    Args:
        folder: the folder of the file, which is created if it does not exist.
        metadata: metadata of the schema; without it, `close` needs the SCN.

    Attributes:
        rows: number of rows in the file.
    """

    def __init__(
        self, folder: Path, table: SimTable, metadata: dict[bytes | str, bytes | str] | None = None
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.rows = 0
        self._table, self._schema = table, table_schema(table).with_metadata(metadata or {})
        self._rows: list[tuple[str, Sequence[Cell | None]]] = []
        self._waiting = list[pa.RecordBatch]()
        self._file = _opened(folder / f"{table.full_name}.parquet", "wb")
        self._writer = pq.ParquetWriter(self._file, self._schema)

    def add(self, columns: Sequence[pa.Array[Any]]) -> None:
        """Add rows as columns: ROWIDs, then the values of each column."""
        self._waiting.append(pa.RecordBatch.from_arrays(list(columns), schema=self._schema))
        self.rows += self._waiting[-1].num_rows
        if sum(one.num_rows for one in self._waiting) >= GROUP_ROWS:
            self._write()

    def add_rows(self, rows: Iterable[tuple[str, Sequence[Cell | None]]]) -> None:
        """Add rows, each as (ROWID, cells)."""
        self._rows += rows
        if len(self._rows) >= BATCH_ROWS:
            self._take_rows()

    def _take_rows(self) -> None:
        self.add(row_arrays(self._table, self._rows))
        self._rows.clear()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting.clear()

    def close(self, scn: int | None = None) -> None:
        """Complete the file; its rows are as of `scn`."""
        if self._rows:
            self._take_rows()
        self._write()
        if scn is not None:
            self._writer.add_key_value_metadata(dict.fromkeys(SCN_KEYS, str(scn)))
        self._writer.close()
        self._file.close()


def write_batches(
    folder: Path, table: SimTable, batches: Iterable[Sequence[pa.Array[Any]]], scn: int
) -> int:
    """Write ``OWNER.NAME.parquet`` in `folder` from batches of columns, ROWID first.

    The metadata says that the rows are as of `scn`, and that no transaction was open then.

    Returns:
        The number of rows.
    """
    file = TableFile(folder, table, dict.fromkeys(SCN_KEYS, str(scn)))
    for batch in batches:
        file.add(batch)
    file.close()
    return file.rows


def _opened(path: Path, mode: Literal["rb", "wb"]) -> pa.OSFile:
    # pyarrow would encode a text as UTF-8, but the name of a directory can be any bytes.
    name: Any = os.fsencode(path)
    return pa.OSFile(name, mode)


def read_table(folder: Path, full_name: str) -> pa.Table:
    """Read the file of a table named ``OWNER.NAME``."""
    with _opened(folder / f"{full_name}.parquet", "rb") as file:
        return pq.read_table(file)


def write_rows(
    folder: Path, table: SimTable, rows: Iterable[tuple[str, Sequence[Cell | None]]], scn: int
) -> None:
    """Write a table's file; rows are (ROWID, cells), with an empty ROWID if index-organised."""
    write_batches(folder, table, [row_arrays(table, rows)], scn)


def row_arrays(
    table: SimTable, rows: Iterable[tuple[str, Sequence[Cell | None]]]
) -> list[pa.Array[Any]]:
    """Return rows as the columns of a table's file, ROWID first."""
    ordered = list(rows)
    columns: list[pa.Array[Any]] = [pa.array([rowid for rowid, _ in ordered], pa.string())]
    for at, column in enumerate(table.columns):
        values = [cell_value(column.type, cells[at]) for _, cells in ordered]
        columns.append(pa.array(values, arrow_type(column.type)))
    return columns
