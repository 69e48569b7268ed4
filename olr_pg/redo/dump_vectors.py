"""The content of a change vector as lines of text.

Known fields are written member by member, columns in hexadecimal, everything else as size and
bytes. A field that is shorter than its layout loses the members that do not fit. Facts:
redo-format §4–§8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo import dump_members as members
from olr_pg.redo.dump_members import write_members
from olr_pg.redo.record_view import BEGIN, END, SESSION, UNDO, UNDONE, u16_list

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from olr_pg.redo.dump_members import Member
    from olr_pg.redo.layout import RedoLayout
    from olr_pg.redo.record_view import Fields, Vector

_BYTES_PER_LINE: Final = 32
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
_SUPPLEMENTAL_SIZES: Final = (20, 26, 28)
_SESSION_TEXTS: Final = {
    0x0513: {
        2: "current username", 3: "login username", 4: "client info", 5: "OS username",
        6: "machine name", 7: "OS terminal", 8: "OS process id", 9: "OS program name",
        10: "transaction name", 14: "client id",
    },
    0x0514: {2: "transaction name", 7: "client id", 8: "login username"},
}  # fmt: skip
_SESSION_NUMBERS: Final = {0x0513: (11, 12, 13), 0x0514: (3, 4, 5)}
_DDL_TEXTS: Final = {
    2: "login schema",
    3: "current schema",
    8: "statement",
    9: "object owner",
    10: "object name",
}
_OUTCOMES: Final = {1: "commit", 2: "rollback"}


def vector_lines(vector: Vector, layout: RedoLayout) -> Iterator[str]:
    """What the fields of a vector hold."""
    writer = _WRITERS.get(vector.opcode)
    if writer is None and vector.opcode >> 8 == 11:
        writer = _row
    elif writer is None and vector.opcode >> 8 == 10:
        writer = _index
    if writer is None:
        yield from _rest(vector.fields, 1)
    else:
        yield from writer(vector, layout)


def hex_lines(data: bytes, indent: str = "  ") -> Iterator[str]:
    """Bytes with their offsets, 32 to a line."""
    for at in range(0, len(data), _BYTES_PER_LINE):
        part = data[at : at + _BYTES_PER_LINE]
        yield f"{indent}{at:04x}: {part.hex(' ')}"


def _rest(fields: Fields, first: int) -> Iterator[str]:
    for number in range(first, fields.count + 1):
        yield from _plain(fields, number)


def _plain(fields: Fields, number: int, label: str = "field") -> Iterator[str]:
    data = fields.bytes(number)
    head = f"{label} {number}: [{len(data):3}]"
    if len(data) <= _BYTES_PER_LINE:
        yield f"{head} {data.hex(' ')}".rstrip()
        return
    yield head
    yield from hex_lines(data)


def _known(fields: Fields, number: int, label: str, known: tuple[Member, ...]) -> Iterator[str]:
    data = fields.bytes(number)
    if data:
        yield f"{label}: [{len(data)}] {write_members(data, known, big=fields.big)}"


def _text(data: bytes) -> str:
    # Which character set it is the log does not say: everything but plain ASCII is escaped.
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\x{c:02x}" for c in data)


def _named_text(fields: Fields, number: int, label: str) -> Iterator[str]:
    data = fields.bytes(number)
    if data:
        yield f"{label}: {_text(data)}"


def _ktub(fields: Fields, number: int) -> Iterator[str]:
    kind = {24: "ktubu", 28: "ktubx", 76: "ktubl"}.get(fields.size(number), "ktub")
    yield from _known(fields, number, f"{kind} redo", members.KTUB)
    data = fields.bytes(number)
    if len(data) > 24:
        yield "  " + write_members(data, members.KTUB_LONG, big=fields.big)


def _ktb(fields: Fields, number: int) -> Iterator[str]:
    data, big = fields.bytes(number), fields.big
    if len(data) < 2:
        yield from _plain(fields, number)
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
        return 0, list(_plain(fields, number))
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
    """Whether a row piece has the address (redo-format §5.4); elsewhere those bytes are garbage."""
    if member == "hrid":
        return data[10] & 0x1F == 8 or bool(data[16] & 0x80) or data[16] & 0x28 == 0x08
    if member == "nrid":
        return data[10] & 0x1F == 8 or bool(data[16] & 0x80) or not data[16] & 0x04
    return True


def _row_body(fields: Fields, ktb: int) -> Iterator[str]:
    """KTB redo at field `ktb`, KDO, columns, supplemental data."""
    yield from _ktb(fields, ktb)
    kdo = ktb + 1
    if fields.size(kdo) == 0:
        yield from _rest(fields, kdo)
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
        yield from _plain(fields, number, "dscn, field")
        number = _skip_empty(fields, number + 1)
    if fields.size(number) in _SUPPLEMENTAL_SIZES:
        number = yield from _supplemental(fields, number)
    yield from _rest(fields, number)


def _skip_empty(fields: Fields, number: int) -> int:
    while number <= fields.count and fields.size(number) == 0:
        number += 1
    return number


def _column(label: str, data: bytes | None) -> Iterator[str]:
    if data is None:
        yield f"{label}: *NULL*"
    elif len(data) <= _BYTES_PER_LINE:
        yield f"{label}: [{len(data):3}] {data.hex(' ')}"
    else:
        yield f"{label}: [{len(data):3}]"
        yield from hex_lines(data, "    ")


def _piece_columns(fields: Fields, kdo: int) -> Generator[str, None, int]:
    data = fields.bytes(kdo)
    count = data[18] if len(data) > 18 else 0
    number = kdo + 1
    first = _skip_empty(fields, number)
    if count != 1 and len(data) >= 42 and fields.size(first) == fields.number(kdo, 40, 2) > 0:
        yield from _plain(fields, first, "compressed row, field")
        return first + 1
    for column in range(count):
        at = 45 + (column >> 3)
        if at < len(data) and data[at] >> (column & 7) & 1:
            yield from _column(f"col {column:2}", None)
            continue
        number = _skip_empty(fields, number)
        if number > fields.count:
            break
        yield from _column(f"col {column:2}", fields.bytes(number))
        number += 1
    return number


def _updated_columns(fields: Fields, kdo: int) -> Generator[str, None, int]:
    data = fields.bytes(kdo)
    given = data[23] if len(data) > 23 else 0
    numbers = fields.numbers(kdo + 1)
    number = kdo + 2
    if data[11] & 0x80:
        yield f"first column: {numbers[:1]}"
        yield from _plain(fields, number, "column vector, field")
        return number + 1
    for index, column in enumerate(numbers):
        at = 26 + (index >> 3)
        if index >= given or (at < len(data) and data[at] >> (index & 7) & 1):
            yield from _column(f"col {column:2}", None)
            continue
        number = _skip_empty(fields, number)
        if number > fields.count:
            break
        yield from _column(f"col {column:2}", fields.bytes(number))
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
            yield from _column(f"  col {column:2}", None)
            continue
        if size == 0xFE:
            size = int.from_bytes(data[at : at + 2], "big" if big else "little")
            at += 2
        yield from _column(f"  col {column:2}", data[at : at + size])
        at += size


def _supplemental(fields: Fields, number: int) -> Generator[str, None, int]:
    data = fields.bytes(number)
    yield from _known(fields, number, "supplemental", members.SUPPLEMENTAL)
    count = fields.number(number, 2, 2)
    if count == 0 or number + 2 > fields.count:
        number += 1
    else:
        columns, lengths = fields.numbers(number + 1), fields.numbers(number + 2)
        number += 3
        for column, length in zip(columns[:count], lengths[:count], strict=False):
            yield from _column(
                f"  sup col {column:2}", None if length in (0, 0xFFFF) else fields.bytes(number)
            )
            number += 1
    if data[17] & 0x20 and number + 1 <= fields.count:
        yield from _plain(fields, number, "changed columns of, field")
        yield from _plain(fields, number + 1, "changed columns, field")
        number += 2
    return number


def _undo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, "ktudb redo", members.KTUDB)
    yield from _ktub(fields, 2)
    data = fields.bytes(2)
    opc = (data[16], data[17]) if len(data) >= 18 else (0, 0)
    if fields.count < 3:
        return
    if opc == (11, 1):
        yield from _row_body(fields, 3)
    elif opc == (10, 22):
        yield from _ktb(fields, 3)
        yield from _known(fields, 4, "kdilk", members.KDILK)
        yield from _index_values(fields, 5, {5: "key", 6: "keydata/bitmap"})
    elif opc == (26, 1):
        yield from _ktb(fields, 3)
        yield from _lob_parts(fields, 4)
    elif opc == (14, 8):
        yield f"new objd: {fields.number(3, 0, 4)}"
        yield from _rest(fields, 4)
    else:
        yield from _rest(fields, 3)


def _begin(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, f"ktudh redo (usn {vector.undo_segment})", members.KTUDH)
    for number in range(2, fields.count + 1):
        if fields.size(number) == 4:
            yield f"pdb dbid: {fields.number(number, 0, 4)}"
        elif fields.size(number) == 36:
            yield from _known(fields, number, "kteop redo", members.KTEOP)
        else:
            yield from _plain(fields, number)


def _end(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, f"ktucm redo (usn {vector.undo_segment})", members.KTUCM)
    flags = fields.number(1, 16, 1)
    if flags & 0x04:
        yield "rolled back"
    number = 2
    if flags & 0x02:
        yield from _known(fields, number, "ktucf redo", members.KTUCF)
        number += 1
    for rest in range(number, fields.count + 1):
        if fields.size(rest) == 4:
            yield f"commit time (Unix): {fields.number(rest, 0, 4)}"
        else:
            yield from _plain(fields, rest)


def _undone(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from _ktub(vector.fields, 1)
    yield from _known(vector.fields, 2, "ktuxvoff", members.KTUXVOFF)
    yield from _rest(vector.fields, 3)


def _session(vector: Vector, layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    known = members.SESSION if layout.long_session else members.SESSION_OLD
    yield from _known(fields, 1, "session", known)
    texts = _SESSION_TEXTS[vector.opcode]
    flags, version, audit = _SESSION_NUMBERS[vector.opcode]
    for number in range(2, fields.count + 1):
        size = fields.size(number)
        if number in texts:
            yield from _named_text(fields, number, texts[number])
        elif number == flags:
            yield from _known(fields, number, "transaction", members.TRAN_FLAGS)
        elif number == version and size == 4:
            yield f"version: 0x{fields.number(number, 0, 4):08x}"
        elif number == audit and size in (4, 8):
            yield f"audit session id: {fields.number(number, 0, size)}"
        elif size:
            yield from _plain(fields, number)


def _row(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from _row_body(vector.fields, 1)


def _index_values(fields: Fields, first: int, labels: dict[int, str]) -> Iterator[str]:
    for number in range(first, fields.count + 1):
        if fields.size(number) in _SUPPLEMENTAL_SIZES and fields.number(4, 2, 1) & 0x80:
            after = yield from _supplemental(fields, number)
            yield from _rest(fields, after)
            return
        yield from _plain(fields, number, labels.get(number, "field"))


def _index(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields, code = vector.fields, vector.opcode & 255
    yield from _ktb(fields, 1)
    if code == 8:
        yield from _known(fields, 2, "kdxln", members.KDXLN)
        labels = {3: "row offsets, field", 4: "rows, field"}
    elif code == 35:
        yield from _known(fields, 2, "index redo", members.INDEX_COLUMNS)
        yield f"columns: {fields.numbers(3)}"
        labels = dict.fromkeys(range(4, fields.count + 1), "col of, field")
    else:
        yield from _known(fields, 2, "index redo", members.INDEX)
        labels = {2: {3: "key, field", 4: "keydata, field"}, 18: {3: "keydata, field"}}.get(
            code, {3: "row, field"}
        )
    for number in range(4 if code == 35 else 3, fields.count + 1):
        yield from _plain(fields, number, labels.get(number, "field"))


def _lob_parts(fields: Fields, first: int) -> Iterator[str]:
    yield from _known(fields, first, "KDLI common", members.KDLI)
    for number in range(first + 1, fields.count + 1):
        part = members.KDLI_PARTS.get(fields.number(number, 0, 1))
        if part is None or fields.size(number) < 8:
            yield from _plain(fields, number, "LOB data, field")
            continue
        name, known = part
        yield from _known(fields, number, f"KDLI {name}", known)
        if name == "fill":
            yield from hex_lines(fields.bytes(number)[8:])


def _lob_write(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, "KDLI common", members.KDLI)
    for number in range(2, fields.count + 1):
        part = members.KDLI_PARTS.get(fields.number(number, 0, 1))
        # Field 4 of a block image is LOB data, whatever its first byte.
        if number == 4 or part is None:
            yield from _plain(fields, number, "LOB data, field")
        else:
            yield from _known(fields, number, f"KDLI {part[0]}", part[1])


def _lob_redo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from _ktb(vector.fields, 1)
    yield from _lob_parts(vector.fields, 2)


def _lob_support(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    kind = fields.number(2, 0, 1)
    yield f"LLB kind: {kind}"
    yield from _plain(fields, 1)
    yield from _known(fields, 3, "LLB", members.LLB.get(kind, ()))
    if kind == 4:
        yield f"LOB columns: {fields.numbers(4)}"
        yield from _plain(fields, 5)
        columns, lengths = fields.numbers(6), fields.numbers(7)
        for number in range(8, 11):
            yield from _plain(fields, number)
        yield from _named_text(fields, 11, "rowid")
        for index, (column, length) in enumerate(zip(columns, lengths, strict=False)):
            yield from _column(
                f"  col {column:2}", None if length == 0xFFFF else fields.bytes(12 + index)
            )
        yield from _rest(fields, 12 + len(columns))
    else:
        yield from _rest(fields, 4)


def _block_image(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    is_data = fields.size(2) == 1 and fields.number(2, 0, 1) == 6
    yield from _known(
        fields, 1, "block image", members.BLOCK_IMAGE if is_data else members.LOB_IMAGE
    )
    yield from hex_lines(fields.bytes(1))
    yield from _rest(fields, 2)


def _ddl(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, "DDL", members.DDL)
    if fields.size(1) != 24 or fields.count < 12:
        yield from _rest(fields, 2)
        return
    for number in range(2, fields.count + 1):
        if number in _DDL_TEXTS:
            yield from _named_text(fields, number, _DDL_TEXTS[number])
        elif number == 12 and fields.size(12) == 4:
            yield f"objn: {fields.number(12, 0, 4)}"
        elif fields.size(number):
            yield from _plain(fields, number)


def _marker(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from _known(fields, 1, "transaction marker", members.MARKER)
    if fields.size(2):
        outcome = fields.number(2, 0, 1)
        yield f"outcome: {outcome} ({_OUTCOMES.get(outcome, '?')})"
    if fields.size(3):
        yield from _known(fields, 3, "transaction", members.TRAN_FLAGS)
    if fields.size(4) == 8:
        yield from _known(fields, 4, "start", (members.Member("scn", 0, "scn"),))
        yield from _rest(fields, 5)
    else:
        yield from _rest(fields, 4)


def _direct(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from _known(vector.fields, 1, "direct load", members.DIRECT_XID)
    yield from _rest(vector.fields, 2)


_WRITERS: Final[dict[int, Callable[[Vector, RedoLayout], Iterator[str]]]] = {
    UNDO: _undo,
    BEGIN: _begin,
    END: _end,
    **dict.fromkeys(UNDONE, _undone),
    **dict.fromkeys(SESSION, _session),
    0x0B11: _lob_support,
    0x1301: _block_image,
    0x1801: _ddl,
    0x1804: _marker,
    0x1806: _direct,
    0x1A02: _lob_redo,
    0x1A06: _lob_write,
}
