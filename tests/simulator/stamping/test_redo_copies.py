"""Copies of redo are what the model writes itself when it goes on."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.scalars import encode_redo_time, format_rowid
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation
from olr_pg.simulator.sessions.row_shape import IDENTITY
from olr_pg.simulator.simulated_files import first_rows, last_rows
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.stamping.marks import Steps
from olr_pg.simulator.stamping.redo_copies import (
    COPIED_FROM,
    TextCopies,
    copy_template,
    later_times,
    make_template,
    put_rowid_blocks,
    write_logs,
)
from olr_pg.simulator.truth import read_table, row_arrays, truth_lines
from tests.simulator.laws import broken_laws
from tests.simulator.reader import ParsedLog, parse_log
from tests.simulator.test_named_simulation import decoded

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.simulated_files import Summary
    from olr_pg.simulator.stamping.redo_copies import Template


SIZE: Final = 100_000
COPIES: Final = 3
SHAPES: Final = (
    ("orders", "19", False, 512, 1, False, 2_266_000),
    ("orders", "11.2", True, 1024, 2, False, 9_999_000),
    ("orders", "23", False, 4096, 3, True, 0xFFFFFF00),
    ("bulk", "12.1", False, 512, 1, False, 6_108_387_148_033),
    ("wide", "12.2", True, 512, 2, True, 0xFFFFFF00),
)
"""SCNs get longer within a copy, as text and as numbers."""


def shape_of(
    workload: str,
    version: str,
    big_endian: bool,
    block_size: int,
    threads: int,
    _prefilled: bool,
    scn: int,
) -> DatabaseShape:
    shape = choose_shape(
        5,
        workload,
        version=COMPATIBLE[version],
        big_endian=big_endian,
        block_size=block_size,
        threads=threads,
    )
    return replace(shape, start_scn=scn, pace=replace(shape.pace, log_blocks=30_000 // block_size))


class Continued:
    """What the model writes that goes on, copy by copy, and the template of its first copy."""

    def __init__(self, case: tuple[Any, ...]) -> None:
        self.workload, *_, self.prefilled, _ = case
        self.shape = shape_of(*case)
        self.template = make_template(
            5, self.workload, self.shape, prefilled=self.prefilled, size=SIZE
        )
        self.logs = dict[str, bytes]()
        self.simulation = NamedSimulation(
            *(5, self.workload, self.shape, SIZE),
            lambda log, scn, time: self.logs.__setitem__(log.name, log.close(scn, time)),
            prefilled=self.prefilled,
            in_copies=True,
        )
        self.simulation.load_once()
        for copy in range(COPIES):
            self.simulation.begin_copy(copy, self.template.steps.seconds)
            self.simulation.work(SIZE)
            self.simulation.end_copy()

    def with_small_logs(self) -> Template:
        """The template for logs that each have one part, as the model's."""
        pace = replace(self.shape.pace, log_blocks=0)
        return replace(self.template, shape=replace(self.shape, pace=pace))


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape[0]}-{shape[1]}")
def continued(request: pytest.FixtureRequest) -> Continued:
    return Continued(request.param)


def test_nothing_differs_but_what_is_stamped(continued: Continued, tmp_path: Path) -> None:
    paths = write_logs(continued.with_small_logs(), COPIES, tmp_path)
    written = {path.name: path.read_bytes() for path in paths}
    assert written == continued.logs
    assert len(written) >= COPIES + 1


def test_truth_and_tables_are_stamped_with_the_redo(continued: Continued, tmp_path: Path) -> None:
    template, simulation = continued.template, continued.simulation
    size = COPIES * continued.shape.redo.block_size * sum(
        len(part.first_offsets) for parts in template.copied.parts for part in parts
    )  # fmt: skip
    (tmp_path / "logs").mkdir()
    made = copy_template(template, size, tmp_path, truth=True, logs=tmp_path / "logs")
    lines = [line.encode() for line in truth_lines(simulation.take_committed())]
    assert (tmp_path / "truth.jsonl").read_bytes().splitlines() == lines
    assert made.transactions == simulation.transactions
    assert made.changes == simulation.changes
    assert made.rows == {table.full_name: len(table.live) for table in simulation.tables}
    for table in simulation.tables:
        for folder, rows in (("tables", first_rows(table)), ("final", last_rows(table))):
            found = read_table(tmp_path / folder, table.full_name)
            assert found.to_pydict() == dict(
                zip(found.column_names, map(list, _values(table, rows)), strict=True)
            )


def _values(table: Any, rows: Any) -> list[list[Any]]:
    return [array.to_pylist() for array in row_arrays(table, rows)]


@given(st.integers(0, 3_000_000_000), st.integers(0, 10**8))
def test_later_times(since: int, seconds: int) -> None:
    when = datetime(1988, 1, 1, tzinfo=UTC) + timedelta(seconds=since)
    later = later_times(np.array([encode_redo_time(when)]), np.array([seconds]))
    assert later.tolist() == [encode_redo_time(when + timedelta(seconds=seconds))]


SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", "4"))
STAMPED_SIZE: Final = 60_000


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
    template = make_template(seed, workload, shape, prefilled=prefilled, size=STAMPED_SIZE)
    (folder / "logs").mkdir()
    return copy_template(template, copies * STAMPED_SIZE, folder, truth=True, logs=folder / "logs")


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
    template = make_template(1, "orders", shape, prefilled=False, size=STAMPED_SIZE)
    template = replace(template, shape=replace(shape, pace=replace(shape.pace, log_blocks=180)))
    (tmp_path / "logs").mkdir()
    made = copy_template(template, 4 * STAMPED_SIZE, tmp_path, truth=False, logs=tmp_path / "logs")
    used = [
        {v.fields[0][8:16] for r in log.records for v in r.vectors if v.opcode == "5.1"}
        for log in logs_of(made)
    ]
    assert 2 <= len(used) < len(template.copied.parts[0]) * 4
    assert any(own & following for own, following in itertools.pairwise(used))


def test_much_redo_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("olr_pg.simulator.stamping.redo_copies.TEMPLATE_BYTES", STAMPED_SIZE)
    monkeypatch.setattr("olr_pg.simulator.simulation.COPIED_FROM", 2 * STAMPED_SIZE)
    summary = simulate(3, tmp_path / "a", workload="orders", size=4 * STAMPED_SIZE)
    again = simulate(3, tmp_path / "b", workload="orders", size=4 * STAMPED_SIZE)
    assert abs(summary.log_bytes - 4 * STAMPED_SIZE) < STAMPED_SIZE
    for one, other in zip(summary.logs, again.logs, strict=True):
        assert one.read_bytes() == other.read_bytes()
    truth = (tmp_path / "a" / "truth.jsonl").read_bytes()
    assert truth == (tmp_path / "b" / "truth.jsonl").read_bytes()
    assert decoded(tmp_path / "a") == truth
    assert COPIED_FROM > 2 * STAMPED_SIZE


STEPS = Steps(
    first_scn=90, scn=7, seconds=1, blocks={72_000: 65}, slots={(3, 4): 2}, incarnations={},
    keys={}, indexes={},
)  # fmt: skip
DBA = (12 << 22) + 4_000


def lines(scn: int, sequence: int, dba: int, key: int) -> bytes:
    rowid = format_rowid(72_000, dba, 1)
    head = f'"scn":{scn},"commit_scn":{scn + 2},"xid":"3.4.{sequence}"'
    return (
        f'{{"op":"begin",{head}}}\n'
        f'{{"op":"insert",{head},"table":"A.T","rowid":"{rowid}","after":'
        f'{{"ID":{key},"N":5,"S":"\\"ID\\":10000000001"}}}}\n'
        f'{{"op":"commit",{head}}}\n'
    ).encode()


def test_numbers_get_longer_and_keys_do_not() -> None:
    text = TextCopies(
        lines(95, 99, DBA, 10_000_000_001), STEPS, {"T": {"ID": IDENTITY}}, {"T": 72_000}
    )
    for copy in (0, 1, 3, 500):
        expected = lines(
            95 + 7 * copy, 99 + 2 * copy, DBA + 65 * copy, 10_000_000_001 + 1_000_000 * copy
        )
        assert text.text(copy).tobytes() == expected


def test_blocks_in_rowids() -> None:
    rowid = np.frombuffer(format_rowid(1, DBA, 9).encode(), np.uint8).copy()
    put_rowid_blocks(rowid, np.array([9]), np.array([0x3FFFFF]))
    assert rowid.tobytes().decode() == format_rowid(1, (12 << 22) + 0x3FFFFF, 9)
