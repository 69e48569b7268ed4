"""The bytes of a change vector that are somebody's data, and their replacement.

Lengths, numbers of columns, flags and addresses stay, so that a masked record decodes to the same
structure. Vectors that are not known to be free of data lose the content of all fields. Padding
is replaced too: it holds whatever the process had in memory. Facts: redo-format §4–§8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.record_view import BEGIN, END, SESSION, UNDO, UNDONE
from olr_pg.redo.row_vectors import OPERATION, QMI, URP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.redo.record_view import Fields, Vector

Span = tuple[int, int]
"""[start, end) in the record."""

_HARMLESS_LAYERS: Final = (4, 13, 14, 17, 22, 23)
"""Cleanout, space management and recovery markers: block addresses and counts only."""

_HARMLESS: Final = (BEGIN, END, *UNDONE, 0x0507, 0x0508, 0x050C, 0x0517, 0x1804, 0x1806, 0x180A)
_SUPPLEMENTAL_SIZES: Final = (20, 26, 28)
_SESSION_KEPT: Final = {0x0513: (1, 11, 12, 13), 0x0514: (1, 3, 4, 5)}
_DDL_KEPT: Final = (1, 4, 5, 6, 7, 11, 12, 13)
_LOB_KEPT: Final = (0x01, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11)


def mask_record(
    data: bytes, vectors: tuple[Vector, ...], row_scn: int, random_bytes: Callable[[int], bytes]
) -> bytes:
    """Return a record with its data replaced.

    Args:
        data: the record.
        vectors: its vectors; without any, everything behind the record header goes.
        row_scn: bytes of the row SCN in multi-row vectors.
        random_bytes: gives so many random bytes.
    """
    out = bytearray(data)
    spans = [span for vector in vectors for span in secret_spans(vector, row_scn)]
    if not vectors:
        spans = [(68 if data[4] & 4 else 24, len(data))]
    for start, end in spans:
        end = min(end, len(out))
        if start < end:
            out[start:end] = random_bytes(end - start)
    return bytes(out)


def secret_spans(vector: Vector, row_scn: int) -> Iterator[Span]:
    """Find where a vector holds data of the database or of its users."""
    fields, layer = vector.fields, vector.opcode >> 8
    for offset, length in zip(fields.offset, fields.length, strict=True):
        yield offset + length, offset + ((length + 3) & ~3)
    if vector.opcode == UNDO:
        yield from _undo(fields, row_scn)
    elif vector.opcode in _HARMLESS or layer in _HARMLESS_LAYERS:
        return
    elif vector.opcode in SESSION:
        yield from _all_but(fields, _SESSION_KEPT[vector.opcode])
    elif vector.opcode == 0x1801:
        yield from _ddl(fields)
    elif vector.opcode == 0x0B11:
        yield from _lob_support(fields)
    elif layer == 11:
        yield from _row(fields, 2, row_scn)
    elif layer == 10:
        yield from _index(fields, vector.opcode & 255)
    elif vector.opcode == 0x1A06:
        yield from _lob_parts(fields, 2)
        yield from _whole(fields, 4)
    elif vector.opcode == 0x1A02:
        yield from _lob_parts(fields, 3)
    elif vector.opcode == 0x1301:
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
    head = fields.bytes(2)
    opc = (head[16], head[17]) if len(head) >= 18 else (0, 0)
    # A part of an undo record that spans several vectors begins in the middle of its fields.
    is_part = fields.number(2, 20, 2) & 0x103 != 0
    if opc == (11, 1) and not is_part:
        yield from _row(fields, 4, row_scn)
    elif opc == (10, 22) and not is_part:
        yield from _index_undo(fields)
    elif opc == (26, 1) and not is_part:
        yield from _lob_parts(fields, 5)
    elif opc[0] not in (5, *_HARMLESS_LAYERS):
        yield from _all_but(fields, (1, 2))


def _row(fields: Fields, kdo: int, row_scn: int) -> Iterator[Span]:
    """Columns and supplemental values; the lists of numbers and lengths stay."""
    head = fields.bytes(kdo)
    if len(head) < 16:
        yield from _all_but(fields, tuple(range(1, kdo)))
        return
    op = head[10] & OPERATION
    number = kdo + 1
    if op == QMI:
        yield from _rows(fields, kdo, row_scn)
        number += 2
    elif op == URP:
        number += 1
        if head[11] & 0x80:
            yield from _prefixed(fields, number, 0)
            number += 1
    while number <= fields.count:
        if fields.size(number) in _SUPPLEMENTAL_SIZES and _is_supplemental(fields, number):
            count = fields.number(number, 2, 2)
            number += 3 if count and number + 2 <= fields.count else 1
            for value in range(number, number + count):
                yield from _whole(fields, value)
            return
        yield from _whole(fields, number)
        number += 1


def _is_supplemental(fields: Fields, number: int) -> bool:
    """Tell whether a field of that size is the header and no column (redo-format §4.3)."""
    count = fields.number(number, 2, 2)
    data = fields.bytes(number)
    if data[0] not in (1, 2, 4, 8, 0x10) or data[10:13] != b"\0\0\0":
        return False
    if count == 0 or number + 2 > fields.count:
        return count == 0
    return min(fields.size(number + 1), fields.size(number + 2)) == 2 * count


def _rows(fields: Fields, kdo: int, row_scn: int) -> Iterator[Span]:
    if fields.count < kdo + 2:
        return
    skip = 3 + (row_scn if fields.bytes(kdo)[10] & 0x40 else 0)
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
    """Find the values of columns with their lengths before them."""
    data = fields.data
    while at < end:
        size = data[at]
        at += 1
        if size == 0xFF:
            continue
        if size == 0xFE and at + 2 <= end:
            size = int.from_bytes(data[at : at + 2], "big" if fields.big else "little")
            at += 2
        yield at, min(at + size, end)
        at += size


def _index(fields: Fields, code: int) -> Iterator[Span]:
    for number in range(3, fields.count + 1):
        if code == 35 and number == 3:
            continue
        if code == 2 and number == 3:
            yield from _prefixed(fields, number, 0)
        elif code in (2, 30) and fields.size(number) > 8:
            yield from _prefixed(fields, number, 3)
        elif code == 8 and number == 3:
            continue
        else:
            yield from _whole(fields, number)


def _index_undo(fields: Fields) -> Iterator[Span]:
    code = fields.number(4, 0, 1)
    yield from _prefixed(fields, 5, 0)
    number = 6
    if code == 0x23:
        number = 7
    elif code in (5, 0x1E) and fields.size(6) > 8:
        yield from _prefixed(fields, 6, 3)
        number = 7
    supplemental = fields.number(4, 2, 1) & 0x80 != 0
    while number <= fields.count:
        if (
            supplemental
            and fields.size(number) in _SUPPLEMENTAL_SIZES
            and _is_supplemental(fields, number)
        ):
            count = fields.number(number, 2, 2)
            for value in range(number + 3, number + 3 + count):
                yield from _whole(fields, value)
            return
        yield from _whole(fields, number)
        number += 1


def _lob_parts(fields: Fields, first: int) -> Iterator[Span]:
    for number in range(first, fields.count + 1):
        code = fields.number(number, 0, 1)
        if code == 0x06:
            yield from _whole(fields, number, 8)
        elif code not in _LOB_KEPT:
            yield from _whole(fields, number)


def _lob_support(fields: Fields) -> Iterator[Span]:
    for number in range(11, fields.count + 1):
        yield from _whole(fields, number)


def _ddl(fields: Fields) -> Iterator[Span]:
    if fields.size(1) != 24 or fields.count < 12:
        yield from _all_but(fields, (1,))
        return
    yield from _all_but(fields, _DDL_KEPT)


def _block_image(fields: Fields) -> Iterator[Span]:
    """Find the columns of every row; of anything but a plain table block, all behind its header."""
    data = fields.bytes(1)
    order = -1 if fields.big else 1

    def number(at: int) -> int:
        pair = data[at : at + 2][::order]
        return int.from_bytes(pair, "little") if len(pair) == 2 else 0

    head = 24 + 24 * data[16] if len(data) > 18 else 0
    if len(data) > 18 and data[18] & 0x20:
        head += 8
    if fields.number(2, 0, 1) != 6 or head == 0 or head + 18 > len(data) or data[head + 1] != 1:
        yield from _whole(fields, 1, 36)
        return
    rows = number(head + 2)
    kept = bytearray(len(data))
    for row in range(rows):
        at = head + number(head + 18 + 2 * row)
        if head + 18 <= at < len(data) - 3:
            _keep_structure(kept, fields, at)
    # Everything else goes, free space too: rows that were deleted or moved linger there.
    for at in range(head + 18 + 2 * rows, len(data)):
        if not kept[at]:
            yield fields.offset[0] + at, fields.offset[0] + at + 1


def _keep_structure(kept: bytearray, fields: Fields, at: int) -> None:
    """Mark the header and the column lengths of a row in a block image."""
    data, start = fields.bytes(1), fields.offset[0]
    flags, count = data[at], data[at + 2]
    at += 3 + (0 if flags & 4 else 6) + (6 if flags & 0x28 == 8 else 0)
    kept[at - 3 : min(at, len(kept))] = b"\1" * (min(at, len(kept)) - (at - 3))
    end = at
    for column, (low, high) in enumerate(_columns(fields, start + at, start + len(data))):
        if column >= count:
            break
        kept[end : low - start] = b"\1" * (low - start - end)
        end = high - start
