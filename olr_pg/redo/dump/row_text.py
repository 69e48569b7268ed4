"""The fields of row changes as lines of text: ktub, KTB, KDO, columns, supplemental data.

Undo records and row vectors are built of them alike. Facts: redo-format §4.2, §4.3, §5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump import members
from olr_pg.redo.dump.field_text import column_lines, known_lines, plain_lines, rest_lines
from olr_pg.redo.dump.members import write_members
from olr_pg.redo.record_view import u16_list

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from olr_pg.redo.record_view import Fields

_KTB_OPS: Final = {1: "F", 2: "C", 3: "Z", 4: "L", 5: "R", 6: "N"}
_KDO_OPS: Final = {
    1: "IUR", 2: "IRP", 3: "DRP", 4: "LKR", 5: "URP", 6: "ORP", 7: "MFC", 8: "CFA", 9: "CKI",
    10: "SKL", 11: "QMI", 12: "QMD", 14: "DSC", 16: "LMN", 17: "LLB", 20: "SHK", 22: "CMP",
    23: "DCU", 24: "MRK",
}  # fmt: skip
_KDO_MEMBERS: Final = {
    2: members.KDO_PIECE,
    3: members.KDO_DELETE,
    4: members.KDO_LOCK,
    5: members.KDO_UPDATE,
    6: members.KDO_PIECE,
    8: members.KDO_FORWARD,
    10: members.KDO_KEY_LINKS,
    11: members.KDO_MULTI,
    12: members.KDO_MULTI,
    14: members.KDO_COLUMN,
}
_XTYPES: Final = {1: "XA", 2: "XR", 3: "CR"}
SUPPLEMENTAL_SIZES: Final = (20, 26, 28)
"""Bytes of a supplemental header, by which it is known among columns."""


def ktub_lines(fields: Fields, number: int) -> Iterator[str]:
    """Write a ktub: the undo record's object and operation, and its links."""
    kind = {24: "ktubu", 28: "ktubx", 76: "ktubl"}.get(fields.size(number), "ktub")
    yield from known_lines(fields, number, f"{kind} redo", members.KTUB)
    data = fields.bytes(number)
    if len(data) > 24:
        yield "  " + write_members(data, members.KTUB_LONG, big=fields.big)


def ktb_lines(fields: Fields, number: int) -> Iterator[str]:
    """Write KTB redo: the transaction's entry in the block, and a cleanout of others."""
    data, big = fields.bytes(number), fields.big
    if len(data) < 2:
        yield from plain_lines(fields, number)
        return
    op, flags = data[0], data[1]
    at = 8 if flags & 8 else 4
    name = _KTB_OPS.get(op & 15, "?")
    detail = {
        "F": (("xid", 0, "xid"), ("uba", 8, "uba")),
        "C": (("uba", 0, "uba"),),
        "L": (("xid", 0, "xid"), ("uba", 8, "uba"), ("lkc", 16, "u1"), ("flg", 17, "x1")),
        "R": (("itc", 0, "i2"),),
    }.get(name, ())
    shown = tuple(members.Member(label, at + offset, kind) for label, offset, kind in detail)
    text = write_members(data, shown, big=big)
    yield f"KTB redo: [{len(data)}] op: 0x{op:02x} ver: 0x{flags:02x} op: {name}  {text}".rstrip()
    if op & 0x10 and len(data) >= at + 48:
        cleanout = tuple(
            members.Member(label, at + offset, kind)
            for label, offset, kind in (
                ("opt", 36, "u1"), ("entries", 37, "u1"), ("ver", 38, "x1"), ("scn", 40, "scn"),
            )
        )  # fmt: skip
        yield f"  block cleanout: {write_members(data, cleanout, big=big)}"
        for entry in range(data[at + 37]):
            start = at + 48 + 8 * entry
            if start + 8 <= len(data):
                part = data[start : start + 8]
                yield f"    itli: {part[0]}  flg: 0x{part[1]:02x}  scn: {part[2:].hex(' ')}"


def _kdo(fields: Fields, number: int) -> tuple[int, list[str]]:
    """(operation, lines) of a KDO field; 0 where it is too short."""
    data = fields.bytes(number)
    if len(data) < 16:
        return 0, list(plain_lines(fields, number))
    op = data[10] & 0x1F
    name = _KDO_OPS.get(op, "?")
    marks = [mark for bit, mark in ((0x20, "undo"), (0x40, "rowdependencies")) if data[10] & bit]
    if data[11] & 0x80:
        marks.append("KDOM2")
    lines = [
        f"KDO op code: {name} (0x{data[10]:02x})  xtype: {_XTYPES.get(data[11] & 3, '?')}"
        f" (0x{data[11]:02x})  {write_members(data, members.KDO, big=fields.big)}"
        + (f"  {' '.join(marks)}" if marks else "")
    ]
    known = _KDO_MEMBERS.get(op)
    if known:
        shown = [member for member in known if _is_there(member.name, data)]
        lines.append("  " + write_members(data, tuple(shown), big=fields.big))
    bitmap = {2: 45, 6: 45, 5: 26}.get(op)
    if bitmap is not None and len(data) > bitmap:
        lines.append(f"  null bits: {data[bitmap:].hex(' ')}")
    if op in (11, 12):
        slots = data[20 : 20 + 2 * data[18]] if len(data) > 18 else b""
        lines.append(f"  slots: {u16_list(slots, big=fields.big)}")
    return op, lines


def _is_there(member: str, data: bytes) -> bool:
    """Tell whether a row piece has the address (redo-format §5.4); else those bytes are garbage."""
    if member == "hrid":
        return data[10] & 0x1F == 8 or bool(data[16] & 0x80) or data[16] & 0x28 == 0x08
    if member == "nrid":
        return data[10] & 0x1F == 8 or bool(data[16] & 0x80) or not data[16] & 0x04
    return True


def row_lines(fields: Fields, ktb: int) -> Iterator[str]:
    """Write KTB redo at field `ktb`, KDO, columns, supplemental data."""
    yield from ktb_lines(fields, ktb)
    kdo = ktb + 1
    if fields.size(kdo) == 0:
        yield from rest_lines(fields, kdo)
        return
    op, lines = _kdo(fields, kdo)
    yield from lines
    number = kdo + 1
    if op in (2, 6):
        number = yield from _piece_columns(fields, kdo)
    elif op == 5:
        number = yield from _updated_columns(fields, kdo)
    elif op == 11 and fields.count >= kdo + 2:
        number = yield from _multi_rows(fields, kdo)
    number = _skip_empty(fields, number)
    if fields.bytes(kdo)[10:11] and fields.bytes(kdo)[10] & 0x40 and fields.size(number) in (6, 8):
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
    count = data[18] if len(data) > 18 else 0
    number = kdo + 1
    first = _skip_empty(fields, number)
    if count != 1 and len(data) >= 42 and fields.size(first) == fields.number(kdo, 40, 2) > 0:
        yield from plain_lines(fields, first, "compressed row, field")
        return first + 1
    for column in range(count):
        at = 45 + (column >> 3)
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
    given = data[23] if len(data) > 23 else 0
    numbers = fields.numbers(kdo + 1)
    number = kdo + 2
    if data[11] & 0x80:
        yield f"first column: {numbers[:1]}"
        yield from plain_lines(fields, number, "column vector, field")
        return number + 1
    for index, column in enumerate(numbers):
        at = 26 + (index >> 3)
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
    skip = 3
    at = 0
    for row, length in enumerate(lengths[: fields.bytes(kdo)[18]]):
        part = rows[at : at + length]
        at += length
        if len(part) < skip:
            yield f"row {row}: [{len(part)}] {part.hex(' ')}"
            continue
        flags, lock, count = part[:3]
        yield (f"row {row}: [{length}] fb: {members.row_flags(flags)} lb: 0x{lock:02x} cc: {count}")
        if fields.bytes(kdo)[10] & 0x40:
            # The width of the row SCN depends on the version: leave the columns unparsed.
            yield f"  {part[3:].hex(' ')}"
            continue
        yield from _prefixed(part, skip, count, big=fields.big)
    return kdo + 3


def _prefixed(data: bytes, at: int, count: int, *, big: bool) -> Iterator[str]:
    """Columns with their lengths before them."""
    for column in range(count):
        if at >= len(data):
            return
        size = data[at]
        at += 1
        if size == 0xFF:
            yield from column_lines(f"  col {column:2}", None)
            continue
        if size == 0xFE:
            size = int.from_bytes(data[at : at + 2], "big" if big else "little")
            at += 2
        yield from column_lines(f"  col {column:2}", data[at : at + size])
        at += size


def supplemental_lines(fields: Fields, number: int) -> Generator[str, None, int]:
    """Write the supplemental data whose header is field `number`; the field behind them."""
    data = fields.bytes(number)
    yield from known_lines(fields, number, "supplemental", members.SUPPLEMENTAL)
    count = fields.number(number, 2, 2)
    if count == 0 or number + 2 > fields.count:
        number += 1
    else:
        columns, lengths = fields.numbers(number + 1), fields.numbers(number + 2)
        number += 3
        for column, length in zip(columns[:count], lengths[:count], strict=False):
            yield from column_lines(
                f"  sup col {column:2}", None if length in (0, 0xFFFF) else fields.bytes(number)
            )
            number += 1
    if data[17] & 0x20 and number + 1 <= fields.count:
        yield from plain_lines(fields, number, "changed columns of, field")
        yield from plain_lines(fields, number + 1, "changed columns, field")
        number += 2
    return number
