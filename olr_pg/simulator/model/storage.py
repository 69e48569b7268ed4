"""Blocks, interested-transaction lists and undo segments of the model.

Facts: redo-format §3.1 (SCN and sequence of a block), §4.1–§4.2 (undo blocks), §5.1 (ITL).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.simulator.fields.redo_format import (
    NO_OBJECT,
    TYP_NEW,
    TYP_NORMAL,
    CleanedEntry,
    VectorBlock,
    ktb_continue,
    ktb_previous,
    ktb_unused,
)

if TYPE_CHECKING:
    from olr_pg.simulator.fields.redo_format import RedoFormat

DATABASE_BLOCK_SIZE: Final = 8192
ROW_SPACE: Final = 7200
"""Bytes of a block that rows may fill: the block without its headers and PCTFREE."""

WIDE_BLOCK_SIZE: Final = 16_384
WIDE_ROW_SPACE: Final = 15_200
"""Bytes that rows may fill in a block of 16 kB. Undo of such tables is in blocks of 8 kB, as
always.
"""

UPDATE_RESERVE: Final = 120
"""Additional bytes of a block that only updates may fill."""


UNDO_BLOCKS_PER_SEGMENT: Final = 4096
"""Blocks from the header of an undo segment to the header of the next one in the file."""

UNDO_EXTENSION: Final = 1 << 18
UNDO_EXTENSIONS: Final = 15
"""An undo segment that grows continues in a part of the file with `UNDO_EXTENSION` blocks (2 GB);
there are `UNDO_EXTENSIONS` parts.
"""

UNDO_SPACE: Final = 8150
UNDO_RECORDS_MAX: Final = 255
UNDO_RING: Final = 12
TRANSACTION_SLOTS: Final = 34
CLASS_DATA: Final = 1
FIRST_UNDO_CLASS: Final = 15
"""Block classes from here on are headers and blocks of undo segments (redo-format §3.1)."""
ITL_MAX: Final = 200


class Holder(Protocol):
    """The properties of a transaction that table, index and undo blocks need: blocks refer to it
    from ITL entries, rows and undo records.

    Attributes:
        con_id: the container of the transaction.
        objects: OBJ# of the tables that it has locked.
        undo_block: the undo block that it writes to.
    """

    con_id: int
    xid_bytes: bytes
    active: bool
    commit_scn: int
    objects: set[int]
    undo_block: UndoBlock | None

    @property
    def rci(self) -> int:
        """Number of its newest undo record that was not applied, 0 for none."""


@dataclass(slots=True, eq=False, repr=False)
class BlockState:
    """A block's address and the SCN and sequence of its last change."""

    afn: int
    dba: int
    scn: int
    seq: int = 1

    def change(self, scn: int, *, cls: int, obj: int, typ: int = TYP_NORMAL) -> VectorBlock:
        """Record a change at `scn`; return the state before the change, for the vector header."""
        if typ == TYP_NEW:
            self.scn, self.seq = scn, 1
        before = VectorBlock(cls, self.afn, self.dba, obj, self.scn, self.seq, typ)
        self.seq = self.seq + 1 if self.scn == scn else 1
        self.scn = scn
        return before


@dataclass(slots=True)
class ItlEntry:
    """An ITL slot; `cleaned` is True if the block contains the commit SCN of `transaction`."""

    transaction: Holder | None = None
    uba: bytes = bytes(8)
    cleaned: bool = True


@dataclass(frozen=True, slots=True)
class ItlClaim:
    """The ITL entry that a change uses, and what its undo must restore."""

    itli: int
    before: ItlEntry
    fresh: bool
    cleaned: tuple[CleanedEntry, ...]

    def undo_ktb(self, redo: RedoFormat) -> bytes:
        """Encode the KTB redo of the undo side: C, Z or L."""
        if not self.fresh:
            return ktb_continue(redo, self.before.uba)
        owner = self.before.transaction
        if owner is None:
            return ktb_unused(redo)
        return ktb_previous(redo, owner.xid_bytes, self.before.uba, owner.commit_scn)


@dataclass(slots=True, eq=False, repr=False)
class TransactionalBlock(BlockState):
    """A block with an ITL: a table block or an index leaf."""

    itl: list[ItlEntry] = field(default_factory=lambda: [ItlEntry(), ItlEntry()])
    first_itl: int = 1

    def entry_of(self, transaction: Holder) -> int:
        """Return the number (from 1) of the transaction's ITL entry, 0 for none."""
        for number, entry in enumerate(self.itl, 1):
            if entry.transaction is transaction:
                return number
        return 0

    def claim(self, transaction: Holder) -> ItlClaim:
        """Find the ITL entry for a change. The transaction's first change of the block also cleans
        out the entries of ended transactions.
        """
        held = self.entry_of(transaction)
        if held:
            entry = self.itl[held - 1]
            return ItlClaim(held, ItlEntry(transaction, entry.uba), False, ())
        cleaned = self.clean_out()
        number = self._free_entry()
        entry = self.itl[number - 1]
        return ItlClaim(number, ItlEntry(entry.transaction, entry.uba), True, cleaned)

    def take(self, claim: ItlClaim, transaction: Holder, uba: bytes) -> None:
        """Carry out a claim: the entry now names the undo record at `uba`."""
        entry = self.itl[claim.itli - 1]
        entry.transaction, entry.uba, entry.cleaned = transaction, uba, False

    def restore(self, claim: ItlClaim) -> None:
        """Restore the state that an entry had before the change."""
        entry, before = self.itl[claim.itli - 1], claim.before
        entry.transaction, entry.uba = before.transaction, before.uba
        entry.cleaned = claim.fresh

    def clean_out(self) -> tuple[CleanedEntry, ...]:
        """Mark the entries of ended transactions as committed; return these entries."""
        cleaned = list[CleanedEntry]()
        for number, entry in enumerate(self.itl, 1):
            owner = entry.transaction
            if owner is not None and not owner.active and not entry.cleaned:
                entry.cleaned = True
                cleaned.append(CleanedEntry(number, owner.commit_scn))
        return tuple(cleaned)

    def _free_entry(self) -> int:
        candidates = [
            (entry.transaction.commit_scn if entry.transaction else -1, number)
            for number, entry in enumerate(self.itl, 1)
            if number >= self.first_itl
            and (entry.transaction is None or not entry.transaction.active)
        ]
        if candidates:
            return min(candidates)[1]
        assert len(self.itl) < ITL_MAX
        self.itl.append(ItlEntry())
        return len(self.itl)


@dataclass(slots=True, eq=False, repr=False)
class UndoBlock(BlockState):
    """An undo block. `incarnation` is the sequence in UBAs, `count` the number of its newest
    record.
    """

    incarnation: int = 1
    count: int = 0
    space: int = UNDO_SPACE
    holder: Holder | None = None


@dataclass(frozen=True, slots=True)
class UndoPlace:
    """The place of an undo record."""

    block: UndoBlock
    rec: int
    space_before: int
    new_block: bool
    prev_dba: int
    rci: int


@dataclass(slots=True)
class TransactionSlot:
    """A slot of an undo header's transaction table; the slot with the lowest `turn` was freed
    first.
    """

    sequence: int
    turn: int = 0
    holder: Holder | None = None
    commit_scn: int = 0
    last_uba: bytes = bytes(8)
    last_dba: int = 0


class UndoSegment:
    """An undo segment: header with transaction slots, a ring of undo blocks.

    Args:
        usn: undo segment number, from 1.
        afn, first_dba: file and first block; the first block is the undo header.
        scn: SCN at which its blocks were formatted.

    Attributes:
        incarnation: incarnation of its newest undo blocks.
    """

    def __init__(self, usn: int, afn: int, first_dba: int, scn: int) -> None:
        self.usn = usn
        self.header = BlockState(afn, first_dba, scn)
        self.slots = [TransactionSlot(500 + 7 * usn + n % 3) for n in range(TRANSACTION_SLOTS)]
        self._blocks = [UndoBlock(afn, first_dba + 1 + n, scn) for n in range(UNDO_RING)]
        self._newest, self._held = -1, 0
        self.incarnation = 0x40 + usn
        self._pool = list[UndoBlock]()
        self._slots_used = 0
        self.max_commit_scn = scn

    @property
    def header_class(self) -> int:
        """Block class of the undo header."""
        return 15 + 2 * self.usn

    @property
    def block_class(self) -> int:
        """Block class of the undo blocks."""
        return 16 + 2 * self.usn

    def free_slot(self) -> int | None:
        """Return the slot for a new transaction: the one that was freed first; None if none is
        free.
        """
        free = [(s.turn, n) for n, s in enumerate(self.slots) if s.holder is None]
        return min(free)[1] if free else None

    def release(self, number: int, scn: int) -> None:
        """Free the slot of a transaction that ended at `scn`."""
        slot = self.slots[number]
        slot.holder, slot.commit_scn = None, scn
        self._slots_used += 1
        slot.turn = self._slots_used

    def rewind(self) -> None:
        """Continue with the first slot and the first undo block, as at the start.

        No transaction may be open. Slots and blocks keep their content; the blocks get a new
        incarnation when they are used again.
        """
        del self._blocks[UNDO_RING:]
        self._pool.clear()
        self._newest = -1
        for slot in self.slots:
            slot.turn = 0

    def place(self, transaction: Holder, size: int) -> UndoPlace:
        """Reserve the place of an undo record of `size` bytes (ktudb.siz)."""
        current = transaction.undo_block
        if current is None:
            return self._place_first(transaction, size)
        if current.count < UNDO_RECORDS_MAX and current.space >= size + 2:
            return self._add(current, size, new=False, prev_dba=0, rci=transaction.rci)
        prev_dba = current.dba if transaction.rci else 0
        left = current.space
        block = self._new_block(transaction)
        place = self._add(block, size, new=True, prev_dba=prev_dba, rci=0)
        # A real record that opens a block within a transaction contains the free space of the old
        # block.
        return UndoPlace(block, place.rec, left, True, prev_dba, 0)

    def room(self, transaction: Holder) -> int:
        """Maximum bytes of an undo record in the transaction's current block."""
        current = transaction.undo_block
        if current is None or current.count >= UNDO_RECORDS_MAX:
            return 0
        return max(0, current.space - 2)

    def _place_first(self, transaction: Holder, size: int) -> UndoPlace:
        while self._pool:
            block = self._pool.pop()
            if block.count < UNDO_RECORDS_MAX and block.space >= size + 2:
                block.holder, self._held = transaction, self._held + 1
                return self._add(block, size, new=False, prev_dba=0, rci=0)
        block = self._new_block(transaction)
        place = self._add(block, size, new=True, prev_dba=0, rci=0)
        return UndoPlace(block, place.rec, 0, True, 0, 0)

    @staticmethod
    def _add(block: UndoBlock, size: int, *, new: bool, prev_dba: int, rci: int) -> UndoPlace:
        before = block.space
        block.count += 1
        block.space -= size + 2
        return UndoPlace(block, block.count, before, new, prev_dba, rci)

    def _new_block(self, transaction: Holder) -> UndoBlock:
        for _ in self._blocks if self._held < len(self._blocks) else ():
            self._newest = (self._newest + 1) % len(self._blocks)
            if self._newest == 0:
                self.incarnation = self.incarnation % 0xFFFF + 1
            block = self._blocks[self._newest]
            if block.holder is None:
                break
        else:
            last = self._blocks[-1]
            block = UndoBlock(last.afn, self._dba_of(len(self._blocks)), last.scn)
            self._blocks.append(block)
            self._newest = len(self._blocks) - 1
        if block in self._pool:
            self._pool.remove(block)
        block.incarnation, block.count, block.space = self.incarnation, 0, UNDO_SPACE
        block.holder, self._held = transaction, self._held + 1
        return block

    def _dba_of(self, number: int) -> int:
        """Return the address of the undo block with this number, from 0."""
        if number + 1 < UNDO_BLOCKS_PER_SEGMENT:
            return self.header.dba + 1 + number
        file = self.header.dba >> 22 << 22
        return file + (1 + self.usn % UNDO_EXTENSIONS) * UNDO_EXTENSION + number

    def retire(self, transaction: Holder) -> None:
        """Free the undo blocks of an ended transaction; the next transaction continues in its
        newest one.
        """
        for block in self._blocks:
            if block.holder is transaction:
                block.holder, self._held = None, self._held - 1
        if transaction.undo_block is not None:
            self._pool.append(transaction.undo_block)


def undo_vector_block(block: BlockState, scn: int, *, cls: int, new: bool = False) -> VectorBlock:
    """Record a change of an undo block or header; return the block part of the vector header."""
    return block.change(scn, cls=cls, obj=NO_OBJECT, typ=TYP_NEW if new else TYP_NORMAL)
