from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import DatabaseShape, choose_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.lobs import LobCell
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.workload import DdlUse, LobUse
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import Simulation, lob_workload, simulate
from olr_pg.transactions.finished_columns import DmlKind
from tests.replicator.decoded_seeds import Source
from tests.replicator.test_decode_truth import check_same
from tests.simulator.reader import ParsedLog, ParsedVector, parse_log
from tests.simulator.table_rows import read_rows

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.transactions import Change


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[ParsedLog]:
    parsed = list[ParsedLog]()
    for seed in range(4, 18):
        # Without LOBs, whose pages would take most of the room.
        shape = DatabaseShape(
            RedoFormat(COMPATIBLE["19"]),
            logging=(Logging.ALL,),
            lobs=LobUse.NONE,
            ddl=DdlUse.ANY,
        )
        summary = simulate(seed, tmp_path_factory.mktemp("sim"), size=150_000, shape=shape)
        parsed.extend(parse_log(path.read_bytes()) for path in summary.logs)
    return parsed


def test_every_kind_of_record_occurs(logs: list[ParsedLog]) -> None:
    seen = Counter(
        tuple(vector.opcode for vector in record.vectors) for log in logs for record in log.records
    )
    flat = {opcode for record in seen for opcode in record}
    assert flat >= {
        *("4.1", "5.1", "5.2", "5.4", "5.6", "5.11", "5.19", "5.20", "24.4", "13.59", "23.1"),
        *("10.2", "10.4", "11.2", "11.3", "11.4", "11.5", "11.6", "11.11", "11.12"),
        *("19.1", "24.1", "24.6"),
    }
    for pattern in (
        ("5.2", "5.1", "11.2", "5.20"),
        ("5.2", "5.1", "5.20"),
        ("5.4", "24.4"),
        ("24.4",),
        ("11.3", "5.6"),
        ("11.5", "5.6"),
        ("11.2", "5.6"),
        ("11.12", "5.6"),
        ("5.6",),
    ):
        assert seen[pattern], pattern


def test_transactions_run_over_log_switches_and_undo_blocks(logs: list[ParsedLog]) -> None:
    begun = dict[tuple[int, bytes], int]()
    over_switch = new_blocks = 0
    for number, log in enumerate(logs):
        for record in log.records:
            for vector in record.vectors:
                if vector.opcode == "5.2":
                    head = vector.fields[0]
                    if head[4:8] == bytes(4):
                        new_blocks += 1
                    else:
                        begun[vector.cls, head[0:2] + head[4:8]] = number
                elif vector.opcode == "5.4":
                    head = vector.fields[0]
                    start = begun.pop((vector.cls, head[0:2] + head[4:8]))
                    over_switch += start != number
    assert over_switch
    assert new_blocks


def undo_link(vector: ParsedVector, ktub: bytes) -> tuple[int, int, bytes]:
    """What a 5.6 or 5.11 and the undo record that it marks have in common (redo-format §4.5)."""
    place = (vector.cls - 15) // 2, vector.dba if ktub[19] else 0
    return *place, ktub[:8] + ktub[12:16] + ktub[18:20] + ktub[22:24]


def test_a_rollback_repeats_the_undo(logs: list[ParsedLog]) -> None:
    checked = 0
    for log in logs:
        undone = dict[tuple[int, int, bytes], tuple[bytes, ...]]()
        for record in log.records:
            for vector, successor in zip(record.vectors, record.vectors[1:], strict=False):
                if vector.opcode == "5.1" and vector.fields[1][16:18] == b"\x0b\x01":
                    place = undo_link(vector, vector.fields[1])
                    undone[place] = vector.fields[2:]
                    if log.format.unpack("H", vector.fields[1], 20)[0] & 0x103:
                        del undone[place]  # it is only a part
                if successor.opcode in ("5.6", "5.11") and vector.layer == 11:
                    fields = undone.pop(undo_link(successor, successor.fields[0]), None)
                    if fields is None:
                        continue
                    assert vector.fields[1][11] & 3 == 2
                    assert fields[1][:11] == vector.fields[1][:11]
                    assert fields[2:] == vector.fields[2:]
                    checked += 1
    assert checked > 10


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
    assert forms == set(LobForm) - {LobForm.EMPTY, LobForm.BFILE, LobForm.INDEXED}
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
