"""A table's rows as of any SCN are those that its blocks held then."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import MODELLED, Simulation
from olr_pg.simulator.truth import tables_at

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.tables import SimTable

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
