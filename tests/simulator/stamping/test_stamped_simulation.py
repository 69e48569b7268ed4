"""Copies of redo in logs: lawful, and decoded to the truth that is written with them."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
import pytest

from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE
from olr_pg.simulator.named_simulation import NAMED
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.stamping.redo_copies import COPIED_FROM, copy_template
from olr_pg.simulator.stamping.template import make_template
from tests.simulator.laws import broken_laws
from tests.simulator.reader import ParsedLog, parse_log
from tests.simulator.test_named_simulation import decoded

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.simulated_files import Summary

SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", "4"))
SIZE: Final = 60_000


def draw(seed: int) -> tuple[str, DatabaseShape, bool]:
    """A workload, a database, and whether its tables are prefilled."""
    rng = Random(seed)
    workload = tuple(NAMED)[seed % len(NAMED)]
    shape = choose_shape(
        seed,
        workload,
        version=rng.choice(sorted(COMPATIBLE.values())),
        big_endian=rng.random() < 0.25,
        block_size=rng.choice(BLOCK_SIZES),
        threads=rng.choice((1, 1, 2, 3)),
    )
    start_scn = rng.choice((shape.start_scn, 9_999_990, 0xFFFFFFF0, 6_108_387_148_033))
    blocks = rng.choice((20_000, 70_000, 1_000_000)) // shape.redo.block_size
    pace = replace(shape.pace, log_blocks=blocks)
    return workload, replace(shape, start_scn=start_scn, pace=pace), rng.random() < 0.5


def written(seed: int, folder: Path, copies: int = 3) -> Summary:
    """So many copies, about."""
    workload, shape, prefilled = draw(seed)
    template = make_template(seed, workload, shape, prefilled=prefilled, size=SIZE)
    (folder / "logs").mkdir()
    return copy_template(template, copies * SIZE, folder, truth=True, logs=folder / "logs")


def logs_of(made: Summary) -> list[ParsedLog]:
    """The logs, by thread and sequence."""
    logs = [parse_log(path.read_bytes()) for path in made.logs]
    return sorted(logs, key=lambda log: (log.header.thread, log.header.sequence))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_copies_are_lawful_and_decode_to_their_truth(tmp_path: Path, seed: int) -> None:
    made = written(seed, tmp_path)
    logs = logs_of(made)
    assert broken_laws(logs) == []
    for _, of_thread in itertools.groupby(logs, lambda log: log.header.thread):
        for own, following in itertools.pairwise(log.header for log in of_thread):
            assert following.sequence == own.sequence + 1
            assert following.first_scn == own.next_scn
            assert following.first_time == own.next_time
    truth = (tmp_path / "truth.jsonl").read_bytes()
    assert truth.count(b"\n") == 2 * made.transactions + sum(made.changes.values())
    assert decoded(tmp_path) == truth


def test_every_copy_has_rows_of_its_own(tmp_path: Path) -> None:
    made = written(0, tmp_path)
    for table in made.tables:
        rows = pq.read_table(tmp_path / "final" / f"{table.full_name}.parquet").to_pylist()
        assert len(rows) == made.rows[table.full_name]
        keys = [tuple(row[table.columns[at].name] for at in table.key) for row in rows]
        assert len(set(keys)) == len(keys)
        assert len({row["ROWID"] for row in rows}) == len(rows)


def test_logs_hold_parts_of_several_copies_and_open_transactions(tmp_path: Path) -> None:
    shape = choose_shape(1, "orders")
    shape = replace(shape, pace=replace(shape.pace, log_blocks=50))
    template = make_template(1, "orders", shape, prefilled=False, size=SIZE)
    template = replace(template, shape=replace(shape, pace=replace(shape.pace, log_blocks=180)))
    (tmp_path / "logs").mkdir()
    made = copy_template(template, 4 * SIZE, tmp_path, truth=False, logs=tmp_path / "logs")
    used = [
        {v.fields[0][8:16] for r in log.records for v in r.vectors if v.opcode == "5.1"}
        for log in logs_of(made)
    ]
    assert 2 <= len(used) < len(template.copied.parts[0]) * 4
    assert any(own & following for own, following in itertools.pairwise(used))


def test_much_redo_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("olr_pg.simulator.stamping.redo_copies.TEMPLATE_BYTES", SIZE)
    monkeypatch.setattr("olr_pg.simulator.simulation.COPIED_FROM", 2 * SIZE)
    summary = simulate(3, tmp_path / "a", workload="orders", size=4 * SIZE)
    again = simulate(3, tmp_path / "b", workload="orders", size=4 * SIZE)
    assert abs(summary.log_bytes - 4 * SIZE) < SIZE
    for one, other in zip(summary.logs, again.logs, strict=True):
        assert one.read_bytes() == other.read_bytes()
    truth = (tmp_path / "a" / "truth.jsonl").read_bytes()
    assert truth == (tmp_path / "b" / "truth.jsonl").read_bytes()
    assert decoded(tmp_path / "a") == truth
    assert COPIED_FROM > 2 * SIZE
