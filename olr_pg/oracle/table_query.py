"""Builds the query that reads a table's rows for a load, and returns the rows as Arrow batches.

Every value must be exact; otherwise loaded rows would differ from replicated ones. A type is read
as one of the driver's Arrow types if this can represent every value of the type, otherwise as text
that Oracle makes. As an Arrow type, NUMBER without precision would become a double. Dates before
year 1, and nanoseconds before 1677, do not fit the driver's timestamps. Time zones would be lost
(python-oracledb's "Converting Oracle data types to Arrow"). LOBs would be fetched whole, and
NVARCHAR2 with half a surrogate pair could not be fetched; `lob_row_reading` reads tables with these
types. Values that only a function converts to text (XMLTYPE, JSON, VECTOR) are fetched whole, and
so is LONG, which Oracle cannot read in parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.true_charsets import RAW_MAX, is_explicit
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.access_policies import check_access_policies
from olr_pg.oracle.key_cuts import KeyCut
from olr_pg.oracle.lob_row_reading import ROWS, QueryField, read_lob_rows, selected
from olr_pg.oracle.text_bytes import clob_pieces, text_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    import oracledb

    from olr_pg.dictionary.model import Column, Table
    from olr_pg.oracle.large_row import LargeRow
    from olr_pg.oracle.rowids import RowidRange

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
    """Return whether `lob_row_reading` reads the table."""
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
    """Return the field of a text column that is read as bytes (`oracle.text_bytes`)."""
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
        batch_rows: rows per fetch; `lob_row_reading.ROWS` for a table with LOBs.
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
