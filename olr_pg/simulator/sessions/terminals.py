"""The common parts of the named workloads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import Row, SimTable
    from olr_pg.simulator.sessions.drawn_values import Clock
    from olr_pg.simulator.sessions.keys import KeyForm, Keys
    from olr_pg.simulator.sessions.row_shape import RowShape
    from olr_pg.simulator.sessions.session import SimSession

    KeyColumns = dict[str, dict[int, KeyForm]]
    """The forms of key columns, by table and 0-based column."""

    Cells = list[Cell | None]
    Statements = Iterator[None]
    """An iterator that carries out a statement at each step."""

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
        finished: rows that no later statement uses, when their transactions have ended.
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
