"""The rows of a simulation's Parquet files, and decoded values as these files have them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.simulator.truth import NUMBER, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.tables import ColumnType

Row = dict[str, Any]


def read_rows(folder: Path, table: str) -> list[Row]:
    """The rows of a table, ROWID among their columns."""
    return read_table(folder, table).to_pylist()


def as_read(kind: ColumnType, value: Any) -> Any:
    """A value of the truth's lines as the table's file has it."""
    if value is None:
        return None
    target = arrow_type(kind)
    if pa.types.is_binary(target):
        return bytes.fromhex(value)
    if pa.types.is_timestamp(target):
        when = datetime.fromisoformat(value)
        return when.astimezone(UTC) if target.tz else when
    if kind.type_code == NUMBER:
        exact = Decimal(value)
        return exact if pa.types.is_decimal(target) else f"{exact:f}"
    if pa.types.is_floating(target):
        return float(value)
    return value
