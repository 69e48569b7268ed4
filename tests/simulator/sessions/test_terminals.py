from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.named_simulation import load_tables
from olr_pg.simulator.sessions.placement import place_table
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.sessions.terminals import DrawnValues, date_at, scaled, timestamp_at, units

NOW = int(datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC).timestamp()) * 1_000_000


def test_numbers_in_units_of_their_last_place() -> None:
    assert scaled(-1250, 2).json == "-12.5"
    assert scaled(7).json == "7"
    assert units(scaled(-1250, 2), 2) == -1250
    assert Decimal(scaled(10**14, 2).json) == 10**12


def test_times() -> None:
    assert date_at(NOW + 999_999).json == '"2026-03-01T12:30:15"'
    assert timestamp_at(NOW + 50).json == '"2026-03-01T12:30:15.00005"'


def test_values_are_those_of_their_columns() -> None:
    (spec,) = load_tables(Logging.ALL, RowShape())
    table = place_table(0, spec, 100)
    values = DrawnValues(Random(1), table, lambda: NOW)
    rows = [values.row() for _ in range(200)]
    for at, column in enumerate(table.columns):
        drawn = [row[at] for row in rows]
        nulls = sum(cell is None for cell in drawn)
        assert 5 < nulls < 80 if column.nullable else nulls == 0
        assert len({cell.raw for cell in drawn if cell}) > 50
    times = [cell.json for row in rows if (cell := row[8])]
    assert all('"2016' <= time < '"2026-03-01T12:30:16' for time in times)
