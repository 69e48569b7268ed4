"""The content of a change vector as lines of text.

Known fields are written member by member, columns in hexadecimal, everything else as size and
bytes. A field that is shorter than its layout loses the members that do not fit. Facts:
redo-format §4–§8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump import members
from olr_pg.redo.dump.field_text import (
    column_lines,
    hex_lines,
    known_lines,
    plain_lines,
    rest_lines,
    text_lines,
)
from olr_pg.redo.dump.row_text import (
    SUPPLEMENTAL_SIZES,
    ktb_lines,
    ktub_lines,
    row_lines,
    supplemental_lines,
)
from olr_pg.redo.record_view import BEGIN, END, SESSION, UNDO, UNDONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.redo.layout import RedoLayout
    from olr_pg.redo.record_view import Fields, Vector

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
    """Write what the fields of a vector hold."""
    writer = _WRITERS.get(vector.opcode)
    if writer is None and vector.opcode >> 8 == 11:
        writer = _row
    elif writer is None and vector.opcode >> 8 == 10:
        writer = _index
    if writer is None:
        yield from rest_lines(vector.fields, 1)
    else:
        yield from writer(vector, layout)


def _undo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "ktudb redo", members.KTUDB)
    yield from ktub_lines(fields, 2)
    data = fields.bytes(2)
    opc = (data[16], data[17]) if len(data) >= 18 else (0, 0)
    if fields.count < 3:
        return
    if opc == (11, 1):
        yield from row_lines(fields, 3)
    elif opc == (10, 22):
        yield from ktb_lines(fields, 3)
        yield from known_lines(fields, 4, "kdilk", members.KDILK)
        yield from _index_values(fields, 5, {5: "key", 6: "keydata/bitmap"})
    elif opc == (26, 1):
        yield from ktb_lines(fields, 3)
        yield from _lob_parts(fields, 4)
    elif opc == (14, 8):
        yield f"new objd: {fields.number(3, 0, 4)}"
        yield from rest_lines(fields, 4)
    else:
        yield from rest_lines(fields, 3)


def _begin(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, f"ktudh redo (usn {vector.undo_segment})", members.KTUDH)
    for number in range(2, fields.count + 1):
        if fields.size(number) == 4:
            yield f"pdb dbid: {fields.number(number, 0, 4)}"
        elif fields.size(number) == 36:
            yield from known_lines(fields, number, "kteop redo", members.KTEOP)
        else:
            yield from plain_lines(fields, number)


def _end(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, f"ktucm redo (usn {vector.undo_segment})", members.KTUCM)
    flags = fields.number(1, 16, 1)
    if flags & 0x04:
        yield "rolled back"
    number = 2
    if flags & 0x02:
        yield from known_lines(fields, number, "ktucf redo", members.KTUCF)
        number += 1
    for rest in range(number, fields.count + 1):
        if fields.size(rest) == 4:
            yield f"commit time (Unix): {fields.number(rest, 0, 4)}"
        else:
            yield from plain_lines(fields, rest)


def _undone(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from ktub_lines(vector.fields, 1)
    yield from known_lines(vector.fields, 2, "ktuxvoff", members.KTUXVOFF)
    yield from rest_lines(vector.fields, 3)


def _session(vector: Vector, layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    known = members.SESSION if layout.long_session else members.SESSION_OLD
    yield from known_lines(fields, 1, "session", known)
    texts = _SESSION_TEXTS[vector.opcode]
    flags, version, audit = _SESSION_NUMBERS[vector.opcode]
    for number in range(2, fields.count + 1):
        size = fields.size(number)
        if number in texts:
            yield from text_lines(fields, number, texts[number])
        elif number == flags:
            yield from known_lines(fields, number, "transaction", members.TRAN_FLAGS)
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
        if fields.size(number) in SUPPLEMENTAL_SIZES and fields.number(4, 2, 1) & 0x80:
            after = yield from supplemental_lines(fields, number)
            yield from rest_lines(fields, after)
            return
        yield from plain_lines(fields, number, labels.get(number, "field"))


def _index(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields, code = vector.fields, vector.opcode & 255
    yield from ktb_lines(fields, 1)
    if code == 8:
        yield from known_lines(fields, 2, "kdxln", members.KDXLN)
        labels = {3: "row offsets, field", 4: "rows, field"}
    elif code == 35:
        yield from known_lines(fields, 2, "index redo", members.INDEX_COLUMNS)
        yield f"columns: {fields.numbers(3)}"
        labels = dict.fromkeys(range(4, fields.count + 1), "col of, field")
    else:
        yield from known_lines(fields, 2, "index redo", members.INDEX)
        labels = {2: {3: "key, field", 4: "keydata, field"}, 18: {3: "keydata, field"}}.get(
            code, {3: "row, field"}
        )
    for number in range(4 if code == 35 else 3, fields.count + 1):
        yield from plain_lines(fields, number, labels.get(number, "field"))


def _lob_parts(fields: Fields, first: int) -> Iterator[str]:
    yield from known_lines(fields, first, "KDLI common", members.KDLI)
    for number in range(first + 1, fields.count + 1):
        part = members.KDLI_PARTS.get(fields.number(number, 0, 1))
        if part is None or fields.size(number) < 8:
            yield from plain_lines(fields, number, "LOB data, field")
            continue
        name, known = part
        yield from known_lines(fields, number, f"KDLI {name}", known)
        if name == "fill":
            yield from hex_lines(fields.bytes(number)[8:])


def _lob_write(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "KDLI common", members.KDLI)
    for number in range(2, fields.count + 1):
        part = members.KDLI_PARTS.get(fields.number(number, 0, 1))
        # Field 4 of a block image is LOB data, whatever its first byte.
        if number == 4 or part is None:
            yield from plain_lines(fields, number, "LOB data, field")
        else:
            yield from known_lines(fields, number, f"KDLI {part[0]}", part[1])


def _lob_redo(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from ktb_lines(vector.fields, 1)
    yield from _lob_parts(vector.fields, 2)


def _lob_support(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    kind = fields.number(2, 0, 1)
    yield f"LLB kind: {kind}"
    yield from plain_lines(fields, 1)
    yield from known_lines(fields, 3, "LLB", members.LLB.get(kind, ()))
    if kind == 4:
        yield f"LOB columns: {fields.numbers(4)}"
        yield from plain_lines(fields, 5)
        columns, lengths = fields.numbers(6), fields.numbers(7)
        for number in range(8, 11):
            yield from plain_lines(fields, number)
        yield from text_lines(fields, 11, "rowid")
        for index, (column, length) in enumerate(zip(columns, lengths, strict=False)):
            yield from column_lines(
                f"  col {column:2}", None if length == 0xFFFF else fields.bytes(12 + index)
            )
        yield from rest_lines(fields, 12 + len(columns))
    else:
        yield from rest_lines(fields, 4)


def _block_image(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    is_data = fields.size(2) == 1 and fields.number(2, 0, 1) == 6
    yield from known_lines(
        fields, 1, "block image", members.BLOCK_IMAGE if is_data else members.LOB_IMAGE
    )
    yield from hex_lines(fields.bytes(1))
    yield from rest_lines(fields, 2)


def _ddl(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "DDL", members.DDL)
    if fields.size(1) != 24 or fields.count < 12:
        yield from rest_lines(fields, 2)
        return
    for number in range(2, fields.count + 1):
        if number in _DDL_TEXTS:
            yield from text_lines(fields, number, _DDL_TEXTS[number])
        elif number == 12 and fields.size(12) == 4:
            yield f"objn: {fields.number(12, 0, 4)}"
        elif fields.size(number):
            yield from plain_lines(fields, number)


def _marker(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    fields = vector.fields
    yield from known_lines(fields, 1, "transaction marker", members.MARKER)
    if fields.size(2):
        outcome = fields.number(2, 0, 1)
        yield f"outcome: {outcome} ({_OUTCOMES.get(outcome, '?')})"
    if fields.size(3):
        yield from known_lines(fields, 3, "transaction", members.TRAN_FLAGS)
    if fields.size(4) == 8:
        yield from known_lines(fields, 4, "start", (members.Member("scn", 0, "scn"),))
        yield from rest_lines(fields, 5)
    else:
        yield from rest_lines(fields, 4)


def _direct(vector: Vector, _layout: RedoLayout) -> Iterator[str]:
    yield from known_lines(vector.fields, 1, "direct load", members.DIRECT_XID)
    yield from rest_lines(vector.fields, 2)


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
