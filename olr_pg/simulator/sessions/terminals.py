"""The common parts of the named workloads.

It also draws column values quickly: numbers and times at each call, all other values from a pool.

Facts: values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import EXACT, Cell, Moment, date, scaled_number, timestamp
from olr_pg.simulator.sessions.row_shape import RowShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from olr_pg.simulator.model.tables import Row, SimColumn, SimTable
    from olr_pg.simulator.sessions.row_shape import KeyForm, Keys
    from olr_pg.simulator.sessions.session import SimSession

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
