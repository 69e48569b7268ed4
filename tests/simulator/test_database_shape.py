from __future__ import annotations

from random import Random

import pytest

from olr_pg.simulator.database_shape import choose_shape, demo_shape, draw_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE


def test_a_seed_always_draws_the_same_database_and_others_others() -> None:
    drawn = [draw_shape(Random(seed)) for seed in range(40)]
    assert drawn == [draw_shape(Random(seed)) for seed in range(40)]
    assert len({shape.redo.version for shape in drawn}) == len(COMPATIBLE)
    assert {shape.redo.big_endian for shape in drawn} == {False, True}


def test_what_is_given_takes_the_place_of_what_is_drawn() -> None:
    drawn = choose_shape(5, "random")
    shape = choose_shape(
        5, "random", version=COMPATIBLE["11.2"], big_endian=True, block_size=4096, threads=2
    )
    assert (shape.redo.version, shape.redo.big_endian, shape.redo.block_size) == (
        COMPATIBLE["11.2"], True, 4096,
    )  # fmt: skip
    assert (shape.threads, shape.con_id, shape.neighbour) == (2, 0, False)
    assert (shape.sessions, shape.start_scn) == (drawn.sessions, drawn.start_scn)
    assert shape.pace.log_blocks == drawn.pace.log_blocks * drawn.redo.block_size // 4096


@pytest.mark.parametrize(
    ("size", "log_bytes"), [(1, 1_000_000), (160_000_000, 10_000_000), (10**10, 64_000_000)]
)
def test_logs_of_the_named_workloads_grow_with_the_redo(size: int, log_bytes: int) -> None:
    shape = demo_shape(size)
    assert shape.pace.log_blocks == log_bytes // 512
    assert choose_shape(1, "orders", size=size) == shape
