"""The common parts of the named workloads: sessions that each do one statement after the other."""

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
    """The columns with numbers of `keys`, by table and 0-based number."""

    Cells = list[Cell | None]
    Statements = Iterator[None]
    """Does a statement each time that it is asked for the next one."""

ARRAY_MAX: Final = 48
"""Rows that are handed to an array insert at a time; a row that does not fit goes into the next
block.
"""


@dataclass(frozen=True, slots=True)
class WorkSetting:
    """The parts of a workload.

    Attributes:
        rng: draws everything.
        tables: those of the database.
        sessions: how many there are.
        size: of the redo that is going to be written, in bytes.
        keys: its numbers.
        rows: of the workload `wide`.
    """

    rng: Random
    tables: Sequence[SimTable]
    sessions: int
    size: int
    keys: Keys
    now: Clock
    rows: RowShape


class NamedWorkload(ABC):
    """A source of work for sessions that are numbered from 0, each with statements in a row.

    Attributes:
        start_rows: of each table, before the first statement; all they are updated by.
        written_once: numbers of tables whose rows no copy has.
        finished: rows that no statement will concern any more, once their transactions have ended.
    """

    start_rows: Sequence[Sequence[Cells]]
    written_once: frozenset[int] = frozenset()

    def __init__(self, setting: WorkSetting) -> None:
        self._rng, self._keys = setting.rng, setting.keys
        self._working: dict[int, Statements] = {}
        self.finished: list[Row] = []

    @abstractmethod
    def started(self, table: int, rows: Sequence[Row]) -> None:
        """Take the rows that a table starts with."""

    @abstractmethod
    def _work(self, number: int, session: SimSession) -> Statements:
        """Do a session's statements, one for each time that the next one is asked for."""

    def step(self, number: int, session: SimSession) -> None:
        """Let a session do a statement, or end its transaction."""
        if number not in self._working:
            self._working[number] = self._work(number, session)
        next(self._working[number])

    def broken_off(self, number: int) -> None:
        """Restart a session whose transaction the instance rolled back."""
        self._working.pop(number, None)

    def next_keys(self) -> Mapping[str, int]:
        """Return the next value of the sequence of each table that has one."""
        return {}


def insert_array(session: SimSession, table: SimTable, rows: Sequence[Cells]) -> list[Row]:
    """Insert all rows, each block's in one change vector; those of several pieces by themselves."""
    made: list[Row] = []
    while len(made) < len(rows):
        more = session.insert_many(table, rows[len(made) : len(made) + ARRAY_MAX])
        if not more:
            row = session.insert(table, rows[len(made)])
            assert row is not None
            more = [row]
        made += more
    return made
