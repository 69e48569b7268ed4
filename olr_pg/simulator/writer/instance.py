"""The instance: SCN and clock, redo threads, containers, and records until they are in a log.

The module also defines the fields of space-management vectors (layers 13, 14 and 22) and of the
markers that accompany them. Sizes, block classes and types are those of the real 23ai logs. The
meaning of the numbers in the fields is mostly unknown (redo-format §12), so they are random, or
zero as in real redo.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.model import Database
from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.fields.redo_format import (
    MARKER,
    TYP_ENCRYPTED,
    TYP_NEW,
    TYP_NORMAL,
    RedoFormat,
    SourceMode,
    VectorBlock,
    change_vector,
)
from olr_pg.simulator.model.storage import CLASS_DATA, FIRST_UNDO_CLASS, UndoSegment
from olr_pg.simulator.writer.log_file import (
    RECORD_HEADER_SIZE,
    VLD_VALID,
    LogIdentity,
    LwnGroup,
    OpenLog,
    RedoRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.model.transactions import Transaction

    LogSink = Callable[[OpenLog, int, int], None]

ROOT: Final = 1
"""CON_ID of the root of a CDB."""

UNDO_LAYER: Final = 5
CHANGE_LAYERS: Final = frozenset({10, 11, 19, 26})
"""Layers of the vectors that change rows and LOBs."""

FIRST_DDL_OBJECT: Final = 90_000
SEQ_LIMIT: Final = 250
"""If a block's change sequence, which is one byte, reaches this, the next record gets a new SCN."""


@dataclass(frozen=True, slots=True)
class UnloggedRange:
    """Blocks that a direct load has written without redo.

    Attributes:
        table: ``OWNER.NAME``.
        dba, blocks: the first block, and the number of blocks.
        scn: SCN of the record with the 19.2.
        is_named: the record names the transaction.
        end_scn: SCN of the COMMIT; 0 if the load was rolled back.
    """

    table: str
    dataobj: int
    dba: int
    blocks: int
    scn: int
    is_named: bool
    con_id: int
    end_scn: int = 0

    @property
    def stop_scn(self) -> int | None:
        """The SCN at which replication of the table must stop; None if no rows were lost.

        If the record does not name the transaction, a decoder cannot know whether the transaction
        committed, so replication must stop at the SCN of the record.
        """
        if not self.is_named:
            return self.scn
        return self.end_scn or None


@dataclass(frozen=True, slots=True)
class UndecodedVector:
    """A vector that changes rows or LOBs of a table, and that cannot be decoded.

    Attributes:
        reason: why the vector cannot be decoded, for example ``encrypted``.
        scn: SCN of its record.
        of: the transaction; None if the record does not name it.
    """

    table: SimTable
    dataobj: int
    opcode: tuple[int, int]
    reason: str
    scn: int
    con_id: int
    of: Transaction | None = None

    @property
    def stop_scn(self) -> int | None:
        """The SCN at which replication of the table must stop; None if no change was lost."""
        if self.of is None:
            return self.scn
        return None if self.of.active or self.of.rolled_back else self.of.commit_scn


@dataclass(slots=True)
class Container:
    """A container of the database: its undo segments by thread, its tables.

    Attributes:
        con_id: 0 in a non-CDB, 1 for the root, from 3 for PDBs.
        shares_undo: its undo segments are those of the root, which all PDBs share.
        dbid: DBID of the container, as in 5.2 and in record headers.
        recycle_bin: the dropped tables that are not purged.
        lob_number: number in the newest LOB id.
        newest_object: the highest OBJ# or DATAOBJ# that was taken.
    """

    con_id: int
    name: str | None
    dbid: int
    segments: dict[int, list[UndoSegment]] = field(default_factory=dict)
    tables: list[SimTable] = field(default_factory=list)
    recycle_bin: list[SimTable] = field(default_factory=list)
    lob_number: int = 0x106000
    newest_object: int = FIRST_DDL_OBJECT
    shares_undo: bool = False

    def take_lob_number(self) -> int:
        """Take the number for a new LOB id; ids are consecutive (values-and-lobs §26)."""
        self.lob_number += 1
        return self.lob_number

    def take_object(self) -> int:
        """Take a number for a new object or segment."""
        self.newest_object += 1
        return self.newest_object

    def every_segment(self) -> list[UndoSegment]:
        """Return the undo segments of all threads."""
        return [one for own in self.segments.values() for one in own]

    def is_locked(self, table: SimTable, objects: frozenset[int] | None = None) -> bool:
        """Return whether an open transaction has changed the table, or one of these `objects`."""
        locked = table.objects if objects is None else objects
        slots = (slot for one in self.every_segment() for slot in one.slots)
        return any(
            slot.holder is not None
            and slot.holder.con_id == self.con_id
            and not locked.isdisjoint(slot.holder.objects)
            for slot in slots
        )

    def is_encrypted(self, dataobj: int) -> bool:
        """Return whether a segment is in an encrypted tablespace."""
        return any(table.encrypted and table.owns(dataobj) for table in self.tables)

    @property
    def undo_con_id(self) -> int:
        """The container id in vectors of undo blocks and undo headers."""
        return ROOT if self.shares_undo else self.con_id

    @property
    def uid(self) -> int:
        """CON_UID in record headers."""
        return 0 if self.con_id == 0 else 1 if self.con_id == 1 else self.dbid


@dataclass(frozen=True, slots=True)
class Pace:
    """How the log writer groups records.

    Attributes:
        lwn_bytes: bytes of pending redo that cause a flush without a commit.
        log_blocks: number of blocks after which the log is switched.
        flush_at_commit: probability that a commit is flushed immediately.
        new_scn: probability that a record takes a new SCN.
        commit_new_scn: probability that a commit record takes a new SCN.
        strands: number of public redo strands; a flush writes all records of a strand before those
            of the next strand.
    """

    lwn_bytes: int = 30_000
    log_blocks: int = 2_000
    flush_at_commit: float = 0.8
    new_scn: float = 0.3
    commit_new_scn: float = 0.9
    strands: int = 1


class RedoThread:
    """A redo thread: its current log, and the records that are not flushed yet."""

    def __init__(self, instance: Instance, identity: LogIdentity, sequence: int) -> None:
        self.number = identity.thread
        self.sequence = sequence
        self.log: OpenLog
        self._instance = instance
        self._identity = identity
        self._pending = list[RedoRecord]()
        self._pending_bytes = 0
        self._scn = 0
        self._subscn = 0
        self.log = self._open(instance.scn)

    def _open(self, first_scn: int) -> OpenLog:
        instance = self._instance
        return OpenLog(instance.redo, self._identity, self.sequence, first_scn, instance.redo_time)

    def append(self, scn: int, body: bytes, *, vld: int, con_uid: int, more: bool = False) -> None:
        """Add a record; flush if enough redo is pending, unless `more` of this SCN follow."""
        if scn != self._scn:
            self._scn, self._subscn = scn, 0
        if self._subscn == 0 or not self._instance.redo.is_23:
            self._subscn += 1
        self._pending.append(RedoRecord(scn, self._subscn, body, vld, con_uid))
        self._pending_bytes += len(body)
        self._instance.redo_bytes += len(body) + RECORD_HEADER_SIZE
        full = self._pending_bytes >= self._instance.pace.lwn_bytes or self._subscn >= 0xFFF0
        if full and not more:
            self.flush()

    def flush(self) -> None:
        """Write the pending records as one LWN."""
        if not self._pending:
            return
        instance = self._instance
        records = tuple(self._pending)
        group = LwnGroup(records, records[0].scn, instance.redo_time, instance.scn + 1)
        self.log.write(group, instance.pace.strands)
        self._pending.clear()
        self._pending_bytes = 0
        # Records after an LWN have a higher SCN, as after all 526 LWNs of the real logs of 23ai.
        instance.advance_scn()
        instance.advance_clock()
        if self.log.blocks >= instance.pace.log_blocks:
            self.switch()

    def switch(self) -> None:
        """End the log, archive it, and open a log with the next sequence."""
        self.flush()
        self.close()
        self.sequence += 1
        self.log = self._open(self._instance.scn)

    def close(self) -> None:
        """Flush and archive the current log."""
        instance = self._instance
        self.flush()
        next_scn = instance.advance_scn()
        instance.archive(self.log, next_scn, instance.redo_time)

    def begin_incarnation(self, identity: LogIdentity) -> None:
        """Open the first log of an incarnation; the previous log must already be archived."""
        self._identity, self.sequence = identity, 1
        self.log = self._open(self._instance.scn)


class RecordWriter:
    """Collects the vectors of one redo record, whose SCN is already decided.

    Attributes:
        of: the transaction, if an unencrypted vector of the record names it.
    """

    def __init__(self, instance: Instance, thread: RedoThread, container: Container) -> None:
        self.scn = instance.scn
        self._instance = instance
        self._thread = thread
        self._container = container
        self._parts = list[bytes]()
        self.of: Transaction | None = None

    def name_transaction(self, transaction: Transaction) -> None:
        """Add the 24.6 that names the transaction of a direct load."""
        self.of = transaction
        self.vector((24, 6), [bytes(8) + transaction.xid_bytes])

    def vector(
        self,
        opcode: tuple[int, int],
        fields: Sequence[bytes],
        block: VectorBlock = MARKER,
        *,
        undo_of: int = 0,
    ) -> None:
        """Add a change vector.

        Args:
            undo_of: the data object whose rows or entries an undo vector contains, 0 for none.
        """
        instance, container = self._instance, self._container
        if block.seq >= SEQ_LIMIT:
            instance.scn_due = True
        if SourceMode.ENCRYPTED in instance.modes:
            dataobj = undo_of or (block.obj if block.cls == CLASS_DATA else 0)
            if container.is_encrypted(dataobj):
                fields = [instance.mode_rng.randbytes(len(data)) for data in fields]
                block = replace(block, typ=block.typ | TYP_ENCRYPTED)
                self.note_undecoded(opcode, block.obj, SourceMode.ENCRYPTED)
        is_undo = opcode[0] == UNDO_LAYER and block.cls >= FIRST_UNDO_CLASS
        self._parts.append(
            change_vector(
                instance.redo,
                opcode,
                block,
                fields,
                con_id=container.undo_con_id if is_undo else container.con_id,
                fill=len(self._parts) * 37 & 0xFF,
            )
        )

    def note_undecoded(self, opcode: tuple[int, int], dataobj: int, reason: str) -> None:
        """Record a vector that cannot be decoded, if it changes rows or LOBs of a table."""
        for table in self._container.tables:
            if opcode[0] in CHANGE_LAYERS and table.holds(dataobj):
                own = self.scn, self._container.con_id, self.of
                self._instance.undecoded.append(
                    UndecodedVector(table, dataobj, opcode, str(reason), *own)
                )

    def emit(self, vld: int = VLD_VALID, *, more: bool = False) -> None:
        """Add the record to the thread; `more` if further records of this SCN follow."""
        con_uid = self._container.uid if self._instance.redo.has_container else 0
        body = b"".join(self._parts)
        self._thread.append(self.scn, body, vld=vld, con_uid=con_uid, more=more)


class Instance:
    """An instance: the state that all its sessions share.

    Args:
        redo: version, byte order, block size.
        rng: the source of random numbers.
        archive: called with each log that ends, its next SCN and the time.
        identity: the identity of the database; each thread has its own thread number.
        start_scn: SCN of the first log.
        start: UTC time of the first log.
        zone: offset of the host's clock from UTC.
        unproven: also write forms that decoding accepts although Oracle is not known to write them.
        modes: unusual ways of writing redo.

    Attributes:
        clock: the current time in UTC.
        mode_rng: the source of random numbers for choices of `modes`.
        undecoded: vectors that cannot be decoded.
    """

    def __init__(
        self,
        redo: RedoFormat,
        rng: Random,
        archive: LogSink,
        *,
        identity: LogIdentity,
        start_scn: int,
        start: datetime,
        zone: timedelta,
        pace: Pace | None = None,
        unproven: bool = False,
        modes: frozenset[SourceMode] = frozenset(),
    ) -> None:
        self.redo = redo
        self.rng = rng
        self.archive = archive
        self.identity = identity
        self.scn = start_scn
        self.pace = pace or Pace()
        self.unproven = unproven
        self.modes = modes
        self.mode_rng = Random(identity.dbid)  # noqa: S311 - reproducible, not secret
        self.undecoded: list[UndecodedVector] = []
        self.scn_due = False
        self.redo_bytes = 0
        self._last_thread = 0
        self.clock = start
        self.zone = timezone(zone)
        self.threads = list[RedoThread]()
        self.committed: list[Transaction] = []
        self.parallel_ends: list[tuple[int, int]] = []
        self.unlogged: list[UnloggedRange] = []
        self.unrecoverable: dict[int, tuple[int, int]] = {}

    def start_thread(self, number: int, sequence: int) -> RedoThread:
        """Open a redo thread at the current SCN."""
        thread = RedoThread(self, replace(self.identity, thread=number), sequence)
        self.threads.append(thread)
        return thread

    def chooses(self, mode: SourceMode, chance: float) -> bool:
        """Draw whether to write a form of a mode; always False if the mode is off."""
        return mode in self.modes and self.mode_rng.random() < chance

    def note_unrecoverable(self, afn: int, scn: int) -> None:
        """Record in the control file that data file `afn` has changes without redo at `scn`."""
        self.unrecoverable[afn] = scn, self.unix_time

    def open_resetlogs(self, resetlogs: int, activation: int) -> None:
        """End every thread's log, and begin a new incarnation with a first log for each thread."""
        for thread in self.threads:
            thread.close()
        self.identity = replace(
            self.identity,
            resetlogs=resetlogs,
            resetlogs_scn=self.advance_scn(),
            activation=activation,
        )
        for thread in self.threads:
            thread.begin_incarnation(replace(self.identity, thread=thread.number))

    def forget_last_thread(self) -> None:
        """Make the next record, of any thread, take a new SCN."""
        self._last_thread = 0

    def describe(self, container: Container) -> Database:
        """Return the database facts for the dictionary of a container."""
        own = self.identity
        return Database(
            own.name,
            con_id=container.con_id,
            con_name=container.name,
            dbid=container.dbid,
            resetlogs=(own.resetlogs,),
            activation=own.activation,
            big_endian=self.redo.big_endian,
        )

    @property
    def redo_time(self) -> int:
        """The local time of the host, as a redo time."""
        return encode_redo_time(self.clock.astimezone(self.zone))

    @property
    def unix_time(self) -> int:
        """The time in seconds since 1970, UTC."""
        return int(self.clock.timestamp())

    def advance_clock(self) -> None:
        """Advance the clock by a random time."""
        self.clock += timedelta(milliseconds=self.rng.randrange(1500))

    def advance_scn(self) -> int:
        """Take a new SCN."""
        self.scn += 1
        self.scn_due = False
        return self.scn

    def record(
        self, thread: RedoThread, container: Container, *, commit: bool = False
    ) -> RecordWriter:
        """Begin a new record; `Pace` decides how often it takes a new SCN."""
        chance = self.pace.commit_new_scn if commit else self.pace.new_scn
        # When another thread writes, the SCN changes, because instances exchange blocks only then.
        moved = thread.number != self._last_thread
        if moved or self.scn_due or self.rng.random() < chance:
            self.advance_scn()
        self._last_thread = thread.number
        return RecordWriter(self, thread, container)

    def shut_down(self) -> None:
        """Archive every thread's current log."""
        for thread in self.threads:
            thread.close()


CLASS_SEGMENT_HEADER: Final = 4
CLASS_BITMAP_1: Final = 8
CLASS_BITMAP_2: Final = 9
CLASS_FILE_BITMAP: Final = 11
CLASS_FILE_HEADER: Final = 12
CLASS_FILE_MAP: Final = 13
"""Block classes (redo-format §3.1)."""

SPACE_DBA: Final = 0x4C80
"""The first bitmap block of the file that grows."""

BLOCKS_PER_MAP: Final = 64224


class SpaceKind(NamedTuple):
    """A kind of vector: opcode, class and type of its block, sizes of its fields."""

    opcode: tuple[int, int]
    cls: int
    sizes: tuple[int, ...]
    typ: int = TYP_NORMAL

    def fields(self, rng: Random) -> list[bytes]:
        """Return fields of the given sizes with small numbers and zeros, like most real fields."""
        return [bytes(rng.choice((0, 0, 0, 1, 8)) for _ in range(size)) for size in self.sizes]


FILE_MAPS: Final = (
    SpaceKind((13, 59), CLASS_FILE_BITMAP, (140, 4), TYP_NEW),
    SpaceKind((13, 61), CLASS_BITMAP_1, (28,), TYP_NEW),
    SpaceKind((13, 63), CLASS_BITMAP_2, (28,), TYP_NEW),
    SpaceKind((22, 15), CLASS_FILE_BITMAP, (84,), TYP_NEW),
)
"""Bitmap blocks of a growing file; each is in a separate record and LWN."""

FILE_MAP_HEAD: Final = SpaceKind((13, 57), CLASS_SEGMENT_HEADER, (76, 84), TYP_NEW)
FILE_MAP_ENTRY: Final = SpaceKind((13, 60), CLASS_FILE_BITMAP, (20,))
FILE_MAP_FREED: Final = SpaceKind((13, 60), CLASS_FILE_BITMAP, (12,))
FILE_BITMAP_1: Final = SpaceKind((13, 62), CLASS_BITMAP_1, (32,))
FILE_BITMAP_2: Final = SpaceKind((13, 64), CLASS_BITMAP_2, (32,))
FILE_MAP_USED: Final = SpaceKind((22, 16), CLASS_FILE_BITMAP, (16,))

EXTENT_TAKEN: Final = SpaceKind((22, 2), CLASS_FILE_MAP, (12,))
EXTENT_RELOGGED: Final = SpaceKind((22, 2), CLASS_FILE_MAP, (2,))
FILE_HEADER: Final = SpaceKind((22, 5), CLASS_FILE_HEADER, (12,))
UNDO_EXTENT: Final = SpaceKind((22, 13), CLASS_FILE_BITMAP, (20, 8))

SEGMENT_HEADER: Final = SpaceKind((13, 17), CLASS_SEGMENT_HEADER, (68, 16, 4, 4), TYP_NEW)
SEGMENT_BITMAP_2: Final = SpaceKind((13, 19), CLASS_BITMAP_2, (16, 4, 4, 4), TYP_NEW)
SEGMENT_BITMAP_1: Final = SpaceKind((13, 18), CLASS_BITMAP_1, (56, 4, 4, 4, 8, 4), TYP_NEW)
HIGH_WATER_MARK: Final = SpaceKind((13, 28), CLASS_SEGMENT_HEADER, (80,))
BITMAP_1_EXTENDED: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (36,))
BITMAP_1_FORMATTED: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (16, 8))
BITMAP_1_FULLNESS: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (40,))
BITMAP_2_UPDATED: Final = SpaceKind((13, 24), CLASS_BITMAP_2, (16, 12))
BLOCK_FORMATTED: Final = SpaceKind((13, 21), CLASS_DATA, (20, 16), TYP_NEW)
LEAF_FORMATTED: Final = SpaceKind((10, 31), CLASS_DATA, (48, 4, 38, 9))
FREE_LIST_HEAD: Final = SpaceKind((13, 7), CLASS_SEGMENT_HEADER, (32,))
FREE_LIST_LINK: Final = SpaceKind((13, 6), CLASS_DATA, (12,))
FREE_LIST_UNLINK: Final = SpaceKind((13, 6), CLASS_DATA, (12, 16))
EXTENTS_LOCKED: Final = SpaceKind((14, 2), CLASS_SEGMENT_HEADER, (8,))
EXTENTS_FREED: Final = SpaceKind((14, 1), CLASS_SEGMENT_HEADER, ())

OPC_UNDO_EXTENT: Final = (22, 14)
OPC_FREE_LIST: Final = (13, 9)
OPC_EXTENT: Final = (22, 3)
"""Opcodes in the undo of 22.13, of 13.6 with 13.7, and of 22.2."""

COMMIT_NOTE: Final = (17, 28)
SESSION_MARKER: Final = (24, 10)


def commit_note_fields(redo: RedoFormat, value: int) -> list[bytes]:
    """Encode the fields of the 17.28 that may be between 5.4 and 24.4."""
    return [redo.pack("IHH", value, 2, 0), b""]


def session_marker_fields(redo: RedoFormat, session: int, audit: int) -> list[bytes]:
    """Encode the fields of a 24.10."""
    return [
        redo.pack("H", 1),
        redo.pack("I", session),
        redo.pack("H", session & 0xFFFF),
        redo.pack("Q", audit),
    ]


def file_map_fields(redo: RedoFormat, kind: SpaceKind) -> list[bytes]:
    """Encode the fields of a new bitmap block of a file, in which all space is unused."""
    if kind.opcode == (13, 59):
        head = b"\xff" * 4 + bytes(8) + redo.pack("II", BLOCKS_PER_MAP, 8)
        return [head + bytes(kind.sizes[0] - len(head)), bytes(4)]
    if kind.opcode[0] == 13:
        return [redo.pack("III", 0, 0xFFFFFFFF, 1) + bytes(kind.sizes[0] - 12)]
    return [bytes(kind.sizes[0])]


def written_block(redo: RedoFormat, afn: int, dba: int, scn: int, seq: int) -> bytes:
    """Encode an entry of 23.1: a block that the database writer has written (redo-format §12)."""
    return redo.pack("IIIHBBI", afn, dba, scn & 0xFFFFFFFF, scn >> 32 & 0xFFFF, seq, 4, 0)
