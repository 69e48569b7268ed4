"""Reads rows as of an SCN with Oracle's flashback query, in the form that decoding prints.

These rows are the expected rows of a comparison, because they do not come from redo.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import oracledb
import orjson
import pyarrow as pa

from olr_pg.datatypes.json_values import json_converter
from olr_pg.datatypes.temporal import decode_timestamp, local_isoformat, offset_minutes, shifted
from olr_pg.load.arrow import arrow_column
from olr_pg.load.live_rows import batch_rows
from olr_pg.oracle.driver.driver_failures import oracle_error
from olr_pg.oracle.large_row import LargeRow
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.oracle.table_query import ROWID, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Column, Database, Table

Row = dict[str, Any]
Rows = dict[str, Row]
"""Rows by their ROWID, or by their key if they have no ROWID. Each row contains its values by
column, as parsed JSON.
"""


class TableRows(NamedTuple):
    """The rows of a table at one time.

    Attributes:
        columns: the names of the delivered columns.
        key: names of the columns that identify a row if rows have no ROWID; empty if they have one.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: Rows


class Moment(NamedTuple):
    """The rows of all tables as of an SCN.

    Attributes:
        line: the line of the scenario's statement after which it was recorded; 0 at the start.
    """

    scn: int
    line: int
    tables: dict[str, TableRows]


class RowReader:
    """Reads rows of the source database; one connection, used by one thread."""

    def __init__(self, source: OracleSource, database: Database) -> None:
        self._database = database
        try:
            self._connection = open_connection(source)
        except oracledb.Error as error:
            raise oracle_error(error, f"logging on as {source.user}") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, tables: Sequence[Table], scn: int, line: int) -> Moment:
        """Read all rows of the tables as of an SCN.

        Raises:
            OlrPgError: 7001 to 7009.
        """
        found = {}
        for table in tables:
            try:
                found[table.full_name] = self._table(table, scn)
            except oracledb.Error as error:
                raise oracle_error(error, f"reading {table.full_name} as of {scn}") from error
        return Moment(scn, line, found)

    def _table(self, table: Table, scn: int) -> TableRows:
        key = key_columns(table) if table.index_organised else ()
        rows: Rows = {}
        for batch in read_rows(self._connection, table, scn, None, batch_rows(table)):
            for rowid, row in self._rows(table, batch):
                rows[rowid or row_key(row, key)] = row
        return TableRows(tuple(one.name for one in table.delivered), key, rows)

    def _rows(
        self, table: Table, found: pa.RecordBatch | LargeRow
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        batch = found.batch if isinstance(found, LargeRow) else found
        large = found.large if isinstance(found, LargeRow) else {}
        names = batch.schema.names
        rowids = batch.column(names.index(ROWID)).to_pylist() if ROWID in names else None
        columns = []
        for column in table.delivered:
            array = batch.column(names.index(column.name))
            if column.name in large:
                pieces = [piece[0].as_py() for piece in large[column.name]()]
                array = pa.array([type(pieces[0])().join(pieces)], array.type)
            columns.append(self._values(column, array))
        for at, values in enumerate(zip(*columns, strict=True)):
            row = dict(zip((one.name for one in table.delivered), values, strict=True))
            yield str(rowids[at]) if rowids else "", row

    def _values(self, column: Column, array: Any) -> list[Any]:
        arrow = arrow_column(column, array.type)
        values, database = arrow.convert(array), self._database
        if arrow.in_utc:
            return [None if one is None else self._local(one) for one in _bytes_of(values)]
        convert = json_converter(
            arrow.described,
            charset=database.charset,
            ncharset=database.ncharset,
            timezone=database.timezone,
        )
        return [plain_value(convert(one)) for one in _bytes_of(values)]

    def _local(self, raw: bytes) -> str:
        """Convert a time in UTC to the time in the zone in which Oracle stores local times."""
        utc, zone = decode_timestamp(raw), self._database.timezone
        minutes = offset_minutes(zone)
        if minutes is None:
            return f"{utc.isoformat()}Z"
        return local_isoformat(shifted(utc, minutes * 60), zone)


def _bytes_of(values: Any) -> Iterator[bytes | None]:
    for offset, length in zip(values.offset.tolist(), values.length.tolist(), strict=True):
        yield None if length < 0 else values.data[offset : offset + length].tobytes()


def plain_value(value: Any) -> Any:
    """Return a value as a reader of the JSON Lines gets it, with exact numbers."""
    if value is None or isinstance(value, str | bool):
        return value
    return json.loads(orjson.dumps(value), parse_float=Decimal, parse_int=Decimal)


def key_columns(table: Table) -> tuple[str, ...]:
    """Return the names of the columns of a table's key, in the order of the table's columns."""
    return tuple(one.name for one in table.columns if one.intcol in table.key)


def row_key(row: dict[str, Any], key: Sequence[str]) -> str:
    """Return the key that identifies a row without a ROWID."""
    return json.dumps([row[name] for name in key], default=str)
