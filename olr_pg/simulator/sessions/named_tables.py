"""The tables of the named workloads.

Facts: values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.fields.cells import text
from olr_pg.simulator.model.column_types import (
    char,
    date_type,
    number_type,
    nvarchar,
    raw_type,
    timestamp_type,
    timestamp_tz_type,
    varchar,
)
from olr_pg.simulator.model.tables import SimColumn
from olr_pg.simulator.sessions.placement import TableSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import ColumnType, Logging
    from olr_pg.simulator.sessions.row_shape import RowShape

ENDS_BYTES: Final = 12
"""Approximate bytes of the first and the last column of a wide row."""

TEXT_MAX: Final = 4_000
_WORDS: Final = "the quick brown fox jumps over the lazy dog while 0123456789 sheep sleep; "

_TYPES: Final[dict[str, Callable[..., Any]]] = {
    "NUMBER": number_type,
    "VARCHAR2": varchar,
    "NVARCHAR2": nvarchar,
    "CHAR": char,
    "RAW": raw_type,
    "DATE": date_type,
    "TIMESTAMP": timestamp_type,
    "TIMESTAMPTZ": timestamp_tz_type,
}


class _Declared(NamedTuple):
    """A declared table: its columns; the columns of its key and of another index, from 0.

    A column is NOT NULL unless NULL follows its type.
    """

    columns: str
    key: tuple[int, ...]
    indexed: tuple[int, ...] = ()


_SHOP: Final = {
    "WAREHOUSES": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), NAME VARCHAR2(10), PAID NUMBER(15,2)", key=(0,)
    ),
    "DISTRICTS": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0), NAME VARCHAR2(10),"
        " NEXT_ORDER NUMBER(12,0), PAID NUMBER(15,2)",
        key=(0, 1),
    ),
    "CUSTOMERS": _Declared(
        "CUSTOMER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0),"
        " NAME VARCHAR2(40), CITY NVARCHAR2(20) NULL, NOTES VARCHAR2(200) NULL,"
        " BALANCE NUMBER(12,2), PAID NUMBER(15,2), PAYMENTS NUMBER(6,0), SINCE DATE",
        key=(0,),
    ),
    "STOCK": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), ITEM_ID NUMBER(6,0), NAME VARCHAR2(24), QUANTITY NUMBER(6,0),"
        " SOLD NUMBER(12,0)",
        key=(0, 1),
    ),
    "ORDERS": _Declared(
        "ORDER_ID NUMBER(12,0), CUSTOMER_ID NUMBER(12,0), CARRIER NUMBER(2,0) NULL, STATUS CHAR(1),"
        " LINES NUMBER(6,0), SHIPPED TIMESTAMPTZ(3) NULL, ENTERED TIMESTAMP(6)",
        key=(0,),
        indexed=(1,),
    ),
    "NEW_ORDERS": _Declared(
        "ORDER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0)", key=(0,)
    ),
    "ORDER_LINES": _Declared(
        "ORDER_ID NUMBER(12,0), LINE NUMBER(4,0), ITEM_ID NUMBER(6,0), TAG RAW(16) NULL,"
        " QUANTITY NUMBER(6,0), PRICE NUMBER(10,2), DELIVERED DATE NULL, ITEM VARCHAR2(24),"
        " AMOUNT NUMBER(12,2)",
        key=(0, 1),
    ),
    "PAYMENTS": _Declared(
        "CUSTOMER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), AMOUNT NUMBER(10,2),"
        " NOTE VARCHAR2(24) NULL, PAID_AT TIMESTAMP(6), PAYMENT_ID NUMBER(12,0)",
        key=(5,),
    ),
    "SETTINGS": _Declared("NAME VARCHAR2(24), VALUE VARCHAR2(200)", key=(0,)),
}
"""The tables of the workload `orders`; the rows of SETTINGS never change."""

_WIDE_TYPES: Final = (
    *("NUMBER(10,2)", "VARCHAR2(12)", "NUMBER(6,0)", "DATE", "VARCHAR2(30)", "TIMESTAMP(6)"),
    *("RAW(8)", "NUMBER(15,0)"),
)


def _columns(declared: str) -> tuple[SimColumn, ...]:
    return tuple(_column(*one.split()) for one in declared.split(", "))


def _column(name: str, declared: str, null: str = "") -> SimColumn:
    word, _, numbers = declared.rstrip(")").partition("(")
    kind: ColumnType = _TYPES[word](*map(int, numbers.split(",") if numbers else ()))
    return SimColumn(name, kind, nullable=bool(null))


def order_tables(logging: Logging, _: RowShape) -> list[TableSpec]:
    """Return the shop's tables."""
    return [
        TableSpec(
            *("SHOP", name, _columns(one.columns), one.key, logging),
            ((one.key, True), *([(one.indexed, False)] if one.indexed else [])),
        )
        for name, one in _SHOP.items()
    ]


def load_tables(logging: Logging, _: RowShape) -> list[TableSpec]:
    """Return one table of twelve columns, without indexes."""
    columns = _columns(
        "ID NUMBER(12,0), CODE1 VARCHAR2(20) NULL, CODE2 VARCHAR2(20) NULL,"
        " CODE3 VARCHAR2(20) NULL,"
        " AMOUNT1 NUMBER(12,2) NULL, AMOUNT2 NUMBER(12,2) NULL, AMOUNT3 NUMBER(12,2) NULL,"
        " DAY DATE NULL, MADE TIMESTAMP(6) NULL, TEXT VARCHAR2(100) NULL, MARK RAW(16) NULL,"
        " COUNT NUMBER(6,0)"
    )
    return [TableSpec("LOAD", "FACTS", columns, (0,), logging)]


def wide_tables(logging: Logging, rows: RowShape) -> list[TableSpec]:
    """Return one table with the number of columns that `rows` says."""
    count = rows.columns - 2
    kinds = (_WIDE_TYPES[n % len(_WIDE_TYPES)] for n in range(1, count + 1))
    middle = [_column(f"C{n}", kind, "NULL") for n, kind in enumerate(kinds, 1)]
    if rows.row_bytes is not None:
        kind = _of_size((rows.row_bytes - ENDS_BYTES) // count)
        middle = [replace(column, type=kind) for column in middle]
    first, last = _columns("ID NUMBER(12,0), CHANGES NUMBER(9,0)")
    columns = (first, *middle, last)
    return [TableSpec("WIDE", "READINGS", columns, (0,), logging, (((0,), True),))]


def _of_size(stored: int) -> ColumnType:
    """Declare a column whose values have `stored` bytes in a row: text, or small numbers."""
    if stored < len("\x02ab"):
        return number_type(2, 0)
    size = min(TEXT_MAX, stored - (1 if stored <= 251 else 3))
    words = _WORDS * (2 + size // len(_WORDS))

    def make(rng: Random) -> Cell:
        at = rng.randrange(len(_WORDS))
        return text(words[at : at + size], "utf-8")

    return replace(varchar(size), make=make)
