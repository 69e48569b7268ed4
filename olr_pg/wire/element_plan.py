"""Element plans: the encoded bytes that are the same in all elements of a table. A plan is built
once per subscription.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.lob_delivery import chunk_type, delivered_charset_id, delivered_type
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.bytes import FORWARD
from olr_pg.wire.elements import (
    COLUMN_COUNT_MAX,
    ColumnValue,
    encode_column_header,
    encode_name,
)
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.dictionary.model import Column, Table

ROWID_BYTES = 18


class ElementPlan(NamedTuple):
    """Prebuilt bytes of the subscribed tables, in both byte orders. Table t is `tables[t]` of
    `build_element_plan`.

    Attributes:
        table_first: shape (tables + 1); the offset of each table's bytes: ObjectId, the three name
            sizes, SchemaName, TableName.
        table_little, table_big: the bytes of all tables, then padding.
        table_column: shape (tables + 1); the running number of each table's first delivered column.
            This number does not count guard columns, unlike in `RowPlan.column_first`.
        column_size: shape (columns); the number of bytes of each column's header: the ColumnValue
            from its start to the end of its name. ColumnValueSize (at byte 1) is 0 in it.
        column_little, column_big: shape (columns, width); the headers, padded to the same width, so
            that each can be copied as one block.
        column_chunked: shape (columns); the ColumnType of the column's Chunk elements (112 or 113);
            0 if its values are not sent in chunks.
    """

    table_first: npt.NDArray[np.int64]
    table_little: npt.NDArray[np.uint8]
    table_big: npt.NDArray[np.uint8]
    table_column: npt.NDArray[np.int64]
    column_size: npt.NDArray[np.int64]
    column_little: npt.NDArray[np.uint8]
    column_big: npt.NDArray[np.uint8]
    column_chunked: npt.NDArray[np.uint8]


def build_element_plan(tables: Sequence[Table]) -> ElementPlan:
    """Build the element plan of `tables`, in the order of their row plan.

    Raises:
        OlrPgError: 4006, a name is too long or a table has too many columns; the error contains the
            table.
    """
    little = [_table_bytes(table, ByteOrder.LITTLE) for table in tables]
    big = [_table_bytes(table, ByteOrder.BIG) for table in tables]
    described = [_described(table) for table in tables]
    columns = [_column_bytes(*one, ByteOrder.LITTLE) for one in described]
    columns_big = [_column_bytes(*one, ByteOrder.BIG) for one in described]
    flat = [header for headers in columns for header in headers]
    return ElementPlan(
        _running(len(data) for data in little),
        _joined(little),
        _joined(big),
        _running(len(headers) for headers in columns),
        np.array([len(header) for header in flat], np.int64),
        _in_blocks(flat),
        _in_blocks([header for headers in columns_big for header in headers]),
        np.array(
            [chunk_type(column) for table in tables for column in table.delivered],
            np.uint8,
        ),
    )


def extended_element_plan(plan: ElementPlan, tables: Sequence[Table]) -> ElementPlan:
    """Return the element plan of the tables of `plan` followed by `tables`. Only the bytes of
    `tables` are made.

    Raises:
        OlrPgError: as for `build_element_plan`.
    """
    more = build_element_plan(tables)
    return ElementPlan(
        _continued(plan.table_first, more.table_first),
        np.concatenate([plan.table_little[:-FORWARD], more.table_little]),
        np.concatenate([plan.table_big[:-FORWARD], more.table_big]),
        _continued(plan.table_column, more.table_column),
        np.concatenate([plan.column_size, more.column_size]),
        _stacked(plan.column_little, more.column_little),
        _stacked(plan.column_big, more.column_big),
        np.concatenate([plan.column_chunked, more.column_chunked]),
    )


def _continued(
    running: npt.NDArray[np.int64], more: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    return np.concatenate([running, running[-1] + more[1:]])


def _stacked(blocks: npt.NDArray[np.uint8], more: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    width = max(blocks.shape[1], more.shape[1])
    padded = (np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in (blocks, more))
    return np.concatenate(list(padded))


def check_tables(tables: Iterable[Table]) -> None:
    """Check that the protocol can express the tables.

    Raises:
        OlrPgError: as for `build_element_plan`.
    """
    for table in tables:
        _table_bytes(table, ByteOrder.LITTLE)
        _column_bytes(*_described(table), ByteOrder.LITTLE)


def _table_bytes(table: Table, order: ByteOrder) -> bytes:
    try:
        schema = encode_name(table.owner, "SchemaName")
        name = encode_name(table.name, "TableName")
    except OlrPgError as error:
        raise OlrPgError(Code.FIELD_OVERFLOW, error.detail, table=table.full_name) from None
    sizes = (len(schema), len(name), ROWID_BYTES)
    return struct.pack(order.prefix + "IBBB", table.obj, *sizes) + schema + name


def _described(table: Table) -> tuple[Table, list[ColumnValue]]:
    if len(table.delivered) > COLUMN_COUNT_MAX:
        raise OlrPgError(
            Code.FIELD_OVERFLOW, f"{len(table.delivered)} columns", table=table.full_name
        )
    return table, [described_column(column) for column in table.delivered]


def _column_bytes(table: Table, columns: Sequence[ColumnValue], order: ByteOrder) -> list[bytes]:
    return [_column_header(table, column, order) for column in columns]


_NUMERIC: Final = frozenset({OracleType.NUMBER, OracleType.BINARY_FLOAT, OracleType.BINARY_DOUBLE})
"""The types whose precision and scale are sent. Columns of times and intervals also have a
precision and a scale, but the protocol does not send them.
"""


def described_column(column: Column) -> ColumnValue:
    """Return the protocol's description of a delivered column, without a value."""
    type_code = delivered_type(column)
    is_numeric = type_code in _NUMERIC
    return ColumnValue(
        column.name,
        type_code,
        column.precision if is_numeric else None,
        column.scale if is_numeric else None,
        delivered_charset_id(column),
        column.charset_form,
    )


def _column_header(table: Table, column: ColumnValue, order: ByteOrder) -> bytes:
    try:
        return encode_column_header(column, 0, order)
    except OlrPgError as error:
        raise OlrPgError(
            Code.FIELD_OVERFLOW, error.detail, table=table.full_name, column=column.name
        ) from None


def _running(sizes: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array([0, *accumulate(sizes)], np.int64)


def _in_blocks(headers: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    blocks = max((-(-len(header) // FORWARD) for header in headers), default=1)
    width = blocks * FORWARD
    padded = b"".join(header.ljust(width, b"\0") for header in headers)
    return _writable(padded).reshape(-1, width)


def _joined(parts: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    # The padding lets `copy_forward`, which copies whole blocks, copy every part.
    return _writable(b"".join(parts) + bytes(FORWARD))


def _writable(data: bytes) -> npt.NDArray[np.uint8]:
    """Return the bytes as a writable array. In a Spark task the arrays are writable too, and Numba
    would compile the encoder a second time for read-only arrays.
    """
    return np.frombuffer(bytearray(data), np.uint8)
