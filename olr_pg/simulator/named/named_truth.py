"""The journal of committed changes as the JSON lines that decoding must print.

Printed from the model's cells, apart from the stored bytes. The lines are those of
`simulator.truth`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.kernels.compile import interpreted, kernel, part
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.calendar import DAY, civil
from olr_pg.simulator.named.stored_cells import MICROSECONDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.simulator.named.put import Bytes, Ints


def _fragment(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8).copy()


_BEGIN: Final = _fragment('{"op":"begin","scn":')
_COMMIT: Final = _fragment('{"op":"commit","scn":')
_INSERT: Final = _fragment('{"op":"insert","scn":')
_UPDATE: Final = _fragment('{"op":"update","scn":')
_DELETE: Final = _fragment('{"op":"delete","scn":')
_COMMIT_SCN: Final = _fragment(',"commit_scn":')
_XID: Final = _fragment(',"xid":"')
_TABLE: Final = _fragment('","table":"')
_ROWID: Final = _fragment('","rowid":"')
_BEFORE: Final = _fragment(',"before":{')
_AFTER: Final = _fragment(',"after":{')
_NULL: Final = _fragment("null")
_END: Final = _fragment('"}\n')
_ROWID_DIGITS: Final = _fragment("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_QUOTE: Final = 34
_COMMA: Final = 44
_COLON: Final = 58
_POINT: Final = 46
_MINUS: Final = 45
_ZERO: Final = 48
_CLOSE: Final = 125
_LINE: Final = 10


@part
def _put(out: Bytes, p: int, text: Bytes) -> int:
    for i in range(len(text)):
        out[p + i] = text[i]
    return p + len(text)


@part
def _put_text(out: Bytes, p: int, d: Bytes, start: int, size: int) -> int:
    for i in range(size):
        out[p + i] = d[start + i]
    return p + size


@part
def _put_integer(out: Bytes, p: int, value: int) -> int:
    digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        digits += 1
    return _put_padded(out, p, value, digits)


@part
def _put_padded(out: Bytes, p: int, value: int, digits: int) -> int:
    rest = value
    for i in range(digits):
        out[p + digits - 1 - i] = _ZERO + rest % 10
        rest //= 10
    return p + digits


@part
def _put_decimal(out: Bytes, p: int, value: int, scale: int) -> int:
    if value < 0:
        out[p] = _MINUS
        p += 1
        value = -value
    while scale and value % 10 == 0:
        value //= 10
        scale -= 1
    unit = 1
    for _ in range(scale):
        unit *= 10
    p = _put_integer(out, p, value // unit)
    if scale:
        out[p] = _POINT
        p = _put_padded(out, p + 1, value % unit, scale)
    return p


@part
def _put_moment(out: Bytes, p: int, seconds: int, microseconds: int) -> int:
    date, second = civil(seconds // DAY), seconds % DAY
    out[p] = _QUOTE
    p = _put_padded(out, p + 1, date // 10_000, 4)
    out[p] = _MINUS
    p = _put_padded(out, p + 1, date // 100 % 100, 2)
    out[p] = _MINUS
    p = _put_padded(out, p + 1, date % 100, 2)
    out[p] = 84  # T
    p = _put_padded(out, p + 1, second // 3600, 2)
    out[p] = _COLON
    p = _put_padded(out, p + 1, second // 60 % 60, 2)
    out[p] = _COLON
    p = _put_padded(out, p + 1, second % 60, 2)
    if microseconds:
        digits = 6
        while microseconds % 10 == 0:
            microseconds //= 10
            digits -= 1
        out[p] = _POINT
        p = _put_padded(out, p + 1, microseconds, digits)
    out[p] = _QUOTE
    return p + 1


@part
def _put_cell(m: Ints, d: Bytes, out: Bytes, p: int, column: int, cell: int) -> int:
    if cell == at.NULL:
        return _put(out, p, _NULL)
    kind = m[at.C_KIND + column]
    if kind == at.KIND_NUMBER:
        return _put_decimal(out, p, cell, m[at.C_SCALE + column])
    if kind == at.KIND_DATE:
        return _put_moment(out, p, cell, 0)
    if kind == at.KIND_TIMESTAMP:
        return _put_moment(out, p, cell // MICROSECONDS, cell % MICROSECONDS)
    entry = m[at.C_POOL + column] + cell
    return _put_text(out, p, d, m[m[at.POOL_JSON_AT] + entry], m[m[at.POOL_JSON_SIZE] + entry])


@part
def _put_image(
    m: Ints, d: Bytes, out: Bytes, p: int, journal: Ints, q: int, count: int, table: int
) -> int:
    """Print the members of an image and its closing brace."""
    for i in range(count):
        if i:
            out[p] = _COMMA
            p += 1
        column = m[at.TB_COLUMN + table] + journal[q + 2 * i]
        out[p] = _QUOTE
        p = _put_text(out, p + 1, d, m[at.C_NAME_AT + column], m[at.C_NAME_SIZE + column])
        out[p] = _QUOTE
        out[p + 1] = _COLON
        p = _put_cell(m, d, out, p + 2, column, journal[q + 2 * i + 1])
    out[p] = _CLOSE
    return p + 1


@part
def _put_rowid(out: Bytes, p: int, dataobj: int, dba: int, slot: int) -> int:
    for i in range(6):
        out[p + 5 - i] = _ROWID_DIGITS[dataobj >> 6 * i & 63]
    for i in range(3):
        out[p + 8 - i] = _ROWID_DIGITS[dba >> 22 + 6 * i & 63]
    for i in range(6):
        out[p + 14 - i] = _ROWID_DIGITS[(dba & 0x3FFFFF) >> 6 * i & 63]
    for i in range(3):
        out[p + 17 - i] = _ROWID_DIGITS[slot >> 6 * i & 63]
    return p + 18


@part
def _put_head(out: Bytes, p: int, op: Bytes, scn: int, commit_scn: int, xid: int) -> int:
    """Print the members that every line has; the quotation of the xid stays open."""
    p = _put_integer(out, _put(out, p, op), scn)
    p = _put_integer(out, _put(out, p, _COMMIT_SCN), commit_scn)
    p = _put_integer(out, _put(out, p, _XID), xid >> 48 & 0xFFFF)
    out[p] = _POINT
    p = _put_integer(out, p + 1, xid >> 32 & 0xFFFF)
    out[p] = _POINT
    return _put_integer(out, p + 1, xid & 0xFFFFFFFF)


@part
def _put_change(
    m: Ints, d: Bytes, out: Bytes, p: int, journal: Ints, q: int, commit_scn: int, xid: int
) -> int:
    kind, table = journal[q], journal[q + 1]
    before, after = journal[q + 5], journal[q + 6]
    op = _INSERT
    if kind == at.CHANGE_UPDATE:
        op = _UPDATE
    elif kind == at.CHANGE_DELETE:
        op = _DELETE
    p = _put_head(out, p, op, journal[q + 2], commit_scn, xid)
    p = _put(out, p, _TABLE)
    p = _put_text(out, p, d, m[at.TB_NAME_AT + table], m[at.TB_NAME_SIZE + table])
    p = _put(out, p, _ROWID)
    p = _put_rowid(out, p, m[at.TB_DATAOBJ + table], journal[q + 3], journal[q + 4])
    out[p] = _QUOTE
    p += 1
    q += at.CHANGE_INTS
    if before:
        p = _put_image(m, d, out, _put(out, p, _BEFORE), journal, q, before, table)
    if after:
        p = _put_image(m, d, out, _put(out, p, _AFTER), journal, q + 2 * before, after, table)
    out[p] = _CLOSE
    out[p + 1] = _LINE
    return p + 2


@kernel
def print_journal(
    m: Ints, d: Bytes, journal: Ints, start: int, end: int, out: Bytes, place: Ints
) -> int:
    """Print committed transactions from journal place `start` up to `end`, as far as `out` holds.

    Args:
        m, d: the instance's memory.
        journal: as `commit` fills it.
        start, end: int positions.
        out: takes the lines.
        place: shape (1); gets the place in the journal that was reached. A transaction that is
            larger than `out` leaves it at `start`.

    Returns:
        The bytes printed.
    """
    q, p = start, 0
    place[0] = start
    while q < end:
        begin_scn, commit_scn, xid = journal[q], journal[q + 1], journal[q + 2]
        count = journal[q + 3]
        # Every column with its value is two ints; what else a line has, 400 bytes hold.
        room = 400 * (count + 2) + journal[q + 4] * m[at.PRINTED_MAX]
        if p + room > len(out):
            return p
        p = _put_head(out, p, _BEGIN, begin_scn, commit_scn, xid)
        p = _put(out, p, _END)
        q += at.TRANSACTION_INTS
        for _ in range(count):
            p = _put_change(m, d, out, p, journal, q, commit_scn, xid)
            q += at.CHANGE_INTS + 2 * (journal[q + 5] + journal[q + 6])
        p = _put_head(out, p, _COMMIT, commit_scn, commit_scn, xid)
        p = _put(out, p, _END)
        place[0] = q
    return p


print_interpreted = interpreted(print_journal)
