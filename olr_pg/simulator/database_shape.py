"""Chooses the database that a simulation models: by arguments, or at random from the seed.

`start_instance`, `start_containers` and `start_session` start the database: its instance with redo
threads, its containers, its sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.fields.redo_format import (
    BLOCK_SIZES,
    COMPATIBLE,
    DatabaseSession,
    RedoFormat,
    SourceMode,
)
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.placement import undo_segments
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.sessions.workload import DdlUse, LobUse
from olr_pg.simulator.writer.instance import Container, Instance, Pace
from olr_pg.simulator.writer.log_file import LogIdentity
from olr_pg.simulator.writer.transaction_writer import PrivateWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.simulator.model.storage import UndoSegment
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
    from olr_pg.simulator.writer.instance import LogSink, RedoThread

DEFAULT_SIZE: Final = 256 * 1024
"""Bytes of redo that are written if no size is given."""

MODES_SEED: Final = 0x30DE5
DRAWN_MODES: Final = {
    SourceMode.SHARED_UNDO: 0.2,
    SourceMode.DEPENDENT_LOADS: 0.3,
    SourceMode.ONE_RECORD: 0.15,
    SourceMode.FLAGLESS: 0.15,
    SourceMode.STUB_IMAGES: 0.5,
    SourceMode.PARALLEL_DML: 0.15,
}
"""Probability of each mode in a random database. Modes with changes that cannot be decoded are not
drawn.
"""

MEGABYTE: Final = 1_000_000
LOG_BYTES_MAX: Final = 64 * MEGABYTE


@dataclass(frozen=True, slots=True)
class DatabaseShape:
    """The properties of the database that is modelled.

    Attributes:
        con_id: 0 for a non-CDB, 3 for a PDB.
        threads: redo threads.
        neighbour: a second PDB works with the same object numbers and transaction ids.
        twins: both PDBs have a schema of the same name, and the truth contains the changes of both.
        logging: the supplemental logging levels that tables may have.
        sessions: concurrent sessions.
        lobs: how the random workload uses LOBs.
        ddl: the DDL statements of the random workload.
        unproven: some redo is in forms that Oracle is not known to write (docs/simulator.md).
        unlogged: some direct loads are NOLOGGING.
        rows: the shape of the rows of the workload `wide`.
        modes: ways of writing redo that most databases do not have.
        charset: NLS_CHARACTERSET of a database that executes SQL; others have AL32UTF8.
    """

    redo: RedoFormat
    con_id: int = 0
    threads: int = 1
    neighbour: bool = False
    logging: tuple[Logging, ...] = (Logging.ALL,)
    sessions: int = 4
    start_scn: int = 2_266_000
    pace: Pace = field(default_factory=Pace)
    lobs: LobUse = LobUse.WHOLE
    ddl: DdlUse = DdlUse.NONE
    unproven: bool = False
    unlogged: bool = False
    twins: bool = False
    rows: RowShape = field(default_factory=RowShape)
    modes: frozenset[SourceMode] = frozenset()
    charset: str = "AL32UTF8"

    @property
    def shares_undo(self) -> bool:
        """Return whether all PDBs use the undo of the root, as they always do in 12.1."""
        return self.con_id > 0 and (SourceMode.SHARED_UNDO in self.modes or not self.redo.long_scn)


def draw_shape(rng: Random) -> DatabaseShape:
    """Draw a random database."""
    version = rng.choice(sorted(COMPATIBLE.values()))
    redo = RedoFormat(version, rng.random() < 0.25, rng.choice((512, 512, *BLOCK_SIZES)))
    in_pdb = redo.has_container and rng.random() < 0.6
    leveled = (Logging.MINIMAL, Logging.PRIMARY_KEY, Logging.ALL, Logging.ALL)
    return DatabaseShape(
        redo,
        con_id=3 if in_pdb else 0,
        neighbour=in_pdb and rng.random() < 0.4,
        logging=(Logging.NONE,) if rng.random() < 0.05 else leveled,
        sessions=rng.randint(1, 6),
        start_scn=rng.choice((1_000_000, 8_992_197, 0xFFFFFF00, 6_108_387_148_033)),
        pace=Pace(
            lwn_bytes=rng.choice((2_000, 30_000)),
            log_blocks=rng.choice((40, 200, 1000)) * 512 // redo.block_size,
            flush_at_commit=rng.choice((0.3, 0.9)),
            new_scn=rng.choice((0.05, 0.5)),
            commit_new_scn=rng.choice((0.6, 1.0)),
            strands=rng.choice((1, 1, 3)),
        ),
        lobs=rng.choice(tuple(LobUse)),
        ddl=rng.choice((DdlUse.NONE, DdlUse.FOLLOWED)),
    )


def draw_modes(seed: int) -> frozenset[SourceMode]:
    """Draw the modes in which a random database writes its redo.

    Modes have their own random numbers, so that they do not change any other draw.
    """
    rng = Random(seed ^ MODES_SEED)  # noqa: S311 - reproducible, not secret
    return frozenset(mode for mode, chance in DRAWN_MODES.items() if rng.random() < chance)


def demo_shape(size: int = DEFAULT_SIZE) -> DatabaseShape:
    """Make the database of the named workloads: a 19c PDB with ALL-column logging.

    Args:
        size: bytes of redo to write. Each log contains a sixteenth of these bytes, but at least 1
            MB and at most 64 MB.
    """
    blocks = min(max(size // 16, MEGABYTE), LOG_BYTES_MAX) // 512
    return DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=blocks))


def choose_shape(
    seed: int,
    workload: str,
    *,
    version: int | None = None,
    big_endian: bool | None = None,
    block_size: int | None = None,
    threads: int | None = None,
    size: int = DEFAULT_SIZE,
    unlogged: bool = False,
    containers: int | None = None,
    modes: Iterable[SourceMode] | None = None,
    rows: RowShape | None = None,
) -> DatabaseShape:
    """Choose the database that `simulate` models; each argument replaces a default choice.

    Args:
        seed: the seed that `simulate` will get; it determines everything that no argument chooses.
        workload: one of `WORKLOADS`.
        version: a value of `COMPATIBLE`; databases before 12.1 have no containers.
        big_endian: byte order of the platform.
        block_size: one of `BLOCK_SIZES`. The block size does not change the size of a log in bytes.
        threads: redo threads, from 1.
        size: bytes of redo to write.
        unlogged: see `DatabaseShape`.
        containers: 1 for one PDB; 2 for two PDBs with the same schema, object numbers and
            transaction ids. The truth contains the changes of both. With 2, there is no DDL, and
            all tables have supplemental logging of ALL columns.
        modes: see `DatabaseShape`; None to draw them, for the random workload only.
        rows: the shape of the rows of the workload `wide`; None for the default.
    """
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    drawn = draw_shape(rng) if workload == "random" else demo_shape(size)
    own = drawn.redo
    drawn_version = own.version if own.has_container or not containers else COMPATIBLE["19"]
    redo = RedoFormat(
        drawn_version if version is None else version,
        own.big_endian if big_endian is None else big_endian,
        block_size or own.block_size,
    )
    if containers:
        drawn = replace(drawn, con_id=3, neighbour=containers > 1, twins=containers > 1)
    if containers == 2:
        drawn = replace(drawn, ddl=DdlUse.NONE, lobs=LobUse.WHOLE, logging=(Logging.ALL,))
    if modes is None:
        asked = draw_modes(seed) if workload == "random" else frozenset[SourceMode]()
    else:
        asked = frozenset(modes)
    blocks = drawn.pace.log_blocks * own.block_size // redo.block_size
    return replace(
        drawn,
        redo=redo,
        con_id=drawn.con_id if redo.has_container else 0,
        threads=threads or drawn.threads,
        neighbour=drawn.neighbour and redo.has_container,
        pace=replace(drawn.pace, log_blocks=blocks),
        unlogged=unlogged,
        rows=rows or drawn.rows,
        modes=asked - (frozenset() if redo.is_23 else {SourceMode.STUB_IMAGES}),
    )


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
