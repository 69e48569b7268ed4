"""LOBs of the model: every form is written, decoded to the truth, and kept in the final tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.model.lobs import LobCell
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import Simulation, lob_workload
from olr_pg.transactions.finished_columns import DmlKind
from tests.replicator.decoded_seeds import Source
from tests.replicator.test_decode_truth import check_same
from tests.simulator.table_rows import read_rows

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.transactions import Change

SIZE = 1_000_000


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    folder = prepare_directory(tmp_path_factory.mktemp("lobs"))
    simulation = Simulation(4, folder, choose_shape(4, "lobs", size=SIZE), lob_workload)
    simulation.run(SIZE)
    simulation.write()
    return simulation


def folder_of(simulation: Simulation) -> Path:
    return simulation.logs[0].parent.parent


def stored_cells(simulation: Simulation) -> list[tuple[Change, LobCell]]:
    return [
        (change, cell)
        for transaction in simulation.committed()
        for change in transaction.changes
        for cell in change.after.values()
        if isinstance(cell, LobCell)
    ]


def test_the_workload_writes_most_forms_and_is_decoded_to_the_truth(
    simulation: Simulation,
) -> None:
    forms = {cell.stored.form for _, cell in stored_cells(simulation)}
    assert forms == set(LobForm) - {LobForm.INDEXED}
    folder = folder_of(simulation)
    source = Source(folder, load_snapshot(str(folder / "dictionary.json")))
    decoded = source.lines(decode_logs(source.snapshot, [str(folder / "logs")]))
    check_same(decoded, source.truth, str(folder))


def test_the_final_tables_have_the_contents_that_sql_sees(simulation: Simulation) -> None:
    found = 0
    for table in simulation.containers[0].tables:
        rows: dict[str, dict[str, Any]] = {
            row["ROWID"]: row for row in read_rows(folder_of(simulation) / "final", table.full_name)
        }
        for row in table.live:
            if row.owner is not None and row.owner.active:
                continue
            final = rows[row.rowid]
            for at in table.lobs:
                cell = row.cells[at]
                value = final[table.columns[at].name]
                found += cell is not None and len(cell.content) > 8000
                if isinstance(value, str):
                    value = value.encode("utf-16-be")
                assert value == (cell and cell.content)
    assert found > 5


def test_only_what_a_transaction_has_written_whole_is_delivered(simulation: Simulation) -> None:
    delivered = missing = 0
    for transaction in simulation.committed():
        for change in transaction.delivered:
            assert not {*change.before} & {*change.table.lobs}
            assert change.after or change.kind is not DmlKind.UPDATE
            delivered += len({*change.after} & {*change.table.lobs})
        missing += len(transaction.changes) - len(transaction.delivered)
    assert delivered > 50
    assert missing == 0  # every operation was on a value of the same transaction
