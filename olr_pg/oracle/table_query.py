"""Builds the query that reads a table's rows for a load, and returns the rows as Arrow batches.

Every value must be exact; otherwise loaded rows would differ from replicated ones. A type is read
as one of the driver's Arrow types if the Arrow type can represent every value of the type;
otherwise as text that Oracle makes. As an Arrow type, NUMBER without precision would become a
double. Dates before year 1, and nanoseconds before 1677, do not fit the driver's timestamps. Time
zones would be lost (python-oracledb's "Converting Oracle data types to Arrow"). LOBs would be
fetched whole, and NVARCHAR2 with half a surrogate pair could not be fetched; tables with these
types are read in another way, as below. Values that only a function converts to text (XMLTYPE,
JSON, VECTOR) are fetched whole. LONG values are also fetched whole, because Oracle cannot read them
in parts.

`read_lob_rows` reads rows of tables with LOBs: short values together with the row, long values in
pieces. A short value is fetched with its row, as a LONG. For a long value the row contains a
locator; the content is read in pieces of `PIECE` when it is used, so memory never contains the
whole value. Fetched rows need at most `ROWS` · `SHORT_MAX` of memory per LOB column.

An empty LOB is not NULL, but the driver returns NULL if an empty LOB is fetched as a LONG. The
query therefore also returns the length, which distinguishes the two.

Text can be invalid in its character set. Bytes of VARCHAR2 that are not valid UTF-8 are returned
unchanged; half a surrogate pair in NVARCHAR2 is returned as U+FFFD. The driver's Arrow columns
reject such NVARCHAR2 values, so this module also reads tables with NVARCHAR2 or NCHAR.

A table is divided into ROWID ranges, one per task, that together contain every row. The ranges of a
segment have no gaps: they reach from the lowest to the highest possible ROWID. The extents, or a
sample of the rows, only determine the limits of the ranges. So no row is missed if the extents have
changed since the SCN as of which the rows are read.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import pyarrow as pa
from sqlalchemy import func, select

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.true_charsets import RAW_MAX, is_explicit
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle import tables
from olr_pg.oracle.access_policies import check_access_policies
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.key_cuts import (
    KeyCut,
    LargeRow,
    clob_pieces,
    joined_pieces,
    read_clob_bytes,
    text_pieces,
)
from olr_pg.oracle.oracle_connection import execute
from olr_pg.oracle.tables import among, batches, bound, named
from olr_pg.scalars import format_rowid, parse_rowid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from olr_pg.dictionary.model import Column, Table


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
            (`oracle.key_cuts`); empty for other columns.
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


ROWID: Final = "ROWID"
DECIMAL_DIGITS_MAX: Final = 38
"""Maximum precision of NUMBER, and of Arrow's decimal128."""

DATE_FORMAT: Final = 'SYYYY-MM-DD"T"HH24:MI:SS'
TIMESTAMP_FORMAT: Final = f"{DATE_FORMAT}.FF9"
SPARSE_SINCE: Final = (23, 6)
"""The first release with sparse vectors, and with FORMAT for the text of vectors."""

NUMBER_FORMAT: Final = "'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''"

_UNDER_UTC: Final = frozenset({OracleType.TIMESTAMP_TZ, OracleType.TIMESTAMP_LTZ})
_AS_TEXT: Final = frozenset({OracleType.INTERVAL_YM, OracleType.INTERVAL_DS})
_LOBS: Final = frozenset({OracleType.CLOB, OracleType.BLOB})
_ADDRESSES: Final = frozenset({OracleType.ROWID, OracleType.UROWID})
_NATIONAL_FORM: Final = 2


def query_fields(table: Table, *, has_sparse: bool = False) -> tuple[QueryField, ...]:
    """Return the expressions to select from a table, one for every replicated column.

    Args:
        has_sparse: whether the database supports sparse vectors.

    Raises:
        OlrPgError: 5170, the bytes of a column with another character set than the database
            declares cannot be read.
    """
    row_by_row = _is_read_row_by_row(table)
    return tuple(
        _field_of_bytes(table, column)
        if is_explicit(column)
        else _field(column, row_by_row, has_sparse)
        for column in table.delivered
    )


def _is_read_row_by_row(table: Table) -> bool:
    """Return whether rows of the table are read one by one, as for a table with LOBs."""
    return any(
        _is_lob(one)
        or one.charset_form == _NATIONAL_FORM
        or (is_explicit(one) and one.length > RAW_MAX)
        for one in table.delivered
    )


def _is_lob(column: Column) -> bool:
    return OracleType(column.type_code) in _LOBS and not column.xml


def quoted(name: str) -> str:
    """Quote a name for SQL; names in Oracle cannot contain a double quote."""
    return f'"{name}"'


def _field(column: Column, row_by_row: bool, has_sparse: bool) -> QueryField:
    code, name = OracleType(column.type_code), quoted(column.name)
    text, large_text = pa.string(), pa.large_string()
    if column.xml:
        return QueryField(column.name, f"XMLSERIALIZE(CONTENT {name} AS CLOB)", large_text)
    if code is OracleType.NUMBER:
        return _number(column, name, row_by_row)
    if code is OracleType.DATE:
        return QueryField(column.name, _in_format(name, DATE_FORMAT), text)
    if code is OracleType.TIMESTAMP:
        return QueryField(column.name, _in_format(name, TIMESTAMP_FORMAT), text)
    if code in _UNDER_UTC:
        in_utc = _in_format(f"SYS_EXTRACT_UTC({name})", TIMESTAMP_FORMAT)
        # Fetch the time in UTC, and the offset or region. The local time is not enough, because
        # Oracle shifts it at calendar changes.
        zone = f" || TO_CHAR({name}, 'TZR')" if code is OracleType.TIMESTAMP_TZ else ""
        value = f"CASE WHEN {name} IS NOT NULL THEN {in_utc} || 'Z'{zone} END"
        return QueryField(column.name, value, text)
    if code in _AS_TEXT:
        return QueryField(column.name, f"TO_CHAR({name})", text)
    if code in _ADDRESSES:
        return QueryField(column.name, f"CAST({name} AS VARCHAR2(4000))", text)
    if code is OracleType.JSON:
        # ERROR ON ERROR must be written: without it, Oracle 21c returns NULL for a document that it
        # cannot print, while 19c and 23ai raise an error (SQL Language Reference of each,
        # JSON_SERIALIZE).
        printed = f"JSON_SERIALIZE({name} RETURNING CLOB ERROR ON ERROR)"
        return QueryField(column.name, printed, large_text)
    if code is OracleType.VECTOR:
        return QueryField(column.name, _vector(name, has_sparse), large_text)
    return QueryField(column.name, name, _NATIVE.get(code, text), _is_lob(column))


def _field_of_bytes(table: Table, column: Column) -> QueryField:
    """Return the field of a text column that is read as bytes (`oracle.key_cuts`)."""
    code, name = OracleType(column.type_code), quoted(column.name)
    if column.xml or code is OracleType.LONG:
        kind = "XMLTYPE" if column.xml else "LONG"
        raise OlrPgError(
            Code.TEXT_BYTES_UNREADABLE,
            f"Oracle can return {kind} only as text in the declared character set",
            table=table.full_name,
            column=column.name,
        )
    if code is OracleType.CLOB:
        return QueryField(column.name, name, pa.large_binary(), True, clob_pieces(name))
    return QueryField(column.name, name, pa.binary(), pieces=text_pieces(name, column.length))


_NATIVE: Final[dict[OracleType, pa.DataType]] = {
    OracleType.RAW: pa.binary(),
    OracleType.BINARY_FLOAT: pa.float32(),
    OracleType.BINARY_DOUBLE: pa.float64(),
    OracleType.BOOLEAN: pa.bool_(),
    OracleType.CLOB: pa.large_string(),
    OracleType.LONG: pa.large_string(),
    OracleType.BLOB: pa.large_binary(),
    OracleType.LONG_RAW: pa.large_binary(),
}


def _number(column: Column, name: str, row_by_row: bool) -> QueryField:
    precision, scale = column.precision, column.scale
    # Rows that are read one by one become Python values. For these, text is the exact form that
    # costs the least.
    if not row_by_row and precision is not None and scale is not None and 0 <= scale <= precision:
        digits = min(precision, DECIMAL_DIGITS_MAX)
        return QueryField(column.name, name, pa.decimal128(digits, scale))
    return QueryField(column.name, f"TO_CHAR({name}, {NUMBER_FORMAT})", pa.string())


def _vector(name: str, has_sparse: bool) -> str:
    # Fetch a sparse vector as a dense one, because in the text of a sparse vector the positions
    # begin with 0 or 1, depending on the release.
    returning = "RETURNING CLOB FORMAT DENSE" if has_sparse else "RETURNING CLOB"
    # Also fetch the format: the text of a FLOAT32 value has nine digits, and would give another
    # value if it were read as FLOAT64.
    text = f"VECTOR_DIMENSION_FORMAT({name}) || FROM_VECTOR({name} {returning})"
    return f"CASE WHEN {name} IS NOT NULL THEN {text} END"


def _in_format(value: str, form: str) -> str:
    # TO_CHAR writes a blank before a year that has no minus sign: remove it.
    return f"LTRIM(TO_CHAR({value}, '{form}'))"


def query_schema(table: Table) -> pa.Schema:
    """Return the schema of the batches from `read_rows`."""
    fields = [pa.field(field.name, field.kind) for field in query_fields(table)]
    first = [] if table.index_organised else [pa.field(ROWID, pa.string())]
    return pa.schema([*first, *fields])


def rows_statement(
    table: Table, scn: int, part: RowidRange | KeyCut | None, version: str
) -> tuple[str, dict[str, Any]]:
    """Return the query for the rows of a part of a table as of an SCN, and its binds.

    Args:
        part: the ROWIDs or keys of the part; None for the whole table.
        version: the version of the database, such as ``23.6.0.24.10``.
    """
    has_sparse = tuple(map(int, version.split(".")[:2])) >= SPARSE_SINCE
    # Use generated aliases, because Oracle does not accept "ROWID" as an alias.
    columns, others = list[str](), list[str]()
    for number, field in enumerate(query_fields(table, has_sparse=has_sparse), 1):
        first, *rest = selected(field, number)
        columns.append(first)
        others += rest
    if not table.index_organised:
        columns.insert(0, f"ROWIDTOCHAR({ROWID}) AS C0")
    name = f"{quoted(table.owner)}.{quoted(table.name)}"
    hint = part.hint(table.name) if isinstance(part, KeyCut) else ""
    statement = f"SELECT {hint}{', '.join(columns + others)} FROM {name} AS OF SCN :scn"  # noqa: S608 - quoted
    binds: dict[str, Any] = {"scn": scn}
    if isinstance(part, KeyCut):
        condition, values = part.condition()
        statement += condition and f" WHERE {condition}"
        binds |= values
    elif part is not None:
        statement += f" WHERE {ROWID} BETWEEN CHARTOROWID(:first) AND CHARTOROWID(:last)"
        binds |= {"first": part.first, "last": part.last}
    return statement, binds


def read_rows(
    connection: oracledb.Connection,
    table: Table,
    scn: int,
    part: RowidRange | KeyCut | None,
    batch_rows: int,
    *,
    is_checked: bool = False,
) -> Iterator[pa.RecordBatch | LargeRow]:
    """Read the rows of a part of a table as of an SCN.

    Args:
        batch_rows: rows per fetch; `ROWS` for a table with LOBs.
        is_checked: whether this connection has just read another part of the table, so that the
            table's policies need not be checked again.

    Raises:
        oracledb.Error: any error of Oracle.
        OlrPgError: 5146, a LOB contains invalid text; 7047, a policy may hide rows or replace
            values.
    """
    if not is_checked:
        check_access_policies(connection, table)
    statement, binds = rows_statement(table, scn, part, connection.version)
    schema, fields = query_schema(table), query_fields(table)
    if _is_read_row_by_row(table):
        at_a_time = ROWS if any(field.is_lob for field in fields) else batch_rows
        yield from read_lob_rows(connection, statement, binds, schema, fields, at_a_time)
        return
    frames = connection.fetch_df_batches(
        statement, binds, size=batch_rows, fetch_decimals=True, requested_schema=_positions(schema)
    )
    for frame in frames:
        found = pa.table(frame).rename_columns(schema.names)
        yield from found.combine_chunks().to_batches()


def _positions(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f"C{n}", field.type) for n, field in enumerate(schema)])


BLOCKS_PER_RANGE: Final = 8_192
"""Blocks of a range: 64 MiB if a block has 8 KiB."""

ROWS_PER_RANGE: Final = 100_000
SAMPLE_PERCENT: Final = 1
SAMPLE_ROWS_MAX: Final = 200_000

_BIGFILE: Final = 1_024
"""The relative file number of a bigfile tablespace. ROWIDs in such a tablespace use 32 bits for the
block number (PL/SQL reference, DBMS_ROWID).
"""

_BLOCK_BITS: Final = 22
_DBA_MAX: Final = (1 << 32) - 1
_SLOT_MAX: Final = (1 << 16) - 1


_TYPES_WITH_ROWS: Final = (2, 19, 34)
"""OBJ$.TYPE# of tables, partitions and subpartitions."""


_OBJECTS: Final = """
SELECT o."OBJ#", o."DATAOBJ#" FROM SYS."OBJ$" o JOIN SYS."USER$" u ON o."OWNER#" = u."USER#"
WHERE u.NAME = :owner AND o.NAME = :name AND o."TYPE#" IN (2, 19, 34)
    AND (o."OBJ#" = :obj OR o."DATAOBJ#" = :data_obj)
"""
"""Finds the table and the segment by number, if they still have this name; types as in
`_TYPES_WITH_ROWS`.
"""


class RowidRange(NamedTuple):
    """The ROWIDs of one segment from `first` to `last`, both inclusive."""

    first: str
    last: str


class Extent(NamedTuple):
    """Consecutive blocks of a segment.

    Attributes:
        data_obj: DATAOBJ# of the segment.
        dba: address of the first block.
    """

    data_obj: int
    dba: int
    blocks: int


def segments_of(table: Table) -> tuple[int, ...]:
    """Return DATAOBJ# of each segment that can contain rows; empty if the table has never contained
    rows.
    """
    own = [table.dataobj] if table.dataobj else []
    return tuple(dict.fromkeys(obj for obj in (*own, *(table.segments or table.partitions)) if obj))


def read_extents(connection: Connection, chosen: Sequence[Table]) -> Iterator[Extent]:
    """Yield the extents of the tables' segments, segment by segment.

    Raises:
        sqlalchemy.exc.DBAPIError: DBA_EXTENTS cannot be read.
    """
    # Do not use an IN list: Oracle allows 1,000 values, and a table may have more partitions
    # (ORA-01795).
    wanted = frozenset(obj for table in chosen for obj in segments_of(table))
    extents, objects, users = tables.EXTENTS, tables.OBJ, tables.USER
    part = func.nvl(objects.c.SUBNAME, bound("-")) == func.nvl(extents.c.PARTITION_NAME, bound("-"))
    own = (users.c["USER#"] == objects.c["OWNER#"]) & (users.c.NAME == extents.c.OWNER)
    data_obj = objects.c["DATAOBJ#"]
    for batch in batches(sorted((table.owner, table.name) for table in chosen)):
        query = (
            select(data_obj, extents.c.RELATIVE_FNO, extents.c.BLOCK_ID, extents.c.BLOCKS)
            .select_from(
                extents.join(objects, (objects.c.NAME == extents.c.SEGMENT_NAME) & part).join(
                    users, own
                )
            )
            .where(named(extents.c.OWNER, extents.c.SEGMENT_NAME, batch))
            .order_by(data_obj)
        )
        for obj, file, block, blocks in connection.execute(query):
            if obj in wanted:  # DATAOBJ# is NULL if there is no segment
                yield Extent(int(obj), _dba(int(file), int(block)), int(blocks))


def _dba(file: int, block: int) -> int:
    return block if file == _BIGFILE else file << _BLOCK_BITS | block


def read_segments(connection: Connection, table: Table, scn: int) -> frozenset[int]:
    """Read DATAOBJ# of each segment that the table had at an SCN.

    TRUNCATE and MOVE give a table or partition another segment, and so other ROWIDs.

    Raises:
        sqlalchemy.exc.DBAPIError: OBJ$ cannot be read as of the SCN.
    """
    objects, users = as_of(tables.OBJ, scn, "o"), tables.USER
    query = (
        select(objects.c["DATAOBJ#"])
        .select_from(objects.join(users, objects.c["OWNER#"] == users.c["USER#"]))
        .where(
            bound(table.owner) == users.c.NAME,
            bound(table.name) == objects.c.NAME,
            objects.c["TYPE#"].in_(among(_TYPES_WITH_ROWS)),
        )
    )
    return frozenset(int(number) for (number,) in connection.execute(query) if number)


def changed_since(
    connection: oracledb.Connection, table: Table, part: RowidRange | None
) -> str | None:
    """Return why rows that were read just now may not belong to the table; None if they belong to
    it.

    A query names the table, and Oracle reads the table that has this name now. If two tables have
    exchanged their names meanwhile, or a table and a partition their segments, a range of ROWIDs of
    the former segment contains no rows. Oracle refuses ``AS OF SCN`` (ORA-01466) only after DDL
    that changes the structure of a table (SQL Language Reference, FLASHBACK TABLE). An exchange of
    names or segments does not change the structure.

    Args:
        part: the range that was read; None for another part of the table.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    segment = None if part is None else parse_rowid(part.first)[0]
    binds = {"owner": table.owner, "name": table.name, "obj": table.obj, "data_obj": segment or -1}
    found = execute(connection, _OBJECTS, binds)
    if table.obj not in {obj for obj, _ in found}:
        return f"the name now belongs to another table, not to the object {table.obj}"
    if segment is not None and segment not in {data_obj for _, data_obj in found}:
        return f"the table no longer has the segment {segment}, which was read"
    return None


def ranges_in_segments(
    ranges: Iterable[RowidRange], segments: Collection[int]
) -> tuple[RowidRange, ...]:
    """Return the ranges that lie in one of `segments`, and one new range for each of `segments`
    that contains no range.
    """
    found = [(parse_rowid(one.first)[0], one) for one in ranges]
    new = sorted({*segments} - {segment for segment, _ in found})
    return (
        *(one for segment, one in found if segment in segments),
        *(one for segment in new for one in _between(segment, ())),
    )


def ranges_by_extents(chosen: Iterable[Table], extents: Iterable[Extent]) -> list[list[RowidRange]]:
    """Return, for each table, ranges of about `BLOCKS_PER_RANGE` blocks.

    Args:
        extents: the extents of the tables' segments, segment by segment.
    """
    cuts = {
        data_obj: _cuts(sorted(own))
        for data_obj, own in groupby(extents, lambda extent: extent.data_obj)
    }
    return [
        [one for obj in segments_of(table) for one in _between(obj, cuts.get(obj, ()))]
        for table in chosen
    ]


def _cuts(extents: Iterable[Extent]) -> list[int]:
    """Return the addresses at which to divide a segment with these extents, which are in order."""
    cuts, left = list[int](), BLOCKS_PER_RANGE
    for _, dba, blocks in extents:
        at = 0
        while blocks - at >= left:
            at += left
            cuts.append(dba + at)
            left = BLOCKS_PER_RANGE
        left -= blocks - at
    return cuts


def ranges_by_sample(table: Table, rowids: Iterable[str]) -> list[RowidRange]:
    """Return ranges of about `ROWS_PER_RANGE` rows.

    Args:
        rowids: a sample of `SAMPLE_PERCENT` of the table's rows.
    """
    dbas: dict[int, list[int]] = defaultdict(list)
    for rowid in rowids:
        data_obj, dba, _ = parse_rowid(rowid)
        dbas[data_obj].append(dba)
    step = max(ROWS_PER_RANGE * SAMPLE_PERCENT // 100, 1)
    return [
        one
        for obj in segments_of(table)
        for one in _between(obj, sorted(set(sorted(dbas[obj])[step::step])))
    ]


def read_sample(connection: Connection, table: Table) -> list[str]:
    """Return the ROWIDs of the rows in a sample of blocks.

    Raises:
        sqlalchemy.exc.DBAPIError: the table cannot be read.
    """
    query = (
        f'SELECT ROWIDTOCHAR(ROWID) FROM "{table.owner}"."{table.name}"'  # noqa: S608 - quoted
        f" SAMPLE BLOCK ({SAMPLE_PERCENT})"
    )
    return [rowid for (rowid,) in connection.exec_driver_sql(query).fetchmany(SAMPLE_ROWS_MAX)]


def _between(data_obj: int, cuts: Sequence[int]) -> list[RowidRange]:
    """Return the ranges of a segment. The first range begins at block 0, the others at the
    addresses in `cuts`.
    """
    edges = [0, *cuts, _DBA_MAX + 1]
    return [
        RowidRange(
            format_rowid(data_obj, first, 0), format_rowid(data_obj, following - 1, _SLOT_MAX)
        )
        for first, following in pairwise(edges)
    ]
