"""The tables of the named workloads.

Facts: values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from olr_pg.simulator.model.tables import Logging


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
    """Return the shop's tables; SETTINGS never changes."""
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
