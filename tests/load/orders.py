"""Orders: a small workload with three keyed tables, for loads in the middle of it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from olr_pg.simulator.fields.cells import Cell, number
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
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import RandomWorkload, random_row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from olr_pg.simulator.model.tables import Row, SimTable
    from olr_pg.simulator.sessions.session import SimSession


class OrderEntry(RandomWorkload):
    """Customers place, pay, change and cancel orders."""

    def __init__(self, rng: Random, logging: Sequence[Logging], owner: str = "SHOP") -> None:
        super().__init__(rng, logging, owner)
        self._level = logging[0]

    def tables(self) -> list[TableSpec]:
        """CUSTOMERS, ORDERS, ORDER_LINES."""
        identity = number_type(12, 0)
        customers = (
            SimColumn("CUSTOMER_ID", identity, nullable=False),
            SimColumn("NAME", varchar(40), nullable=False),
            SimColumn("CITY", nvarchar(20)),
            SimColumn("BALANCE", number_type(12, 2), nullable=False),
            SimColumn("SINCE", date_type()),
            SimColumn("NOTES", varchar(200)),
        )
        orders = (
            SimColumn("ORDER_ID", identity, nullable=False),
            SimColumn("CUSTOMER_ID", identity, nullable=False),
            SimColumn("STATUS", char(1), nullable=False),
            SimColumn("ENTERED", timestamp_type(6), nullable=False),
            SimColumn("SHIPPED", timestamp_tz_type(3)),
        )
        lines = (
            SimColumn("ORDER_ID", identity, nullable=False),
            SimColumn("LINE", number_type(4, 0), nullable=False),
            SimColumn("ITEM", varchar(24), nullable=False),
            SimColumn("QUANTITY", number_type(6, 0), nullable=False),
            SimColumn("PRICE", number_type(10, 2), nullable=False),
            SimColumn("TAG", raw_type(16)),
        )
        return [
            self._spec("CUSTOMERS", customers, (0,), ((0,), True)),
            self._spec("ORDERS", orders, (0,), ((0,), True), ((1,), False)),
            self._spec("ORDER_LINES", lines, (0, 1), ((0, 1), True)),
        ]

    def _spec(
        self,
        name: str,
        columns: tuple[SimColumn, ...],
        key: tuple[int, ...],
        *indexes: tuple[tuple[int, ...], bool],
    ) -> TableSpec:
        return TableSpec(self._owner, name, columns, key, self._level, indexes)

    def step(self, session: SimSession, tables: Sequence[SimTable]) -> None:
        """One business transaction's next statement, or its end."""
        rng, (customers, orders, lines) = self._rng, tables
        if session.transaction is not None and rng.random() < 0.45:
            if rng.random() < 0.08:
                session.rollback()
            else:
                session.commit()
            return
        draw = rng.random()
        if draw < 0.15 or not customers.live:
            session.insert(customers, random_row(rng, customers))
        elif draw < 0.60:
            self._place_order(session, rng.choice(customers.live), orders, lines)
        elif draw < 0.75:
            self._pay(session, rng.choice(customers.live))
        elif orders.live:
            self._handle(session, rng.choice(orders.live), lines, cancel=draw > 0.95)

    def _place_order(
        self, session: SimSession, customer: Row, orders: SimTable, lines: SimTable
    ) -> None:
        rng = self._rng
        order = random_row(rng, orders)
        order[1], order[4] = customer.cells[0], None
        mark = session.savepoint()
        session.insert(orders, order)
        batch = list[list[Cell | None]]()
        for line in range(1, rng.randint(1, 6) + 1):
            cells = random_row(rng, lines)
            cells[0], cells[1] = order[0], number(Decimal(line))
            batch.append(cells)
        if rng.random() < 0.4:
            session.insert_many(lines, batch)
        else:
            for cells in batch:
                session.insert(lines, cells)
        if rng.random() < 0.05:
            session.rollback_to(mark)

    def _pay(self, session: SimSession, customer: Row) -> None:
        balance = customer.table.columns[3].type.make(self._rng)
        if self._rng.random() < 0.3:
            session.lock(customer)
        session.update(customer, {3: balance})

    def _handle(self, session: SimSession, order: Row, lines: SimTable, *, cancel: bool) -> None:
        rng, columns = self._rng, order.table.columns
        if not cancel:
            session.update(order, {2: columns[2].type.make(rng), 4: columns[4].type.make(rng)})
            return
        key = order.cells[0]
        if session.delete(order):
            for row in [row for row in lines.live[-200:] if row.cells[0] == key]:
                session.delete(row)
