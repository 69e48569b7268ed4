"""What the named workloads have in common: sessions that each do one statement after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import Row, SimTable
    from olr_pg.simulator.sessions.drawn_values import Clock
    from olr_pg.simulator.sessions.keys import KeyForm, Keys
    from olr_pg.simulator.sessions.session import SimSession

    KeyColumns = dict[str, dict[int, KeyForm]]
    """The columns with numbers of `keys`, by table and 0-based number."""

    Cells = list[Cell | None]
    Statements = Iterator[None]
    """Does a statement each time that it is asked for the next one."""

ARRAY_MAX: Final = 48
"""Rows that are handed to an array insert at a time; what fits no block comes in the next one."""


class NamedWorkload(Protocol):
    """A source of work for sessions that are numbered from 0.

    Attributes:
        start_rows: of each table, before the first statement; all they are updated by.
        written_once: numbers of tables whose rows no copy has.
    """

    start_rows: Sequence[Sequence[Cells]]
    written_once: frozenset[int]

    def started(self, table: int, rows: Sequence[Row]) -> None:
        """Take the rows that a table starts with."""

    def step(self, number: int, session: SimSession) -> None:
        """Let a session do a statement, or end its transaction."""

    def broken_off(self, number: int) -> None:
        """Let a session begin anew whose transaction was rolled back by the instance."""

    def next_keys(self) -> Mapping[str, int]:
        """Return the next value of the sequence of each table that has one."""


@dataclass(frozen=True, slots=True)
class WorkSetting:
    """What a workload is made of.

    Attributes:
        rng: draws everything.
        tables: those of the database.
        sessions: how many there are.
        size: of the redo that is going to be written, in bytes.
        keys: its numbers.
        now: the time.
    """

    rng: Random
    tables: Sequence[SimTable]
    sessions: int
    size: int
    keys: Keys
    now: Clock


class Terminals:
    """Sessions whose statements are an iterator each.

    Args:
        statements: makes those of a session, by its number.
    """

    def __init__(self, statements: Callable[[int, SimSession], Statements]) -> None:
        self._statements = statements
        self._working: dict[int, Statements] = {}

    def step(self, number: int, session: SimSession) -> None:
        """Do the next statement; behind the last one they begin anew."""
        if number not in self._working:
            self._working[number] = self._statements(number, session)
        next(self._working[number])

    def break_off(self, number: int) -> None:
        """Let a session begin anew."""
        self._working.pop(number, None)


def insert_array(session: SimSession, table: SimTable, rows: Sequence[Cells]) -> list[Row]:
    """Insert all rows, each block's in one change vector."""
    made: list[Row] = []
    while len(made) < len(rows):
        more = session.insert_many(table, rows[len(made) : len(made) + ARRAY_MAX])
        assert more
        made += more
    return made
