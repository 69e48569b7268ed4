"""A table's rows as of any SCN are those that its blocks held then."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.cells import Cell, number, raw
from olr_pg.simulator.model.column_types import (
    DECLARATIONS,
    binary_double_type,
    binary_float_type,
    date_type,
    number_type,
    raw_type,
    timestamp_tz_type,
    varchar,
)
from olr_pg.simulator.model.tables import Logging, SimColumn, SimTable
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import MODELLED, Simulation
from olr_pg.simulator.truth import ROWID, SCN_KEYS, cell_value, read_table, tables_at, write_rows

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.tables import ColumnType


Contents = dict[str, list[bytes | None]]

STEP = 60_000


def contents(table: SimTable) -> Contents:
    """The rows of the blocks, by ROWID or by key, at a moment without open transactions."""
    return {
        row.rowid or ",".join(cell.json for at in table.key if (cell := row.cells[at])): [
            cell and cell.content for cell in row.cells
        ]
        for row in table.live
    }


@pytest.mark.parametrize(("seed", "workload"), [(5, "random"), (7, "random"), (1, "lobs")])
def test_rows_at_any_scn(tmp_path: Path, seed: int, workload: str) -> None:
    simulation = Simulation(
        seed, prepare_directory(tmp_path), choose_shape(seed, workload), MODELLED[workload]
    )
    tables = simulation.containers[0].tables
    seen: list[tuple[int, dict[str, Contents]]] = []
    for size in range(STEP, 6 * STEP, STEP):
        simulation.work(size)
        simulation.commit_all()
        scn = simulation.instance.scn
        simulation.instance.advance_scn()
        seen.append((scn, {table.full_name: contents(table) for table in tables}))
    simulation.end()
    Random(seed).shuffle(seen)
    assert any(then != seen[0][1] for _, then in seen)
    for scn, then in seen:
        for table in tables:
            rows = tables_at([table], simulation.committed(), scn)[table.full_name]
            found = {
                identity: [
                    (cell := image.get(at)) and cell.content for at in range(len(table.columns))
                ]
                for identity, image in rows.items()
            }
            # Columns that were added since are NULL in rows as of then.
            expected = {
                identity: cells + [None] * (len(table.columns) - len(cells))
                for identity, cells in then[table.full_name].items()
            }
            assert found == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (number_type(12, 2), pa.decimal128(12, 2)),
        (number_type(), pa.string()),
        (raw_type(9), pa.binary()),
        (varchar(9), pa.string()),
        (timestamp_tz_type(6), pa.timestamp("us", "UTC")),
        (timestamp_tz_type(9), pa.string()),
    ],
)
def test_a_type_has_the_parquet_type_that_holds_its_values(
    kind: ColumnType, expected: pa.DataType
) -> None:
    assert arrow_type(kind) == expected


@pytest.mark.parametrize("at", range(len(DECLARATIONS)))
def test_every_random_value_fits_its_type(at: int) -> None:
    rng = Random(at)
    kind = DECLARATIONS[at](rng)
    values = [cell_value(kind, kind.make(rng)) for _ in range(20)]
    array: pa.Array[Any] = pa.array(values, arrow_type(kind))
    assert array.to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "cell", "expected"),
    [
        (date_type(), Cell(b"", '"-4712-01-01T00:00:00"'), "-4711-01-01T00:00:00"),
        (date_type(), Cell(b"", '"-0001-12-31T23:59:59"'), "0000-12-31T23:59:59"),
        (
            timestamp_tz_type(6),
            Cell(b"", '"-0044-03-15T02:00:00.5+03:00"'),
            "-043-03-14T23:00:00.500000",
        ),
        (
            timestamp_tz_type(6),
            Cell(b"", '"9999-12-31T23:59:59-08:00"'),
            "10000-01-01T07:59:59.000000",
        ),
        (binary_double_type(), Cell(b"", '"-Infinity"'), "-inf"),
        (binary_float_type(), Cell(b"", '"NaN"'), "nan"),
    ],
)
def test_values_that_python_or_json_cannot_hold(
    kind: ColumnType, cell: Cell, expected: str
) -> None:
    array: pa.Array[Any] = pa.array([cell_value(kind, cell)], arrow_type(kind))
    assert str(array.to_numpy(zero_copy_only=False)[0]) == expected


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    columns = (SimColumn("ID", number_type(12, 0)), SimColumn("DATA", raw_type(9)))
    table = SimTable("SIM", "T", 1, 1, columns, (0,), Logging.ALL, 6, 6, 6, 128)
    rows: list[tuple[str, list[Cell | None]]] = [
        ("AAAB", [number(Decimal(7)), raw(b"x")]),
        ("AAAC", [number(Decimal(8)), None]),
    ]
    write_rows(tmp_path / "tables", table, rows, 4_711)
    found = read_table(tmp_path / "tables", "SIM.T")
    assert found.to_pylist() == [
        {ROWID: "AAAB", "ID": Decimal(7), "DATA": b"x"},
        {ROWID: "AAAC", "ID": Decimal(8), "DATA": None},
    ]
    assert [found.schema.metadata[key.encode()] for key in SCN_KEYS] == [b"4711"] * 2
