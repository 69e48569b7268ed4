"""Parsed messages to JSON lines: one kernel, one pass, no Python per row.

A line is made of texts that its layout has for all changes (keys, brackets, the table's name) and
of the values between them:

    {"op":"insert","scn":  7  ,"commit_scn":9,"xid":"1.2.3"  ,"table":"A.B","rowid":"  AAA  …
    lead of the kind     SCN  the same within a transaction  name of the layout      RowId
    ","after":{"ID":  1  ,"NAME":  "x"    …    }}
    key             value key      value       tail of the layout

What is not written (a value that `json_values` leaves, a session) leaves a gap: a line of `gaps`
says what belongs between the bytes in front of it and those behind it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import read_u16, read_u32
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_values import is_time, put_u64, put_value, room_of

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

ENTRY: Final = 0
FORM: Final = 1
IS_LOB: Final = 2
TABLE: Final = 3
KEY: Final = 4
KEY_SIZE: Final = 5
SUFFIX: Final = 6
SUFFIX_SIZE: Final = 7
OPERATION_SIZE: Final = 8
"""Columns of an operation: the value's place among the change's, `JsonForm`, whether a value
without bytes is no NULL, where the table of its character set begins; then where in the texts the
key is, and what stands behind the value."""

NAME: Final = 0
NAME_SIZE: Final = 1
TAIL: Final = 2
TAIL_SIZE: Final = 3
FIRST: Final = 4
END: Final = 5
LAYOUT_SIZE: Final = 6
"""Columns of a layout: its texts, its operations."""

GAP_AT: Final = 0
GAP_ELEMENT: Final = 1
GAP_OPERATION: Final = 2
GAP_SIZE: Final = 3
"""Columns of a gap: where in the output, of which answer, of which operation (−1: the session)."""

_LEAD_SIZE: Final = 32
_COMMIT_SCN: Final = ',"commit_scn":'
_XID: Final = ',"xid":"'
LINE_BYTES: Final = 1024
"""Bytes of a line that are neither name, keys nor values."""


_NAMES: Final = {1: "begin", 2: "commit", 4: "insert", 5: "delete", 6: "update"}
_LEAD: Final = {code: f'{{"op":"{name}","scn":'.encode() for code, name in _NAMES.items()}
_LEAD_BYTES: Final = np.array([len(_LEAD.get(code, b"")) for code in range(8)], np.int64)
_LEADS: Final = np.frombuffer(
    b"".join(_LEAD.get(code, b"").ljust(_LEAD_SIZE) for code in range(8)), np.uint8
).copy()
"""The beginnings of lines by `ElementCode`, each in a room of `_LEAD_SIZE`."""

_COMMIT_TEXT: Final = np.frombuffer(_COMMIT_SCN.encode().ljust(64), np.uint8).copy()
_XID_TEXT: Final = np.frombuffer(_XID.encode().ljust(64), np.uint8).copy()
_NULL_TEXT: Final = np.frombuffer(b"null".ljust(64), np.uint8).copy()
_END_TEXT: Final = np.frombuffer(b"}\n".ljust(64), np.uint8).copy()


@inlined
def _put_transaction(commit_scn: np.uint64, xid: np.uint64, out: U8, at: int) -> int:
    """Write what the lines of a transaction have in common, up to the XID's closing quote."""
    at = copy_forward(out, at, _COMMIT_TEXT, 0, len(_COMMIT_SCN))
    at = put_u64(commit_scn, out, at)
    at = copy_forward(out, at, _XID_TEXT, 0, len(_XID))
    at = put_u64(xid >> np.uint64(48), out, at)
    out[at] = 46
    at = put_u64((xid >> np.uint64(32)) & np.uint64(0xFFFF), out, at + 1)
    out[at] = 46
    at = put_u64(xid & np.uint64(0xFFFFFFFF), out, at + 1)
    out[at] = 34
    return at + 1


@inlined
def _put_row_id(data: U8, body: int, out: U8, at: int) -> int:
    start = body + 36 + byte_at(data, body + 33) + byte_at(data, body + 34)
    return copy_forward(out, at, data, start, start + byte_at(data, body + 35))


@kernel
def write_lines_kernel(
    data: U8,
    body: I64,
    kind: I32,
    scn: U64,
    commit_scn: U64,
    xid: U64,
    layout: I32,
    entry_first: I64,
    value_offset: I64,
    value_length: I64,
    layouts: I32,
    operations: I32,
    texts: U8,
    characters: U64,
    character_size: U8,
    with_sessions: bool,
    element: int,
    out: U8,
    gaps: I64,
    line_end: I64,
    row_id_end: I64,
    common: U8,
) -> tuple[int, int, int]:
    """Write the lines of the answers from `element` on, as far as there is room.

    Args:
        data … value_length: of `Answers`.
        layouts: shape (layouts, `LAYOUT_SIZE`), by the number that `layout` has.
        operations: shape (n, `OPERATION_SIZE`).
        texts: what the two point into.
        characters, character_size: the tables of single-byte sets.
        with_sessions: a begin has a gap for its session.
        element: the first answer to be written.
        gaps: shape (m, `GAP_SIZE`).
        line_end: of each answer, where its line ends in the output; where the next one begins, if
            it has none.
        row_id_end: of each row change, where its ROWID ends, in front of the closing quote.
        common: a scratch of 128 bytes.

    Returns:
        (element, end, gaps): the answer that the room is too small for; what was written.
    """
    at = count = common_size = 0
    room, gap_room = out.size, len(gaps)
    last_commit, last_xid = np.uint64(0), np.uint64(0)
    for i in range(element, kind.size):
        code = kind[i]
        line_end[i] = at
        if code == 7:
            continue
        begin, gaps_before = at, count
        if room - at < LINE_BYTES or count >= gap_room:
            return i, begin, gaps_before
        lead = code * _LEAD_SIZE
        at = copy_forward(out, at, _LEADS, lead, lead + _LEAD_BYTES[code])
        at = put_u64(scn[i], out, at)
        if common_size == 0 or commit_scn[i] != last_commit or xid[i] != last_xid:
            last_commit, last_xid = commit_scn[i], xid[i]
            common_size = _put_transaction(last_commit, last_xid, common, 0)
        at = copy_forward(out, at, common, 0, common_size)
        if layout[i] < 0:
            if code == 1 and with_sessions:
                gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, i
                gaps[count, GAP_OPERATION] = -1
                count += 1
            at = copy_forward(out, at, _END_TEXT, 0, 2)
            line_end[i] = at
            continue
        which = layout[i]
        text = layouts[which, NAME]
        if room - at < layouts[which, NAME_SIZE] + layouts[which, TAIL_SIZE] + LINE_BYTES:
            return i, begin, gaps_before
        at = copy_forward(out, at, texts, text, text + layouts[which, NAME_SIZE])
        at = row_id_end[i] = _put_row_id(data, body[i], out, at)
        entries = entry_first[i]
        for place in range(layouts[which, FIRST], layouts[which, END]):
            value = entries + operations[place, ENTRY]
            size = value_length[value]
            if room - at < operations[place, KEY_SIZE] + room_of(size) or count >= gap_room:
                return i, begin, gaps_before
            text = operations[place, KEY]
            at = copy_forward(out, at, texts, text, text + operations[place, KEY_SIZE])
            if size < 0 or (size == 0 and operations[place, IS_LOB] == 0):
                at = copy_forward(out, at, _NULL_TEXT, 0, 4)
                continue
            form = int(operations[place, FORM])
            done = put_value(
                data, value_offset[value], size, form, characters, character_size,
                int(operations[place, TABLE]), out, at,
            )  # fmt: skip
            if done < 0:
                gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, i
                gaps[count, GAP_OPERATION] = place
                count += 1
                continue
            at = done
            if is_time(form):
                text = operations[place, SUFFIX]
                at = copy_forward(out, at, texts, text, text + operations[place, SUFFIX_SIZE])
                out[at] = 34
                at += 1
        text = layouts[which, TAIL]
        if room - at < layouts[which, TAIL_SIZE] + LINE_BYTES:
            return i, begin, gaps_before
        at = copy_forward(out, at, texts, text, text + layouts[which, TAIL_SIZE])
        line_end[i] = at
    return kind.size, at, count


@kernel
def session_of(data: U8, body: int, big: bool) -> tuple[int, int]:
    """Read (session, serial) of a Begin."""
    return int(read_u32(data, body + 31, big)), int(read_u16(data, body + 29, big))
