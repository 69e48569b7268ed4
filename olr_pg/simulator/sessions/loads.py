"""The workloads `bulk` (array inserts) and `wide` (updates of wide rows)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.sessions.drawn_values import DrawnValues, scaled
from olr_pg.simulator.sessions.keys import IDENTITY
from olr_pg.simulator.sessions.terminals import NamedWorkload, insert_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.model.tables import Row
    from olr_pg.simulator.sessions.session import SimSession
    from olr_pg.simulator.sessions.terminals import Cells, KeyColumns, Statements, WorkSetting

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
