"""Copies of redo are what the model writes itself when it goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE
from olr_pg.simulator.named_simulation import NamedSimulation
from olr_pg.simulator.simulated_files import first_rows, last_rows
from olr_pg.simulator.stamping.redo_copies import copy_template, later_times, write_logs
from olr_pg.simulator.stamping.template import make_template
from olr_pg.simulator.table_files import read_table, row_arrays
from olr_pg.simulator.truth import truth_lines

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.stamping.template import Template

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
