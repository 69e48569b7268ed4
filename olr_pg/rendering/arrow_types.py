"""Maps the types of Oracle columns to the Arrow types of olr_pg's record batches and Parquet files.

| Oracle | Arrow |
| --- | --- |
| NUMBER(p, s), 0 ≤ s ≤ p | decimal128(p, s) |
| NUMBER without precision, or with another scale; FLOAT | string, exact decimal digits |
| VARCHAR2, NVARCHAR2, CHAR, NCHAR, CLOB, NCLOB | string |
| RAW, LONG RAW, BLOB | binary |
| DATE | timestamp in seconds (milliseconds in a Parquet file) |
| TIMESTAMP(0–6), TIMESTAMP(0–6) WITH TIME ZONE | timestamp in microseconds, the latter in UTC |
| TIMESTAMP(7–9) (WITH TIME ZONE) | string, ISO 8601 |
| BINARY_FLOAT, BINARY_DOUBLE | float, double |
| BOOLEAN | boolean |
| anything else | string, as ``olr-pg decode`` prints it |
"""

from __future__ import annotations

from typing import Final, Protocol

import pyarrow as pa

from olr_pg.datatypes.mapping import OracleType

_MICROSECOND_DIGITS: Final = 6
_BYTES: Final = frozenset({OracleType.RAW, OracleType.LONG_RAW, OracleType.BLOB})
_TIMES: Final = frozenset({OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ})
_PLAIN: Final[dict[int, pa.DataType]] = {
    OracleType.DATE: pa.timestamp("s"),
    OracleType.BINARY_FLOAT: pa.float32(),
    OracleType.BINARY_DOUBLE: pa.float64(),
    OracleType.BOOLEAN: pa.bool_(),
}


class TypedColumn(Protocol):
    """A column's type, as the dictionary describes it."""

    @property
    def type_code(self) -> int:
        """The type code, TYPE# in COL$."""

    @property
    def precision(self) -> int | None:
        """The number in the dictionary; None if it is NULL there."""

    @property
    def scale(self) -> int | None:
        """The number in the dictionary; None if it is NULL there."""


def arrow_type(column: TypedColumn) -> pa.DataType:
    """Return the Arrow type of a column's values; string if no Arrow type represents them all."""
    code, precision, scale = column.type_code, column.precision, column.scale
    if code == OracleType.NUMBER:
        # The dictionary has FLOAT(b) as a NUMBER without scale; its precision is in binary digits.
        if precision is None or scale is None or not 0 <= scale <= precision:
            return pa.string()
        return pa.decimal128(precision, scale)
    if code in _BYTES:
        return pa.binary()
    if code in _TIMES and (scale or 0) <= _MICROSECOND_DIGITS:
        return pa.timestamp("us", "UTC" if code == OracleType.TIMESTAMP_TZ else None)
    return _PLAIN.get(code, pa.string())
