"""Writes redo without rows of tables, which a decoder must skip ("noise").

The mix of vectors, alone in their records or with vectors of transactions, follows the real 23ai
logs (redo-format §10.2, §10.3): block cleanouts, lists of written blocks in void records that begin
LWNs, growth of files and segments, recursive transactions of SYS. Each database has its own mix and
its own amount of noise, from almost none to almost only noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import (
    KDILK_KEY_DATA,
    NO_OBJECT,
    OPC_INDEX,
    TYP_DELAYED,
    DatabaseSession,
    block_cleanout,
    index_row,
    kdilk,
)
from olr_pg.simulator.model.storage import CLASS_DATA, BlockState, TransactionalBlock
from olr_pg.simulator.writer import instance as space
from olr_pg.simulator.writer.instance import Container
from olr_pg.simulator.writer.log_file import VLD_VOID
from olr_pg.simulator.writer.transaction_writer import BlockChange, TransactionWriter, nothing

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from olr_pg.simulator.writer.instance import Instance, RecordWriter, RedoThread, SpaceKind

SPACE_FILE: Final = 22
"""The data file that grows."""

ROOT: Final = 1
ACTS: Final = {
    "clean_out": 20.0,
    "extend_file": 16.0,
    "use_file_map": 1.0,
    "create_segment": 1.0,
    "extend_segment": 2.0,
    "drop_segment": 1.0,
    "change_free_list": 1.0,
    "write_blocks": 1.0,
    "work_recursively": 4.0,
    "mark_session": 0.3,
}
"""Kinds of noise with their approximate frequency in the real logs; each database multiplies them
by its own factors.
"""

OWN_FACTORS: Final = (0.0, 0.5, 1.0, 1.0, 4.0)
SHARES: Final = (0.02, 0.06, 0.06, 0.06, 0.3, 0.9)
"""Probability that noise follows an action of a session; a database uses one of these."""

MAPS_IN_A_ROW: Final = (1, 4, 24)
MAPS_BYTES: Final = 12_288
"""Bitmap blocks that are added to a file at a time (128 in real logs), and the maximum bytes of
their LWNs.
"""

BLOCKS_OF_A_LIST: Final = (1, 1, 2, 37, 306)
"""Numbers of entries of a 23.1: mostly 1 in real logs, at most 306."""

SEGMENT_FILE: Final = 24
FIRST_SEGMENT_OBJECT: Final = 95_000
SEGMENTS_MAX: Final = 50
SEGMENT_STRIDE: Final = 64
UNDO_MAP: Final = 0x83
SYSTEM_FILE: Final = 1
KEY_INDEX: Final = 9
KEY_LEAF: Final = 0x5772
"""The index I_FILE#_BLOCK#, in which real recursive transactions change data after keys (10.18),
and one of its leaves.
"""


class SpaceWriter(TransactionWriter):
    """The recursive transactions of SYS in one thread of a container."""

    def work(self, change: Callable[[SpaceWriter], None] | None) -> None:
        """Write a committed transaction; `change` writes its changes."""
        if self.begin_empty():
            if change is not None:
                change(self)
            self.commit()

    def change_key_data(self, block: TransactionalBlock) -> None:
        """Write a transaction with 5.1 10.18, which changes data after a key of a SYS index."""
        if not self.ready():
            return

        def fields(itli: int) -> tuple[list[bytes], list[bytes]]:
            key = bytes((2, 0xC1, 2, 2, 0xC1, self.rng.randint(2, 99)))
            undo = kdilk(self.redo, KDILK_KEY_DATA, itli, block.dba - 1, block.dba)
            return [undo, key * 2], [index_row(self.redo, itli, 0xA4, 0x18)]

        record = self.record()
        self.write(
            record,
            BlockChange(block, KEY_INDEX, KEY_INDEX, 0, OPC_INDEX, (10, 18), None, fields, nothing),
        )
        record.emit()
        self.commit()

    def take_undo_extent(self, block: TransactionalBlock) -> None:
        """Write 5.2 5.1 22.13, a change of the undo tablespace's map; this 5.2 begins no
        transaction.
        """
        payload = [bytes(8), bytes(20)]
        self._change_space([(block, NO_OBJECT, space.UNDO_EXTENT)], space.OPC_UNDO_EXTENT, payload)

    def unlink_block(self, block: TransactionalBlock, head: TransactionalBlock, obj: int) -> None:
        """Write 5.1 13.6 13.7, which removes a block from the free list of a segment."""
        changed = [(block, obj, space.FREE_LIST_UNLINK), (head, obj, space.FREE_LIST_HEAD)]
        self._change_space(changed, space.OPC_FREE_LIST, [bytes(52), bytes(16)])

    def _change_space(
        self,
        changed: list[tuple[TransactionalBlock, int, SpaceKind]],
        opc: tuple[int, int],
        payload: list[bytes],
    ) -> None:
        transaction = self.current
        record = self.record()
        block, obj, kind = changed[0]
        change = BlockChange(
            *(block, 1 if obj == NO_OBJECT else obj, obj, 1, opc, kind.opcode, None),
            *(lambda _: ([], []), nothing),
        )
        headed = opc == space.OPC_UNDO_EXTENT
        entry, _ = self._write_undo(record, change, payload, with_header=headed)
        transaction.undo.append(entry)
        for other, dataobj, one in changed:
            put(record, one, other, dataobj, one.fields(self.rng))
        record.emit()

    def relog_extent(self, block: BlockState) -> None:
        """Write 5.24 22.2, which logs undo of a file's map again (redo-format §4.7)."""
        transaction, redo = self.current, self.redo
        assert transaction.undo_block is not None
        record = self.record()
        undo = transaction.undo_block
        head = redo.pack("HHHH", 104, 0, 2, 0) + transaction.xid_bytes
        head += redo.pack("HBB", undo.incarnation, undo.count, 0)
        ktub = redo.pack("IIII", 1, NO_OBJECT, 6, 0) + bytes(space.OPC_EXTENT) + bytes(10)
        where = undo.change(record.scn, cls=transaction.segment.block_class, obj=NO_OBJECT)
        record.vector((5, 24), [head, ktub, redo.pack("IIIII", 2, block.dba, 3, 8, 8)], where)
        kind = space.EXTENT_RELOGGED
        put(record, kind, block, NO_OBJECT, kind.fields(self.rng))
        record.emit()


def put(
    record: RecordWriter, kind: SpaceKind, block: BlockState, obj: int, fields: list[bytes]
) -> None:
    """Add a space-management vector."""
    where = block.change(record.scn, cls=kind.cls, obj=obj, typ=kind.typ)
    record.vector(kind.opcode, fields, where)


class Noise:
    """The noise of a container.

    Args:
        container: the container, including its tables.
        rng: draws the mix of the container, and then the noise.
    """

    def __init__(self, instance: Instance, container: Container, rng: Random) -> None:
        self._instance, self._redo = instance, instance.redo
        self._container = container
        self._rng = rng
        self.share = rng.choice(SHARES)
        self._weights = [weight * rng.choice(OWN_FACTORS) for weight in ACTS.values()]
        self._weights[0] += 0.1
        self._blocks = dict[tuple[int, int], TransactionalBlock]()
        self._writers = dict[int, SpaceWriter]()
        self._maps = 0
        self._segments = 0
        # In a CDB, lists of written blocks belong to the root.
        own = container.con_id > 0
        self._root = Container(ROOT, "CDB$ROOT", ROOT) if own else container

    def write(self, thread: RedoThread) -> None:
        """Write noise of one random kind."""
        act = self._rng.choices(tuple(ACTS), self._weights)[0]
        getattr(self, "_" + act)(thread)

    # --- blocks and records ---

    def _block(self, afn: int, dba: int) -> TransactionalBlock:
        key = afn, dba
        if key not in self._blocks:
            self._blocks[key] = TransactionalBlock(afn, dba, self._instance.scn)
        return self._blocks[key]

    def _map_block(self, back: int = 0) -> TransactionalBlock:
        return self._block(SPACE_FILE, space.SPACE_DBA + max(self._maps - back, 0))

    def _writer(self, thread: RedoThread) -> SpaceWriter:
        if thread.number not in self._writers:
            who = DatabaseSession(7, 1, "SYS", program="oracle@host (SMCO)")
            self._writers[thread.number] = SpaceWriter(self._instance, self._container, thread, who)
        return self._writers[thread.number]

    def _record(
        self, thread: RedoThread, *vectors: tuple[SpaceKind, TransactionalBlock, int]
    ) -> None:
        """Write a record with vectors of (kind, block, data object)."""
        record = self._instance.record(thread, self._container)
        for kind, block, obj in vectors:
            put(record, kind, block, obj, kind.fields(self._rng))
        record.emit()

    def _written(self, thread: RedoThread, count: int) -> None:
        record = self._instance.record(thread, self._root)
        entries = [
            space.written_block(
                *(self._redo, SPACE_FILE, space.SPACE_DBA + at % 4096, record.scn, 1 + at % 3)
            )
            for at in range(count)
        ]
        record.vector((23, 1), [b"".join(entries)])
        record.emit(VLD_VOID)

    # --- the kinds of noise ---

    def _clean_out(self, thread: RedoThread) -> None:
        for block in self._rng.choice(self._container.tables).blocks[-4:]:
            cleaned = block.clean_out()
            if cleaned:
                record = self._instance.record(thread, self._container)
                where = block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_DELAYED)
                record.vector((4, 1), [block_cleanout(self._redo, record.scn, cleaned)], where)
                record.emit()
                return

    def _write_blocks(self, thread: RedoThread) -> None:
        self._written(thread, self._rng.choice(BLOCKS_OF_A_LIST))

    def _extend_file(self, thread: RedoThread) -> None:
        """Write LWNs of two records: a void record, and a bitmap block of the file."""
        kind = self._rng.choice(space.FILE_MAPS)
        if self._rng.random() < 0.1:
            self._record(thread, (space.FILE_MAP_HEAD, self._map_block(), NO_OBJECT))
        most = MAPS_BYTES // self._redo.block_size
        for _ in range(min(self._rng.choice(MAPS_IN_A_ROW), most)):
            thread.flush()
            self._written(thread, 1)
            self._maps += 1
            record = self._instance.record(thread, self._container)
            fields = space.file_map_fields(self._redo, kind)
            put(record, kind, self._map_block(), NO_OBJECT, fields)
            record.emit()
        thread.flush()

    def _use_file_map(self, thread: RedoThread) -> None:
        entry, below = self._map_block(), self._map_block(1)
        self._record(thread, (space.FILE_MAP_ENTRY, entry, NO_OBJECT))
        self._record(
            *(thread, (space.FILE_BITMAP_1, below, NO_OBJECT)),
            (space.FILE_BITMAP_2, self._map_block(2), NO_OBJECT),
        )
        self._record(
            thread,
            (space.FILE_MAP_FREED, entry, NO_OBJECT),
            (space.FILE_BITMAP_1, below, NO_OBJECT),
        )
        self._record(thread, (space.FILE_MAP_USED, entry, NO_OBJECT))

    def _segment(self) -> tuple[int, int]:
        """Return data object and first block of a segment, of a modelled table or of no table."""
        if self._segments and self._rng.random() < 0.5:
            number = self._rng.randrange(self._segments)
            return FIRST_SEGMENT_OBJECT + number, 128 + number * SEGMENT_STRIDE
        table = self._rng.choice(self._container.tables)
        return table.dataobj, 128 + (SEGMENTS_MAX + table.dataobj % 10_000) * SEGMENT_STRIDE

    def _in_segment(self, first: int, at: int) -> TransactionalBlock:
        return self._block(SEGMENT_FILE, (SEGMENT_FILE << 22) + first + at)

    def _create_segment(self, thread: RedoThread) -> None:
        if self._segments == SEGMENTS_MAX:
            return
        obj, first = FIRST_SEGMENT_OBJECT + self._segments, 128 + self._segments * SEGMENT_STRIDE
        self._segments += 1
        extents = self._in_segment(0, 2)
        self._record(thread, (space.EXTENT_TAKEN, extents, NO_OBJECT))
        self._record(thread, (space.FILE_HEADER, self._in_segment(0, 3), NO_OBJECT))
        self._writer(thread).work(lambda writer: writer.relog_extent(extents))
        for at, kind in (
            *((2, space.SEGMENT_HEADER), (1, space.SEGMENT_BITMAP_2)),
            *((0, space.SEGMENT_BITMAP_1), (2, space.HIGH_WATER_MARK)),
        ):
            self._record(thread, (kind, self._in_segment(first, at), obj))
        if self._rng.random() < 0.5:
            leaf = self._in_segment(first, 3)
            self._record(thread, (space.BLOCK_FORMATTED, leaf, obj))
            self._record(thread, (space.LEAF_FORMATTED, leaf, obj))

    def _extend_segment(self, thread: RedoThread) -> None:
        obj, first = self._segment()
        bitmap_1, bitmap_2, header = (self._in_segment(first, at) for at in range(3))
        self._record(
            *(thread, (space.HIGH_WATER_MARK, header, obj)),
            (space.BITMAP_1_EXTENDED, bitmap_1, obj),
        )
        for _ in range(self._rng.randint(1, 4)):
            fresh = self._in_segment(first, self._rng.randint(4, SEGMENT_STRIDE - 1))
            self._record(thread, (space.BLOCK_FORMATTED, fresh, obj))
        self._record(
            *(thread, (space.BITMAP_1_FORMATTED, bitmap_1, obj)),
            (space.BITMAP_2_UPDATED, bitmap_2, obj),
        )
        self._record(thread, (space.HIGH_WATER_MARK, header, obj))
        self._record(thread, (space.BITMAP_1_FULLNESS, bitmap_1, obj))

    def _drop_segment(self, thread: RedoThread) -> None:
        obj, first = self._segment()
        header = self._in_segment(first, 2)
        self._record(thread, (space.EXTENTS_LOCKED, header, obj))
        self._record(thread, (space.EXTENTS_FREED, header, obj))

    def _change_free_list(self, thread: RedoThread) -> None:
        obj, first = self._segment()
        head, block = self._in_segment(first, 2), self._in_segment(first, 3)
        self._record(
            *(thread, (space.FREE_LIST_HEAD, head, obj)), (space.FREE_LIST_LINK, block, obj)
        )
        if self._rng.random() < 0.5:
            self._writer(thread).work(lambda writer: writer.unlink_block(block, head, obj))

    def _work_recursively(self, thread: RedoThread) -> None:
        writer, draw = self._writer(thread), self._rng.random()
        if draw < 0.6:
            writer.change_key_data(self._block(SYSTEM_FILE, KEY_LEAF))
        elif draw < 0.8:
            writer.work(None)
        else:
            writer.work(lambda one: one.take_undo_extent(self._block(SPACE_FILE, UNDO_MAP)))

    def _mark_session(self, thread: RedoThread) -> None:
        record = self._instance.record(thread, self._container)
        fields = space.session_marker_fields(self._redo, 56, 30014)
        record.vector(space.SESSION_MARKER, fields)
        record.emit()
