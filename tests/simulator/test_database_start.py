"""A database as it starts: what a seed decides, and what each container and thread has."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.database_start import (
    database_identity,
    start_containers,
    start_instance,
    start_session,
)


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
