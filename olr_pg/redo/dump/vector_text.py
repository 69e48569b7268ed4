"""Prints the content of a change vector as lines of text.

Known fields are printed member by member, columns in hexadecimal, everything else as size and
bytes. If a field is shorter than its layout, only the members that fit are printed. Facts:
redo-format §4–§8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump.field_text import (
    column_lines,
    hex_lines,
    known_lines,
    plain_lines,
    rest_lines,
    text_lines,
)
from olr_pg.redo.dump.row_text import (
    ktb_lines,
    ktub_lines,
    row_lines,
    supplemental_lines,
)
from olr_pg.redo.format.index_fields import (
    KDILK,
    KDILK_FLAGS,
    KDILK_SUPPLEMENTAL,
    KDXLN,
    LEAF,
    LEAF_ARRAY_REDO,
    LEAF_COLUMNS_REDO,
)
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
from olr_pg.redo.format.marker_fields import (
    DDL,
    DDL_FIELDS,
    DDL_OBJN,
    DDL_SIZE,
    DDL_TEXTS,
    DIRECT_XID,
    MARKER,
    MARKER_OUTCOMES,
    MARKER_START,
)
from olr_pg.redo.format.opcodes import (
    LEAF_COLUMNS,
    LEAF_DATA,
    LEAF_INITIALIZE,
    LEAF_INSERT,
    UNDONE,
    Layer,
    Opcode,
    UndoOf,
)
from olr_pg.redo.format.row_fields import SUPPLEMENTAL_NULL, SUPPLEMENTAL_SIZES
from olr_pg.redo.format.undo_fields import (
    KTEOP,
    KTUCF,
    KTUCM,
    KTUCM_FLG,
    KTUCM_HAS_KTUCF,
    KTUCM_ROLLED_BACK,
    KTUDB,
    KTUDH,
    KTUXVOFF,
    SESSION,
    SESSION_NUMBERS,
    SESSION_OLD,
    SESSION_TEXTS,
    TRAN_FLAGS,
)
from olr_pg.redo.record_view import undo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.redo.format.layout import RedoLayout
    from olr_pg.redo.record_view import Fields, Vector

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
