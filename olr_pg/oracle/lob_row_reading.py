"""Rows one by one, of tables with LOBs: short values with their rows, long ones piece by piece.

A short value comes with its row, as LONG does; a long one as a locator, whose content is read when
it is wanted, `PIECE` at a time, so that nobody holds it whole. So at most `ROWS` times
`SHORT_MAX` of each LOB column are held at a time.

An empty LOB is no NULL, but as LONG it comes as one: the length tells.

Text need not be what its character set allows: bytes of VARCHAR2 that are no UTF-8 come as they
are, and half a surrogate pair of NVARCHAR2 as U+FFFD. The driver's Arrow columns take no such
NVARCHAR2, so tables with NVARCHAR2 or NCHAR are read here too.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import pyarrow as pa

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.large_row import LargeRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SHORT_MAX: Final = 1 << 16
"""Characters (UTF-16 units) or bytes of a value that comes with its row."""

ROWS: Final = 128
"""Fetched at a time."""

PIECE: Final = 1 << 20
"""Characters (UTF-16 units) or bytes that are read of a long value at a time."""

_AS_LONG: Final = {
    oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
    oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
    oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
}
_LONG_VALUE: Final = "L"
_TEXT: Final = frozenset({oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_CHAR, oracledb.DB_TYPE_LONG})
_NATIONAL: Final = frozenset(
    {oracledb.DB_TYPE_NVARCHAR, oracledb.DB_TYPE_NCHAR, oracledb.DB_TYPE_LONG_NVARCHAR}
)
_BYTES_AS_THEY_ARE: Final = "surrogateescape"


class QueryField(NamedTuple):
    """A column of the query.

    Attributes:
        name: of the table's column.
        expression: that gives its values.
        kind: what the driver makes of them.
        is_lob: they are read here.
    """

    name: str
    expression: str
    kind: pa.DataType
    is_lob: bool = False


def selected(field: QueryField, number: int) -> tuple[str, ...]:
    """List what the query selects for a LOB column: the short value, the length, the long value."""
    length = f"DBMS_LOB.GETLENGTH({field.expression})"
    return (
        f"CASE WHEN {length} <= {SHORT_MAX} THEN {field.expression} END AS C{number}",
        f"{length} AS G{number}",
        f"CASE WHEN {length} > {SHORT_MAX} THEN {field.expression} END AS {_LONG_VALUE}{number}",
    )


def read_lob_rows(
    connection: oracledb.Connection,
    statement: str,
    binds: dict[str, Any],
    schema: pa.Schema,
    fields: Sequence[QueryField],
    rows_at_a_time: int,
) -> Iterator[pa.RecordBatch | LargeRow]:
    """Yield the rows of a query that was made with `selected`.

    Args:
        schema: of the rows: maybe ROWID, then the fields.
        rows_at_a_time: fetched; `ROWS` with LOBs.

    Raises:
        oracledb.Error: what Oracle reports.
        OlrPgError: 5146, when a text is read that is no UTF-16.
    """
    split = _Split(schema, fields)
    with connection.cursor() as cursor:
        cursor.arraysize = cursor.prefetchrows = rows_at_a_time
        cursor.outputtypehandler = _output
        cursor.execute(statement, binds)
        while rows := cursor.fetchmany():
            yield from split.batches(rows)


def _output(cursor: Any, metadata: Any) -> Any:
    """LOBs come as LONG but for the long ones, whatever the driver's defaults are."""
    kind = wanted = metadata.type_code
    if kind in _AS_LONG and not metadata.name.startswith(_LONG_VALUE):
        wanted = _AS_LONG[kind]
    if wanted in _TEXT or wanted in _NATIONAL:
        # The driver makes room for four bytes a character: as many bytes as the column has.
        size = 0 if kind in _AS_LONG else -(-(metadata.internal_size or 0) // 4)
        errors = "replace" if wanted in _NATIONAL else _BYTES_AS_THEY_ARE
        return cursor.var(wanted, size, cursor.arraysize, encoding_errors=errors)
    return cursor.var(wanted, arraysize=cursor.arraysize) if kind in _AS_LONG else None


def _array(values: list[Any], kind: pa.DataType) -> Any:
    """Make an array of the values of a column, whose text may hold bytes that are no UTF-8."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        raw = [one and one.encode("utf-8", _BYTES_AS_THEY_ARE) for one in values]
        binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        return pa.array(raw, binary).view(kind)


class _Split:
    """Takes fetched rows apart."""

    def __init__(self, schema: pa.Schema, fields: Sequence[QueryField]) -> None:
        self._schema = schema
        first = len(schema) - len(fields)
        lobs = iter(range(len(schema), len(schema) + 2 * len(fields), 2))
        self._lobs = [
            (first + number, next(lobs)) for number, field in enumerate(fields) if field.is_lob
        ]
        """(the value's place, the place of its length; the long value follows)."""

    def batches(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[pa.RecordBatch | LargeRow]:
        """Yield the rows in their order, each large one alone."""
        for large, some in groupby(rows, self._is_large):
            if not large:
                yield self._batch(list(some))
                continue
            for row in some:
                yield LargeRow(self._batch([row]), self._large(row))

    def _is_large(self, row: tuple[Any, ...]) -> bool:
        return any(row[place + 1] is not None for _, place in self._lobs)

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = [list(column) for column in zip(*rows, strict=True)]
        for value, length in self._lobs:
            empty: Any = b"" if pa.types.is_large_binary(self._schema.field(value).type) else ""
            for row, size in enumerate(columns[length]):
                if size == 0:
                    columns[value][row] = empty
        arrays = list(map(_array, columns, self._schema.types))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _large(self, row: tuple[Any, ...]) -> dict[str, Any]:
        return {
            self._schema.field(value).name: partial(
                read_pieces, row[place + 1], self._schema.field(value)
            )
            for value, place in self._lobs
            if row[place + 1] is not None
        }


def read_pieces(lob: oracledb.LOB, field: Any) -> Iterator[Any]:
    """Yield the content of a LOB from its beginning, as arrays of one value.

    Args:
        field: of the schema.

    Raises:
        oracledb.Error: what Oracle reports.
        OlrPgError: 5146, it is text and no UTF-16.
    """
    size, at = lob.size(), 0
    read = _read_bytes if pa.types.is_large_binary(field.type) else _read_text
    while at < size:
        piece, units = read(lob, at, min(PIECE, size - at), field.name)
        at += units
        yield pa.array([piece], field.type)


def _read_bytes(lob: oracledb.LOB, at: int, amount: int, _: str) -> tuple[str | bytes, int]:
    piece = lob.read(at + 1, amount)
    return piece, len(piece)


def _read_text(lob: oracledb.LOB, at: int, amount: int, column: str) -> tuple[str | bytes, int]:
    """Read a piece of text and count its UTF-16 units.

    The piece is shorter by one unit where it would end within a character, which the driver does
    not decode.
    """
    try:
        piece = lob.read(at + 1, amount)
    except UnicodeDecodeError as cut:
        try:
            piece = lob.read(at + 1, amount - 1)
        except (UnicodeDecodeError, oracledb.Error) as error:
            raise OlrPgError(
                Code.CLOB_NOT_TEXT, f"{cut.reason}", column=column, offset=at
            ) from error
    assert isinstance(piece, str)
    return piece, len(piece.encode("utf-16-le")) // 2
