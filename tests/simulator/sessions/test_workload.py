from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.workload import DdlUse, LobUse
from olr_pg.simulator.simulation import simulate
from tests.simulator.reader import ParsedLog, ParsedVector, parse_log

if TYPE_CHECKING:
    pass


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
