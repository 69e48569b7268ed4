"""Defines the columns of the data source as Arrow types. Values of tables have the same types as in
an initial load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from olr_pg.datatypes.mapping import OracleType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Column, Table

_CHANGE: Final[tuple[pa.Field[Any], ...]] = (
    pa.field("op", pa.string(), nullable=False),
    pa.field("commit_scn", pa.int64(), nullable=False),
    pa.field("commit_time", pa.timestamp("us"), nullable=False),
    pa.field("scn", pa.int64(), nullable=False),
    pa.field("xid", pa.string(), nullable=False),
    pa.field("position", pa.int64(), nullable=False),
    pa.field("rowid", pa.string(), nullable=False),
    pa.field("thread", pa.int32(), nullable=False),
    pa.field("login_user", pa.string()),
    pa.field("os_user", pa.string()),
    pa.field("machine", pa.string()),
    pa.field("program", pa.string()),
)
_NAMES: Final[tuple[pa.Field[Any], ...]] = (
    pa.field("owner", pa.string(), nullable=False),
    pa.field("table", pa.string(), nullable=False),
)

_MICROSECOND_DIGITS: Final = 6
_DECIMAL_DIGITS_MAX: Final = 38


def changes_of_any_table() -> pa.Schema:
    """Return the columns for changes of several tables; before and after images are JSON text."""
    images = (pa.field("before", pa.string()), pa.field("after", pa.string()))
    return pa.schema([*_CHANGE, *_NAMES, *images])


def changes_of_table(versions: Sequence[Table]) -> pa.Schema:
    """Return the columns for changes of one table; before and after images are structs with its
    columns.

    Args:
        versions: the table's definitions over time, the oldest first. If a definition does not have
            a column that another definition has, the column is NULL in changes with the first
            definition.
    """
    types: dict[str, pa.DataType] = {}
    for table in versions:
        for column in table.delivered:
            own = arrow_type(column)
            types[column.name] = _wider(types.get(column.name, own), own)
    image = pa.struct(types.items())
    return pa.schema([*_CHANGE, pa.field("before", image), pa.field("after", image)])


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values; text if no Arrow type represents them exactly."""
    code, scale = column.type_code, column.scale or 0
    if code == OracleType.NUMBER and column.precision is not None:
        return pa.decimal128(column.precision, scale) if 0 <= scale <= column.precision else _TEXT
    if code in (OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ) and scale <= _MICROSECOND_DIGITS:
        return pa.timestamp("us", "UTC" if code == OracleType.TIMESTAMP_TZ else None)
    return _TYPES.get(code, _TEXT)


_TEXT: Final = pa.string()
_TYPES: Final[dict[int, pa.DataType]] = {
    OracleType.RAW: pa.binary(),
    OracleType.LONG_RAW: pa.binary(),
    OracleType.BLOB: pa.binary(),
    OracleType.DATE: pa.timestamp("us"),
    OracleType.BINARY_FLOAT: pa.float32(),
    OracleType.BINARY_DOUBLE: pa.float64(),
    OracleType.BOOLEAN: pa.bool_(),
}


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that can represent the values of both types."""
    if one == other:
        return one
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        if digits <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(digits, scale)
    return _TEXT
