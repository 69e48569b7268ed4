"""Row pieces, also of rows that are too large for one piece, and the KDO fields of row changes.

Facts: redo-format §4.3 (supplemental header), §5.2–§5.10 (KDO and its exact sizes),
values-and-lobs §0.2 (rows of several pieces).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.redo_format import RedoFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.cells import Cell


Value = bytes | None
"""The stored bytes of a column; None is NULL."""

FieldPair = tuple[list[bytes], list[bytes]]
"""Fields of a change's undo and of its redo."""

OP_IRP: Final = 2
OP_DRP: Final = 3
OP_LKR: Final = 4
OP_URP: Final = 5
OP_ORP: Final = 6
OP_CFA: Final = 8
OP_QMI: Final = 11
OP_QMD: Final = 12
OP_LMN: Final = 16
UNDO_SIDE: Final = 0x20

DEPENDENCIES: Final = 0x40

FB_HEAD: Final = 0x20
FB_FIRST: Final = 0x08
FB_LAST: Final = 0x04
FB_FROM_PREVIOUS: Final = 0x02
FB_TO_NEXT: Final = 0x01
FB_ROW: Final = FB_HEAD | FB_FIRST | FB_LAST

SUPPLEMENTAL_UPDATE: Final = 1
SUPPLEMENTAL_INSERT: Final = 2
SUPPLEMENTAL_DELETE: Final = 4
SUPPLEMENTAL_LOCK: Final = 0x10

GROUP_FIRST: Final = 0x08
GROUP_LAST: Final = 0x04
GROUP_ROWID_OMITTED: Final = 0x10
GROUP_MOVED: Final = 0x80

STUB_LOCK: Final = 2
"""The lock byte of all real stubs that we have seen."""

SLOT_SIZE: Final = 2
"""Bytes of a row directory entry."""


def stored_size(value: Value) -> int:
    """Return the number of bytes of a column in a row: its length prefix and its data."""
    if value is None:
        return 1
    return len(value) + (1 if len(value) <= 250 else 3)


def stored_sizes(values: Sequence[Value]) -> int:
    """Return the number of bytes of columns in a row."""
    sizes = [len(value) for value in values if value]
    return sum(sizes) + len(values) + 2 * sum([size > 250 for size in sizes])


def stored_columns(cells: Sequence[Cell | None]) -> tuple[Value, ...]:
    """Return the columns of a row that are stored: without the NULLs at its end."""
    width = len(cells)
    while width and cells[width - 1] is None:
        width -= 1
    return tuple([cell.raw if cell else None for cell in cells[:width]])


@dataclass(frozen=True, slots=True)
class RowAddress:
    """A row piece's place."""

    dba: int
    slot: int


@dataclass(frozen=True, slots=True)
class RowPiece:
    """A piece of a row as it is in its block.

    Attributes:
        nrid: address of the next piece.
        hrid: address of the head of a migrated row.
        row_scn: bytes of the SCN that a row has in a table with row dependencies, else 0.
    """

    fb: int
    columns: tuple[Value, ...]
    nrid: RowAddress | None = None
    hrid: RowAddress | None = None
    row_scn: int = 0

    @property
    def size(self) -> int:
        """The number of bytes of the piece in the block (tl)."""
        links = 6 * (not self.fb & FB_LAST) + 6 * (
            bool(self.fb & FB_FIRST) and not self.fb & FB_HEAD
        )
        return 3 + links + self.row_scn + stored_sizes(self.columns)


@dataclass(frozen=True, slots=True)
class KdoBase:
    """The beginning of every KDO field: the address, and the ITL entry of the change.

    `dependencies` is DEPENDENCIES for a table with ROWDEPENDENCIES, else 0.
    """

    dba: int
    segment: int
    max_row: int
    itli: int
    dependencies: int = 0

    def image(self, redo: RedoFormat, op: int) -> bytes:
        """Encode the first 16 bytes; `op` contains the undo bit."""
        op |= self.dependencies
        return redo.pack("IIHBBBBH", self.dba, self.segment, self.max_row, op, 1, self.itli, 0, 0)


def null_bitmap(columns: Sequence[Value]) -> bytes:
    """Return a bitmap in which bit i is set if column i is NULL."""
    bits = sum(1 << number for number, value in enumerate(columns) if value is None)
    return bits.to_bytes((len(columns) + 7) // 8, "little")


def column_fields(columns: Sequence[Value]) -> list[bytes]:
    """Encode each column as a field, empty for NULL."""
    return [value or b"" for value in columns]


def insert_kdo(
    redo: RedoFormat, base: KdoBase, op: int, piece: RowPiece, slot: int, lock: int
) -> bytes:
    """Encode the KDO of an IRP or ORP: 48 + ceil(columns / 8) bytes."""
    hrid = piece.hrid or RowAddress(0, 0)
    nrid = piece.nrid or RowAddress(0, 0)
    return (
        base.image(redo, op)
        + redo.pack("BBBB", piece.fb, lock, len(piece.columns), 0)
        + redo.pack("IHHIHHI", hrid.dba, hrid.slot, 0, nrid.dba, nrid.slot, 0, 0)
        + redo.pack("HHB", piece.size, slot, 0)
        + null_bitmap(piece.columns)
        + bytes(3)
    )


def delete_kdo(redo: RedoFormat, base: KdoBase, op: int, slot: int) -> bytes:
    """Encode the KDO of a DRP: 20 bytes."""
    return base.image(redo, op) + redo.pack("HBB", slot, 0, 0)


def lock_kdo(redo: RedoFormat, base: KdoBase, op: int, slot: int, lock: int) -> bytes:
    """Encode the KDO of an LKR: 20 bytes; `lock` is the locking ITL slot, 0 in the undo."""
    return base.image(redo, op) + redo.pack("HBB", slot, 0, lock)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One side of a URP: its undo or its redo.

    Attributes:
        fb: flags of the piece.
        width: columns of the piece in this state.
        numbers: the listed columns, from 0. Numbers beyond those of `values` are columns that are
            cut off the piece.
        values: the values of the first `len(values)` numbers.
        size: the number of bytes by which the row grows when it gets this state.
    """

    fb: int
    width: int
    numbers: tuple[int, ...]
    values: tuple[Value, ...]
    size: int


def update_kdo(
    redo: RedoFormat, base: KdoBase, op: int, change: ColumnChange, slot: int, lock: int
) -> bytes:
    """Encode the KDO of a URP: 28 + ceil(columns with values / 8) bytes."""
    given = len(change.values)
    return (
        base.image(redo, op)
        + redo.pack("BBBBHBBh", change.fb, lock, 0, 0, slot, change.width, given, change.size)
        + null_bitmap(change.values)
        + bytes(2)
    )


def update_fields(redo: RedoFormat, change: ColumnChange) -> list[bytes]:
    """Encode the fields after the KDO of a URP: column numbers, then values.

    If no listed column has a value, one empty field follows, as in a real record that cuts off its
    only listed column.
    """
    surplus = len(change.numbers) - len(change.values)
    return [
        redo.pack(f"{len(change.numbers)}H", *change.numbers),
        *column_fields(change.values),
        *([b""] * surplus),
    ]


def forward_kdo(
    redo: RedoFormat, base: KdoBase, op: int, slot: int, nrid: RowAddress, lock: int
) -> bytes:
    """Encode the KDO of a CFA: 32 bytes."""
    return base.image(redo, op) + redo.pack("IHHHBBB3x", nrid.dba, nrid.slot, 0, slot, 0, 0, lock)


def log_kdo(redo: RedoFormat, base: KdoBase, op: int) -> bytes:
    """Encode the KDO of an LMN: 16 bytes."""
    return base.image(redo, op)


def multi_kdo(redo: RedoFormat, base: KdoBase, op: int, slots: Sequence[int], lock: int) -> bytes:
    """Encode the KDO of a QMI or QMD: 22 + 2 · rows bytes."""
    return (
        base.image(redo, op)
        + redo.pack("BBBB", 0, lock, len(slots), 0)
        + redo.pack(f"{len(slots)}H", *slots)
        + bytes(2)
    )


def multi_rows(redo: RedoFormat, pieces: Sequence[RowPiece], lock: int) -> list[bytes]:
    """Encode the row lengths and the rows of a QMI vector."""
    rows = [packed_row(redo, piece, lock) for piece in pieces]
    return [redo.pack(f"{len(rows)}H", *(len(row) for row in rows)), b"".join(rows)]


def packed_row(redo: RedoFormat, piece: RowPiece, lock: int) -> bytes:
    """Encode a row as it is in its block."""
    parts = [bytes((piece.fb, lock, len(piece.columns))), bytes(piece.row_scn)]
    for value in piece.columns:
        if value is None:
            parts.append(b"\xff")
        elif len(value) <= 250:
            parts.append(bytes((len(value),)) + value)
        else:
            parts.append(b"\xfe" + redo.pack("H", len(value)) + value)
    return b"".join(parts)


def stub_image(piece: RowPiece) -> bytes:
    """Encode a head without columns as the undo of 26ai contains it: in the form of its block."""
    assert piece.nrid is not None
    link = piece.nrid.dba.to_bytes(4, "big") + piece.nrid.slot.to_bytes(2, "big")
    return bytes((piece.fb, STUB_LOCK, 0)) + link


@dataclass(frozen=True, slots=True)
class Supplemental:
    """The supplemental log fields of one undo record (redo-format §4.3).

    Attributes:
        kind: `SUPPLEMENTAL_INSERT` and so on.
        group: GROUP_FIRST and GROUP_LAST bits.
        before, after: SEGCOL# of the first column in the undo, and of the first column in the redo.
        columns: SEGCOL# and value of each logged column.
        head: the address of the row's head; None for a header of 20 bytes without it.
        version: objv#.
    """

    kind: int
    group: int
    before: int
    after: int
    columns: tuple[tuple[int, Value], ...] = field(default=())
    head: RowAddress | None = None
    version: int = 1

    def fields(self, redo: RedoFormat) -> list[bytes]:
        """Encode the header and, if columns are logged, their numbers, lengths and values."""
        fb = self.group | (0 if self.head else GROUP_ROWID_OMITTED)
        flags = 0x10 if self.kind == SUPPLEMENTAL_UPDATE else 0
        header = (
            redo.pack("BBHH", self.kind, fb, len(self.columns), self.version)
            + redo.pack("HHH", self.before, self.after, 0)
            + redo.pack("BBHBBH", 0, flags, 0, 0, 0x02, 0)
        )
        if self.head:
            header += redo.pack("IHH", self.head.dba, self.head.slot, 0)
        if not self.columns:
            return [header]
        count = len(self.columns)
        lengths = (0xFFFF if value is None else len(value) for _, value in self.columns)
        return [
            header,
            redo.pack(f"{count}H", *(number for number, _ in self.columns)),
            redo.pack(f"{count}H", *lengths),
            *column_fields([value for _, value in self.columns]),
        ]


PIECE_COLUMNS_MAX: Final = 255

PIECE_OVERHEAD: Final = 24
"""Maximum bytes of the flags, the links and the row SCN of a piece."""

CUT_MIN: Final = 120
"""Values with fewer bytes are not divided between two pieces."""


@dataclass(frozen=True, slots=True)
class PieceSpan:
    """The columns of one piece, from 0-based column `first` on; `cut` has P and N of its flags."""

    first: int
    columns: tuple[Value, ...]
    cut: int


def lay_out(values: Sequence[Value], room: int) -> list[PieceSpan]:
    """Cut a row into pieces of at most `room` bytes each, from its end; return them head first."""
    if len(values) <= PIECE_COLUMNS_MAX and stored_sizes(values) <= room - PIECE_OVERHEAD:
        return [PieceSpan(0, tuple(values), 0)]
    rest = list(values)
    parts = list[PieceSpan]()
    goes_on = 0
    while rest or not parts:
        current = list[Value]()
        left = room - PIECE_OVERHEAD
        cut = goes_on
        while rest and len(current) < PIECE_COLUMNS_MAX:
            value = rest[-1]
            if stored_size(value) <= left:
                current.insert(0, value)
                left -= stored_size(value)
                rest.pop()
                continue
            spare = left - 3
            if value is not None and len(value) >= CUT_MIN and spare >= CUT_MIN // 3:
                keep = len(value) - spare
                current.insert(0, value[keep:])
                rest[-1] = value[:keep]
                cut |= FB_FROM_PREVIOUS
            break
        continues = bool(cut & FB_FROM_PREVIOUS)
        parts.insert(0, PieceSpan(len(rest) - continues, tuple(current), cut))
        goes_on = FB_TO_NEXT if continues else 0
    return parts
