"""The kinds of values that a translation must tell apart, and which a column has."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from olr_pg.dictionary.inventory import InventoryColumn


class ValueKind(Enum):
    """The kinds of value that Oracle's operators tell apart."""

    UNKNOWN = "unknown"
    INTEGER = "integer"
    NUMBER = "number"
    FLOAT = "float"
    TEXT = "text"
    CHAR = "char"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    RAW = "raw"
    BOOLEAN = "boolean"


NUMBERS: Final = frozenset({ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.FLOAT})
TEXTS: Final = frozenset({ValueKind.TEXT, ValueKind.CHAR})
MOMENTS: Final = frozenset({ValueKind.DATE, ValueKind.TIMESTAMP, ValueKind.TIMESTAMPTZ})


class Fact(NamedTuple):
    """The facts that are known of a value.

    Attributes:
        length: characters of a CHAR.
        filled: it is never NULL, nor an empty text.
    """

    kind: ValueKind
    length: int = 0
    filled: bool = False


UNKNOWN: Final = Fact(ValueKind.UNKNOWN)
INTEGER: Final = Fact(ValueKind.INTEGER)
NUMBER: Final = Fact(ValueKind.NUMBER)
TEXT: Final = Fact(ValueKind.TEXT)
DATE: Final = Fact(ValueKind.DATE)
TIMESTAMP: Final = Fact(ValueKind.TIMESTAMP)
TIMESTAMPTZ: Final = Fact(ValueKind.TIMESTAMPTZ)
INTERVAL: Final = Fact(ValueKind.INTERVAL)
RAW: Final = Fact(ValueKind.RAW)

_BY_TYPE: Final = {
    "BINARY_FLOAT": ValueKind.FLOAT,
    "BINARY_DOUBLE": ValueKind.FLOAT,
    "FLOAT": ValueKind.NUMBER,
    "VARCHAR2": ValueKind.TEXT,
    "NVARCHAR2": ValueKind.TEXT,
    "VARCHAR": ValueKind.TEXT,
    "CLOB": ValueKind.TEXT,
    "NCLOB": ValueKind.TEXT,
    "LONG": ValueKind.TEXT,
    "CHAR": ValueKind.CHAR,
    "NCHAR": ValueKind.CHAR,
    "DATE": ValueKind.DATE,
    "RAW": ValueKind.RAW,
    "BLOB": ValueKind.RAW,
    "LONG RAW": ValueKind.RAW,
    "BOOLEAN": ValueKind.BOOLEAN,
}


def column_fact(column: InventoryColumn) -> Fact:
    """Tell what the values of a column are."""
    name = column.data_type
    filled = not column.nullable
    if name == "NUMBER":
        whole = column.scale is not None and column.scale <= 0
        return Fact(ValueKind.INTEGER if whole else ValueKind.NUMBER, filled=filled)
    if name.startswith("TIMESTAMP"):
        kind = ValueKind.TIMESTAMPTZ if "TIME ZONE" in name else ValueKind.TIMESTAMP
        return Fact(kind, filled=filled)
    if name.startswith("INTERVAL"):
        return Fact(ValueKind.INTERVAL, filled=filled)
    return Fact(_BY_TYPE.get(name, ValueKind.UNKNOWN), column.char_length, filled)
