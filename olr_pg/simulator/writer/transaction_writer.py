"""Writes transactions: begin, pairs of undo and redo, rollback, commit; also parallel DML.

Facts: redo-format §4.0–§4.6, §11.4.

Undo that does not fit into one record is cut into several (redo-format §4.2).

Small transactions, or their last changes, are written in one record with their commit. The record
has its vectors in one of two orders. In the first, the commit is before the pairs of undo and redo.
The second is that of private redo (in-memory undo): row vectors come first, and there is no session
vector (redo-format §4.8).

Parallel DML is a parent transaction and its children, which end together (redo-format §4.4). The
children have the commit SCN of the parent. The 5.4 of the parent comes first, those of the children
follow in later records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import COMMON_REDO
from olr_pg.simulator.fields.redo_format import (
    KTUB_BEGIN,
    KTUB_BUFFER_SPLIT,
    KTUB_HEAD,
    KTUB_MID,
    KTUB_TAIL,
    MARKER,
    OPC_BEGIN,
    STATE_CHILD_PREPARED,
    STATE_INACTIVE,
    TYP_DELAYED,
    TYP_NORMAL,
    UNDO_BEGIN,
    UNDO_BEGIN_NEW_BLOCK,
    UNDO_BEGIN_ONLY,
    UNDO_NEW_BLOCK,
    UNDO_REGULAR,
    CommitMark,
    DatabaseSession,
    Ktub,
    UndoControl,
    VectorBlock,
    block_cleanout,
    commit_fields,
    index_row,
    ktb_continue,
    ktb_first,
    ktudb,
    ktudh,
    marker_fields,
    parent_commit_fields,
    rollback_marker_fields,
    session_fields,
    state_fields,
    undo_applied,
    undo_size,
)
from olr_pg.simulator.model.lobs import LobRedo
from olr_pg.simulator.model.storage import (
    CLASS_DATA,
    UNDO_SPACE,
    TransactionalBlock,
    undo_vector_block,
)
from olr_pg.simulator.model.transactions import Change, Transaction, UndoEntry, delivered_changes
from olr_pg.simulator.writer.instance import COMMIT_NOTE, RecordWriter, commit_note_fields
from olr_pg.simulator.writer.log_file import VLD_VALID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.model.tables import Row
    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread


def cut_undo(
    fields: Sequence[bytes], head: int, room: int, *, aligned: bool = True
) -> tuple[list[bytes], list[bytes], bool]:
    """Cut off the last fields, which fit into `room` bytes.

    The first two fields, KTB redo and KDO, are never cut off.

    Args:
        head: size of the ktub.
        aligned: if a field is cut, its first part has a multiple of 4 bytes, so that the joined
            parts have no gap.

    Returns:
        The fields that were cut off, the remaining fields, and whether a field was cut.
    """
    rest, part = list(fields), list[bytes]()
    while len(rest) > 2:
        last = rest[-1]
        if undo_size([head, len(last), *map(len, part)]) <= room:
            part.insert(0, rest.pop())
            continue
        spare = (room - undo_size([head, 0, *map(len, part)])) & ~3
        kept = len(last) - spare
        if aligned:
            kept = kept + 3 & ~3
        if spare > 0 and 0 < kept < len(last):
            part.insert(0, last[kept:])
            rest[-1] = last[:kept]
            return part, rest, True
        break
    return part, rest, False


LOB_LAYER: Final = 26
LOB_INDEX_UPDATE: Final = (10, 18)
KDO_XTYPE: Final = 11
XTYPE_ROLLBACK: Final = 2
UNDO_RECORD_MAX: Final = UNDO_SPACE - 2
UNDO_PART_MIN: Final = 300
"""Minimum free bytes of an undo block in which a part of an undo record is placed."""

HEADER_UPDATE: Final = 0x02
"""Flag of a 5.2 that begins no transaction (redo-format §4.1)."""

NOTED: Final = 0.1
"""Probability of a 17.28 between the 5.4 and the 24.4 of a commit; in the real 23ai logs, 5 of 21.
"""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A pair of undo and redo that is to be written.

    Attributes:
        fields: returns, for an ITL entry, the fields of undo and redo after the KTB redo.
        undone_by: opcode of the vector that undoes the change; None if no vector undoes it.
        revert: undoes the change in the model.
        delivers: the delivered changes that it completes.
    """

    block: TransactionalBlock
    obj: int
    dataobj: int
    tablespace: int
    opc: tuple[int, int]
    code: tuple[int, int]
    undone_by: tuple[int, int] | None
    fields: Callable[[int], FieldPair]
    revert: Callable[[], None]
    delivers: tuple[Change, ...] = ()


class TransactionWriter:
    """Writes the undo and redo of one session, which has at most one transaction at a time."""

    def __init__(
        self,
        instance: Instance,
        container: Container,
        thread: RedoThread,
        attributes: DatabaseSession,
    ) -> None:
        self.instance = instance
        self.container = container
        self.thread = thread
        self.attributes = attributes
        self.transaction: Transaction | None = None
        self.transaction_name = ""
        self._announced = -1
        self.redo = instance.redo
        self.rng = instance.rng

    @property
    def current(self) -> Transaction:
        """The open transaction, which must exist."""
        assert self.transaction is not None
        return self.transaction

    def begin_empty(self) -> bool:
        """Begin a transaction without a change (opc 5.7); False if that is not possible."""
        if self.transaction is not None or not self._open_transaction():
            return False
        record = self.record()
        self.write_begin_only(record)
        record.emit()
        return True

    def begin_in_redo(self) -> None:
        """Write the begin of the open transaction if necessary, before a change without undo."""
        if not self.current.begin_scn:
            record = self.record()
            self.write_begin_only(record)
            record.emit()

    def savepoint(self) -> int:
        """Return a mark for `rollback_to`."""
        return len(self.transaction.undo) if self.transaction else 0

    def rollback_to(self, mark: int) -> None:
        """Undo the newest changes down to a savepoint, as for ROLLBACK TO or a failed statement."""
        transaction = self.transaction
        while transaction is not None and len(transaction.undo) > mark:
            if not self._undo_newest(transaction):
                break

    def commit(self) -> None:
        """COMMIT, if a transaction is open."""
        transaction = self._written()
        if transaction is None:
            return
        record = self.instance.record(self.thread, self.container, commit=True)
        with_undo = transaction.last_undo if self.rng.random() < 0.85 else None
        self._write_end(record, transaction, rolled_back=False, undo=with_undo)
        self._close(transaction, record.scn, committed=True)
        self._deliver(transaction)
        if self.rng.random() < self.instance.pace.flush_at_commit:
            self.thread.flush()

    def rollback(self) -> None:
        """ROLLBACK of the whole transaction."""
        transaction = self._written()
        if transaction is None:
            return
        record = self.record()
        record.vector((24, 4), rollback_marker_fields(self.redo, transaction.xid_bytes))
        record.emit()
        self.rollback_to(0)
        record = self.record()
        self._write_end(record, transaction, rolled_back=True, undo=None)
        self._close(transaction, record.scn, committed=False)

    def _written(self) -> Transaction | None:
        """Return the open transaction; if it has written nothing, discard it and return None."""
        transaction = self.transaction
        if transaction is None or transaction.begin_scn:
            return transaction
        transaction.active = False
        transaction.segment.slots[transaction.slot].holder = None
        self.transaction = None
        return None

    def _write_end(
        self,
        record: RecordWriter,
        transaction: Transaction,
        *,
        rolled_back: bool,
        undo: tuple[bytes, int] | None,
    ) -> None:
        segment = transaction.segment
        long_form = not rolled_back and self.redo.long_scn and self.rng.random() < 0.2
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, rolled_back, undo, long_form),
            self.instance.unix_time,
        )
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector((5, 4), commit_fields(self.redo, mark), header)
        if not rolled_back and self.rng.random() < NOTED:
            note = commit_note_fields(self.redo, transaction.begin_scn & 0xFFFFFFFF)
            record.vector(COMMIT_NOTE, note)
        outcome = 2 if rolled_back else 1
        record.vector(
            (24, 4),
            marker_fields(self.redo, transaction.xid_bytes, transaction.begin_scn, outcome, 0),
        )
        record.emit()

    def _close(self, transaction: Transaction, scn: int, *, committed: bool) -> None:
        transaction.active, transaction.commit_scn = False, scn
        transaction.rolled_back = not committed
        for finish in transaction.on_end:
            finish(committed)
        transaction.on_end.clear()
        transaction.segment.retire(transaction)
        transaction.segment.release(transaction.slot, scn)
        slot = transaction.segment.slots[transaction.slot]
        if transaction.last_undo and transaction.undo_block:
            slot.last_uba, slot.last_dba = transaction.last_undo[0], transaction.undo_block.dba
        transaction.segment.max_commit_scn = max(scn, transaction.segment.max_commit_scn)
        transaction.undo.clear()
        self.transaction = None

    def _deliver(self, transaction: Transaction) -> None:
        """Add a committed transaction to those of the instance."""
        if transaction.changes:
            transaction.delivered = delivered_changes(transaction)
            transaction.lobs = LobRedo()
            self.instance.committed.append(transaction)

    def record(self) -> RecordWriter:
        """Begin a new record."""
        return self.instance.record(self.thread, self.container)

    def ready(self) -> bool:
        """Open a transaction if none is open; False if no slot is free."""
        return self.transaction is not None or self._open_transaction()

    def _open_transaction(self) -> bool:
        segments = self.container.segments[self.thread.number]
        segment = segments[self.rng.randrange(len(segments))]
        number = segment.free_slot()
        if number is None:
            return False
        slot = segment.slots[number]
        slot.sequence += 1
        xid = self.redo.xid(segment.usn, number, slot.sequence)
        self.transaction = slot.holder = Transaction(
            *(segment, number, slot.sequence, xid, self.thread.number, self.container.con_id)
        )
        return True

    def _write_undo_parts(
        self, change: BlockChange, payload: Sequence[bytes]
    ) -> tuple[list[bytes], int]:
        """If undo needs several parts, write all except the HEAD, each in a separate record.

        Return the fields for the HEAD, and the flags of its ktub (redo-format §4.2). Only undo that
        does not fit into an empty undo block is cut; if `unproven`, smaller undo may also be cut,
        at any place. The key of a LOB index row (10.18) is never cut off, because nothing else
        identifies the row's table.
        """
        transaction = self.current
        rest, flags = list(payload), 0
        while True:
            head = 24 if transaction.begin_scn else 76
            size = undo_size([head, *map(len, rest)])
            free = self.instance.unproven and change.code != LOB_INDEX_UPDATE
            if size <= UNDO_RECORD_MAX and not (
                free and self.rng.random() < (0.4 if flags else 0.1)
            ):
                return rest, flags and KTUB_HEAD | flags & KTUB_BUFFER_SPLIT
            room = transaction.segment.room(transaction)
            room = room if room >= UNDO_PART_MIN else UNDO_RECORD_MAX
            if free:
                room = min(room, max(UNDO_PART_MIN, size // 2))
            part, rest, cut = cut_undo(rest, head, room, aligned=not free)
            if not part:
                return rest, flags and KTUB_HEAD | flags & KTUB_BUFFER_SPLIT
            kind = KTUB_MID if flags else KTUB_TAIL
            own = RecordWriter(self.instance, self.thread, self.container)
            begins = not transaction.begin_scn
            entry, _ = self._write_undo(own, change, part, kind | flags & KTUB_BUFFER_SPLIT)
            if begins:
                self._announce(own)
            own.emit(more=True)
            transaction.undo.append(replace(entry, redo_code=None))
            flags = kind | (KTUB_BUFFER_SPLIT if cut else 0)

    def _write_undo(
        self,
        record: RecordWriter,
        change: BlockChange | None,
        payload: Sequence[bytes],
        flags: int = 0,
        *,
        with_header: bool = False,
    ) -> tuple[UndoEntry, bytes]:
        """Write an undo record; return its entry and its UBA.

        A 5.2 is written before the record if the transaction begins with it, or if its undo block
        is new. Otherwise a 5.2 that updates the undo header is written if `with_header`.
        """
        transaction = self.current
        segment, begins = transaction.segment, not transaction.begin_scn
        size = undo_size([76 if begins else 24, *map(len, payload)])
        place = segment.place(transaction, size)
        transaction.undo_block = place.block
        obj, dataobj, tablespace = 0, 0, 0
        if change is not None:
            obj, dataobj, tablespace = change.obj, change.dataobj, change.tablespace
        ktub = Ktub(
            *(obj, dataobj, tablespace, place.prev_dba, change.opc if change else OPC_BEGIN),
            *(transaction.slot, place.rci, (KTUB_BEGIN if begins else 0) | flags),
            1 if begins else transaction.sequence & 0xFFFF,
        )
        uba = self.redo.uba(place.block.dba, place.block.incarnation, place.rec)
        header_flg, flg = self._undo_flags(begins, place.new_block, empty=change is None)
        if begins or place.new_block:
            self._write_header(record, uba, header_flg, size, begins=begins)
        elif with_header:
            self._write_header(record, uba, HEADER_UPDATE, size, begins=False)
        if begins:
            image = ktub.begin_image(self.redo, self._control(transaction))
            transaction.begin_scn = record.scn
        else:
            image = ktub.image(self.redo)
        head = ktudb(
            *(self.redo, size, place.space_before, flg, transaction.xid_bytes),
            *(place.block.incarnation, place.rec),
        )
        block = undo_vector_block(
            place.block, record.scn, cls=segment.block_class, new=place.new_block
        )
        record.vector((5, 1), [head, image, *payload], block, undo_of=dataobj)
        transaction.last_undo = (uba, place.block.space)
        entry = UndoEntry(
            place,
            ktub,
            tuple(payload),
            change.undone_by if change else None,
            change.block if change else None,
            CLASS_DATA,
            None,
            change.revert if change else nothing,
            len(transaction.changes),
        )
        return entry, uba

    def _undo_flags(self, begins: bool, new_block: bool, *, empty: bool) -> tuple[int, int]:
        in_container = self.container.con_id > 0
        if begins and empty:
            return (0x09, UNDO_BEGIN_NEW_BLOCK) if new_block else (0x451, UNDO_BEGIN_ONLY)
        if new_block:
            return (0x44A if begins else 0x0A), UNDO_NEW_BLOCK
        return (0x452 if in_container else 0x12), UNDO_BEGIN if begins else UNDO_REGULAR

    def _write_header(
        self, record: RecordWriter, uba: bytes, flg: int, size: int, *, begins: bool
    ) -> None:
        transaction = self.current
        segment = transaction.segment
        sequence = transaction.sequence if begins else 0
        record.of = transaction if begins else record.of
        parent = transaction.parent_xid
        fields = [ktudh(self.redo, transaction.slot, sequence, uba, flg, size, parent)]
        if begins and self.container.con_id > 0 and self.redo.has_container:
            fields.append(self.redo.pack("I", self.container.uid))
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector((5, 2), fields, header)

    def _control(self, transaction: Transaction) -> UndoControl:
        slot = transaction.segment.slots[transaction.slot]
        return UndoControl(
            *(slot.last_uba, transaction.segment.max_commit_scn, slot.commit_scn, slot.last_dba),
            self.attributes.user_number,
        )

    def write_begin_only(self, record: RecordWriter) -> None:
        """Write the begin of the transaction without a change (opc 5.7)."""
        transaction = self.current
        entry, _ = self._write_undo(record, None, [])
        transaction.undo.append(entry)
        self._announce(record)

    def _announce(self, record: RecordWriter) -> None:
        full = self._announced != self.thread.sequence
        self._announced = self.thread.sequence
        fields = session_fields(self.redo, self.attributes, full=full, name=self.transaction_name)
        record.vector((5, 19 if full else 20), fields)

    def write(self, record: RecordWriter, change: BlockChange) -> None:
        """Write the undo and redo of a change; if it is the first, also the begin of the
        transaction.
        """
        transaction = self.current
        transaction.objects.add(change.obj)
        claim = change.block.claim(transaction)
        undo_rest, redo_rest = change.fields(claim.itli)
        payload = [claim.undo_ktb(self.redo), *undo_rest]
        own, flags = self._write_undo_parts(change, payload)
        begins = not transaction.begin_scn
        entry, uba = self._write_undo(record, change, own, flags)
        entry = replace(entry, payload=tuple(payload))
        cleanout = b""
        if claim.cleaned:
            cleanout = block_cleanout(self.redo, record.scn, claim.cleaned)
        if claim.fresh:
            ktb = ktb_first(self.redo, transaction.xid_bytes, uba, cleanout)
        else:
            ktb = ktb_continue(self.redo, uba, cleanout)
        typ = TYP_DELAYED if claim.cleaned else TYP_NORMAL
        block = change.block.change(record.scn, cls=CLASS_DATA, obj=change.dataobj, typ=typ)
        record.vector(change.code, [ktb, *redo_rest], block)
        change.block.take(claim, transaction, uba)
        transaction.undo.append(replace(entry, claim=claim))
        transaction.changes.extend(change.delivers)
        if begins:
            self._announce(record)

    def _undo_newest(self, transaction: Transaction) -> bool:
        """Apply the newest undo record; False if it is a begin without a change."""
        entry = transaction.undo[-1]
        if entry.block is None:
            return False
        transaction.undo.pop()
        record = self.record()
        ktub, block = entry.ktub, entry.block
        if entry.redo_code is not None:
            fields = list(entry.payload)
            if entry.redo_code[0] == 11:
                kdo = bytearray(fields[1])
                kdo[KDO_XTYPE] = kdo[KDO_XTYPE] & ~3 | XTYPE_ROLLBACK
                fields[1] = bytes(kdo)
            elif entry.redo_code[0] == LOB_LAYER:
                fields[1] = bytes((COMMON_REDO,)) + fields[1][1:]
            else:
                fields = [*fields[:1], index_row(self.redo, entry.payload[1][1], 0, 0)]
            where = block.change(record.scn, cls=CLASS_DATA, obj=ktub.dataobj)
            record.vector(entry.redo_code, fields, where)
        segment, undo_block = transaction.segment, entry.place.block
        applied = undo_applied(self.redo, ktub, 8192 - 40 - undo_block.count * 16 & 0xFFFF)
        code, changed, cls = (5, 11), segment.header, segment.header_class
        if ktub.rci:
            code, changed, cls = (5, 6), undo_block, segment.block_class
        changed_block = undo_vector_block(changed, record.scn, cls=cls)
        record.vector(code, applied, changed_block, undo_of=ktub.dataobj)
        record.emit()
        if entry.claim is not None:
            block.restore(entry.claim)
            entry.revert()
        del transaction.changes[entry.changes :]
        if transaction.undo:
            transaction.undo_block = transaction.undo[-1].place.block
        return True


def mark_deleted(tx: TransactionWriter, row: Row, space: int) -> Callable[[], None]:
    """Delete a row in the model; its slot and its `space` are freed when the transaction commits.

    Returns:
        A function that undoes the deletion.
    """
    owner, transaction = row.owner, tx.current

    def finish(committed: bool) -> None:
        if committed and row.deleted and row.owner is transaction:
            row.block.release(row.slot)
            row.block.used -= space

    def revert() -> None:
        row.deleted, row.owner = False, owner
        row.table.add_live(row)
        transaction.on_end.remove(finish)

    row.deleted, row.owner = True, transaction
    row.table.drop_live(row)
    transaction.on_end.append(finish)
    return revert


def nothing() -> None:
    """Do nothing; used as `revert` of changes that do not affect rows of the model."""


VLD_PRIVATE: Final = VLD_VALID | 0x08

_END: Final = {(5, 4): 1, (24, 4): 1, COMMIT_NOTE: 1}
COMMIT_FIRST: Final[Mapping[tuple[int, int], int]] = {(5, 2): 0, **_END}
"""Rank of vectors in the record: first 5.2, then the commit; all others follow in their order."""

PRIVATE: Final[Mapping[tuple[int, int], int]] = {(5, 2): 0, **_END, (5, 1): 2}
"""Rank of vectors in private redo; all others are row vectors and come first."""

SESSIONS: Final = frozenset({(5, 19), (5, 20)})


class PrivateRecord(RecordWriter):
    """A record that collects the vectors of several records."""

    def __init__(self, instance: Instance, thread: RedoThread, container: Container) -> None:
        super().__init__(instance, thread, container)
        self._opcodes = list[tuple[int, int]]()

    def vector(
        self,
        opcode: tuple[int, int],
        fields: Sequence[bytes],
        block: VectorBlock = MARKER,
        *,
        undo_of: int = 0,
    ) -> None:
        """Add a change vector."""
        self._opcodes.append(opcode)
        super().vector(opcode, fields, block, undo_of=undo_of)

    def emit(self, vld: int = VLD_VALID, *, more: bool = False) -> None:
        """Do nothing: the next vectors belong to the same record."""

    def hand_over(self, *, private: bool) -> None:
        """Add the record to the thread, in the order of private redo or with the commit first."""
        ranks, other = (PRIVATE, -1) if private else (COMMIT_FIRST, 2)
        kept = [
            (ranks.get(opcode, other), part)
            for opcode, part in zip(self._opcodes, self._parts, strict=True)
            if not (private and opcode in SESSIONS)
        ]
        self._parts = [part for _, part in sorted(kept, key=lambda one: one[0])]
        super().emit(VLD_PRIVATE if private else VLD_VALID)


class PrivateWriter(TransactionWriter):
    """Writes the transactions of a session; `hold` makes a record that includes the commit."""

    _private: PrivateRecord | None = None

    def record(self) -> RecordWriter:
        """Begin a new record, or continue the held record."""
        return self._private or super().record()

    def hold(self) -> None:
        """Write all following vectors, including the COMMIT, to one record."""
        self.instance.record(self.thread, self.container, commit=True)
        self._private = PrivateRecord(self.instance, self.thread, self.container)

    def commit_held(self, *, private: bool) -> None:
        """COMMIT, in the record with the vectors since `hold`."""
        record, self._private = self._private, None
        transaction = self._written()
        if record is None or transaction is None:
            return
        self._write_end(record, transaction, rolled_back=False, undo=transaction.last_undo)
        record.hand_over(private=private)
        self._close(transaction, record.scn, committed=True)
        self._deliver(transaction)
        if self.rng.random() < self.instance.pace.flush_at_commit:
            self.thread.flush()


SCN_FIELD_PLACES = 4


class ParallelWriter(TransactionWriter):
    """Writes the transactions of a coordinator or of one of its parallel servers."""

    def begin_parallel(self) -> bool:
        """Begin a parent transaction, which is its own parent; False if no slot is free."""
        if self.transaction is not None or not self.ready():
            return False
        self.current.parent_xid = self.current.xid_bytes
        record = self.record()
        self.write_begin_only(record)
        record.emit()
        return True

    def join(self, parent: TransactionWriter) -> bool:
        """Begin a child of the open transaction of `parent`; False if no slot is free."""
        if not self.ready():
            return False
        self.current.parent_xid = parent.current.xid_bytes
        return True

    def prepare(self) -> Transaction | None:
        """Write the 5.12 of a child that is ready to commit; None if it has written nothing."""
        transaction = self._written()
        if transaction is not None:
            record = self.record()
            self._write_state(record, transaction, STATE_CHILD_PREPARED)
            record.emit()
        return transaction

    def commit_parent(self) -> int:
        """Write the 5.4 that commits parent and children; return the commit SCN."""
        transaction, instance = self.current, self.instance
        instance.advance_scn()
        record = instance.record(self.thread, self.container, commit=True)
        fields = parent_commit_fields(self.redo, transaction.slot, transaction.sequence)
        self._write_header_vector(record, transaction, (5, 4), fields)
        record.emit()
        transaction.commit_scn = record.scn
        self._deliver(transaction)
        if self.rng.random() < instance.pace.flush_at_commit:
            self.thread.flush()
        return record.scn

    def commit_child(self, scn: int) -> None:
        """Write the 5.4 of a child at its parent's commit SCN."""
        transaction, rng = self.current, self.instance.mode_rng
        long_form = self.redo.long_scn and rng.random() < 0.5
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, False, transaction.last_undo, long_form),
            *(self.instance.unix_time, scn, rng.randrange(SCN_FIELD_PLACES)),
        )
        record = self.record()
        self._write_header_vector(record, transaction, (5, 4), commit_fields(self.redo, mark))
        record.emit()
        self._close(transaction, scn, committed=True)
        transaction.commit_delay = record.scn - scn
        self._deliver(transaction)

    def close_parent(self, scn: int) -> None:
        """Write the 5.12 of a parent that committed at `scn`, after its children have ended."""
        transaction = self.current
        record = self.record()
        self._write_state(record, transaction, STATE_INACTIVE, self.instance.unix_time)
        record.emit()
        self.instance.parallel_ends.append((scn, record.scn))
        self._close(transaction, scn, committed=True)

    def rollback_alone(self) -> None:
        """Roll back this transaction alone, at an SCN of its own."""
        transaction = self._written()
        if transaction is None:
            return
        self.rollback_to(0)
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, True, None, False), self.instance.unix_time
        )
        record = self.record()
        self._write_header_vector(record, transaction, (5, 4), commit_fields(self.redo, mark))
        record.emit()
        self._close(transaction, record.scn, committed=False)

    def _write_state(
        self,
        record: RecordWriter,
        transaction: Transaction,
        state: int,
        unix_time: int | None = None,
    ) -> None:
        number = transaction.slot, transaction.sequence
        fields = state_fields(self.redo, *number, state, unix_time)
        self._write_header_vector(record, transaction, (5, 12), fields)

    @staticmethod
    def _write_header_vector(
        record: RecordWriter, transaction: Transaction, opcode: tuple[int, int], fields: list[bytes]
    ) -> None:
        segment = transaction.segment
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector(opcode, fields, header)
