"""The tables of the named workloads, and the rows that they have before the first redo.

Facts: values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

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
from olr_pg.simulator.model.tables import Logging, SimColumn
from olr_pg.simulator.named import orders
from olr_pg.simulator.named import session_run as run
from olr_pg.simulator.sessions.placement import TableSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Cells = npt.NDArray[np.int64]
    """The start rows of a table, shape (rows, columns), filled with random cells."""


@dataclass(frozen=True, slots=True)
class StartRows:
    """A table's rows before the first redo: how many, and what is not random in them."""

    count: int
    settle: Callable[[Cells], None]


@dataclass(frozen=True, slots=True)
class NamedWorkload:
    """A workload that kernels carry out.

    Attributes:
        number: as `run.work` takes it.
        tables: in the order that its kernels number them.
        start_rows: of each table, for a number of sessions and a size in bytes.
        sessions: that work at a time; half of them where little redo is asked for.
        journal: int64 places for the changes of one open transaction.
    """

    number: int
    tables: Callable[[Logging], list[TableSpec]]
    start_rows: Callable[[int, int], list[StartRows]]
    sessions: int
    journal: int


def _key(cells: Cells) -> None:
    cells[:, 0] = np.arange(1, len(cells) + 1)


def _spec(
    owner: str,
    logging: Logging,
    name: str,
    columns: tuple[SimColumn, ...],
    key: tuple[int, ...] = (),
    *indexes: tuple[int, ...],
) -> TableSpec:
    every = (((key, True),) if key else ()) + tuple((columns, False) for columns in indexes)
    return TableSpec(owner, name, columns, key, logging, every)


def order_tables(logging: Logging, owner: str = "SHOP") -> list[TableSpec]:
    """Return the shop's tables, by the table numbers of `orders`; SETTINGS never changes."""
    identity, small = number_type(12, 0), number_type(6, 0)
    money, total = number_type(12, 2), number_type(15, 2)

    def needed(name: str, kind: object) -> SimColumn:
        return SimColumn(name, kind, nullable=False)  # type: ignore[arg-type]

    return [
        _spec(
            *(owner, logging, "WAREHOUSES"),
            (needed("WAREHOUSE_ID", small), needed("NAME", varchar(10)), needed("PAID", total)),
            (0,),
        ),
        _spec(
            *(owner, logging, "DISTRICTS"),
            (
                *(needed("WAREHOUSE_ID", small), needed("DISTRICT_ID", small)),
                *(needed("NAME", varchar(10)), needed("NEXT_ORDER", identity)),
                needed("PAID", total),
            ),
            (0, 1),
        ),
        _spec(
            *(owner, logging, "CUSTOMERS"),
            (
                *(needed("CUSTOMER_ID", identity), needed("WAREHOUSE_ID", small)),
                *(needed("DISTRICT_ID", small), needed("NAME", varchar(40))),
                *(SimColumn("CITY", nvarchar(20)), SimColumn("NOTES", varchar(200))),
                *(needed("BALANCE", money), needed("PAID", total)),
                *(needed("PAYMENTS", small), needed("SINCE", date_type())),
            ),
            (0,),
        ),
        _spec(
            *(owner, logging, "STOCK"),
            (
                *(needed("WAREHOUSE_ID", small), needed("ITEM_ID", small)),
                *(needed("NAME", varchar(24)), needed("QUANTITY", small)),
                needed("SOLD", identity),
            ),
            (0, 1),
        ),
        _spec(
            *(owner, logging, "ORDERS"),
            (
                *(needed("ORDER_ID", identity), needed("CUSTOMER_ID", identity)),
                *(SimColumn("CARRIER", number_type(2, 0)), needed("STATUS", char(1))),
                *(needed("LINES", small), SimColumn("SHIPPED", timestamp_tz_type(3))),
                needed("ENTERED", timestamp_type(6)),
            ),
            *((0,), (1,)),
        ),
        _spec(
            *(owner, logging, "NEW_ORDERS"),
            (
                *(needed("ORDER_ID", identity), needed("WAREHOUSE_ID", small)),
                needed("DISTRICT_ID", small),
            ),
            (0,),
        ),
        _spec(
            *(owner, logging, "ORDER_LINES"),
            (
                *(needed("ORDER_ID", identity), needed("LINE", number_type(4, 0))),
                *(needed("ITEM_ID", small), SimColumn("TAG", raw_type(16))),
                *(needed("QUANTITY", small), needed("PRICE", number_type(10, 2))),
                *(SimColumn("DELIVERED", date_type()), needed("ITEM", varchar(24))),
                needed("AMOUNT", money),
            ),
            (0, 1),
        ),
        _spec(
            *(owner, logging, "PAYMENTS"),
            (
                *(needed("CUSTOMER_ID", identity), needed("WAREHOUSE_ID", small)),
                *(needed("AMOUNT", number_type(10, 2)), SimColumn("NOTE", varchar(24))),
                *(needed("PAID_AT", timestamp_type(6)), needed("PAYMENT_ID", identity)),
            ),
            (5,),
        ),
        _spec(
            *(owner, logging, "SETTINGS"),
            (needed("NAME", varchar(24)), needed("VALUE", varchar(200))),
            (0,),
        ),
    ]


def _order_rows(sessions: int, size: int) -> list[StartRows]:
    each = min(3000, max(4, size // 25_000))
    districts = orders.DISTRICTS_EACH

    def warehouses(cells: Cells) -> None:
        _key(cells)
        cells[:, 2] = 0

    def districted(cells: Cells) -> None:
        number = np.arange(len(cells))
        cells[:, 0], cells[:, 1] = number // districts + 1, number % districts + 1
        cells[:, 3], cells[:, 4] = 1, 0

    def customers(cells: Cells) -> None:
        _key(cells)
        cells[:, 1] = np.arange(len(cells)) // each + 1
        cells[:, 2] = np.arange(len(cells)) % districts + 1
        cells[:, 6:9] = 0

    def stock(cells: Cells) -> None:
        number = np.arange(len(cells))
        cells[:, 0], cells[:, 1] = number // (2 * each) + 1, number % (2 * each) + 1
        cells[:, 3], cells[:, 4] = cells[:, 3] % 91 + 10, 0

    def settings(cells: Cells) -> None:
        cells[:, 0] = np.arange(len(cells))

    nothing = StartRows(0, _key)
    return [
        StartRows(sessions, warehouses),
        StartRows(sessions * districts, districted),
        StartRows(sessions * each, customers),
        StartRows(sessions * 2 * each, stock),
        *([nothing] * 4),
        StartRows(3, settings),
    ]


def load_tables(logging: Logging) -> list[TableSpec]:
    """Return one table of twelve columns, without indexes."""
    columns = (
        SimColumn("ID", number_type(12, 0), nullable=False),
        *(SimColumn(f"CODE{n}", varchar(20)) for n in range(1, 4)),
        *(SimColumn(f"AMOUNT{n}", number_type(12, 2)) for n in range(1, 4)),
        SimColumn("DAY", date_type()),
        SimColumn("MADE", timestamp_type(6)),
        SimColumn("TEXT", varchar(100)),
        SimColumn("MARK", raw_type(16)),
        SimColumn("COUNT", number_type(6, 0), nullable=False),
    )
    return [TableSpec("LOAD", "FACTS", columns, (0,), logging)]


def wide_tables(logging: Logging) -> list[TableSpec]:
    """Return one table of two hundred columns."""
    kinds = (
        *(number_type(10, 2), varchar(12), number_type(6, 0), date_type(), varchar(30)),
        *(timestamp_type(6), raw_type(8), number_type(15, 0)),
    )
    columns = (
        SimColumn("ID", number_type(12, 0), nullable=False),
        *(SimColumn(f"C{n}", kinds[n % len(kinds)]) for n in range(1, 199)),
        SimColumn("CHANGES", number_type(9, 0), nullable=False),
    )
    return [_spec("WIDE", logging, "READINGS", columns, (0,))]


NAMED: Final = {
    "orders": NamedWorkload(run.ORDERS, order_tables, _order_rows, 8, 1 << 15),
    "bulk": NamedWorkload(
        run.BULK, load_tables, lambda _sessions, _size: [StartRows(0, _key)], 2, 1 << 18
    ),
    "wide": NamedWorkload(
        run.WIDE,
        wide_tables,
        lambda _, size: [StartRows(max(10, min(20_000, size // 25_000)), _key)],
        *(4, 1 << 18),
    ),
}
"""What kernels carry out, by name."""
