"""Finds the values that must differ between copies of redo.

These values are SCNs, times, the sequences of transaction ids, the incarnations of undo blocks, the
addresses of table and index blocks, and keys. Their places follow from the structures in
`olr_pg.redo.format`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.redo.format import file_fields as file
from olr_pg.redo.format import row_fields as row
from olr_pg.redo.format import undo_fields as undo
from olr_pg.redo.format.opcodes import Layer, Opcode, RowOperation
from olr_pg.redo.format.row_fields import KDILK_BLOCK
from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.redo_format import KTUB_BEGIN, OPC_INDEX, OPC_ROW, padding
from olr_pg.simulator.sessions.placement import usn_of
from olr_pg.simulator.writer.log_file import BLOCK_HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.sessions.row_shape import KeyForm

WRITTEN_ENTRY: Final = 20
WRITTEN_LOW: Final = 8
WRITTEN_HIGH: Final = 12
"""Bytes of an entry of a 23.1, and the offsets of the two parts of its SCN (redo-format §12)."""

NOTE: Final = 0x111C
"""The opcode 17.28, which may be in the record of a commit."""

LONG_END: Final = 24
LONG_END_TIME: Final = 8
"""Bytes of the longer form of a field of 5.4, and the offset of the time in it."""

KTB_PREVIOUS: Final = 4
KTB_PREVIOUS_SCN: Final = 18
"""KTB redo L, and the offset of the commit SCN in its data (redo-format §5.1)."""

NUMBER_DIGITS: Final = 100


class IndexKeys(NamedTuple):
    """An index: the data object number of its table, its columns, and whether it is unique."""

    table: int
    columns: Sequence[int]
    unique: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """The differences between a copy and the next copy.

    Attributes:
        first_scn: the first SCN of the copied redo; lower SCNs do not change.
        scn: number of SCNs of a copy.
        seconds: duration of a copy.
        blocks: number of blocks that a copy uses of a table or index, by data object number.
        slots: number of times that a copy uses a slot of an undo segment, by segment number and
            slot.
        incarnations: number of incarnations that a copy uses of the blocks of an undo segment, by
            its number.
        keys: key columns with their forms, by data object number of the table.
        indexes: the indexes by object number.
    """

    first_scn: int
    scn: int
    seconds: int
    blocks: Mapping[int, int]
    slots: Mapping[tuple[int, int], int]
    incarnations: Mapping[int, int]
    keys: Mapping[int, Mapping[int, KeyForm]]
    indexes: Mapping[int, IndexKeys]


class Stepped(NamedTuple):
    """A number, its place, and the amount by which it grows from copy to copy."""

    at: int
    value: int
    step: int


class SplitScn(NamedTuple):
    """An SCN, and the places of its low 32 bits and of its next 16 bits."""

    low: int
    high: int
    value: int


class Carried(NamedTuple):
    """A state of an undo header that a copy takes over from the previous copy.

    Attributes:
        what: ``header``: SCN and sequence of the block; ``slot``: the previous transaction of a
            slot; ``commit``: the newest commit.
        at: place of the vector, or of the field of the undo record.
    """

    what: str
    at: int
    usn: int
    slot: int = 0


@dataclass(slots=True)
class Marks:
    """The places in a stream of redo records whose values differ between copies.

    Attributes:
        scns: SCNs in the form of `RedoFormat.scn8` and of record headers.
        short_scns: SCNs in the form of `RedoFormat.scn6r`.
        words, halves: numbers of 32 and 16 bits, in the byte order of the platform.
        incarnations: incarnations of undo blocks, 16 bits, from 1 to 65,535.
        rowid_words: block addresses of ROWIDs, 32 bits, big endian.
        pairs: the two base-100 digits of a NUMBER that are the number of the copy.
    """

    scns: list[SplitScn] = field(default_factory=list)
    short_scns: list[SplitScn] = field(default_factory=list)
    words: list[Stepped] = field(default_factory=list)
    halves: list[Stepped] = field(default_factory=list)
    incarnations: list[Stepped] = field(default_factory=list)
    rowid_words: list[Stepped] = field(default_factory=list)
    pairs: list[Stepped] = field(default_factory=list)
    times: list[Stepped] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)


class _Vector(NamedTuple):
    at: int
    opcode: int
    cls: int
    dba: int
    scn_is_new: bool
    fields: list[tuple[int, int]]
    """Place and size of each field."""


def find_marks(redo: RedoFormat, stream: bytes, steps: Steps) -> Marks:
    """Find the values that must differ between copies, in the records of whole LWNs.

    `stream` does not contain block headers.

    Raises:
        ValueError: it is not known whether a vector contains values that must differ.
    """
    finder = _Finder(redo, stream, steps)
    payload, at = redo.block_size - BLOCK_HEADER_SIZE, 0
    while at < len(stream):
        left = payload - at % payload
        size = redo.unpack("I", stream, at)[0] if left >= file.RECORD_HEADER else 0
        if size:
            finder.record(at, size)
        at += size + padding(size) if size else left
    return finder.marks


class _Finder:
    def __init__(self, redo: RedoFormat, data: bytes, steps: Steps) -> None:
        self._redo, self._data, self._steps = redo, data, steps
        self.marks = Marks()

    # --- kinds of values ---

    def _u16(self, at: int) -> int:
        return self._redo.unpack("H", self._data, at)[0]

    def _u32(self, at: int) -> int:
        return self._redo.unpack("I", self._data, at)[0]

    def _note_scn(self, value: int, low: int, high: int) -> bool:
        if not self._steps.first_scn <= value < SCN_NONE:
            return False
        self.marks.scns.append(SplitScn(low, high, value))
        return True

    def _scn8(self, at: int) -> bool:
        """Record an SCN; return False if it is lower than those of the copied redo."""
        is_long = self._u16(at + 4) & 0x8000
        return self._note_scn(self._redo.read_scn8(self._data, at), at, at + (6 if is_long else 4))

    def _scn6(self, at: int) -> None:
        high, low = self._redo.unpack("HI", self._data, at)
        value = low if high & 0x8000 else high << 32 | low
        if value >= self._steps.first_scn:
            self.marks.short_scns.append(SplitScn(at + 2, at, value))

    def _xid(self, at: int) -> None:
        usn, slot, sequence = self._redo.unpack("HHI", self._data, at)
        self._sequence(at + undo.XID_SQN, usn, slot, sequence)

    def _sequence(self, at: int, usn: int, slot: int, sequence: int) -> None:
        self.marks.words.append(Stepped(at, sequence, self._steps.slots[usn, slot]))

    def _uba(self, at: int) -> None:
        dba = self._u32(at)
        if dba:
            self._incarnation(at + undo.UBA_SEQ, usn_of(dba))

    def _incarnation(self, at: int, usn: int) -> None:
        step = self._steps.incarnations[usn]
        self.marks.incarnations.append(Stepped(at, self._u16(at), step))

    def _block(self, at: int, dataobj: int) -> None:
        """Record the address of a block of a table or index, unless it is 0."""
        dba, step = self._u32(at), self._steps.blocks.get(dataobj, 0)
        if dba and step:
            self.marks.words.append(Stepped(at, dba, step))

    def _rowid(self, at: int, table: int) -> None:
        dba = int.from_bytes(self._data[at : at + 4], "big")
        self.marks.rowid_words.append(Stepped(at, dba, self._steps.blocks[table]))

    def _key(self, at: int, size: int, form: KeyForm | None) -> None:
        if size and form is not None:
            place = at + form.pair_at
            high, low = self._data[place] - 1, self._data[place + 1] - 1
            self.marks.pairs.append(Stepped(place, high * NUMBER_DIGITS + low, 1))

    # --- records and vectors ---

    def record(self, at: int, size: int) -> None:
        wrap, base = self._redo.unpack("HI", self._data, at + file.RECORD_SCN_WRAP)
        self._note_scn(wrap << 32 | base, at + file.RECORD_SCN_BASE, at + file.RECORD_SCN_WRAP)
        begin = at + file.RECORD_HEADER
        if self._data[at + file.RECORD_VLD] & file.VLD_LWN:
            self._scn8(at + file.LWN_SCN)
            self._scn8(at + file.LWN.at("next scn"))
            time = at + file.LWN_TIME
            self.marks.times.append(Stepped(time, self._u32(time), self._steps.seconds))
            begin = at + file.LWN_RECORD_HEADER
        end = at + size
        while begin < end:
            begin = self._vector(begin)

    def _vector(self, at: int) -> int:
        """Record the values of a vector; return the place of the next vector."""
        redo, data = self._redo, self._data
        listed_at = at + redo.vector_header_size
        (listed,) = redo.unpack("H", data, listed_at)
        place, fields = listed_at + (listed + 2 & ~3), list[tuple[int, int]]()
        for size in redo.unpack(f"{(listed - 2) // 2}H", data, listed_at + 2):
            fields.append((place, size))
            place += size + padding(size)
        opcode = data[at] << 8 | data[at + 1]
        cls, _, obj_high, dba = redo.unpack("HHHI", data, at + 2)
        obj = obj_high << 16 | redo.unpack("H", data, at + 22)[0]
        self._block(at + 8, obj)
        vector = _Vector(at, opcode, cls, dba, self._scn8(at + 12), fields)
        self._contents(vector, obj)
        return place

    def _contents(self, vector: _Vector, obj: int) -> None:
        layer, fields = vector.opcode >> 8, vector.fields
        match vector.opcode:
            case Opcode.UNDO:
                self._undo(vector)
            case Opcode.BEGIN | Opcode.END:
                self._header_change(vector)
            case Opcode.UNDO_APPLIED | Opcode.UNDO_APPLIED_HEADER:
                self._wrap(fields[0][0], self._usn(vector))
                self._header_state(vector)
            case Opcode.SESSION | Opcode.SESSION_CONTINUED:
                pass
            case Opcode.TRANSACTION_MARKER:
                self._xid(fields[0][0] + 4)
                if len(fields) > 3:
                    self._scn8(fields[3][0])
            case _ if layer == Layer.ROW:
                self._ktb(fields[0][0])
                self._row(fields, 1, obj)
            case _ if layer == Layer.INDEX:
                self._ktb(fields[0][0])
                self._leaf(fields[2:], obj)
            case _ if layer == Layer.SEGMENT:
                pass
            case _ if layer == Layer.WRITTEN:
                at, size = fields[0]
                for entry in range(at, at + size, WRITTEN_ENTRY):
                    low, high = entry + WRITTEN_LOW, entry + WRITTEN_HIGH
                    self._note_scn(self._u16(high) << 32 | self._u32(low), low, high)
            case _ if vector.opcode == NOTE:
                at = fields[0][0]  # the low 32 bits of the transaction's first SCN
                self.marks.words.append(Stepped(at, self._u32(at), self._steps.scn))
            case _:
                message = f"{layer}.{vector.opcode & 255} is not known to be the same in copies"
                raise ValueError(message)

    # --- transactions ---

    @staticmethod
    def _usn(vector: _Vector) -> int:
        return (vector.cls - 15) // 2

    def _header_state(self, vector: _Vector) -> None:
        """Record the first change of an undo header; this change refers to the state of the header
        after the previous copy.
        """
        if vector.cls % 2 and not vector.scn_is_new:
            self.marks.carried.append(Carried("header", vector.at, self._usn(vector)))

    def _header_change(self, vector: _Vector) -> None:
        """Record the values of a 5.2 or 5.4."""
        self._header_state(vector)
        usn, (at, _) = self._usn(vector), vector.fields[0]
        sequence = self._u32(at + undo.KTUDH_SQN)
        if sequence:
            self._sequence(at + undo.KTUDH_SQN, usn, self._u16(at), sequence)
        if vector.opcode == Opcode.BEGIN:
            self._uba(at + undo.KTUDH.at("uba"))
            return
        rest = vector.fields[1:]
        if self._data[at + undo.KTUCM_FLG] & undo.KTUCM_HAS_KTUCF:
            self._uba(rest.pop(0)[0])
        if rest and rest[0][1] == LONG_END:
            self._time(rest.pop(0)[0] + LONG_END_TIME)
        if rest:
            self._time(rest[0][0])

    def _time(self, at: int) -> None:
        self.marks.words.append(Stepped(at, self._u32(at), self._steps.seconds))

    def _wrap(self, ktub: int, usn: int) -> None:
        """Record the low half of a transaction's sequence; its first undo record has 1 instead."""
        at = ktub + undo.KTUB_WRP
        value = self._u16(at)
        if not self._u16(ktub + undo.KTUB_FLG) & KTUB_BEGIN:
            slot = self._data[ktub + undo.KTUB_SLT]
            self.marks.halves.append(Stepped(at, value, self._steps.slots[usn, slot]))

    def _undo(self, vector: _Vector) -> None:
        usn, fields = self._usn(vector), vector.fields
        head, (ktub, size) = fields[0][0], fields[1]
        self._xid(head + undo.KTUDB_XID)
        self._incarnation(head + undo.KTUDB_SEQ, usn)
        self._wrap(ktub, usn)
        if size == undo.KTUB_LONG.size:
            self._slot_before(ktub, usn)
        opc = self._data[ktub + undo.KTUB_OPC], self._data[ktub + undo.KTUB_OPC + 1]
        dataobj = self._u32(ktub + undo.KTUB_OBJD)
        if len(fields) > 2:
            self._ktb(fields[2][0])
        if opc == OPC_ROW:
            self._row(fields, 3, dataobj)
        elif opc == OPC_INDEX:
            self._block(fields[3][0] + KDILK_BLOCK, dataobj)
            self._leaf(fields[4:], dataobj)
        elif len(fields) > 2:
            message = f"undo of {opc[0]}.{opc[1]} is not known to be the same in copies"
            raise ValueError(message)

    def _slot_before(self, ktub: int, usn: int) -> None:
        slot = self._data[ktub + undo.KTUB_SLT]
        if not self._scn8(ktub + undo.KTUB_LONG.at("prev ctl max cmt scn")):
            self.marks.carried.append(Carried("commit", ktub, usn))
        if self._scn8(ktub + undo.KTUB_LONG.at("prev tx cmt scn")):
            self._uba(ktub + undo.KTUB_LONG.at("prev ctl uba"))
        else:
            self.marks.carried.append(Carried("slot", ktub, usn, slot))

    def _ktb(self, at: int) -> None:
        op, ver = self._data[at], self._data[at + 1]
        start = at + (row.KTB_DATA_LONG if ver & row.KTB_LONG else row.KTB_DATA)
        for member in row.KTB_OPERATIONS[op & row.KTB_OPERATION].members:
            if member.kind == "xid":
                self._xid(start + member.at)
            elif member.kind == "uba":
                self._uba(start + member.at)
        if op & row.KTB_OPERATION == KTB_PREVIOUS:
            self._scn6(start + KTB_PREVIOUS_SCN)
        if op & row.KTB_CLEANOUT:
            cleanout = start + row.KTB_CLEANOUT_DATA.at("opt")
            self._scn8(start + row.KTB_CLEANOUT_DATA.at("scn"))
            first = start + row.KTB_CLEANOUT_DATA.size
            for entry in range(self._data[cleanout + 1]):
                self._scn6(first + entry * row.KTB_CLEANOUT_ENTRY + 2)

    # --- rows and index leaves ---

    def _row(self, fields: list[tuple[int, int]], kdo: int, dataobj: int) -> None:
        """Record addresses and keys of a row change, and of its supplemental data."""
        at = fields[kdo][0]
        self._block(at + row.KDO_BDBA, dataobj)
        op = self._data[at + row.KDO_OP] & row.KDO_OPERATION
        keys, rest = self._steps.keys.get(dataobj, {}), fields[kdo + 1 :]
        if op in (RowOperation.IRP, RowOperation.ORP):
            rest = self._piece(at, rest, keys, dataobj)
        elif op == RowOperation.CFA:
            self._block(at + row.KDO_FORWARD_NRID, dataobj)
        elif op == RowOperation.URP:
            (numbers, size), rest = rest[0], rest[1:]
            for place in range(numbers, numbers + size, 2):
                self._key(*rest.pop(0), keys.get(self._u16(place)))
        elif op == RowOperation.QMI:
            (sizes, size), (data, _), rest = rest[0], rest[1], rest[2:]
            for place in range(sizes, sizes + size, 2):
                self._packed_row(data, keys)
                data += self._u16(place)
        if rest:
            self._supplemental(rest, keys, dataobj)

    def _piece(
        self,
        kdo: int,
        rest: list[tuple[int, int]],
        keys: Mapping[int, KeyForm],
        dataobj: int,
    ) -> list[tuple[int, int]]:
        flags, count = self._data[kdo + row.KDO_PIECE_FB], self._data[kdo + row.KDO_PIECE_CC]
        self._block(kdo + row.KDO_PIECE_HRID, dataobj)
        self._block(kdo + row.KDO_PIECE_NRID, dataobj)
        if flags & row.FB_FIRST:  # key columns are in the first piece
            for number, (at, size) in enumerate(rest[:count]):
                self._key(at, size, keys.get(number))
        return rest[count:]

    def _packed_row(self, at: int, keys: Mapping[int, KeyForm]) -> None:
        count, at = self._data[at + row.ROW_CC], at + row.ROW_SIZE
        for number in range(min(count, max(keys, default=-1) + 1)):
            size = self._data[at]
            if size == row.LENGTH_NULL:
                at += 1
                continue
            self._key(at + 1, size, keys.get(number))
            at += 1 + size

    def _supplemental(
        self, rest: list[tuple[int, int]], keys: Mapping[int, KeyForm], dataobj: int
    ) -> None:
        (at, size), count = rest[0], self._u16(rest[0][0] + row.SUPPLEMENTAL_CC)
        if size > row.SUPPLEMENTAL.size:
            self._block(at + row.SUPPLEMENTAL_BDBA, dataobj)
        if count:
            numbers = rest[1][0]
            for number, value in enumerate(rest[3 : 3 + count]):
                self._key(*value, keys.get(self._u16(numbers + 2 * number) - 1))

    def _leaf(self, fields: list[tuple[int, int]], obj: int) -> None:
        """Record the key and the ROWID of an index entry."""
        if not fields:
            return
        index = self._steps.indexes[obj]
        keys, (at, _) = self._steps.keys.get(index.table, {}), fields[0]
        for column in index.columns:
            size = self._data[at]
            if size != row.LENGTH_NULL:
                self._key(at + 1, size, keys.get(column))
                at += size
            at += 1
        if not index.unique:
            self._rowid(at + 1, index.table)
        elif len(fields) > 1:
            self._rowid(fields[1][0], index.table)
