"""Parquet files with the rows of tables, one file per table, as an initial load would read them.

The first column is ROWID; the others are the table's, in their order. Their types are those of
`olr_pg.rendering.arrow_types`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from olr_pg.rendering.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import ColumnType, SimTable

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
        folder: created if it does not exist.
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
        self._writer = pq.ParquetWriter(folder / f"{table.full_name}.parquet", self._schema)

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


def read_table(folder: Path, full_name: str) -> pa.Table:
    """Read the file of a table named ``OWNER.NAME``."""
    return pq.read_table(folder / f"{full_name}.parquet")


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
