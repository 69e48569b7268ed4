"""Order entry in kernels: new orders, payments, deliveries, cancellations, customers.

A session is a terminal of a warehouse of its own; it works on one business transaction at a time,
a statement per step, so that the sessions' transactions interleave. The mix is like TPC-C's
without its queries. The functions decide what a step does and return it (an ``ACT_`` or
``CHANGE_``); `run` does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.draws import fill_row, random_cell, set_column
from olr_pg.simulator.named.instance_memory import NULL
from olr_pg.simulator.named.put import below, chance

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Ints

WAREHOUSES: Final = 0
DISTRICTS: Final = 1
CUSTOMERS: Final = 2
STOCK: Final = 3
ORDERS: Final = 4
NEW_ORDERS: Final = 5
ORDER_LINES: Final = 6
PAYMENTS: Final = 7
SETTINGS: Final = 8

DISTRICTS_EACH: Final = 4
LINES_MIN: Final = 5
LINES_MAX: Final = 15
DELIVERED_MAX: Final = 10

NONE: Final = 0
NEW_ORDER: Final = 1
PAYMENT: Final = 2
DELIVERY: Final = 3
CANCELLATION: Final = 4
CUSTOMER: Final = 5

W_KIND: Final = 0
W_STEP: Final = 1
W_CUSTOMER: Final = 2
W_LINES: Final = 3
W_ORDER: Final = 4
W_QUEUED: Final = 5
W_LAST_LINE: Final = 7
W_ARRAY: Final = 8
W_AMOUNT: Final = 9
W_LINE: Final = 10
W_DONE: Final = 11
W_MARK: Final = 12
W_FAILING: Final = 13

_ROLLED_BACK: Final = 12
_ARRAY_INSERT: Final = 350
_FAILED_STATEMENT: Final = 10
_REMOTE: Final = 100


@part
def _start(m: Ints, w: int) -> None:
    """Choose the next business transaction."""
    roll = below(m, 1000)
    kind = NEW_ORDER
    if roll >= 450:
        kind = PAYMENT
    if roll >= 880:
        kind = DELIVERY
    if roll >= 925:
        kind = CANCELLATION
    if roll >= 960:
        kind = CUSTOMER
    m[w + W_KIND] = kind
    m[w + W_STEP] = 0
    m[w + W_DONE] = 0
    m[w + W_ORDER] = -1
    m[w + W_FAILING] = 0


@part
def _finish(m: Ints, w: int, act: int) -> int:
    m[w + W_KIND] = NONE
    return act


@part
def _customer_of(m: Ints, session: int) -> int:
    """Draw a customer of the session's warehouse, now and then of another."""
    warehouse = session
    if chance(m, _REMOTE):
        warehouse = below(m, m[at.SESSIONS])
    each = m[at.TB_START_ROWS + CUSTOMERS] // m[at.SESSIONS]
    return int(m[at.TB_FIRST_ROW + CUSTOMERS] + warehouse * each + below(m, each))


@part
def _now(m: Ints) -> int:
    """Microseconds since 1970, at a random microsecond of the clock's millisecond."""
    return int(m[at.CLOCK] * 1000 + below(m, 1000))


@part
def _insert_into(m: Ints, table: int) -> int:
    m[at.A_TABLE] = table
    return at.CHANGE_INSERT


@part
def _update(m: Ints, row: int) -> int:
    """Update the columns that are still to be set."""
    m[at.A_ROW] = row
    m[at.SET_COUNT] = 0
    return at.CHANGE_UPDATE


@part
def _delete(m: Ints, row: int) -> int:
    m[at.A_ROW] = row
    return at.CHANGE_DELETE


@part
def _bill(m: Ints, rows: Ints, cells: Ints, row: int, column: int, amount: int) -> int:
    """Add an amount to one column of a row."""
    act = _update(m, row)
    set_column(m, column, cells[rows[row, at.R_CELLS] + column] + amount)
    return act


@part
def _district_of(m: Ints, session: int) -> int:
    first = m[at.TB_FIRST_ROW + DISTRICTS] + session * DISTRICTS_EACH
    return int(first + below(m, DISTRICTS_EACH))


@part
def _place_order(m: Ints, rows: Ints, cells: Ints, session: int, w: int) -> int:
    step = m[w + W_STEP]
    m[w + W_STEP] = step + 1
    if step == 0:
        m[w + W_CUSTOMER] = _customer_of(m, session)
        m[w + W_LINES] = LINES_MIN + below(m, LINES_MAX - LINES_MIN + 1)
        m[w + W_ARRAY] = chance(m, _ARRAY_INSERT)
        m[w + W_LINE] = 0
        m[w + W_LAST_LINE] = -1
        return _bill(m, rows, cells, _district_of(m, session), 3, 1)
    if step == 1:
        fill_row(m, ORDERS)
        m[at.NEW_CELLS] = m[at.TB_NEXT_KEY + ORDERS]
        m[at.TB_NEXT_KEY + ORDERS] += 1
        m[at.NEW_CELLS + 1] = cells[rows[m[w + W_CUSTOMER], at.R_CELLS]]
        m[at.NEW_CELLS + 2] = NULL
        m[at.NEW_CELLS + 4] = m[w + W_LINES]
        m[at.NEW_CELLS + 5] = NULL
        m[at.NEW_CELLS + 6] = _now(m)
        return _insert_into(m, ORDERS)
    if step == 2:
        m[w + W_ORDER] = m[w + at.W_RESULT]
        order = cells[rows[m[w + W_ORDER], at.R_CELLS]]
        m[at.NEW_CELLS] = order
        m[at.NEW_CELLS + 1] = session + 1
        m[at.NEW_CELLS + 2] = order % DISTRICTS_EACH + 1
        return _insert_into(m, NEW_ORDERS)
    if step == 3:
        m[w + W_QUEUED] = m[w + at.W_RESULT]
        rows[m[w + W_QUEUED], at.R_LINK] = m[w + W_ORDER]
    if step & 1 and step < 3 + 2 * m[w + W_LINES]:
        if step > 3:
            _link_lines(m, rows, w, 1)
        return _take_stock(m, rows, cells, session)
    if step < 3 + 2 * m[w + W_LINES]:
        return _order_line(m, rows, cells, w, (step - 4) // 2)
    if step & 1:
        _link_lines(m, rows, w, m[w + W_LINES] if m[w + W_ARRAY] else 1)
    return _end_order(m, session, w)


@part
def _take_stock(m: Ints, rows: Ints, cells: Ints, session: int) -> int:
    each = m[at.TB_START_ROWS + STOCK] // m[at.SESSIONS]
    row = m[at.TB_FIRST_ROW + STOCK] + session * each + below(m, each)
    first = rows[row, at.R_CELLS]
    taken = 1 + below(m, 10)
    left = cells[first + 3] - taken
    act = _update(m, row)
    set_column(m, 3, left if left > 9 else left + 91)
    set_column(m, 4, cells[first + 4] + taken)
    return act


@part
def fill_line(m: Ints, rows: Ints, cells: Ints, w: int, line: int) -> None:
    """Fill NEW_CELLS with a line of the order."""
    fill_row(m, ORDER_LINES)
    m[at.NEW_CELLS] = cells[rows[m[w + W_ORDER], at.R_CELLS]]
    m[at.NEW_CELLS + 1] = line + 1
    m[at.NEW_CELLS + 4] = 1 + below(m, 10)
    m[at.NEW_CELLS + 5] = 1 + below(m, 999_999)
    m[at.NEW_CELLS + 6] = NULL
    m[at.NEW_CELLS + 8] = m[at.NEW_CELLS + 4] * m[at.NEW_CELLS + 5]


@part
def _order_line(m: Ints, rows: Ints, cells: Ints, w: int, line: int) -> int:
    """Insert a line, or all of them in one array once the stock is taken."""
    if m[w + W_ARRAY]:
        m[at.A_TABLE] = ORDER_LINES
        m[at.A_COUNT] = m[w + W_LINES]
        return at.CHANGE_MANY if line == m[w + W_LINES] - 1 else at.ACT_NOTHING
    fill_line(m, rows, cells, w, line)
    if chance(m, _FAILED_STATEMENT):
        m[w + W_FAILING] = 1
    return _insert_into(m, ORDER_LINES)


@part
def _link_lines(m: Ints, rows: Ints, w: int, count: int) -> None:
    """Lead from the order to its lines, `count` of which the last step has inserted."""
    if m[w + W_ARRAY] and count == 1:
        return
    for i in range(count):
        row = m[w + at.W_RESULT] + i
        if m[w + W_LAST_LINE] < 0:
            rows[m[w + W_ORDER], at.R_LINK] = row
        else:
            rows[m[w + W_LAST_LINE], at.R_LINK] = row
        m[w + W_LAST_LINE] = row


@part
def _fill_payment(m: Ints, rows: Ints, cells: Ints, w: int) -> int:
    """Fill NEW_CELLS with a payment."""
    fill_row(m, PAYMENTS)
    m[at.NEW_CELLS] = cells[rows[m[w + W_CUSTOMER], at.R_CELLS]]
    m[at.NEW_CELLS + 4] = _now(m)
    m[at.NEW_CELLS + 5] = m[at.TB_NEXT_KEY + PAYMENTS]
    m[at.TB_NEXT_KEY + PAYMENTS] += 1
    return _insert_into(m, PAYMENTS)


@part
def _fail(m: Ints, rows: Ints, cells: Ints, session: int, w: int) -> int:
    """Let a statement fail after its second row, and take it back to the savepoint before it."""
    failing = m[w + W_FAILING]
    m[w + W_FAILING] = failing + 1
    if failing == 1:
        m[w + W_MARK] = m[at.S_ENTRIES + session]
        return _take_stock(m, rows, cells, session)
    if failing == 2:
        # The line that the last step inserted is still to be linked.
        m[w + W_DONE] = m[w + at.W_RESULT]
        return _fill_payment(m, rows, cells, w)
    m[w + W_FAILING] = 0
    m[w + at.W_RESULT] = m[w + W_DONE]
    m[at.A_MARK] = m[w + W_MARK]
    return at.ACT_ROLL_BACK_TO


@part
def _end_order(m: Ints, session: int, w: int) -> int:
    if chance(m, _ROLLED_BACK):
        return _finish(m, w, at.ACT_ROLL_BACK)
    if m[at.Q_COUNT + session] < at.WAREHOUSE_QUEUE:
        place = (m[at.Q_FIRST + session] + m[at.Q_COUNT + session]) % at.WAREHOUSE_QUEUE
        m[at.QUEUE + session * at.WAREHOUSE_QUEUE + place] = m[w + W_QUEUED]
        m[at.Q_COUNT + session] += 1
    return _finish(m, w, at.ACT_COMMIT)


@part
def _pay(m: Ints, rows: Ints, cells: Ints, session: int, w: int) -> int:
    step = m[w + W_STEP]
    m[w + W_STEP] = step + 1
    if step == 0:
        m[w + W_AMOUNT] = 1 + below(m, 500_000)
        m[w + W_CUSTOMER] = _customer_of(m, session)
        warehouse = m[at.TB_FIRST_ROW + WAREHOUSES] + session
        return _bill(m, rows, cells, warehouse, 2, m[w + W_AMOUNT])
    if step == 1:
        return _bill(m, rows, cells, _district_of(m, session), 4, m[w + W_AMOUNT])
    if step == 2:
        first = rows[m[w + W_CUSTOMER], at.R_CELLS]
        act = _update(m, m[w + W_CUSTOMER])
        set_column(m, 6, cells[first + 6] - m[w + W_AMOUNT])
        set_column(m, 7, cells[first + 7] + m[w + W_AMOUNT])
        set_column(m, 8, cells[first + 8] + 1)
        return act
    if step == 3:
        act = _fill_payment(m, rows, cells, w)
        m[at.NEW_CELLS + 1] = session + 1
        m[at.NEW_CELLS + 2] = m[w + W_AMOUNT]
        return act
    return _finish(m, w, at.ACT_COMMIT)


@part
def _next_queued(m: Ints, rows: Ints, session: int, w: int) -> bool:
    """Take the oldest order that waits for delivery; false where none does."""
    if m[at.Q_COUNT + session] == 0:
        return False
    first = m[at.Q_FIRST + session]
    m[w + W_QUEUED] = m[at.QUEUE + session * at.WAREHOUSE_QUEUE + first]
    m[at.Q_FIRST + session] = (first + 1) % at.WAREHOUSE_QUEUE
    m[at.Q_COUNT + session] -= 1
    m[w + W_ORDER] = rows[m[w + W_QUEUED], at.R_LINK]
    m[w + W_LINE] = rows[m[w + W_ORDER], at.R_LINK]
    return True


@part
def _deliver(m: Ints, rows: Ints, session: int, w: int) -> int:
    step = m[w + W_STEP]
    m[w + W_STEP] = step + 1
    if step == 0:
        if m[w + W_DONE] == DELIVERED_MAX or not _next_queued(m, rows, session, w):
            return _finish(m, w, at.ACT_COMMIT)
        m[w + W_DONE] += 1
        return _delete(m, m[w + W_QUEUED])
    if step == 1:
        act = _update(m, m[w + W_ORDER])
        set_column(m, 2, 1 + below(m, 10))
        set_column(m, 3, random_cell(m, m[at.TB_COLUMN + ORDERS] + 3))
        set_column(m, 5, random_cell(m, m[at.TB_COLUMN + ORDERS] + 5))
        return act
    line = m[w + W_LINE]
    if line < 0:
        m[w + W_STEP] = 0
        return at.ACT_NOTHING
    m[w + W_LINE] = rows[line, at.R_LINK]
    act = _update(m, line)
    set_column(m, 6, m[at.CLOCK] // 1000)
    return act


@part
def _cancel(m: Ints, rows: Ints, session: int, w: int) -> int:
    step, line, order = m[w + W_STEP], m[w + W_LINE], m[w + W_ORDER]
    m[w + W_STEP] = step + 1
    if step == 0:
        if not _next_queued(m, rows, session, w):
            return _finish(m, w, at.ACT_NOTHING)
        return _delete(m, m[w + W_QUEUED])
    if line >= 0:
        m[w + W_LINE] = rows[line, at.R_LINK]
        return _delete(m, line)
    if order >= 0:
        m[w + W_ORDER] = -1
        return _delete(m, order)
    return _finish(m, w, at.ACT_COMMIT)


@part
def _know_customer(m: Ints, session: int, w: int) -> int:
    step = m[w + W_STEP]
    m[w + W_STEP] = step + 1
    if step == 0 and chance(m, 500):
        fill_row(m, CUSTOMERS)
        m[at.NEW_CELLS] = m[at.TB_NEXT_KEY + CUSTOMERS]
        m[at.TB_NEXT_KEY + CUSTOMERS] += 1
        m[at.NEW_CELLS + 1] = session + 1
        for column in range(6, 9):
            m[at.NEW_CELLS + column] = 0
        m[at.NEW_CELLS + 9] = m[at.CLOCK] // 1000
        return _insert_into(m, CUSTOMERS)
    if step < 2:
        act = _update(m, _customer_of(m, session))
        for column in range(4, 6):
            if chance(m, 700):
                set_column(m, column, random_cell(m, m[at.TB_COLUMN + CUSTOMERS] + column))
        return act if m[at.SET_COUNT] else at.ACT_NOTHING
    return _finish(m, w, at.ACT_ROLL_BACK if chance(m, 100) else at.ACT_COMMIT)


@part
def step_orders(m: Ints, rows: Ints, cells: Ints, session: int, w: int) -> int:
    """Do one statement of a terminal's business transaction, or end it."""
    if m[w + W_KIND] == NONE:
        _start(m, w)
    if m[w + W_FAILING]:
        return _fail(m, rows, cells, session, w)
    kind = m[w + W_KIND]
    if kind == NEW_ORDER:
        return _place_order(m, rows, cells, session, w)
    if kind == PAYMENT:
        return _pay(m, rows, cells, session, w)
    if kind == DELIVERY:
        return _deliver(m, rows, session, w)
    if kind == CANCELLATION:
        return _cancel(m, rows, session, w)
    return _know_customer(m, session, w)
