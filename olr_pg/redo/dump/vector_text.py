"""Prints the content of a change vector as lines of text.

Known fields are printed member by member, columns in hexadecimal, everything else as size and
bytes. If a field is shorter than its layout, only the members that fit are printed. Facts:
redo-format §4–§8.

Undo records and row vectors consist of the fields of row changes: ktub, KTB, KDO, columns and
supplemental data. Facts: redo-format §4.2, §4.3, §5. Each member of a structure is printed
according to its kind; a member that extends past the end of its field is not printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.format.lob_fields import (
    BLOCK_DATA,
    BLOCK_IMAGE,
    KDLI,
    KDLI_FILL_BYTES,
    KDLI_ITEMS,
    LLB,
    LLB_ROW,
    LOB_IMAGE,
)
from olr_pg.redo.format.opcodes import (
    CFA,
    IRP,
    LEAF_COLUMNS,
    LEAF_DATA,
    LEAF_INITIALIZE,
    LEAF_INSERT,
    ORP,
    QMD,
    QMI,
    UNDONE,
    URP,
    Layer,
    Opcode,
    RowOperation,
    UndoOf,
)
from olr_pg.redo.format.row_fields import (
    FB_CLUSTER_KEY,
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    FB_LETTERS,
    KDILK,
    KDILK_FLAGS,
    KDILK_SUPPLEMENTAL,
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
    KDXLN,
    KTB_CLEANOUT,
    KTB_CLEANOUT_DATA,
    KTB_CLEANOUT_ENTRY,
    KTB_DATA,
    KTB_DATA_LONG,
    KTB_LEAST,
    KTB_LONG,
    KTB_OPERATION,
    KTB_OPERATIONS,
    LEAF,
    LEAF_ARRAY_REDO,
    LEAF_COLUMNS_REDO,
    LENGTH_LONG,
    LENGTH_NULL,
    ROW_SIZE,
    SUPPLEMENTAL,
    SUPPLEMENTAL_ADDRESS,
    SUPPLEMENTAL_CC,
    SUPPLEMENTAL_CHANGED,
    SUPPLEMENTAL_FB_LETTERS,
    SUPPLEMENTAL_NULL,
    SUPPLEMENTAL_OPT,
    SUPPLEMENTAL_SIZES,
)
from olr_pg.redo.format.undo_fields import (
    DDL,
    DDL_FIELDS,
    DDL_OBJN,
    DDL_SIZE,
    DDL_TEXTS,
    DIRECT_XID,
    KTEOP,
    KTUB,
    KTUB_LONG,
    KTUB_NAMES,
    KTUB_SIZE,
    KTUCF,
    KTUCM,
    KTUCM_FLG,
    KTUCM_HAS_KTUCF,
    KTUCM_ROLLED_BACK,
    KTUDB,
    KTUDH,
    KTUXVOFF,
    MARKER,
    MARKER_OUTCOMES,
    MARKER_START,
    SESSION,
    SESSION_NUMBERS,
    SESSION_OLD,
    SESSION_TEXTS,
    TRAN_FLAGS,
)
from olr_pg.redo.header import read_scn
from olr_pg.redo.record_view import scn_text, u16_list, undo_of
from olr_pg.scalars import pack_xid, unpack_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from olr_pg.redo.format.file_fields import RedoLayout
    from olr_pg.redo.format.structure import Member
    from olr_pg.redo.record_view import Fields, Vector


def row_flags(value: int, letters: str = FB_LETTERS) -> str:
    """Return a row flag byte as text: ``--H-FL--``."""
    return "".join(letter if value & 0x80 >> bit else "-" for bit, letter in enumerate(letters))


def xid_text(xid: int) -> str:
    """Return an XID as text, as in Oracle's dumps: ``0x000a.00c.0000023c``."""
    return "0x{:04x}.{:03x}.{:08x}".format(*unpack_xid(xid))


def write_members(data: bytes, members: tuple[Member, ...], *, big: bool) -> str:
    """Return the members of a field as ``name: value``, one after the other. Members that extend
    past the end of the field are left out.
    """
    parts = []
    for member in members:
        if member.end <= len(data):
            text = _ROW_WRITERS[member.kind](data[member.at : member.end], big)
            parts.append(f"{member.name}: {text}")
    return "  ".join(parts)


def _int(data: bytes, big: bool, *, signed: bool = False) -> int:
    return int.from_bytes(data, "big" if big else "little", signed=signed)


def _xid(data: bytes, big: bool) -> str:
    return xid_text(pack_xid(_int(data[:2], big), _int(data[2:4], big), _int(data[4:8], big)))


def _uba(data: bytes, big: bool) -> str:
    return f"0x{_int(data[:4], big):08x}.{_int(data[4:6], big):04x}.{data[6]:02x}"


def _rid(data: bytes, big: bool) -> str:
    return f"0x{_int(data[:4], big):08x}.{_int(data[4:6], big):x}"


def _hex(width: int) -> Callable[[bytes, bool], str]:
    return lambda data, big: f"0x{_int(data, big):0{2 * width}x}"


_ROW_WRITERS: Final[dict[str, Callable[[bytes, bool], str]]] = {
    "u1": lambda data, _: str(data[0]),
    "u2": lambda data, big: str(_int(data, big)),
    "u4": lambda data, big: str(_int(data, big)),
    "i2": lambda data, big: str(_int(data, big, signed=True)),
    "i4": lambda data, big: str(_int(data, big, signed=True)),
    "x1": _hex(1),
    "x2": _hex(2),
    "x4": _hex(4),
    "b2": lambda data, _: str(_int(data, big=True)),
    "b4": lambda data, _: f"0x{_int(data, big=True):08x}",
    "xid": _xid,
    "uba": _uba,
    "scn": lambda data, big: scn_text(read_scn(data, 0, big_endian=big)),
    "rid": _rid,
    "op": lambda data, _: f"{data[0]}.{data[1]}",
    "fb": lambda data, _: f"{row_flags(data[0])} (0x{data[0]:02x})",
    "sfb": lambda data, _: f"{row_flags(data[0], SUPPLEMENTAL_FB_LETTERS)} (0x{data[0]:02x})",
    "lob": lambda data, _: data.hex(),
}

_BYTES_PER_LINE: Final = 32


def hex_lines(data: bytes, indent: str = "  ") -> Iterator[str]:
    """Yield lines with the bytes and their offsets, 32 bytes per line."""
    for at in range(0, len(data), _BYTES_PER_LINE):
        part = data[at : at + _BYTES_PER_LINE]
        yield f"{indent}{at:04x}: {part.hex(' ')}"


def rest_lines(fields: Fields, first: int) -> Iterator[str]:
    """Yield the lines of all fields from field `first` on, as bytes."""
    for number in range(first, fields.count + 1):
        yield from plain_lines(fields, number)


def plain_lines(fields: Fields, number: int, label: str = "field") -> Iterator[str]:
    """Yield the lines with the size and the bytes of a field."""
    data = fields.bytes(number)
    head = f"{label} {number}: [{len(data):3}]"
    if len(data) <= _BYTES_PER_LINE:
        yield f"{head} {data.hex(' ')}".rstrip()
        return
    yield head
    yield from hex_lines(data)


def known_lines(
    fields: Fields, number: int, label: str, known: tuple[Member, ...]
) -> Iterator[str]:
    """Yield the lines of a field, member by member; no lines if the field is empty."""
    data = fields.bytes(number)
    if data:
        yield f"{label}: [{len(data)}] {write_members(data, known, big=fields.big)}"


def _text(data: bytes) -> str:
    # The log does not contain the character set, so everything except printable ASCII is escaped.
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\x{c:02x}" for c in data)


def text_lines(fields: Fields, number: int, label: str) -> Iterator[str]:
    """Yield the line of a field as text; no line if the field is empty."""
    data = fields.bytes(number)
    if data:
        yield f"{label}: {_text(data)}"


def column_lines(label: str, data: bytes | None) -> Iterator[str]:
    """Yield the lines of a column's value in hexadecimal. None stands for NULL."""
    if data is None:
        yield f"{label}: *NULL*"
    elif len(data) <= _BYTES_PER_LINE:
        yield f"{label}: [{len(data):3}] {data.hex(' ')}"
    else:
        yield f"{label}: [{len(data):3}]"
        yield from hex_lines(data, "    ")


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
    """Yield the lines of KTB redo, which is field `ktb`, then the lines of KDO, columns and
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
    nulls = [_has_bit(data, KDO_PIECE_NULLS, column) for column in range(count)]
    return (yield from _columns(fields, number, enumerate(nulls)))


def _updated_columns(fields: Fields, kdo: int) -> Generator[str, None, int]:
    data = fields.bytes(kdo)
    given = fields.number(kdo, KDO_UPDATE_NNEW, 1)
    numbers = fields.numbers(kdo + 1)
    number = kdo + 2
    if data[KDO_TYPE] & KDO_COLUMN_VECTOR:
        yield f"first column: {numbers[:1]}"
        yield from plain_lines(fields, number, "column vector, field")
        return number + 1
    nulls = [
        index >= given or _has_bit(data, KDO_UPDATE_NULLS, index) for index in range(len(numbers))
    ]
    return (yield from _columns(fields, number, zip(numbers, nulls, strict=True)))


def _has_bit(data: bytes, first: int, number: int) -> bool:
    """Return whether a bit is set in the bits that begin at byte `first`; False after the end."""
    at = first + (number >> 3)
    return at < len(data) and bool(data[at] >> (number & 7) & 1)


def _columns(
    fields: Fields, number: int, columns: Iterable[tuple[int, bool]]
) -> Generator[str, None, int]:
    """Print columns, each with its number and whether it is NULL. The values of the columns that
    are not NULL are the fields from `number` on. Return the field after these values.
    """
    for column, is_null in columns:
        if is_null:
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


_LEAF: Final = LEAF.shown + LEAF_ARRAY_REDO.shown
_LEAF_LABELS: Final = {
    LEAF_INSERT: {3: "key, field", 4: "keydata, field"},
    LEAF_DATA: {3: "keydata, field"},
}


def vector_lines(vector: Vector, layout: RedoLayout) -> Iterator[str]:
    """Yield the lines with the contents of a vector's fields."""
    writer = _WRITERS.get(vector.opcode)
    if writer is None and vector.opcode >> 8 == Layer.ROW:
        writer = _row
    elif writer is None and vector.opcode >> 8 == Layer.INDEX:
        writer = _index
    if writer is None:
        yield from rest_lines(vector.fields, 1)
    else:
        yield from writer(vector, layout)


def _undo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "ktudb redo", KTUDB.shown)
    yield from ktub_lines(fields, 2)
    opc = undo_of(fields)
    if fields.count < 3:
        return
    if opc == UndoOf.ROW:
        yield from row_lines(fields, 3)
    elif opc == UndoOf.LEAF:
        yield from ktb_lines(fields, 3)
        yield from known_lines(fields, 4, "kdilk", KDILK.shown)
        yield from _index_values(fields, 5, {5: "key", 6: "keydata/bitmap"})
    elif opc == UndoOf.LOB:
        yield from ktb_lines(fields, 3)
        yield from _lob_parts(fields, 4)
    elif opc == UndoOf.TRUNCATE:
        yield f"new objd: {fields.number(3, 0, 4)}"
        yield from rest_lines(fields, 4)
    else:
        yield from rest_lines(fields, 3)


def _begin(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, f"ktudh redo (usn {vector.undo_segment})", KTUDH.shown)
    for number in range(2, fields.count + 1):
        if fields.size(number) == 4:
            yield f"pdb dbid: {fields.number(number, 0, 4)}"
        elif fields.size(number) == KTEOP.size:
            yield from known_lines(fields, number, "kteop redo", KTEOP.shown)
        else:
            yield from plain_lines(fields, number)


def _end(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, f"ktucm redo (usn {vector.undo_segment})", KTUCM.shown)
    flags = fields.number(1, KTUCM_FLG, 1)
    if flags & KTUCM_ROLLED_BACK:
        yield "rolled back"
    number = 2
    if flags & KTUCM_HAS_KTUCF:
        yield from known_lines(fields, number, "ktucf redo", KTUCF.shown)
        number += 1
    for rest in range(number, fields.count + 1):
        if fields.size(rest) == 4:
            yield f"commit time (Unix): {fields.number(rest, 0, 4)}"
        else:
            yield from plain_lines(fields, rest)


def _undone(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from ktub_lines(vector.fields, 1)
    yield from known_lines(vector.fields, 2, "ktuxvoff", KTUXVOFF.shown)
    yield from rest_lines(vector.fields, 3)


def _session(vector: Vector, layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    known = (SESSION if layout.long_session else SESSION_OLD).shown
    yield from known_lines(fields, 1, "session", known)
    texts = SESSION_TEXTS[Opcode(vector.opcode)]
    flags, version, audit = SESSION_NUMBERS[Opcode(vector.opcode)]
    for number in range(2, fields.count + 1):
        size = fields.size(number)
        if number in texts:
            yield from text_lines(fields, number, texts[number])
        elif number == flags:
            yield from known_lines(fields, number, "transaction", TRAN_FLAGS.shown)
        elif number == version and size == 4:
            yield f"version: 0x{fields.number(number, 0, 4):08x}"
        elif number == audit and size in (4, 8):
            yield f"audit session id: {fields.number(number, 0, size)}"
        elif size:
            yield from plain_lines(fields, number)


def _row(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from row_lines(vector.fields, 1)


def _index_values(fields: Fields, first: int, labels: dict[int, str]) -> Iterator[str]:
    for number in range(first, fields.count + 1):
        if (
            fields.size(number) in SUPPLEMENTAL_SIZES
            and fields.number(4, KDILK_FLAGS, 1) & KDILK_SUPPLEMENTAL
        ):
            after = yield from supplemental_lines(fields, number)
            yield from rest_lines(fields, after)
            return
        yield from plain_lines(fields, number, labels.get(number, "field"))


def _index(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields, code = vector.fields, vector.opcode & 255
    yield from ktb_lines(fields, 1)
    if code == LEAF_INITIALIZE:
        yield from known_lines(fields, 2, "kdxln", KDXLN.shown)
        labels = {3: "row offsets, field", 4: "rows, field"}
    elif code == LEAF_COLUMNS:
        yield from known_lines(fields, 2, "index redo", LEAF_COLUMNS_REDO.shown)
        yield f"columns: {fields.numbers(3)}"
        labels = dict.fromkeys(range(4, fields.count + 1), "col of, field")
    else:
        yield from known_lines(fields, 2, "index redo", _LEAF)
        labels = _LEAF_LABELS.get(code, {3: "row, field"})
    for number in range(4 if code == LEAF_COLUMNS else 3, fields.count + 1):
        yield from plain_lines(fields, number, labels.get(number, "field"))


def _lob_parts(fields: Fields, first: int) -> Iterator[str]:
    yield from known_lines(fields, first, "KDLI common", KDLI.shown)
    for number in range(first + 1, fields.count + 1):
        part = KDLI_ITEMS.get(fields.number(number, 0, 1))
        if part is None or fields.size(number) < 8:
            yield from plain_lines(fields, number, "LOB data, field")
            continue
        yield from known_lines(fields, number, f"KDLI {part.name}", part.shown)
        if part.name == "fill":
            yield from hex_lines(fields.bytes(number)[KDLI_FILL_BYTES:])


def _lob_write(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "KDLI common", KDLI.shown)
    for number in range(2, fields.count + 1):
        part = KDLI_ITEMS.get(fields.number(number, 0, 1))
        # Field 4 of a block image is LOB data, so its first byte is not the code of an item.
        if number == 4 or part is None:
            yield from plain_lines(fields, number, "LOB data, field")
        else:
            yield from known_lines(fields, number, f"KDLI {part.name}", part.shown)


def _lob_redo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from ktb_lines(vector.fields, 1)
    yield from _lob_parts(vector.fields, 2)


def _lob_support(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    kind = fields.number(2, 0, 1)
    yield f"LLB kind: {kind}"
    yield from plain_lines(fields, 1)
    yield from known_lines(fields, 3, "LLB", LLB[kind].shown if kind in LLB else ())
    if kind == LLB_ROW:
        yield f"LOB columns: {fields.numbers(4)}"
        yield from plain_lines(fields, 5)
        columns, lengths = fields.numbers(6), fields.numbers(7)
        for number in range(8, 11):
            yield from plain_lines(fields, number)
        yield from text_lines(fields, 11, "rowid")
        for index, (column, length) in enumerate(zip(columns, lengths, strict=False)):
            yield from column_lines(
                f"  col {column:2}",
                None if length == SUPPLEMENTAL_NULL else fields.bytes(12 + index),
            )
        yield from rest_lines(fields, 12 + len(columns))
    else:
        yield from rest_lines(fields, 4)


def _block_image(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    is_data = fields.size(2) == 1 and fields.number(2, 0, 1) == BLOCK_DATA
    known = BLOCK_IMAGE if is_data else LOB_IMAGE
    yield from known_lines(fields, 1, "block image", known.shown)
    yield from hex_lines(fields.bytes(1))
    yield from rest_lines(fields, 2)


def _ddl(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "DDL", DDL.shown)
    if fields.size(1) != DDL_SIZE or fields.count < DDL_FIELDS:
        yield from rest_lines(fields, 2)
        return
    for number in range(2, fields.count + 1):
        if number in DDL_TEXTS:
            yield from text_lines(fields, number, DDL_TEXTS[number])
        elif number == DDL_OBJN and fields.size(number) == 4:
            yield f"objn: {fields.number(number, 0, 4)}"
        elif fields.size(number):
            yield from plain_lines(fields, number)


def _marker(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "transaction marker", MARKER.shown)
    if fields.size(2):
        outcome = fields.number(2, 0, 1)
        yield f"outcome: {outcome} ({MARKER_OUTCOMES.get(outcome, '?')})"
    if fields.size(3):
        yield from known_lines(fields, 3, "transaction", TRAN_FLAGS.shown)
    if fields.size(4) == MARKER_START.size:
        yield from known_lines(fields, 4, "start", MARKER_START.shown)
        yield from rest_lines(fields, 5)
    else:
        yield from rest_lines(fields, 4)


def _direct(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from known_lines(vector.fields, 1, "direct load", DIRECT_XID.shown)
    yield from rest_lines(vector.fields, 2)


_WRITERS: Final[dict[int, Callable[[Vector, RedoLayout], Iterator[str]]]] = {
    Opcode.UNDO: _undo,
    Opcode.BEGIN: _begin,
    Opcode.END: _end,
    **dict.fromkeys(UNDONE, _undone),
    **dict.fromkeys(SESSION_TEXTS, _session),
    Opcode.LOB_OPERATION: _lob_support,
    Opcode.BLOCK_IMAGE: _block_image,
    Opcode.DDL: _ddl,
    Opcode.TRANSACTION_MARKER: _marker,
    Opcode.DIRECT_LOAD: _direct,
    Opcode.LOB_REDO: _lob_redo,
    Opcode.LOB_WRITE: _lob_write,
}
