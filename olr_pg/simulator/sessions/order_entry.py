"""The named workloads, and how their terminals draw values.

Order entry has new orders, payments, deliveries, cancellations and customers. Each session is the
terminal of one warehouse. A session works on one business transaction at a time, one statement per
step, so that the transactions of the sessions interleave. The mix is that of TPC-C without its
queries.

`bulk` inserts arrays, `wide` updates wide rows. In parallel DML, a coordinator and parallel servers
each change a part of a table's rows.

Values are drawn quickly: numbers and times at each call, all other values from a pool. Facts:
values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import EXACT, Cell, Moment, date, scaled_number, text, timestamp
from olr_pg.simulator.fields.redo_format import DatabaseSession
from olr_pg.simulator.sessions.row_shape import IDENTITY, PLACE, RowShape
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.writer.transaction_writer import ParallelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from olr_pg.simulator.model.tables import Row, SimColumn, SimTable
    from olr_pg.simulator.sessions.row_shape import KeyForm, Keys
    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread

    KeyColumns = dict[str, dict[int, KeyForm]]
    """The forms of key columns, by table and 0-based column."""
    Cells = list[Cell | None]
    Statements = Iterator[None]
    """An iterator that carries out a statement at each step."""
    Clock = Callable[[], int]
    """The time in microseconds since 1970."""

POOL_VALUES: Final = 256
NULLS: Final = RowShape().nulls

NEGATIVE: Final = 0.3
"""Probability that a number with decimal places is negative."""

SECOND: Final = 1_000_000
_TEN_YEARS: Final = 315_000_000
_NUMBER: Final = 2
_DATE: Final = 12
_TIMESTAMP: Final = 180
_DIGITS_MAX: Final = 15


@lru_cache(maxsize=1 << 16)
def scaled(units: int, scale: int = 0) -> Cell:
    """Encode the NUMBER `units` × 10^−`scale`."""
    return scaled_number(units, scale)


def units(cell: Cell | None, scale: int = 0) -> int:
    """Return a NUMBER times 10^`scale`."""
    assert cell is not None
    return int(Decimal(cell.json).scaleb(scale, EXACT))


def date_at(microseconds: int) -> Cell:
    """Encode a time, in microseconds since 1970, as a DATE."""
    return date(_moment(microseconds // SECOND * SECOND))


def timestamp_at(microseconds: int) -> Cell:
    """Encode a time, in microseconds since 1970, as a TIMESTAMP(6)."""
    return timestamp(_moment(microseconds))


def _moment(microseconds: int) -> Moment:
    seconds, rest = divmod(microseconds, SECOND)
    when = datetime.fromtimestamp(seconds, UTC)
    return Moment(
        *(when.year, when.month, when.day, when.hour, when.minute, when.second), rest * 1000
    )


class DrawnValues:
    """Draws values of a table's columns.

    Args:
        rng: the source of random numbers.
        now: returns the current time; drawn times are earlier.
        nulls: probability that a value of a nullable column is NULL.
    """

    def __init__(self, rng: Random, table: SimTable, now: Clock, nulls: float = NULLS) -> None:
        self._draws = [_draw(rng, column, now, nulls) for column in table.columns]

    def value(self, column: int) -> Cell | None:
        """Draw a value of a column, by its 0-based number."""
        return self._draws[column]()

    def row(self) -> list[Cell | None]:
        """Draw a value of every column."""
        return [draw() for draw in self._draws]


def _draw(rng: Random, column: SimColumn, now: Clock, nulls: float) -> Callable[[], Cell | None]:
    draw = _draw_known(rng, column, now)
    if not column.nullable:
        return draw
    return lambda: None if rng.random() < nulls else draw()


def _draw_known(rng: Random, column: SimColumn, now: Clock) -> Callable[[], Cell]:
    kind = column.type
    if kind.type_code == _NUMBER:
        limit, scale = 10 ** min(kind.precision or _DIGITS_MAX, _DIGITS_MAX), kind.scale or 0

        def amount() -> Cell:
            drawn = int(rng.random() * limit)
            return scaled(-drawn if scale and rng.random() < NEGATIVE else drawn, scale)

        return amount
    if kind.type_code == _DATE:
        return lambda: date_at(now() - int(rng.random() * _TEN_YEARS) * SECOND)
    if kind.type_code == _TIMESTAMP:
        return lambda: timestamp_at(now() - int(rng.random() * _TEN_YEARS * SECOND))
    pool = [kind.make(rng) for _ in range(POOL_VALUES)]
    return lambda: pool[int(rng.random() * POOL_VALUES)]


ARRAY_MAX: Final = 48
"""Maximum rows of one array insert; a row that does not fit into the block goes into the next one.
"""


@dataclass(frozen=True, slots=True)
class WorkSetting:
    """The input of a workload.

    Attributes:
        rng: the source of random numbers.
        tables: the tables of the database.
        sessions: number of sessions.
        size: bytes of redo that will be written.
        keys: the numbers of keys.
        rows: the shape of the rows of the workload `wide`.
    """

    rng: Random
    tables: Sequence[SimTable]
    sessions: int
    size: int
    keys: Keys
    now: Clock
    rows: RowShape


class NamedWorkload(ABC):
    """A workload: the statements of sessions, which are numbered from 0.

    Attributes:
        start_rows: the rows of each table before the first statement.
        written_once: numbers of tables whose rows are written only once, and not in copies.
        finished: rows that no later statement uses; their transactions may still be open.
    """

    start_rows: Sequence[Sequence[Cells]]
    written_once: frozenset[int] = frozenset()

    def __init__(self, setting: WorkSetting) -> None:
        self._rng, self._keys = setting.rng, setting.keys
        self._working: dict[int, Statements] = {}
        self.finished: list[Row] = []

    @abstractmethod
    def started(self, table: int, rows: Sequence[Row]) -> None:
        """Receive the first rows of a table."""

    @abstractmethod
    def _work(self, number: int, session: SimSession) -> Statements:
        """Carry out the statements of a session, one at each step of the iterator."""

    def step(self, number: int, session: SimSession) -> None:
        """Carry out the next statement of a session, or end its transaction."""
        if number not in self._working:
            self._working[number] = self._work(number, session)
        next(self._working[number])

    def broken_off(self, number: int) -> None:
        """Restart a session whose transaction the instance rolled back."""
        self._working.pop(number, None)

    def next_keys(self) -> Mapping[str, int]:
        """Return the next value of each table's sequence; tables without a sequence are missing."""
        return {}


def insert_array(session: SimSession, table: SimTable, rows: Sequence[Cells]) -> list[Row]:
    """Insert all rows: one change vector per block; rows of several pieces separately."""
    made: list[Row] = []
    while len(made) < len(rows):
        more = session.insert_many(table, rows[len(made) : len(made) + ARRAY_MAX])
        if not more:
            row = session.insert(table, rows[len(made)])
            assert row is not None
            more = [row]
        made += more
    return made


WAREHOUSES: Final = 0
DISTRICTS: Final = 1
CUSTOMERS: Final = 2
STOCK: Final = 3
ORDERS: Final = 4
NEW_ORDERS: Final = 5
ORDER_LINES: Final = 6
PAYMENTS: Final = 7
SETTINGS: Final = 8

KEYS: Final[KeyColumns] = {
    "WAREHOUSES": {0: PLACE},
    "DISTRICTS": {0: PLACE},
    "CUSTOMERS": {0: IDENTITY, 1: PLACE},
    "STOCK": {0: PLACE},
    "ORDERS": {0: IDENTITY, 1: IDENTITY},
    "NEW_ORDERS": {0: IDENTITY, 1: PLACE},
    "ORDER_LINES": {0: IDENTITY},
    "PAYMENTS": {0: IDENTITY, 1: PLACE, 5: IDENTITY},
}

DISTRICTS_EACH: Final = 4
CUSTOMERS_MAX: Final = 3000
REDO_PER_CUSTOMER: Final = 150_000
"""Bytes of redo for which a warehouse has one customer and two stock items; with little redo, it
has more of both.
"""

LINES: Final = range(5, 16)
DELIVERED_MAX: Final = 10
QUEUE_MAX: Final = 256
SETTINGS_ROWS: Final = 3

_MIX: Final = {"order": 45, "payment": 43, "delivery": 4.5, "cancellation": 3.5, "customer": 4}
_ROLLED_BACK: Final = 0.012
_ARRAY_INSERT: Final = 0.35
_FAILED_STATEMENT: Final = 0.01
_REMOTE: Final = 0.1
_CUSTOMER_ROLLED_BACK: Final = 0.1


@dataclass(slots=True)
class _Order:
    queued: Row
    row: Row
    lines: list[Row]


@dataclass(slots=True)
class _Warehouse:
    """A warehouse: its rows, and its orders that are not delivered yet."""

    number: int
    row: Row
    districts: list[Row] = field(default_factory=list)
    customers: list[Row] = field(default_factory=list)
    stock: list[Row] = field(default_factory=list)
    queue: deque[_Order] = field(default_factory=deque)


class OrderEntry(NamedWorkload):
    """The workload `orders`."""

    written_once = frozenset({SETTINGS})

    def __init__(self, setting: WorkSetting) -> None:
        super().__init__(setting)
        self._tables, self._now = setting.tables, setting.now
        self._values = [DrawnValues(self._rng, table, self._now) for table in self._tables]
        self._warehouses = list[_Warehouse]()
        few, many = min(setting.size // 25_000, 20), setting.size // REDO_PER_CUSTOMER
        self._each = min(CUSTOMERS_MAX, max(4, few, many))
        self.start_rows = self._start_rows(setting.sessions)

    def _start_rows(self, sessions: int) -> list[list[Cells]]:
        rows: list[list[Cells]] = [[] for _ in self._tables]
        for number in range(1, sessions + 1):
            place = scaled(self._keys.place(number))
            rows[WAREHOUSES].append([place, *self._values[WAREHOUSES].row()[1:2], scaled(0)])
            for district in range(1, DISTRICTS_EACH + 1):
                name = self._values[DISTRICTS].value(2)
                rows[DISTRICTS].append([place, scaled(district), name, scaled(1), scaled(0)])
            rows[CUSTOMERS] += [self._customer_cells(number) for _ in range(self._each)]
            for item in range(1, 2 * self._each + 1):
                name, left = self._values[STOCK].value(2), scaled(self._rng.randint(10, 100))
                rows[STOCK].append([place, scaled(item), name, left, scaled(0)])
        for number in range(1, SETTINGS_ROWS + 1):
            name = text(f"setting {number}", "utf-8")
            rows[SETTINGS].append([name, *self._values[SETTINGS].row()[1:]])
        return rows

    def _customer_cells(self, warehouse: int) -> Cells:
        cells = self._values[CUSTOMERS].row()
        cells[0] = scaled(self._keys.take("CUSTOMERS"))
        cells[1] = scaled(self._keys.place(warehouse))
        cells[2] = scaled(self._rng.randint(1, DISTRICTS_EACH))
        cells[6] = cells[7] = cells[8] = scaled(0)
        cells[9] = date_at(self._now())
        return cells

    def started(self, table: int, rows: Sequence[Row]) -> None:
        """Receive the first rows of a table."""
        if table == WAREHOUSES:
            self._warehouses = [_Warehouse(at, row) for at, row in enumerate(rows, 1)]
        counts = {DISTRICTS: DISTRICTS_EACH, CUSTOMERS: self._each, STOCK: 2 * self._each}
        if table in counts:
            each = counts[table]
            for at, warehouse in enumerate(self._warehouses):
                own = list(rows[at * each : (at + 1) * each])
                setattr(warehouse, self._tables[table].name.lower(), own)

    def next_keys(self) -> dict[str, int]:
        """Return the next value of each sequence."""
        return {name: self._keys.next(name) for name in ("CUSTOMERS", "ORDERS", "PAYMENTS")}

    def _work(self, number: int, session: SimSession) -> Statements:
        own = self._warehouses[number]
        kinds = [self._order, self._payment, self._delivery, self._cancellation, self._customer]
        while True:
            work = self._rng.choices(kinds, list(_MIX.values()))[0]
            yield from work(own, session)

    def _customer_of(self, own: _Warehouse) -> Row:
        """Draw a customer of the terminal's warehouse, sometimes of any warehouse."""
        if self._rng.random() < _REMOTE:
            own = self._rng.choice(self._warehouses)
        return self._rng.choice(own.customers)

    @staticmethod
    def _bill(session: SimSession, row: Row, amounts: dict[int, int], scale: int = 2) -> None:
        """Add amounts, in units of the last decimal place, to columns of a row."""
        new = {at: scaled(units(row.cells[at], scale) + add, scale) for at, add in amounts.items()}
        session.update(row, new)

    def _insert(self, session: SimSession, table: int, cells: Cells) -> Row:
        row = session.insert(self._tables[table], cells)
        assert row is not None
        return row

    # --- new orders ---

    def _order(self, own: _Warehouse, session: SimSession) -> Statements:
        customer, count = self._customer_of(own), self._rng.choice(LINES)
        in_array = self._rng.random() < _ARRAY_INSERT
        self._bill(session, self._rng.choice(own.districts), {3: 1}, 0)
        yield
        cells = self._values[ORDERS].row()
        number = self._keys.take("ORDERS")
        cells[0], cells[1], cells[2] = scaled(number), customer.cells[0], None
        cells[4], cells[5], cells[6] = scaled(count), None, timestamp_at(self._now())
        row = self._insert(session, ORDERS, cells)
        yield
        district = number % DISTRICTS_EACH + 1
        cells = [scaled(number), scaled(self._keys.place(own.number)), scaled(district)]
        order = _Order(self._insert(session, NEW_ORDERS, cells), row, [])
        yield
        for line in range(1, count + 1):
            self._take_stock(own, session)
            yield
            if not in_array:
                cells = self._line_cells(order, line)
                order.lines.append(self._insert(session, ORDER_LINES, cells))
                yield
                if self._rng.random() < _FAILED_STATEMENT:
                    yield from self._fail(own, customer, session)
        if in_array:
            lines = [self._line_cells(order, line) for line in range(1, count + 1)]
            order.lines += insert_array(session, self._tables[ORDER_LINES], lines)
            yield
        if self._rng.random() < _ROLLED_BACK:
            session.rollback()
        else:
            session.commit()
            if len(own.queue) < QUEUE_MAX:
                own.queue.append(order)
            else:
                self.finished += (order.queued, order.row, *order.lines)
        yield

    def _take_stock(self, own: _Warehouse, session: SimSession) -> None:
        row, taken = self._rng.choice(own.stock), self._rng.randint(1, 10)
        left, sold = units(row.cells[3]) - taken, units(row.cells[4]) + taken
        session.update(row, {3: scaled(left if left > 9 else left + 91), 4: scaled(sold)})

    def _line_cells(self, order: _Order, line: int) -> Cells:
        cells = self._values[ORDER_LINES].row()
        count, price = self._rng.randint(1, 10), self._rng.randint(1, 999_999)
        cells[0], cells[1], cells[4] = order.row.cells[0], scaled(line), scaled(count)
        cells[5], cells[6], cells[8] = scaled(price, 2), None, scaled(count * price, 2)
        return cells

    def _fail(self, own: _Warehouse, customer: Row, session: SimSession) -> Statements:
        """Undo two statements by a savepoint, as if one statement failed after its second row."""
        mark = session.savepoint()
        self._take_stock(own, session)
        yield
        self._insert(session, PAYMENTS, self._payment_cells(own, customer, 1))
        yield
        session.rollback_to(mark)
        yield

    # --- payments and other transactions ---

    def _payment_cells(self, own: _Warehouse, customer: Row, amount: int) -> Cells:
        cells = self._values[PAYMENTS].row()
        cells[0], cells[1] = customer.cells[0], scaled(self._keys.place(own.number))
        cells[2], cells[4] = scaled(amount, 2), timestamp_at(self._now())
        cells[5] = scaled(self._keys.take("PAYMENTS"))
        return cells

    def _payment(self, own: _Warehouse, session: SimSession) -> Statements:
        amount, customer = self._rng.randint(1, 500_000), self._customer_of(own)
        self._bill(session, own.row, {2: amount})
        yield
        self._bill(session, self._rng.choice(own.districts), {4: amount})
        yield
        paid = {6: -amount, 7: amount, 8: 100}
        self._bill(session, customer, paid)
        yield
        cells = self._payment_cells(own, customer, amount)
        self.finished.append(self._insert(session, PAYMENTS, cells))
        yield
        session.commit()
        yield

    def _delivery(self, own: _Warehouse, session: SimSession) -> Statements:
        for _ in range(min(DELIVERED_MAX, len(own.queue))):
            order = own.queue.popleft()
            session.delete(order.queued)
            yield
            values = self._values[ORDERS]
            carrier, shipped = scaled(self._rng.randint(1, 10)), values.value(5)
            session.update(order.row, {2: carrier, 3: values.value(3), 5: shipped})
            yield
            for line in order.lines:
                session.update(line, {6: date_at(self._now() // SECOND * SECOND)})
                yield
            self.finished += (order.row, *order.lines)
        session.commit()
        yield

    def _cancellation(self, own: _Warehouse, session: SimSession) -> Statements:
        if own.queue:
            order = own.queue.popleft()
            for row in (order.queued, *order.lines, order.row):
                session.delete(row)
                yield
            session.commit()
        yield

    def _customer(self, own: _Warehouse, session: SimSession) -> Statements:
        if self._rng.random() < 0.5:
            cells = self._customer_cells(own.number)
            self.finished.append(self._insert(session, CUSTOMERS, cells))
            yield
        values = self._values[CUSTOMERS]
        new = {at: values.value(at) for at in (4, 5) if self._rng.random() < 0.7}
        session.update(self._customer_of(own), new)
        yield
        if self._rng.random() < _CUSTOMER_ROLLED_BACK:
            session.rollback()
        else:
            session.commit()
        yield


ARRAY_ROWS: Final = 200
"""Rows per array insert; the rows in one block are one change vector."""

BULK_COMMIT: Final = 20
"""Array inserts per transaction."""

BULK_KEYS: Final[KeyColumns] = {"FACTS": {0: IDENTITY}}
WIDE_KEYS: Final[KeyColumns] = {"READINGS": {0: IDENTITY}}

WIDE_END: Final = 0.25
WIDE_ROLLED_BACK: Final = 0.02
WIDE_INSERT: Final = 0.02
WIDE_DELETE: Final = 0.002
REDO_PER_READING: Final = 50_000
READINGS: Final = range(10, 20_001)


class _Load(NamedWorkload):
    """The common part of both workloads: one table with a key."""

    def __init__(self, setting: WorkSetting) -> None:
        super().__init__(setting)
        (self._table,) = setting.tables
        self._values = DrawnValues(self._rng, self._table, setting.now, setting.rows.nulls)
        self._started: Sequence[Row] = ()
        self.start_rows = [[self._row() for _ in range(self._start(setting.size))]]

    def _start(self, size: int) -> int:
        """Return the number of rows at the start."""
        return 0

    def _row(self) -> Cells:
        return [scaled(self._keys.take(self._table.name)), *self._values.row()[1:]]

    def started(self, table: int, rows: Sequence[Row]) -> None:
        """Receive the first rows of a table."""
        self._started = rows


class BulkLoad(_Load):
    """Array inserts."""

    def _work(self, number: int, session: SimSession) -> Statements:
        while True:
            for _ in range(BULK_COMMIT):
                rows = [self._row() for _ in range(ARRAY_ROWS)]
                self.finished += insert_array(session, self._table, rows)
                yield
            session.commit()
            yield


class WideUpdates(_Load):
    """Updates of some columns of wide rows, with a few inserts and deletes."""

    def __init__(self, setting: WorkSetting) -> None:
        super().__init__(setting)
        self._shape = setting.rows
        self._sets = [self._draw_set() for _ in range(self._shape.sets)]

    def _start(self, size: int) -> int:
        return max(READINGS.start, min(READINGS.stop - 1, size // REDO_PER_READING))

    def _work(self, number: int, session: SimSession) -> Statements:
        rng, done = self._rng, 0
        while True:
            if session.transaction is not None and self._ends(done):
                if rng.random() < WIDE_ROLLED_BACK:
                    session.rollback()
                else:
                    session.commit()
                done = 0
            else:
                self._change(session)
                done += 1
            yield

    def _ends(self, done: int) -> bool:
        """Return whether a transaction ends after `done` statements."""
        statements = self._shape.statements
        if statements is None:
            return self._rng.random() < WIDE_END
        return 0 < statements <= done

    def _change(self, session: SimSession) -> None:
        rng = self._rng
        row, kind = rng.choice(self._started), rng.random()
        if kind < WIDE_INSERT:
            inserted = session.insert(self._table, self._row())
            self.finished += [] if inserted is None else [inserted]
        elif kind < WIDE_INSERT + WIDE_DELETE:
            session.delete(row)
        else:
            chosen = rng.choice(self._sets) if self._sets else self._draw_set()
            session.update(row, {at: self._values.value(at) for at in chosen})

    def _draw_set(self) -> list[int]:
        """Draw the columns that an UPDATE sets, without the key."""
        others = range(1, len(self._table.columns))
        count = self._rng.randint(1, min(self._shape.set_max, len(others)))
        return self._rng.sample(others, count)


SERVERS: Final = 4
FIRST_SESSION: Final = 500


class ParallelGroup:
    """A coordinator and its parallel servers, which run one statement at a time.

    Args:
        threads: redo threads; the coordinator uses the first one, the servers use all of them.

    Attributes:
        committed_at: SCN of the parent's commit while its children are still open, otherwise 0.
    """

    def __init__(
        self, instance: Instance, container: Container, threads: Sequence[RedoThread]
    ) -> None:
        self._instance = instance
        self.committed_at = 0
        self._servers = list[tuple[SimSession, ParallelWriter]]()
        for number in range(1 + SERVERS):
            program = f"oracle@host (P{number:03d})" if number else "sqlplus@host (TNS V1-V3)"
            who = DatabaseSession(
                FIRST_SESSION + number, 2000 + number, "SIM", 136, program=program
            )
            thread = threads[-number % len(threads)]
            writer = ParallelWriter(instance, container, thread, who)
            self._servers.append(
                (SimSession(instance, container, thread, who, writer=writer), writer)
            )
        self._coordinator, self._parent = self._servers.pop(0)
        self._working = list[ParallelWriter]()

    def run(
        self,
        servers: int,
        before: Callable[[SimSession], None] | None,
        work: Callable[[SimSession], None],
        *,
        committed: bool,
    ) -> bool:
        """Run a statement, up to the commit of the parent, or including the whole rollback.

        Args:
            servers: number of parallel servers.
            before: makes the coordinator's own changes, at the beginning of its transaction.
            work: makes the changes of each server.
            committed: COMMIT, else ROLLBACK.

        Returns:
            False if the previous statement has not ended, or if no transaction slot is free.
        """
        if self.committed_at:
            return False
        if before is not None:
            before(self._coordinator)
        if not self._parent.savepoint():
            self._parent.commit()
            if not self._parent.begin_parallel():
                return False
        for session, writer in self._servers[:servers]:
            if writer.join(self._parent):
                work(session)
        writers = [writer for _, writer in self._servers[:servers]]
        if committed:
            self._working = [one for one in reversed(writers) if one.prepare() is not None]
            self.committed_at = self._parent.commit_parent()
        else:
            self._parent.rollback_alone()
            for writer in reversed(writers):
                writer.rollback_alone()
        return True

    def finish(self) -> None:
        """If a parent has committed, end its children, and then the parent."""
        if not self.committed_at:
            return
        self._instance.advance_scn()
        if self._working:
            self._instance.advance_scn()
        # The children get the commit SCN of the parent.
        scn, self.committed_at = self.committed_at, 0
        for writer in self._working:
            writer.commit_child(scn)
        self._instance.advance_scn()
        self._parent.close_parent(scn)
