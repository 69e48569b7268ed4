from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from olr_pg.simulator.database_shape import (
    choose_shape,
    database_identity,
    demo_shape,
    draw_shape,
    start_containers,
    start_instance,
    start_session,
)
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


def test_a_seed_is_a_database() -> None:
    assert database_identity(4) == database_identity(4)
    assert database_identity(4).dbid != database_identity(5).dbid


def test_each_container_has_undo_segments_for_each_thread() -> None:
    shape = replace(demo_shape(), threads=2, neighbour=True)
    instance = start_instance(1, Random(1), shape, lambda *_: None)
    assert [thread.number for thread in instance.threads] == [1, 2]
    containers = start_containers(instance, shape)
    assert [one.name for one in containers] == ["SIMPDB", "OTHERPDB"]
    for container in containers:
        numbers = [segment.usn for segment in container.every_segment()]
        assert len(set(numbers)) == len(numbers) == 2 * len(container.segments[1])
        assert len({segment.header.afn for segment in container.every_segment()}) == 1
    (alone,) = start_containers(instance, replace(shape, con_id=0))
    assert alone.name is None
    assert alone.dbid == instance.identity.dbid


def test_sessions_are_told_apart() -> None:
    shape = demo_shape()
    instance = start_instance(1, Random(1), shape, lambda *_: None)
    (container,) = start_containers(instance, shape)
    made = [start_session(instance, container, instance.threads[0], n) for n in range(3)]
    assert len({one.attributes.number for one in made}) == 3
    assert all(one.transaction is None for one in made)
