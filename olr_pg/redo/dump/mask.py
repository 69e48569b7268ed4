"""Finds the bytes of a change vector that are user data, and replaces them.

Lengths, column counts, flags and addresses are kept, so that a masked record decodes to the same
structure. If a vector may contain data in unknown places, all its fields are replaced. Padding
bytes are replaced too, because they may contain arbitrary memory of the Oracle process. Facts:
redo-format §4–§8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.format.file_fields import LWN_RECORD_HEADER, RECORD_HEADER, RECORD_VLD, VLD_LWN
from olr_pg.redo.format.lob_fields import (
    BLOCK_ASSM,
    BLOCK_ASSM_BYTES,
    BLOCK_DATA,
    BLOCK_FLG,
    BLOCK_ITC,
    BLOCK_ITL,
    BLOCK_ITL_ENTRY,
    KDBH_NROW,
    KDBH_NTAB,
    KDBH_ROWS,
    KDLI_FILL,
    KDLI_FILL_BYTES,
    KDLI_ITEMS,
    LOB_IMAGE_BYTES,
)
from olr_pg.redo.format.opcodes import (
    LEAF_COLUMNS,
    LEAF_INITIALIZE,
    LEAF_INSERT,
    LEAF_ROW,
    QMI,
    UNDONE,
    URP,
    Layer,
    Opcode,
    UndoOf,
)
from olr_pg.redo.format.row_fields import (
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    KDILK_COLUMNS,
    KDILK_FLAGS,
    KDILK_RESTORE,
    KDILK_ROW,
    KDILK_SUPPLEMENTAL,
    KDO_COLUMN_VECTOR,
    KDO_OP,
    KDO_OPERATION,
    KDO_ROW_SCN,
    KDO_SIZE,
    KDO_TYPE,
    LENGTH_LONG,
    LENGTH_NULL,
    RID,
    ROW_CC,
    ROW_SIZE,
    SUPPLEMENTAL_CC,
    SUPPLEMENTAL_SIZES,
    SUPPLEMENTAL_TYPES,
    SUPPLEMENTAL_ZERO,
    SUPPLEMENTAL_ZEROS,
)
from olr_pg.redo.format.undo_fields import (
    DDL_FIELDS,
    DDL_SIZE,
    DDL_TEXTS,
    KTUB_FLG,
    KTUB_PART,
    SESSION_NUMBERS,
    SESSION_TEXTS,
)
from olr_pg.redo.record_view import undo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.redo.record_view import Fields, Vector

Span = tuple[int, int]
"""The bytes [start, end) of a record."""

_HARMLESS_LAYERS: Final = (
    Layer.CLEANOUT,
    Layer.SEGMENT,
    Layer.EXTENT,
    Layer.RECOVERY,
    Layer.TABLESPACE,
    Layer.WRITTEN,
)
"""Layers without user data: cleanout, space management and recovery markers contain only block
addresses and counts.
"""

_HARMLESS: Final = (
    Opcode.BEGIN,
    Opcode.END,
    *UNDONE,
    Opcode.BEGIN_IN_UNDO,
    Opcode.DEAD_TRANSACTION,
    Opcode.TRANSACTION_STATE,
    Opcode.TRANSACTION_NOTE,
    Opcode.TRANSACTION_MARKER,
    Opcode.DIRECT_LOAD,
    Opcode.SESSION_MARKER,
)
_DDL_KEPT: Final = tuple(number for number in range(1, 14) if number not in DDL_TEXTS)
_LOB_KEPT: Final = tuple(code for code in KDLI_ITEMS if code != KDLI_FILL)


def mask_record(
    data: bytes, vectors: tuple[Vector, ...], row_scn: int, random_bytes: Callable[[int], bytes]
) -> bytes:
    """Return a record whose user data is replaced by random bytes.

    Args:
        vectors: the record's vectors. If there are none, everything after the record header is
            replaced.
        row_scn: number of bytes of the row SCN in multi-row vectors.
        random_bytes: returns the given number of random bytes.
    """
    out = bytearray(data)
    spans = [span for vector in vectors for span in secret_spans(vector, row_scn)]
    if not vectors:
        header = LWN_RECORD_HEADER if data[RECORD_VLD] & VLD_LWN else RECORD_HEADER
        spans = [(header, len(data))]
    for start, end in spans:
        end = min(end, len(out))
        if start < end:
            out[start:end] = random_bytes(end - start)
    return bytes(out)


def secret_spans(vector: Vector, row_scn: int) -> Iterator[Span]:
    """Yield the spans of a vector with data from the database or about its users."""
    fields, layer = vector.fields, vector.opcode >> 8
    for offset, length in zip(fields.offset, fields.length, strict=True):
        yield offset + length, offset + ((length + 3) & ~3)
    if vector.opcode == Opcode.UNDO:
        yield from _undo(fields, row_scn)
    elif vector.opcode in _HARMLESS or layer in _HARMLESS_LAYERS:
        return
    elif vector.opcode in SESSION_TEXTS:
        yield from _all_but(fields, (1, *SESSION_NUMBERS[Opcode(vector.opcode)]))
    elif vector.opcode == Opcode.DDL:
        yield from _ddl(fields)
    elif vector.opcode == Opcode.LOB_OPERATION:
        yield from _lob_support(fields)
    elif layer == Layer.ROW:
        yield from _row(fields, 2, row_scn)
    elif layer == Layer.INDEX:
        yield from _index(fields, vector.opcode & 255)
    elif vector.opcode == Opcode.LOB_WRITE:
        yield from _lob_parts(fields, 2)
        yield from _whole(fields, 4)
    elif vector.opcode == Opcode.LOB_REDO:
        yield from _lob_parts(fields, 3)
    elif vector.opcode == Opcode.BLOCK_IMAGE:
        yield from _block_image(fields)
    else:
        yield from _all_but(fields, ())


def _whole(fields: Fields, number: int, skip: int = 0) -> Iterator[Span]:
    if fields.size(number) > skip:
        start = fields.offset[number - 1]
        yield start + skip, start + fields.size(number)


def _all_but(fields: Fields, kept: tuple[int, ...]) -> Iterator[Span]:
    for number in range(1, fields.count + 1):
        if number not in kept:
            yield from _whole(fields, number)


def _undo(fields: Fields, row_scn: int) -> Iterator[Span]:
    opc = undo_of(fields)
    # If an undo record is divided among several vectors, the later ones begin in the middle of its
    # fields.
    is_part = fields.number(2, KTUB_FLG, 2) & KTUB_PART != 0
    if opc == UndoOf.ROW and not is_part:
        yield from _row(fields, 4, row_scn)
    elif opc == UndoOf.LEAF and not is_part:
        yield from _index_undo(fields)
    elif opc == UndoOf.LOB and not is_part:
        yield from _lob_parts(fields, 5)
    elif opc >> 8 not in (Layer.TRANSACTION, *_HARMLESS_LAYERS):
        yield from _all_but(fields, (1, 2))


def _row(fields: Fields, kdo: int, row_scn: int) -> Iterator[Span]:
    """Yield the spans of columns and supplemental values, but not the lists of column numbers and
    lengths.
    """
    head = fields.bytes(kdo)
    if len(head) < KDO_SIZE:
        yield from _all_but(fields, tuple(range(1, kdo)))
        return
    op = head[KDO_OP] & KDO_OPERATION
    number = kdo + 1
    if op == QMI:
        yield from _rows(fields, kdo, row_scn)
        number += 2
    elif op == URP:
        number += 1
        if head[KDO_TYPE] & KDO_COLUMN_VECTOR:
            yield from _prefixed(fields, number, 0)
            number += 1
    while number <= fields.count:
        if fields.size(number) in SUPPLEMENTAL_SIZES and _is_supplemental(fields, number):
            count = fields.number(number, SUPPLEMENTAL_CC, 2)
            number += 3 if count and number + 2 <= fields.count else 1
            for value in range(number, number + count):
                yield from _whole(fields, value)
            return
        yield from _whole(fields, number)
        number += 1


def _is_supplemental(fields: Fields, number: int) -> bool:
    """Return whether a field with the size of a supplemental header is one, and not a column of the
    same size (redo-format §4.3).
    """
    count = fields.number(number, SUPPLEMENTAL_CC, 2)
    data = fields.bytes(number)
    zeros = data[SUPPLEMENTAL_ZERO : SUPPLEMENTAL_ZERO + SUPPLEMENTAL_ZEROS]
    if data[0] not in SUPPLEMENTAL_TYPES or any(zeros):
        return False
    if count == 0 or number + 2 > fields.count:
        return count == 0
    return min(fields.size(number + 1), fields.size(number + 2)) == 2 * count


def _rows(fields: Fields, kdo: int, row_scn: int) -> Iterator[Span]:
    if fields.count < kdo + 2:
        return
    skip = ROW_SIZE + (row_scn if fields.bytes(kdo)[KDO_OP] & KDO_ROW_SCN else 0)
    at = fields.offset[kdo + 1]
    stop = at + fields.size(kdo + 2)
    for length in fields.numbers(kdo + 1):
        yield from _columns(fields, min(at + skip, stop), min(at + length, stop))
        at += length
    if at < stop:
        yield at, stop


def _prefixed(fields: Fields, number: int, skip: int) -> Iterator[Span]:
    if fields.size(number):
        start = fields.offset[number - 1]
        yield from _columns(fields, start + skip, start + fields.size(number))


def _columns(fields: Fields, at: int, end: int) -> Iterator[Span]:
    """Yield the spans of columns that each follow their length."""
    data = fields.data
    while at < end:
        size = data[at]
        at += 1
        if size == LENGTH_NULL:
            continue
        if size == LENGTH_LONG and at + 2 <= end:
            size = int.from_bytes(data[at : at + 2], "big" if fields.big else "little")
            at += 2
        yield at, min(at + size, end)
        at += size


def _index(fields: Fields, code: int) -> Iterator[Span]:
    for number in range(3, fields.count + 1):
        if number == 3 and code in (LEAF_COLUMNS, LEAF_INITIALIZE):
            continue
        if number == 3 and code == LEAF_INSERT:
            yield from _prefixed(fields, number, 0)
        elif code in (LEAF_INSERT, LEAF_ROW) and fields.size(number) > 8:
            yield from _prefixed(fields, number, ROW_SIZE)
        else:
            yield from _whole(fields, number)


def _index_undo(fields: Fields) -> Iterator[Span]:
    code = fields.number(4, 0, 1)
    yield from _prefixed(fields, 5, 0)
    number = 6
    if code == KDILK_COLUMNS:
        number = 7
    elif code in (KDILK_RESTORE, KDILK_ROW) and fields.size(6) > 8:
        yield from _prefixed(fields, 6, ROW_SIZE)
        number = 7
    supplemental = fields.number(4, KDILK_FLAGS, 1) & KDILK_SUPPLEMENTAL != 0
    while number <= fields.count:
        if (
            supplemental
            and fields.size(number) in SUPPLEMENTAL_SIZES
            and _is_supplemental(fields, number)
        ):
            count = fields.number(number, SUPPLEMENTAL_CC, 2)
            for value in range(number + 3, number + 3 + count):
                yield from _whole(fields, value)
            return
        yield from _whole(fields, number)
        number += 1


def _lob_parts(fields: Fields, first: int) -> Iterator[Span]:
    for number in range(first, fields.count + 1):
        code = fields.number(number, 0, 1)
        if code == KDLI_FILL:
            yield from _whole(fields, number, KDLI_FILL_BYTES)
        elif code not in _LOB_KEPT:
            yield from _whole(fields, number)


def _lob_support(fields: Fields) -> Iterator[Span]:
    for number in range(11, fields.count + 1):
        yield from _whole(fields, number)


def _ddl(fields: Fields) -> Iterator[Span]:
    if fields.size(1) != DDL_SIZE or fields.count < DDL_FIELDS:
        yield from _all_but(fields, (1,))
        return
    yield from _all_but(fields, _DDL_KEPT)


def _block_image(fields: Fields) -> Iterator[Span]:
    """Yield the spans of the columns of every row. If the block is not an uncompressed table block,
    yield everything after the block header.
    """
    data = fields.bytes(1)
    order = -1 if fields.big else 1

    def number(at: int) -> int:
        pair = data[at : at + 2][::order]
        return int.from_bytes(pair, "little") if len(pair) == 2 else 0

    head = 0
    if len(data) > BLOCK_FLG:
        head = BLOCK_ITL + BLOCK_ITL_ENTRY * (number(BLOCK_ITC) & 0xFF)
        head += BLOCK_ASSM_BYTES if data[BLOCK_FLG] & BLOCK_ASSM else 0
    is_table = fields.number(2, 0, 1) == BLOCK_DATA and 0 < head <= len(data) - KDBH_ROWS
    if not is_table or data[head + KDBH_NTAB] != 1:
        yield from _whole(fields, 1, LOB_IMAGE_BYTES)
        return
    rows = number(head + KDBH_NROW)
    kept = bytearray(len(data))
    for row in range(rows):
        at = head + number(head + KDBH_ROWS + 2 * row)
        if head + KDBH_ROWS <= at < len(data) - ROW_SIZE:
            _keep_structure(kept, fields, at)
    # Replace everything else, free space too, because it may still contain deleted or moved rows.
    for at in range(head + KDBH_ROWS + 2 * rows, len(data)):
        if not kept[at]:
            yield fields.offset[0] + at, fields.offset[0] + at + 1


def _keep_structure(kept: bytearray, fields: Fields, at: int) -> None:
    """Mark, in `kept`, the header and the column lengths of a row in a block image, because they
    are not replaced.
    """
    data, start = fields.bytes(1), fields.offset[0]
    flags, count = data[at], data[at + ROW_CC]
    at += ROW_SIZE + (0 if flags & FB_LAST else RID.size)
    at += RID.size if flags & (FB_FIRST | FB_HEAD) == FB_FIRST else 0
    kept[at - ROW_SIZE : min(at, len(kept))] = b"\1" * (min(at, len(kept)) - (at - ROW_SIZE))
    end = at
    for column, (low, high) in enumerate(_columns(fields, start + at, start + len(data))):
        if column >= count:
            break
        kept[end : low - start] = b"\1" * (low - start - end)
        end = high - start
