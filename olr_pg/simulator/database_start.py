"""Starts a simulated database: its instance with redo threads, its containers, its sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.fields.vector_fields import DatabaseSession
from olr_pg.simulator.sessions.placement import undo_segments
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.writer.instance import Container, Instance
from olr_pg.simulator.writer.log_file import LogIdentity
from olr_pg.simulator.writer.private_writer import PrivateWriter

if TYPE_CHECKING:
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.storage import UndoSegment
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
    from olr_pg.simulator.writer.instance import LogSink, RedoThread

START: Final = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
ROOT_UNDO_FILE: Final = 4
"""The file of the root's undo tablespace, which PDBs without their own undo share."""


def database_identity(seed: int) -> LogIdentity:
    """Return the identity of the database that belongs to a seed."""
    rng = Random(seed ^ 0x5EED)  # noqa: S311 - reproducible, not secret
    return LogIdentity(
        dbid=rng.randrange(1, 1 << 31),
        name="SIMDB",
        activation=rng.randrange(1, 1 << 31),
        resetlogs=encode_redo_time(datetime(2025, 12, 1, 8, 0, tzinfo=UTC)),
        resetlogs_scn=1,
    )


def start_instance(seed: int, rng: Random, shape: DatabaseShape, archive: LogSink) -> Instance:
    """Start an instance with its redo threads.

    Args:
        rng: draws the start time; the instance then uses it for all its choices.
        archive: receives each log that ends.
    """
    instance = Instance(
        *(shape.redo, rng, archive),
        identity=database_identity(seed),
        start_scn=shape.start_scn,
        start=START + timedelta(seconds=rng.randrange(10**6)),
        zone=timedelta(hours=rng.choice((0, -4, 1))),
        pace=shape.pace,
        unproven=shape.unproven,
        modes=shape.modes,
    )
    for number in range(1, shape.threads + 1):
        instance.start_thread(number, 15 + 3 * number)
    return instance


def start_containers(instance: Instance, shape: DatabaseShape) -> list[Container]:
    """Make the containers that sessions work in, with undo segments for each thread.

    If PDBs share the undo of the root, all of them have the same undo segments.
    """
    dbid = instance.identity.dbid
    if shape.con_id == 0:
        files = {5: Container(0, None, dbid)}
    else:
        files = {9: Container(shape.con_id, "SIMPDB", dbid ^ 0x1234567)}
        if shape.neighbour:
            files[14] = Container(shape.con_id + 1, "OTHERPDB", dbid ^ 0x7654321)
    if shape.shares_undo:
        shared = _segments(instance, ROOT_UNDO_FILE, shape.start_scn)
        for container in files.values():
            container.segments, container.shares_undo = shared, True
        return list(files.values())
    for file, container in files.items():
        container.segments = _segments(instance, file, shape.start_scn)
    return list(files.values())


def _segments(instance: Instance, file: int, scn: int) -> dict[int, list[UndoSegment]]:
    """Make the undo segments of every thread in one file."""
    return {one.number: undo_segments(one.number, file, scn) for one in instance.threads}


def start_session(
    instance: Instance,
    container: Container,
    thread: RedoThread,
    number: int,
    dictionary: SysDictionary | None = None,
) -> SimSession:
    """Connect a session; `number` counts from 0."""
    who = DatabaseSession(40 + number, 1000 + 7 * number, "SIM", 136)
    writer = PrivateWriter(instance, container, thread, who)
    return SimSession(instance, container, thread, who, dictionary=dictionary, writer=writer)
