"""The kinds of values that a translation must tell apart, and which a column has."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from olr_pg.dictionary.inventory import InventoryColumn


class Kind(Enum):
    """What Oracle's operators ask of a value."""

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


NUMBERS: Final = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.FLOAT})
TEXTS: Final = frozenset({Kind.TEXT, Kind.CHAR})
MOMENTS: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


class Fact(NamedTuple):
    """What is known of a value.

    Attributes:
        length: characters of a CHAR.
        filled: it is never NULL, nor an empty text.
    """

    kind: Kind
    length: int = 0
    filled: bool = False


UNKNOWN: Final = Fact(Kind.UNKNOWN)
INTEGER: Final = Fact(Kind.INTEGER)
NUMBER: Final = Fact(Kind.NUMBER)
TEXT: Final = Fact(Kind.TEXT)
DATE: Final = Fact(Kind.DATE)
TIMESTAMP: Final = Fact(Kind.TIMESTAMP)
TIMESTAMPTZ: Final = Fact(Kind.TIMESTAMPTZ)
INTERVAL: Final = Fact(Kind.INTERVAL)
RAW: Final = Fact(Kind.RAW)

_BY_TYPE: Final = {
    "BINARY_FLOAT": Kind.FLOAT,
    "BINARY_DOUBLE": Kind.FLOAT,
    "FLOAT": Kind.NUMBER,
    "VARCHAR2": Kind.TEXT,
    "NVARCHAR2": Kind.TEXT,
    "VARCHAR": Kind.TEXT,
    "CLOB": Kind.TEXT,
    "NCLOB": Kind.TEXT,
    "LONG": Kind.TEXT,
    "CHAR": Kind.CHAR,
    "NCHAR": Kind.CHAR,
    "DATE": Kind.DATE,
    "RAW": Kind.RAW,
    "BLOB": Kind.RAW,
    "LONG RAW": Kind.RAW,
    "BOOLEAN": Kind.BOOLEAN,
}


def column_fact(column: InventoryColumn) -> Fact:
    """Tell what the values of a column are."""
    name = column.data_type
    filled = not column.nullable
    if name == "NUMBER":
        whole = column.scale is not None and column.scale <= 0
        return Fact(Kind.INTEGER if whole else Kind.NUMBER, filled=filled)
    if name.startswith("TIMESTAMP"):
        kind = Kind.TIMESTAMPTZ if "TIME ZONE" in name else Kind.TIMESTAMP
        return Fact(kind, filled=filled)
    if name.startswith("INTERVAL"):
        return Fact(Kind.INTERVAL, filled=filled)
    return Fact(_BY_TYPE.get(name, Kind.UNKNOWN), column.char_length, filled)
