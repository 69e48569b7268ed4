"""Defines the kinds of values that a translation must distinguish, and the known facts about a
value.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.dictionary.inventory import InventoryColumn


class ValueKind(Enum):
    """The kinds of values that Oracle's operators distinguish."""

    UNKNOWN = "unknown"
    NOTHING = "null"
    INTEGER = "integer"
    NUMBER = "number"
    FLOAT = "float"
    TEXT = "text"
    CHAR = "char"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    MONTHS = "interval of years and months"
    RAW = "raw"
    BOOLEAN = "boolean"
    XML = "xml"


NUMBERS: Final = frozenset({ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.FLOAT})
TEXTS: Final = frozenset({ValueKind.TEXT, ValueKind.CHAR})
MOMENTS: Final = frozenset({ValueKind.DATE, ValueKind.TIMESTAMP, ValueKind.TIMESTAMPTZ})


class Fact(NamedTuple):
    """The facts that are known about a value.

    Attributes:
        length: for a CHAR, its number of characters; for a TIMESTAMP, its number of fractional
            digits; for a BINARY_FLOAT and a PLS_INTEGER, 4.
        filled: whether the value is never NULL and never an empty text.
        exact: for a CHAR, whether its text in PostgreSQL includes all its blanks; for a TIMESTAMP
            WITH TIME ZONE, whether its zone is the session's time zone.
        zone: for a TIMESTAMP WITH TIME ZONE, SQL for the time zone of its local time; empty if
            unknown.
        json: for a text, whether a function has generated it as JSON.
        early: for a date or timestamp, whether it can be a literal before 1583.
    """

    kind: ValueKind
    length: int = 0
    filled: bool = False
    exact: bool = False
    zone: str = ""
    json: bool = False
    early: bool = False


UNKNOWN: Final = Fact(ValueKind.UNKNOWN)
NOTHING: Final = Fact(ValueKind.NOTHING)
INTEGER: Final = Fact(ValueKind.INTEGER)
NUMBER: Final = Fact(ValueKind.NUMBER)
FLOAT: Final = Fact(ValueKind.FLOAT)
SINGLE: Final = Fact(ValueKind.FLOAT, 4)
PLS_INTEGER: Final = Fact(ValueKind.INTEGER, 4)
TEXT: Final = Fact(ValueKind.TEXT)
DATE: Final = Fact(ValueKind.DATE)
TIMESTAMP: Final = Fact(ValueKind.TIMESTAMP, 6)
TIMESTAMPTZ: Final = Fact(ValueKind.TIMESTAMPTZ, 6)
INTERVAL: Final = Fact(ValueKind.INTERVAL)
MONTHS: Final = Fact(ValueKind.MONTHS)
RAW: Final = Fact(ValueKind.RAW)
BOOLEAN: Final = Fact(ValueKind.BOOLEAN)
XML: Final = Fact(ValueKind.XML)

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
    "XMLTYPE": ValueKind.XML,
}


def column_fact(column: InventoryColumn) -> Fact:
    """Return the facts about the values of a column."""
    name = column.data_type
    filled = not column.nullable
    if name == "NUMBER":
        whole = column.scale is not None and column.scale <= 0
        return Fact(ValueKind.INTEGER if whole else ValueKind.NUMBER, filled=filled)
    if name.startswith("TIMESTAMP"):
        kind = ValueKind.TIMESTAMPTZ if "TIME ZONE" in name else ValueKind.TIMESTAMP
        digits = 6 if column.scale is None else column.scale
        # Oracle converts a value WITH LOCAL TIME ZONE to the session's time zone.
        return Fact(kind, digits, filled, exact="LOCAL" in name)
    if name.startswith("INTERVAL"):
        kind = ValueKind.MONTHS if "YEAR" in name else ValueKind.INTERVAL
        return Fact(kind, filled=filled)
    length = column.char_length or column.length
    return Fact(_BY_TYPE.get(name, ValueKind.UNKNOWN), length, filled)


def float_type(facts: Iterable[Fact]) -> str:
    """Return PostgreSQL's equivalent of the type in which Oracle calculates with these numbers. At
    least one is a floating-point number, so Oracle converts all others to floating-point numbers
    (SQL Language Reference, “Numeric Precedence”).
    """
    floats = [fact for fact in facts if fact.kind is ValueKind.FLOAT]
    return "REAL" if all(fact.length == SINGLE.length for fact in floats) else "DOUBLE PRECISION"


def literal_fact(text: str) -> Fact:
    """Return the facts about a text literal, which in Oracle is a CHAR of the literal's length."""
    return Fact(ValueKind.CHAR, len(text), filled=True, exact=True) if text else NOTHING
