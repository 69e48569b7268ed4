"""Reads rows of tables with LOBs: short values are read together with the row, long values in
pieces.

A short value is fetched with its row, as a LONG. For a long value the row contains a locator; the
content is read in pieces of `PIECE` when it is used, so memory never contains the whole value.
Fetched rows need at most `ROWS` · `SHORT_MAX` of memory per LOB column.

An empty LOB is not NULL, but the driver returns NULL if an empty LOB is fetched as a LONG. The
query therefore also returns the length, which distinguishes the two.

Text can be invalid in its character set. Bytes of VARCHAR2 that are not valid UTF-8 are returned
unchanged; half a surrogate pair in NVARCHAR2 is returned as U+FFFD. The driver's Arrow columns
reject such NVARCHAR2 values, so this module also reads tables with NVARCHAR2 or NCHAR.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import pyarrow as pa

from olr_pg.dictionary.true_charsets import RAW_MAX
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.large_row import LargeRow
from olr_pg.oracle.text_bytes import joined_pieces, read_clob_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SHORT_MAX: Final = 1 << 16
"""Maximum characters (UTF-16 units) or bytes of a value that is fetched with its row."""

ROWS: Final = 128
"""Rows per fetch."""

PIECE: Final = 1 << 20
"""Characters (UTF-16 units) or bytes per read of a long value."""

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
        name: name of the table's column.
        expression: the SQL expression that returns the column's values.
        kind: the type that the driver returns.
        is_lob: whether this module reads its values as LOBs.
        pieces: the expressions of the pieces of a text that is read as bytes
            (`oracle.text_bytes`); empty for other columns.
    """

    name: str
    expression: str
    kind: pa.DataType
    is_lob: bool = False
    pieces: tuple[str, ...] = ()

    @property
    def short_max(self) -> int:
        """The maximum length of a LOB that is fetched with its row."""
        return len(self.pieces) * RAW_MAX if self.pieces else SHORT_MAX


def selected(field: QueryField, number: int) -> tuple[str, ...]:
    """Return the expressions that the query selects for a column: its value or the first piece of
    its bytes, then the further pieces. For a LOB, the value is selected only if it is short; the
    length, and the locator of a long value, follow.
    """
    values = field.pieces or (field.expression,)
    names = (f"C{number}", *(f"P{number}_{piece}" for piece in range(1, len(values))))
    if not field.is_lob:
        return tuple(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    length = f"DBMS_LOB.GETLENGTH({field.expression})"
    is_short, is_long = (f"{length} {than} {field.short_max}" for than in ("<=", ">"))
    return (
        *(f"CASE WHEN {is_short} THEN {value} END AS {name}"
          for value, name in zip(values, names, strict=True)),
        f"{length} AS G{number}",
        f"CASE WHEN {is_long} THEN {field.expression} END AS {_LONG_VALUE}{number}",
    )  # fmt: skip


def read_lob_rows(
    connection: oracledb.Connection,
    statement: str,
    binds: dict[str, Any],
    schema: pa.Schema,
    fields: Sequence[QueryField],
    rows_at_a_time: int,
) -> Iterator[pa.RecordBatch | LargeRow]:
    """Yield the rows of a query whose columns were selected with `selected`: the first expressions
    of all columns, then the others.

    Args:
        schema: the schema of the rows: ROWID if it is selected, then the fields.
        rows_at_a_time: rows per fetch; `ROWS` for tables with LOBs.

    Raises:
        oracledb.Error: any error of Oracle.
        OlrPgError: 5146, a text is not valid UTF-16.
    """
    split = _Split(connection, schema, fields)
    with connection.cursor() as cursor:
        cursor.arraysize = cursor.prefetchrows = rows_at_a_time
        cursor.outputtypehandler = _output
        cursor.execute(statement, binds)
        while rows := cursor.fetchmany():
            yield from split.batches(rows)


def _output(cursor: Any, metadata: Any) -> Any:
    """Output type handler: fetch short LOBs as LONG and long ones as locators, whatever the
    driver's defaults are.
    """
    kind = wanted = metadata.type_code
    if kind in _AS_LONG and not metadata.name.startswith(_LONG_VALUE):
        wanted = _AS_LONG[kind]
    if wanted in _TEXT or wanted in _NATIONAL:
        # Divide by four, because the driver allocates four bytes per character: so it allocates the
        # size of the column.
        size = 0 if kind in _AS_LONG else -(-(metadata.internal_size or 0) // 4)
        errors = "replace" if wanted in _NATIONAL else _BYTES_AS_THEY_ARE
        return cursor.var(wanted, size, cursor.arraysize, encoding_errors=errors)
    return cursor.var(wanted, arraysize=cursor.arraysize) if kind in _AS_LONG else None


def _array(values: list[Any], kind: pa.DataType) -> Any:
    """Make an Arrow array of a column's values; text may contain bytes that are not UTF-8."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        raw = [one and one.encode("utf-8", _BYTES_AS_THEY_ARE) for one in values]
        binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        return pa.array(raw, binary).view(kind)


class _Place(NamedTuple):
    """The indexes at which a fetched row has the parts of a column.

    Attributes:
        value: the index of its value, or of the first piece of its bytes; also its index in the
            schema.
        pieces: the indexes of the further pieces.
        length: the index of a LOB's length, after which its locator follows; None for other
            columns.
    """

    value: int
    pieces: range
    length: int | None


class _Split:
    """Splits fetched rows into batches and large rows."""

    def __init__(
        self, connection: oracledb.Connection, schema: pa.Schema, fields: Sequence[QueryField]
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._in_pieces, self._lobs = list[_Place](), list[_Place]()
        at = len(schema)
        for value, field in enumerate(fields, len(schema) - len(fields)):
            pieces = range(at, at + max(len(field.pieces) - 1, 0))
            place = _Place(value, pieces, pieces.stop if field.is_lob else None)
            at = pieces.stop + 2 * field.is_lob
            if pieces:
                self._in_pieces.append(place)
            if field.is_lob:
                self._lobs.append(place)
        self._of_bytes = {field.name for field in fields if field.pieces}

    def batches(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[pa.RecordBatch | LargeRow]:
        """Yield the rows in their order; each large row is yielded alone."""
        for large, some in groupby(rows, self._is_large):
            if not large:
                yield self._batch(list(some))
                continue
            for row in some:
                yield LargeRow(self._batch([row]), self._large(row))

    def _is_large(self, row: tuple[Any, ...]) -> bool:
        return any(_locator(row, place) is not None for place in self._lobs)

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = [list(column) for column in zip(*rows, strict=True)]
        for value, pieces, _ in self._in_pieces:
            parts = (columns[value], *(columns[piece] for piece in pieces))
            columns[value] = [joined_pieces(row) for row in zip(*parts, strict=True)]
        for value, _, length in self._lobs:
            assert length is not None
            empty: Any = b"" if pa.types.is_large_binary(self._schema.field(value).type) else ""
            for row, size in enumerate(columns[length]):
                if size == 0:
                    columns[value][row] = empty
        first = columns[: len(self._schema)]
        arrays = list(map(_array, first, self._schema.types))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _large(self, row: tuple[Any, ...]) -> dict[str, Any]:
        found = {}
        for place in self._lobs:
            lob, field = _locator(row, place), self._schema.field(place.value)
            if lob is not None:
                found[field.name] = (
                    partial(self._bytes_of, lob, field)
                    if field.name in self._of_bytes
                    else partial(read_pieces, lob, field)
                )
        return found

    def _bytes_of(self, lob: oracledb.LOB, field: Any) -> Iterator[Any]:
        for piece in read_clob_bytes(self._connection, lob):
            yield pa.array([piece], field.type)


def _locator(row: tuple[Any, ...], place: _Place) -> Any:
    assert place.length is not None
    return row[place.length + 1]


def read_pieces(lob: oracledb.LOB, field: Any) -> Iterator[Any]:
    """Yield the content of a LOB from its beginning, as arrays of one value.

    Args:
        field: the LOB's field of the schema.

    Raises:
        oracledb.Error: any error of Oracle.
        OlrPgError: 5146, the LOB is text that is not valid UTF-16.
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
    """Read a piece of text; return the text and its number of UTF-16 units.

    The piece is one unit shorter if it would end within a character, because the driver cannot
    decode half a character.
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
