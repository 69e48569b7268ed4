"""Columns of SQL tables: declarations, allowed values, and the bytes of values in redo."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.charsets import DATABASE_FORM, charset
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import BLOB, CLOB, NCLOB, text_bytes
from olr_pg.simulator.model import column_types
from olr_pg.simulator.model.lobs import UTF16, LobDraft, LobStorage
from olr_pg.simulator.model.tables import CHARSET_UTF16, ColumnType, SimColumn
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import (
    DATE_FORMAT,
    NUMBER_DIGITS,
    SECOND,
    TIMESTAMP_FORMAT,
    Blob,
    Clob,
    DateValue,
    Duration,
    Fixed,
    Months,
    Single,
    Timestamp,
    Value,
    Zoned,
    as_nanoseconds,
    literal_moment,
    mismatch,
    moment_of,
    null_if_empty,
    parsed_moment,
    text_of,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.fields.cells import Cell

_ROUNDED: Final = Context(prec=NUMBER_DIGITS, rounding=ROUND_HALF_UP)
_QUANTIZED: Final = Context(prec=200, rounding=ROUND_HALF_UP)
VARCHAR2_MAX: Final = 4000
MINUTE: Final = 60 * SECOND

Kind = str
"""``NUMBER``, ``VARCHAR2``, … as in `TYPES`."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared type.

    Attributes:
        numbers: the numbers in its brackets, in order; None for a missing one.
        in_characters: the size is in characters.
    """

    kind: Kind
    numbers: tuple[int, ...] = ()
    in_characters: bool = False

    @property
    def size(self) -> int:
        """The length of a text or RAW."""
        return self.numbers[0] if self.numbers else 1


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column.

    Attributes:
        name: its name; empty if the column was set unused.
        default: the text of its DEFAULT; empty for none.
        not_null: the column rejects NULL.
        identity: ``ALWAYS``, ``BY DEFAULT`` or ``BY DEFAULT ON NULL``; empty for other columns.
        charset: NLS_CHARACTERSET of its database.
    """

    name: str
    declared: Declared
    default: str = ""
    not_null: bool = False
    storage: LobStorage | None = None
    identity: str = ""
    charset: str = "AL32UTF8"

    def of_database(self, declared: str) -> SqlColumn:
        """Return the column of a database with this character set."""
        found = charset(declared)
        storage = self.storage
        if storage is not None and storage.kind == CLOB:
            storage = replace(storage, wide=found.structure != "single-byte")
        return replace(self, charset=declared, storage=storage)

    def simulated(self) -> SimColumn:
        """Return the column of the model."""
        made = _type(self)
        if made.charset_form == DATABASE_FORM:
            made = replace(made, charset_id=charset(self.charset).number)
        return SimColumn(self.name, made, nullable=not self.not_null)

    def converted(self, value: Value, table: str) -> Value:
        """Convert a value to the column's type.

        Raises:
            OraError: ORA-01438, ORA-12899, ORA-00932 and others: the column cannot store the value.
        """
        value = null_if_empty(value)
        if value is None:
            return None
        return _CONVERSIONS[self.declared.kind](self, value, table)

    def cell(self, value: Value) -> Cell | None:
        """Return the cell of a value that has the column's type."""
        return None if value is None else _cell(self, value)


def convert_to(declared: Declared, value: Value) -> Value:
    """Convert a value as CAST does; a text that is too long is cut."""
    if declared.kind in ("VARCHAR2", "NVARCHAR2") and value is not None:
        text = text_of(value)
        return null_if_empty(str(text)[: declared.size] if text is not None else None)
    return SqlColumn("", declared).converted(value, "")


def declared_type(kind: Kind, numbers: tuple[int, ...], *, in_characters: bool) -> Declared:
    """Return the type with this name, numbers and length semantics.

    Raises:
        OraError: ORA-00902, the type is not supported.
    """
    kind, numbers = (
        _ALIASES.get(kind, (kind, None))[0],
        _ALIASES.get(kind, ("", None))[1] or numbers,
    )
    if kind not in _CONVERSIONS:
        raise OraError(902, f"invalid datatype: this stand-in has no {kind}")
    limits = {"VARCHAR2": VARCHAR2_MAX, "NVARCHAR2": 2000, "CHAR": 2000, "NCHAR": 1000, "RAW": 2000}
    if kind in limits and numbers and not 0 < numbers[0] <= limits[kind]:
        raise OraError(910, "specified length too long for its datatype")
    if kind in ("VARCHAR2", "NVARCHAR2", "RAW") and not numbers:
        raise OraError(906, "missing left parenthesis")
    return Declared(kind, numbers, in_characters)


_ALIASES: Final[dict[str, tuple[str, tuple[int, ...] | None]]] = {
    "INTEGER": ("NUMBER", (NUMBER_DIGITS, 0)),
    "INT": ("NUMBER", (NUMBER_DIGITS, 0)),
    "SMALLINT": ("NUMBER", (NUMBER_DIGITS, 0)),
    "DECIMAL": ("NUMBER", None),
    "DEC": ("NUMBER", None),
    "NUMERIC": ("NUMBER", None),
    "VARCHAR": ("VARCHAR2", None),
    "CHARACTER": ("CHAR", None),
    "REAL": ("FLOAT", (63,)),
}


def _type(column: SqlColumn) -> ColumnType:
    declared, kind, numbers = column.declared, column.declared.kind, column.declared.numbers
    width = 4 if declared.in_characters else 1
    text = {
        "VARCHAR2": lambda: column_types.varchar(min(declared.size * width, VARCHAR2_MAX)),
        "NVARCHAR2": lambda: column_types.nvarchar(declared.size),
        "CHAR": lambda: column_types.char(declared.size * width),
        "NCHAR": lambda: replace(
            column_types.char(2 * declared.size), charset_id=CHARSET_UTF16, charset_form=2
        ),
        "RAW": lambda: column_types.raw_type(declared.size),
        "DATE": column_types.date_type,
        "TIMESTAMP": lambda: column_types.timestamp_type(_digits(declared)),
        "TIMESTAMP WITH TIME ZONE": lambda: column_types.timestamp_tz_type(_digits(declared)),
        "TIMESTAMP WITH LOCAL TIME ZONE": lambda: column_types.timestamp_ltz_type(
            _digits(declared)
        ),
        "INTERVAL YEAR TO MONTH": lambda: replace(
            column_types.interval_ym(), precision=numbers[0] if numbers else 2
        ),
        "INTERVAL DAY TO SECOND": lambda: replace(
            column_types.interval_ds((*numbers, 6)[1] if len(numbers) > 1 else 6),
            precision=numbers[0] if numbers else 2,
        ),
        "BINARY_FLOAT": column_types.binary_float_type,
        "BINARY_DOUBLE": column_types.binary_double_type,
    }
    if kind in text:
        made: ColumnType = text[kind]()
        return made
    if kind == "FLOAT":
        return replace(column_types.number_type(), precision=(*numbers, 126)[0])
    if kind == "NUMBER":
        return (
            column_types.number_type(*numbers)
            if len(numbers) > 1
            else (
                column_types.number_type(numbers[0], 0) if numbers else column_types.number_type()
            )
        )
    assert column.storage is not None
    return column_types.lob_type(column.storage, 0)


def lob_storage(kind: Kind, **options: bool | int) -> LobStorage | None:
    """Return the storage of a LOB column; None for other types."""
    kinds = {"BLOB": BLOB, "CLOB": CLOB, "NCLOB": NCLOB}
    return LobStorage(kinds[kind], **options) if kind in kinds else None  # type: ignore[arg-type]


def _digits(declared: Declared) -> int:
    """Return the number of decimals of the seconds."""
    return declared.numbers[0] if declared.numbers else 6


# --- conversions to the type of a column ---


def _to_numeric(column: SqlColumn, value: Value, _table: str) -> Value:
    number = to_number(value)
    assert number is not None
    if isinstance(number, float):
        if number != number or number in (float("inf"), float("-inf")):
            raise OraError(1426, "numeric overflow")
        number = Decimal(repr(float(number)))
    numbers = column.declared.numbers if column.declared.kind == "NUMBER" else ()
    if not numbers:
        if column.declared.kind == "NUMBER" and abs(number.adjusted()) <= 2 * NUMBER_DIGITS:
            return Decimal(decode_number(encode_number(number)))
        return _ROUNDED.plus(number)
    precision, scale = (*numbers, 0)[:2]
    number = _QUANTIZED.quantize(number, Decimal(1).scaleb(-scale))
    if number.copy_abs() >= Decimal(1).scaleb(precision - scale):
        raise OraError(1438, "value larger than specified precision allowed for this column")
    return number


def _to_text(column: SqlColumn, value: Value, table: str) -> Value:
    found, declared = text_of(value), column.declared
    assert found is not None
    text = str(found)
    padded = declared.kind in ("CHAR", "NCHAR")
    national = declared.kind.startswith("N")
    in_units = national or declared.in_characters

    def length(of: str) -> int:
        if national:
            return len(of.encode(UTF16)) // 2
        return len(of) if in_units else len(text_bytes(of))

    if length(text) > declared.size:
        raise OraError(
            12899,
            f'value too large for column "{table}"."{column.name}"'
            f" (actual: {length(text)}, maximum: {declared.size})",
        )
    if not padded:
        return text
    return Fixed(text + " " * (declared.size - length(text)))


def _to_raw(column: SqlColumn, value: Value, table: str) -> Value:
    if isinstance(value, str):
        try:
            value = bytes.fromhex(value if len(value) % 2 == 0 else "0" + value)
        except ValueError:
            raise OraError(1465, "invalid hex number") from None
    if not isinstance(value, bytes):
        raise mismatch("BINARY", value)
    if len(value) > column.declared.size:
        raise OraError(
            12899,
            f'value too large for column "{table}"."{column.name}"'
            f" (actual: {len(value)}, maximum: {column.declared.size})",
        )
    return bytes(value)


def _moment(value: Value, form: str) -> Value:
    """Return a moment, or a text in a format, as a TIMESTAMP WITH TIME ZONE."""
    if isinstance(value, str):
        nanoseconds, offset = parsed_moment(value, form)
        return Zoned(nanoseconds - offset * MINUTE, offset)
    nanoseconds_at = as_nanoseconds(value)
    if nanoseconds_at is None:
        raise mismatch("DATE", value)
    return Zoned(nanoseconds_at, value.offset if isinstance(value, Zoned) else 0)


def _to_date(_column: SqlColumn, value: Value, _table: str) -> Value:
    moment = _moment(value, DATE_FORMAT)
    return DateValue((moment.nanoseconds + moment.offset * MINUTE) // SECOND)


def _rounded(nanoseconds: int, digits: int) -> int:
    step: int = 10 ** (9 - digits)
    return (nanoseconds + step // 2) // step * step


def _to_timestamp(column: SqlColumn, value: Value, _table: str) -> Value:
    moment = _moment(value, TIMESTAMP_FORMAT)
    local = moment.nanoseconds + moment.offset * MINUTE
    return Timestamp(_rounded(local, _digits(column.declared)))


def _to_zoned(column: SqlColumn, value: Value, _table: str) -> Value:
    moment = literal_moment(value) if isinstance(value, str) else _moment(value, "")
    offset = moment.offset if isinstance(moment, Zoned) else 0
    return Zoned(_rounded(moment.nanoseconds, _digits(column.declared)), offset)


def _to_local_zone(column: SqlColumn, value: Value, _table: str) -> Value:
    """Return a moment in the time zone of the database and of all sessions, which is UTC here. A
    text without a zone, a DATE and a TIMESTAMP are in the time zone of the session.
    """
    moment = literal_moment(value) if isinstance(value, str) else _moment(value, "")
    return Timestamp(_rounded(moment.nanoseconds, _digits(column.declared)))


def _to_months(column: SqlColumn, value: Value, _table: str) -> Value:
    if not isinstance(value, Months):
        raise mismatch("INTERVAL YEAR TO MONTH", value)
    digits = column.declared.numbers[0] if column.declared.numbers else 2
    if abs(value.months) // 12 >= 10**digits:
        raise OraError(1873, "the leading precision of the interval is too small")
    return value


def _to_duration(column: SqlColumn, value: Value, _table: str) -> Value:
    if not isinstance(value, Duration):
        raise mismatch("INTERVAL DAY TO SECOND", value)
    digits, decimals = (*column.declared.numbers, *(2, 6)[len(column.declared.numbers) :])[:2]
    if abs(value.nanoseconds) // (86_400 * SECOND) >= 10**digits:
        raise OraError(1873, "the leading precision of the interval is too small")
    step = 10 ** (9 - decimals)
    return Duration(int(value.nanoseconds / step) * step if step > 1 else value.nanoseconds)


def _to_float(column: SqlColumn, value: Value, _table: str) -> Value:
    try:
        number = float(value) if isinstance(value, str) else float(to_number(value) or 0)
    except ValueError:
        raise OraError(1722, "invalid number") from None
    if column.declared.kind == "BINARY_DOUBLE":
        return number
    try:
        return Single(struct.unpack(">f", struct.pack(">f", number))[0])
    except OverflowError:
        return Single(float("inf") if number > 0 else float("-inf"))


def _to_clob(_column: SqlColumn, value: Value, _table: str) -> Value:
    if isinstance(value, Clob):
        return value
    text = text_of(value)
    if text is None or isinstance(value, bytes):
        raise mismatch("CLOB", value)
    return Clob(text)


def _to_blob(_column: SqlColumn, value: Value, _table: str) -> Value:
    if isinstance(value, str) and not isinstance(value, Clob):
        value = _to_raw(SqlColumn("", Declared("RAW", (VARCHAR2_MAX,))), value, "")
    if not isinstance(value, bytes):
        raise mismatch("BLOB", value)
    return Blob(value)


_CONVERSIONS: Final[dict[Kind, Callable[[SqlColumn, Value, str], Value]]] = {
    "NUMBER": _to_numeric,
    "FLOAT": _to_numeric,
    "VARCHAR2": _to_text,
    "NVARCHAR2": _to_text,
    "CHAR": _to_text,
    "NCHAR": _to_text,
    "RAW": _to_raw,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
    "TIMESTAMP WITH TIME ZONE": _to_zoned,
    "TIMESTAMP WITH LOCAL TIME ZONE": _to_local_zone,
    "INTERVAL YEAR TO MONTH": _to_months,
    "INTERVAL DAY TO SECOND": _to_duration,
    "BINARY_FLOAT": _to_float,
    "BINARY_DOUBLE": _to_float,
    "CLOB": _to_clob,
    "NCLOB": _to_clob,
    "BLOB": _to_blob,
}


# --- bytes ---


def _cell(column: SqlColumn, value: Value) -> Cell:
    if isinstance(value, Clob | Blob):
        assert column.storage is not None
        if isinstance(value, Blob):
            return LobDraft.of(column.storage, bytes(value))
        is_wide = column.storage.wide
        content = value.encode(UTF16, "surrogatepass") if is_wide else text_bytes(value)
        return LobDraft.of(column.storage, content)
    if isinstance(value, Decimal):
        return cells.number(value)
    if isinstance(value, str):
        return cells.text(value, UTF16 if column.declared.kind.startswith("N") else "utf-8")
    if isinstance(value, bytes):
        return cells.raw(value)
    if isinstance(value, Single):
        return cells.binary_float(float(value))
    if isinstance(value, float):
        return cells.binary_double(value)
    if isinstance(value, DateValue):
        return cells.date(moment_of(value.seconds * SECOND))
    if isinstance(value, Timestamp):
        is_local = column.declared.kind == "TIMESTAMP WITH LOCAL TIME ZONE"
        encode = cells.timestamp_ltz if is_local else cells.timestamp
        return encode(moment_of(value.nanoseconds))
    if isinstance(value, Zoned):
        local = moment_of(value.nanoseconds + value.offset * MINUTE)
        return cells.timestamp_tz(moment_of(value.nanoseconds), local, value.offset)
    if isinstance(value, Months):
        return cells.interval_year_to_month(value.months)
    assert isinstance(value, Duration)
    return cells.interval_day_to_second(value.nanoseconds)
