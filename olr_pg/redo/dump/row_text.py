"""Prints the fields of row changes as lines of text: ktub, KTB, KDO, columns, supplemental data.

Both undo records and row vectors consist of these fields. Facts: redo-format §4.2, §4.3, §5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump.field_text import column_lines, known_lines, plain_lines, rest_lines
from olr_pg.redo.dump.members import row_flags, write_members
from olr_pg.redo.format.opcodes import CFA, IRP, ORP, QMD, QMI, URP, RowOperation
from olr_pg.redo.format.row_fields import (
    FB_CLUSTER_KEY,
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    KDO,
    KDO_COLUMN_VECTOR,
    KDO_MULTI_NROW,
    KDO_MULTI_SLOTS,
    KDO_OP,
    KDO_OPERATION,
    KDO_OPERATIONS,
    KDO_PIECE_BYTES,
    KDO_PIECE_CC,
    KDO_PIECE_FB,
    KDO_PIECE_NULLS,
    KDO_ROW_SCN,
    KDO_SIZE,
    KDO_TYPE,
    KDO_UNDO,
    KDO_UPDATE_NNEW,
    KDO_UPDATE_NULLS,
    KDO_XTYPE,
    KDO_XTYPES,
    KTB_CLEANOUT,
    KTB_CLEANOUT_DATA,
    KTB_CLEANOUT_ENTRY,
    KTB_DATA,
    KTB_DATA_LONG,
    KTB_LEAST,
    KTB_LONG,
    KTB_OPERATION,
    KTB_OPERATIONS,
    LENGTH_LONG,
    LENGTH_NULL,
    ROW_SIZE,
    SUPPLEMENTAL,
    SUPPLEMENTAL_ADDRESS,
    SUPPLEMENTAL_CC,
    SUPPLEMENTAL_CHANGED,
    SUPPLEMENTAL_NULL,
    SUPPLEMENTAL_OPT,
    SUPPLEMENTAL_SIZES,
)
from olr_pg.redo.format.undo_fields import KTUB, KTUB_LONG, KTUB_NAMES, KTUB_SIZE
from olr_pg.redo.record_view import u16_list

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from olr_pg.redo.record_view import Fields

_SUPPLEMENTAL: Final = SUPPLEMENTAL.shown + SUPPLEMENTAL_ADDRESS.shown
_BITMAPS: Final = {IRP: KDO_PIECE_NULLS, ORP: KDO_PIECE_NULLS, URP: KDO_UPDATE_NULLS}
"""The position of the NULL bitmap in KDO, by operation."""


def ktub_lines(fields: Fields, number: int) -> Iterator[str]:
    """Yield the lines of a ktub: the undo record's object and operation, and its links."""
    kind = KTUB_NAMES.get(fields.size(number), "ktub")
    yield from known_lines(fields, number, f"{kind} redo", KTUB.shown)
    data = fields.bytes(number)
    if len(data) > KTUB_SIZE:
        yield "  " + write_members(data, KTUB_LONG.shown, big=fields.big)


def ktb_lines(fields: Fields, number: int) -> Iterator[str]:
    """Yield the lines of KTB redo: the transaction's ITL entry in the block, and the cleanout of
    entries of other transactions.
    """
    data, big = fields.bytes(number), fields.big
    if len(data) < KTB_LEAST:
        yield from plain_lines(fields, number)
        return
    op, flags = data[0], data[1]
    own = data[KTB_DATA_LONG if flags & KTB_LONG else KTB_DATA :]
    known = KTB_OPERATIONS.get(op & KTB_OPERATION)
    name, shown = (known.name, known.shown) if known else ("?", ())
    text = write_members(own, shown, big=big)
    yield f"KTB redo: [{len(data)}] op: 0x{op:02x} ver: 0x{flags:02x} op: {name}  {text}".rstrip()
    cleanout = KTB_CLEANOUT_DATA
    if op & KTB_CLEANOUT and len(own) >= cleanout.size:
        yield f"  block cleanout: {write_members(own, cleanout.shown, big=big)}"
        for entry in range(own[cleanout.at("entries")]):
            start = cleanout.size + KTB_CLEANOUT_ENTRY * entry
            part = own[start : start + KTB_CLEANOUT_ENTRY]
            if len(part) == KTB_CLEANOUT_ENTRY:
                yield f"    itli: {part[0]}  flg: 0x{part[1]:02x}  scn: {part[2:].hex(' ')}"


def _kdo(fields: Fields, number: int) -> tuple[int, list[str]]:
    """Return (operation, lines) of a KDO field; the operation is 0 if the field is too short."""
    data = fields.bytes(number)
    if len(data) < KDO_SIZE:
        return 0, list(plain_lines(fields, number))
    flags, xtype = data[KDO_OP], data[KDO_TYPE]
    op = flags & KDO_OPERATION
    name = RowOperation(op).name if op in set(RowOperation) else "?"
    known = ((KDO_UNDO, "undo"), (KDO_ROW_SCN, "rowdependencies"))
    marks = [mark for bit, mark in known if flags & bit]
    if xtype & KDO_COLUMN_VECTOR:
        marks.append("KDOM2")
    lines = [
        f"KDO op code: {name} (0x{flags:02x})  xtype: {KDO_XTYPES.get(xtype & KDO_XTYPE, '?')}"
        f" (0x{xtype:02x})  {write_members(data, KDO.shown, big=fields.big)}"
        + (f"  {' '.join(marks)}" if marks else "")
    ]
    if op in KDO_OPERATIONS:
        members = KDO_OPERATIONS[RowOperation(op)].shown
        shown = [member for member in members if _is_there(member.name, data)]
        lines.append("  " + write_members(data, tuple(shown), big=fields.big))
    bitmap = _BITMAPS.get(op)
    if bitmap is not None and len(data) > bitmap:
        lines.append(f"  null bits: {data[bitmap:].hex(' ')}")
    if op in (QMI, QMD):
        rows = data[KDO_MULTI_NROW] if len(data) > KDO_MULTI_NROW else 0
        slots = data[KDO_MULTI_SLOTS : KDO_MULTI_SLOTS + 2 * rows]
        lines.append(f"  slots: {u16_list(slots, big=fields.big)}")
    return op, lines


def _is_there(member: str, data: bytes) -> bool:
    """Return whether a KDO field contains the member. Not every row piece has the addresses hrid
    and nrid (redo-format §5.4): if it has none, these bytes have no meaning.
    """
    if member not in ("hrid", "nrid"):
        return True
    fb = data[KDO_PIECE_FB]
    if data[KDO_OP] & KDO_OPERATION == CFA or fb & FB_CLUSTER_KEY:
        return True
    return fb & (FB_HEAD | FB_FIRST) == FB_FIRST if member == "hrid" else not fb & FB_LAST


def row_lines(fields: Fields, ktb: int) -> Iterator[str]:
    """Yield the lines of KTB redo, which is field `ktb`, then those of KDO, columns and
    supplemental data.
    """
    yield from ktb_lines(fields, ktb)
    kdo = ktb + 1
    if fields.size(kdo) == 0:
        yield from rest_lines(fields, kdo)
        return
    op, lines = _kdo(fields, kdo)
    yield from lines
    number = kdo + 1
    if op in (IRP, ORP):
        number = yield from _piece_columns(fields, kdo)
    elif op == URP:
        number = yield from _updated_columns(fields, kdo)
    elif op == QMI and fields.count >= kdo + 2:
        number = yield from _multi_rows(fields, kdo)
    number = _skip_empty(fields, number)
    has_scn = fields.number(kdo, KDO_OP, 1) & KDO_ROW_SCN != 0
    if has_scn and fields.size(number) in (6, 8):
        yield from plain_lines(fields, number, "dscn, field")
        number = _skip_empty(fields, number + 1)
    if fields.size(number) in SUPPLEMENTAL_SIZES:
        number = yield from supplemental_lines(fields, number)
    yield from rest_lines(fields, number)


def _skip_empty(fields: Fields, number: int) -> int:
    while number <= fields.count and fields.size(number) == 0:
        number += 1
    return number


def _piece_columns(fields: Fields, kdo: int) -> Generator[str, None, int]:
    data = fields.bytes(kdo)
    count = fields.number(kdo, KDO_PIECE_CC, 1)
    number = kdo + 1
    first = _skip_empty(fields, number)
    stored = fields.number(kdo, KDO_PIECE_BYTES, 2)
    if count != 1 and fields.size(first) == stored > 0:
        yield from plain_lines(fields, first, "compressed row, field")
        return first + 1
    for column in range(count):
        at = KDO_PIECE_NULLS + (column >> 3)
        if at < len(data) and data[at] >> (column & 7) & 1:
            yield from column_lines(f"col {column:2}", None)
            continue
        number = _skip_empty(fields, number)
        if number > fields.count:
            break
        yield from column_lines(f"col {column:2}", fields.bytes(number))
        number += 1
    return number


def _updated_columns(fields: Fields, kdo: int) -> Generator[str, None, int]:
    data = fields.bytes(kdo)
    given = fields.number(kdo, KDO_UPDATE_NNEW, 1)
    numbers = fields.numbers(kdo + 1)
    number = kdo + 2
    if data[KDO_TYPE] & KDO_COLUMN_VECTOR:
        yield f"first column: {numbers[:1]}"
        yield from plain_lines(fields, number, "column vector, field")
        return number + 1
    for index, column in enumerate(numbers):
        at = KDO_UPDATE_NULLS + (index >> 3)
        if index >= given or (at < len(data) and data[at] >> (index & 7) & 1):
            yield from column_lines(f"col {column:2}", None)
            continue
        number = _skip_empty(fields, number)
        if number > fields.count:
            break
        yield from column_lines(f"col {column:2}", fields.bytes(number))
        number += 1
    return number


def _multi_rows(fields: Fields, kdo: int) -> Generator[str, None, int]:
    lengths = fields.numbers(kdo + 1)
    rows = fields.bytes(kdo + 2)
    at = 0
    for row, length in enumerate(lengths[: fields.bytes(kdo)[KDO_MULTI_NROW]]):
        part = rows[at : at + length]
        at += length
        if len(part) < ROW_SIZE:
            yield f"row {row}: [{len(part)}] {part.hex(' ')}"
            continue
        flags, lock, count = part[:ROW_SIZE]
        yield (f"row {row}: [{length}] fb: {row_flags(flags)} lb: 0x{lock:02x} cc: {count}")
        if fields.bytes(kdo)[KDO_OP] & KDO_ROW_SCN:
            # The width of the row SCN depends on the Oracle version, so print the columns as bytes.
            yield f"  {part[ROW_SIZE:].hex(' ')}"
            continue
        yield from _prefixed(part, ROW_SIZE, count, big=fields.big)
    return kdo + 3


def _prefixed(data: bytes, at: int, count: int, *, big: bool) -> Iterator[str]:
    """Yield the lines of columns that each follow their length."""
    for column in range(count):
        if at >= len(data):
            return
        size = data[at]
        at += 1
        if size == LENGTH_NULL:
            yield from column_lines(f"  col {column:2}", None)
            continue
        if size == LENGTH_LONG:
            size = int.from_bytes(data[at : at + 2], "big" if big else "little")
            at += 2
        yield from column_lines(f"  col {column:2}", data[at : at + size])
        at += size


def supplemental_lines(fields: Fields, number: int) -> Generator[str, None, int]:
    """Yield the lines of the supplemental data whose header is field `number`; return the number of
    the field after the data.
    """
    data = fields.bytes(number)
    yield from known_lines(fields, number, "supplemental", _SUPPLEMENTAL)
    count = fields.number(number, SUPPLEMENTAL_CC, 2)
    if count == 0 or number + 2 > fields.count:
        number += 1
    else:
        columns, lengths = fields.numbers(number + 1), fields.numbers(number + 2)
        number += 3
        for column, length in zip(columns[:count], lengths[:count], strict=False):
            yield from column_lines(
                f"  sup col {column:2}",
                None if length in (0, SUPPLEMENTAL_NULL) else fields.bytes(number),
            )
            number += 1
    if data[SUPPLEMENTAL_OPT] & SUPPLEMENTAL_CHANGED and number + 1 <= fields.count:
        yield from plain_lines(fields, number, "changed columns of, field")
        yield from plain_lines(fields, number + 1, "changed columns, field")
        number += 2
    return number
