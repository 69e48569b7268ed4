"""The mapping from Oracle types to PostgreSQL types, and the folding of names (type-mapping §2). No
other module has a default type or folds names.

The default mapping loses nothing. A mapping that loses something must be chosen (`choices`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.datatypes.charsets import AL16UTF16, UTF8
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTIFIER_BYTES_MAX: Final = 63
_CHAR_LENGTH_MAX: Final = 10_485_760
_HASH_LENGTH: Final = 8
_FOLDABLE: Final = re.compile(r"[A-Z][A-Z0-9_$#]*")
_SYSTEM_COLUMNS: Final = frozenset(
    {"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"},
)


class OracleType(IntEnum):
    """Oracle's internal type codes, COL$.TYPE# (values-and-lobs §1)."""

    VARCHAR2 = 1
    NUMBER = 2
    LONG = 8
    VARCHAR = 9
    DATE = 12
    RAW = 23
    LONG_RAW = 24
    OPAQUE = 58
    ROWID = 69
    CHAR = 96
    BINARY_FLOAT = 100
    BINARY_DOUBLE = 101
    REF = 111
    CLOB = 112
    BLOB = 113
    BFILE = 114
    CFILE = 115
    JSON = 119
    OBJECT = 121
    NESTED_TABLE = 122
    VARRAY = 123
    VECTOR = 127
    TIME = 178
    TIME_TZ = 179
    TIMESTAMP = 180
    TIMESTAMP_TZ = 181
    INTERVAL_YM = 182
    INTERVAL_DS = 183
    UROWID = 208
    TIMESTAMP_LTZ = 231
    BOOLEAN = 252

    @property
    def title(self) -> str:
        """Return the type's SQL name."""
        return _TITLES.get(self, self.name.replace("_", " "))


_TITLES: Final = {
    OracleType.TIMESTAMP_TZ: "TIMESTAMP WITH TIME ZONE",
    OracleType.TIMESTAMP_LTZ: "TIMESTAMP WITH LOCAL TIME ZONE",
    OracleType.TIME_TZ: "TIME WITH TIME ZONE",
    OracleType.INTERVAL_YM: "INTERVAL YEAR TO MONTH",
    OracleType.INTERVAL_DS: "INTERVAL DAY TO SECOND",
    OracleType.BINARY_FLOAT: "BINARY_FLOAT",
    OracleType.BINARY_DOUBLE: "BINARY_DOUBLE",
}

CHARACTER_TYPES: Final = frozenset(
    {OracleType.VARCHAR2, OracleType.VARCHAR, OracleType.CHAR, OracleType.LONG}
)
"""The types whose values are text that is stored in the row itself."""

LOB_TYPES: Final = frozenset({OracleType.CLOB, OracleType.BLOB, OracleType.JSON, OracleType.VECTOR})
"""The types whose values are delivered in chunks. An empty CLOB or BLOB is not NULL."""


class PgKind(IntEnum):
    """The PostgreSQL types that values can be encoded for. The numbers are the types' OIDs.

    The OIDs of pgvector's types differ between databases; so in this enum these types have negative
    numbers.
    """

    SPARSEVEC = -3
    HALFVEC = -2
    VECTOR = -1
    BOOL = 16
    BYTEA = 17
    INT8 = 20
    INT2 = 21
    INT4 = 23
    TEXT = 25
    JSON = 114
    XML = 142
    FLOAT4 = 700
    FLOAT8 = 701
    INT2_ARRAY = 1005
    FLOAT4_ARRAY = 1021
    FLOAT8_ARRAY = 1022
    BPCHAR = 1042
    VARCHAR = 1043
    DATE = 1082
    TIMESTAMP = 1114
    TIMESTAMPTZ = 1184
    INTERVAL = 1186
    BIT = 1560
    VARBIT = 1562
    NUMERIC = 1700
    UUID = 2950
    JSONB = 3802


@dataclass(frozen=True, slots=True)
class PgType:
    """A PostgreSQL column type.

    Attributes:
        name: the type in SQL, such as ``numeric(15,2)``.
        kind: the binary form of its values.
        note: a note about what the target column loses; empty if it loses nothing.
    """

    name: str
    kind: PgKind
    note: str = ""


class OracleColumn(Protocol):
    """The attributes of a column that conversions need. `dictionary.model.Column` implements this
    protocol.
    """

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def type_code(self) -> int:
        """COL$.TYPE#."""

    @property
    def length(self) -> int:
        """The column's length in bytes."""

    @property
    def precision(self) -> int | None:
        """COL$.PRECISION#."""

    @property
    def scale(self) -> int | None:
        """COL$.SCALE."""

    @property
    def charset_id(self) -> int | None:
        """COL$.CHARSETID."""

    @property
    def charset_form(self) -> int | None:
        """COL$.CHARSETFORM."""

    @property
    def char_length(self) -> int | None:
        """COL$.SPARE3: the length in characters, or None if it is unknown."""

    @property
    def xml(self) -> bool:
        """Whether the values are documents of an XMLTYPE."""


_REFUSALS: Final = {
    OracleType.OPAQUE: "opaque types such as ANYDATA are not replicated, except XMLTYPE that is"
    " stored as CLOB or binary XML",
    OracleType.REF: "REF columns have no meaning in another database",
    OracleType.BFILE: "BFILE columns name files of the Oracle host",
    OracleType.CFILE: "CFILE columns name files of the Oracle host",
    OracleType.OBJECT: "object types are not replicated",
    OracleType.NESTED_TABLE: "nested tables are not replicated",
    OracleType.VARRAY: "VARRAYs are not replicated",
    OracleType.TIME: "TIME is not a type of Oracle's SQL",
    OracleType.TIME_TZ: "TIME WITH TIME ZONE is not a type of Oracle's SQL",
}


def oracle_type_name(column: OracleColumn) -> str:
    """Return the column's type for messages, such as ``NUMBER(15,2)`` or ``VARCHAR2(20)``."""
    code = _known(column.type_code)
    if code is None:
        return f"type code {column.type_code}"
    if code is OracleType.NUMBER:
        if column.precision is None:
            return "NUMBER" if column.scale is None else f"NUMBER(*,{column.scale})"
        if column.scale is None:
            return f"FLOAT({column.precision})"
        return f"NUMBER({column.precision},{column.scale})"
    national = "N" if column.charset_form == 2 else ""
    if code in (OracleType.VARCHAR2, OracleType.CHAR, OracleType.RAW):
        return f"{national}{code.title}({column.length})"
    return national + code.title


def refusal(column: OracleColumn) -> str | None:
    """Return why a column of this type cannot be replicated, or None if it can."""
    code = _known(column.type_code)
    if code is None:
        return f"Oracle type code {column.type_code} is not known"
    return _REFUSALS.get(code)


def pg_type(column: OracleColumn) -> PgType:
    """Choose the PostgreSQL type that a new target column gets.

    Raises:
        OlrPgError: 2055, the column's type cannot be replicated (see `refusal`).
    """
    reason = refusal(column)
    if reason is not None:
        raise OlrPgError(
            Code.ORACLE_TYPE_UNSUPPORTED, reason, column=column.name, type=oracle_type_name(column)
        )
    return _MAPPINGS[OracleType(column.type_code)](column)


def _known(type_code: int) -> OracleType | None:
    return OracleType(type_code) if type_code in _TYPE_CODES else None


_TYPE_CODES: Final = frozenset(OracleType)


def _number(column: OracleColumn) -> PgType:
    precision, scale = column.precision, column.scale
    if precision is None:
        if scale is None:
            return PgType("numeric", PgKind.NUMERIC)
        return PgType(f"numeric({max(38 - min(scale, 0), scale)},{max(scale, 0)})", PgKind.NUMERIC)
    if scale is None:
        return PgType("numeric", PgKind.NUMERIC)  # FLOAT(b): Oracle stores it as a decimal number
    if scale <= 0:
        return _integer(precision - scale)
    return PgType(f"numeric({max(precision, scale)},{scale})", PgKind.NUMERIC)


def _integer(digits: int) -> PgType:
    for most, name, kind in (
        (4, "smallint", PgKind.INT2),
        (9, "integer", PgKind.INT4),
        (18, "bigint", PgKind.INT8),
    ):
        if digits <= most:
            return PgType(name, kind)
    return PgType(f"numeric({digits},0)", PgKind.NUMERIC)


def _characters(column: OracleColumn) -> int:
    """Return the column's maximum number of characters. If it is unknown, return an upper bound,
    computed from the length in bytes.
    """
    if column.char_length is not None:
        return column.char_length
    if column.charset_form == 2:
        return column.length // {AL16UTF16: 2, UTF8: 3}.get(column.charset_id or AL16UTF16, 1)
    return column.length


def _varchar(column: OracleColumn) -> PgType:
    length = _characters(column)
    if not 0 < length <= _CHAR_LENGTH_MAX:
        return PgType("text", PgKind.TEXT)
    return PgType(f"varchar({length})", PgKind.VARCHAR)


def _char(column: OracleColumn) -> PgType:
    return PgType(f"char({max(_characters(column), 1)})", PgKind.BPCHAR)


def _seconds(column: OracleColumn) -> tuple[int, str]:
    scale = 6 if column.scale is None else column.scale
    note = "" if scale <= 6 else "fractions of a second beyond microseconds are cut"
    return min(max(scale, 0), 6), note


def _timestamp(column: OracleColumn) -> PgType:
    digits, note = _seconds(column)
    return PgType(f"timestamp({digits})", PgKind.TIMESTAMP, note)


def _timestamptz(column: OracleColumn) -> PgType:
    digits, note = _seconds(column)
    lost = "the time zone of the value is not preserved; the point in time is"
    if column.type_code == OracleType.TIMESTAMP_TZ:
        note = f"{lost}; {note}" if note else lost
    return PgType(f"timestamptz({digits})", PgKind.TIMESTAMPTZ, note)


def _interval_ds(column: OracleColumn) -> PgType:
    digits, note = _seconds(column)
    return PgType(f"interval day to second({digits})", PgKind.INTERVAL, note)


def _clob(column: OracleColumn) -> PgType:
    return _XML if column.xml else PgType("text", PgKind.TEXT)


def _blob(column: OracleColumn) -> PgType:
    return _XML if column.xml else PgType("bytea", PgKind.BYTEA)


_XML: Final = PgType(
    "xml",
    PgKind.XML,
    "the XML declaration loses its encoding; without libxml in PostgreSQL, the type is text",
)


def _always(name: str, kind: PgKind, note: str = "") -> Callable[[OracleColumn], PgType]:
    fixed = PgType(name, kind, note)

    def mapping(_: OracleColumn) -> PgType:
        return fixed

    return mapping


_MAPPINGS: Final[dict[OracleType, Callable[[OracleColumn], PgType]]] = {
    OracleType.NUMBER: _number,
    OracleType.VARCHAR2: _varchar,
    OracleType.VARCHAR: _varchar,
    OracleType.CHAR: _char,
    OracleType.LONG: _always("text", PgKind.TEXT),
    OracleType.CLOB: _clob,
    OracleType.RAW: _always("bytea", PgKind.BYTEA),
    OracleType.LONG_RAW: _always("bytea", PgKind.BYTEA),
    OracleType.BLOB: _blob,
    OracleType.JSON: _always("jsonb", PgKind.JSONB, "dates within documents become strings"),
    OracleType.VECTOR: _always(
        "double precision[]", PgKind.FLOAT8_ARRAY, "sparse vectors become dense"
    ),
    OracleType.DATE: _always("timestamp(0)", PgKind.TIMESTAMP),
    OracleType.TIMESTAMP: _timestamp,
    OracleType.TIMESTAMP_TZ: _timestamptz,
    OracleType.TIMESTAMP_LTZ: _timestamptz,
    OracleType.INTERVAL_YM: _always("interval year to month", PgKind.INTERVAL),
    OracleType.INTERVAL_DS: _interval_ds,
    OracleType.BINARY_FLOAT: _always("real", PgKind.FLOAT4),
    OracleType.BINARY_DOUBLE: _always("double precision", PgKind.FLOAT8),
    OracleType.BOOLEAN: _always("boolean", PgKind.BOOL),
    OracleType.ROWID: _always("text", PgKind.TEXT),
    OracleType.UROWID: _always("text", PgKind.TEXT),
}

_PG_NAMES: Final = {
    "bool": PgKind.BOOL,
    "boolean": PgKind.BOOL,
    "bytea": PgKind.BYTEA,
    "int8": PgKind.INT8,
    "bigint": PgKind.INT8,
    "int2": PgKind.INT2,
    "smallint": PgKind.INT2,
    "int4": PgKind.INT4,
    "int": PgKind.INT4,
    "integer": PgKind.INT4,
    "text": PgKind.TEXT,
    "json": PgKind.JSON,
    "xml": PgKind.XML,
    "float4": PgKind.FLOAT4,
    "real": PgKind.FLOAT4,
    "float8": PgKind.FLOAT8,
    "double precision": PgKind.FLOAT8,
    "bpchar": PgKind.BPCHAR,
    "char": PgKind.BPCHAR,
    "character": PgKind.BPCHAR,
    "varchar": PgKind.VARCHAR,
    "character varying": PgKind.VARCHAR,
    "date": PgKind.DATE,
    "timestamp": PgKind.TIMESTAMP,
    "timestamp without time zone": PgKind.TIMESTAMP,
    "timestamptz": PgKind.TIMESTAMPTZ,
    "timestamp with time zone": PgKind.TIMESTAMPTZ,
    "interval": PgKind.INTERVAL,
    "numeric": PgKind.NUMERIC,
    "decimal": PgKind.NUMERIC,
    "uuid": PgKind.UUID,
    "jsonb": PgKind.JSONB,
    "smallint[]": PgKind.INT2_ARRAY,
    "int2[]": PgKind.INT2_ARRAY,
    "real[]": PgKind.FLOAT4_ARRAY,
    "float4[]": PgKind.FLOAT4_ARRAY,
    "double precision[]": PgKind.FLOAT8_ARRAY,
    "float8[]": PgKind.FLOAT8_ARRAY,
    "citext": PgKind.TEXT,
    "vector": PgKind.VECTOR,
    "halfvec": PgKind.HALFVEC,
    "sparsevec": PgKind.SPARSEVEC,
    "bit": PgKind.BIT,
    "varbit": PgKind.VARBIT,
    "bit varying": PgKind.VARBIT,
}
_MODIFIER: Final = re.compile(r"\s*\([\d\s,-]*\)")


def pg_kind(target: PgKind | int | str) -> PgKind | None:
    """Return the kind of a PostgreSQL type, given by its OID or by its name with or without
    modifiers; None if the type is unknown.
    """
    if isinstance(target, int):
        return PgKind(target) if target in _PG_OIDS else None
    name = " ".join(_MODIFIER.sub("", target).lower().split()).removeprefix("pg_catalog.")
    return PgKind.INTERVAL if name.startswith("interval ") else _PG_NAMES.get(name)


_PG_OIDS: Final = frozenset(PgKind)


def fold_identifier(name: str, *, column: bool = False, keep_case: bool = False) -> str:
    """Convert an Oracle name to the PostgreSQL name. The caller must always quote the result
    (type-mapping §2.2).

    A name that needs no quotes in Oracle is converted to lower case; any other name stays
    unchanged. A name of more than 63 bytes is truncated, and ends with a hash of the whole name. If
    a column has the name of a PostgreSQL system column, ``_`` is appended.
    """
    folded = name.lower() if not keep_case and _FOLDABLE.fullmatch(name) else name
    if column and folded in _SYSTEM_COLUMNS:
        folded += "_"
    raw = folded.encode("utf-8")
    if len(raw) <= IDENTIFIER_BYTES_MAX:
        return folded
    digest = hashlib.sha256(name.encode("utf-8")).hexdigest()[:_HASH_LENGTH]
    kept = raw[: IDENTIFIER_BYTES_MAX - _HASH_LENGTH - 1].decode("utf-8", "ignore")
    return f"{kept}_{digest}"
