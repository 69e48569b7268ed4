"""Contains the kernel that writes row changes as JSON lines, in one pass without Python code per
row.

A line consists of values, and of texts that are fixed for a kind of change, a transaction, a table
or a column:

    {"op":"insert","scn":  7  ,"commit_scn":9,"xid":"1.2.3"  ,"table":"A.B","rowid":"  AAA  …
    lead of the kind     SCN  the same within a transaction  text of the table       RowId
    ","after":  {"ID":   1   ,"NAME":  "x"      }}
    image       key    value key      value

The text of a key begins with the comma before it; in the first key of an image, a brace replaces
the comma. The kernel records where the images begin and end. There are two things that it cannot
write: the session, and a value for which `json_values` returns `LEFT`. At the positions of these
two, the kernel writes nothing and adds a row to `gaps`, so that the caller can insert the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_values import is_time, put_u64, put_value, room_of

if TYPE_CHECKING:
    from olr_pg.rendering.line_plan import LineTexts
    from olr_pg.transactions.change_columns import ChangeColumns

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

GAP_AT: Final = 0
GAP_ELEMENT: Final = 1
GAP_ENTRY: Final = 2
GAP_SIZE: Final = 3
"""The number of columns that describe a gap: its offset in the output, its element, and its value
(−1 for the session).
"""

IMAGE_BOUNDS: Final = 4
"""The number of columns that describe the images of a line: begin and end of the before image,
begin and end of the after image. −1 means that the line has no such image.
"""

_LEAD_SIZE: Final = 32
_COMMIT_SCN: Final = ',"commit_scn":'
_XID: Final = ',"xid":"'
LINE_BYTES: Final = 1024
"""Maximum bytes of a line, not counting the table's name, the keys and the values."""


_NAMES: Final = {1: "begin", 2: "commit", 4: "insert", 5: "delete", 6: "update"}
_LEAD: Final = {code: f'{{"op":"{name}","scn":'.encode() for code, name in _NAMES.items()}
_LEAD_BYTES: Final = np.array([len(_LEAD.get(code, b"")) for code in range(8)], np.int64)
_LEADS: Final = np.frombuffer(
    b"".join(_LEAD.get(code, b"").ljust(_LEAD_SIZE) for code in range(8)), np.uint8
).copy()
"""The text with which a line begins, for each `ElementCode`; each text is padded to `_LEAD_SIZE`
bytes.
"""

_COMMIT_TEXT: Final = np.frombuffer(_COMMIT_SCN.encode().ljust(64), np.uint8).copy()
_XID_TEXT: Final = np.frombuffer(_XID.encode().ljust(64), np.uint8).copy()
_BEFORE_TEXT: Final = np.frombuffer(b'","before":'.ljust(64), np.uint8).copy()
_AFTER_TEXT: Final = np.frombuffer(b',"after":'.ljust(64), np.uint8).copy()
_BEFORE_SIZE: Final = len('","before":')
_AFTER_SIZE: Final = len(',"after":')
_NULL_TEXT: Final = np.frombuffer(b"null".ljust(64), np.uint8).copy()
_END_TEXT: Final = np.frombuffer(b"}\n".ljust(64), np.uint8).copy()


@inlined
def _put_transaction(commit_scn: np.uint64, xid: np.uint64, out: U8, at: int) -> int:
    """Write the text that is the same in all lines of a transaction: commit SCN and XID, with the
    closing quote.
    """
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
def _put_image(
    changes: ChangeColumns, begin: int, end: int, has_twins: bool, known: LineTexts, element: int,
    out: U8, at: int, gaps: I64, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the JSON object of an image. Return (end, number of gaps); the end is −1 if `out` or
    `gaps` is too small.
    """
    if has_twins:
        for entry in range(begin, end):
            known.last_of_name[known.name[changes.value_column[entry]]] = entry + 1
    out[at] = 123
    place = at
    for number in range(begin, end):
        entry = number
        if has_twins:
            name = known.name[changes.value_column[entry]]
            if known.last_of_name[name] == 0:
                continue
            entry = int(known.last_of_name[name]) - 1
            known.last_of_name[name] = 0
        column = np.uint64(changes.value_column[entry])
        size, key_size = changes.value_length[entry], known.key_size[column]
        if out.size - at < key_size + room_of(size) or count >= len(gaps):
            return -1, count
        key = known.key[column]
        at = copy_forward(out, at, known.texts, key, key + key_size)
        if size < 0 or (size == 0 and known.is_lob[column] == 0):
            at = copy_forward(out, at, _NULL_TEXT, 0, 4)
            continue
        form = int(known.form[column])
        done = put_value(
            changes.data, changes.value_offset[entry], size, form, known.characters,
            known.character_size, int(known.characters_first[column]), out, at,
        )  # fmt: skip
        if done < 0:
            gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, element
            gaps[count, GAP_ENTRY] = np.int64(entry)
            count += 1
            continue
        at = done
        if is_time(form):
            text = known.suffix[column]
            at = copy_forward(out, at, known.texts, text, text + known.suffix_size[column])
            out[at] = 34
            at += 1
    if at == place:
        at += 1
    out[place] = 123
    out[at] = 125
    return at + 1, count


@kernel
def write_lines_kernel(
    changes: ChangeColumns, known: LineTexts, with_sessions: bool, element: int, end: int, out: U8,
    gaps: I64, line_end: I64, images: I64, common: U8,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the lines of the elements from `element` up to, but without, `end`, until `out` or
    `gaps` is full.

    Args:
        with_sessions: whether to leave a gap for the session in the line of each begin.
        gaps: shape (m, `GAP_SIZE`); gets the gaps.
        line_end: gets the offset in `out` at which the line of each element ends.
        images: shape (elements, `IMAGE_BOUNDS`); gets the offsets of the images of row changes. If
            `images` has no rows, the offsets are not recorded.
        common: scratch memory of 128 bytes.

    Returns:
        (element, end, gaps): the first element that was not written, the number of bytes that were
        written, and the number of gaps.
    """
    at = count = common_size = 0
    last_commit, last_xid = np.uint64(0), np.uint64(0)
    for i in range(element, end):
        code = int(changes.kind[i])
        begin, gaps_before = at, count
        if out.size - at < LINE_BYTES or count >= len(gaps):
            return i, begin, gaps_before
        lead = code * _LEAD_SIZE
        at = copy_forward(out, at, _LEADS, lead, lead + _LEAD_BYTES[code])
        at = put_u64(changes.scn[i], out, at)
        if common_size == 0 or changes.commit_scn[i] != last_commit or changes.xid[i] != last_xid:
            last_commit, last_xid = changes.commit_scn[i], changes.xid[i]
            common_size = _put_transaction(last_commit, last_xid, common, 0)
        at = copy_forward(out, at, common, 0, common_size)
        table = changes.table[i]
        if table < 0:
            if code == 1 and with_sessions:
                gaps[count, GAP_AT], gaps[count, GAP_ELEMENT] = at, i
                gaps[count, GAP_ENTRY] = -1
                count += 1
            at = copy_forward(out, at, _END_TEXT, 0, 2)
            line_end[i] = at
            continue
        text, size = known.table_text[table], known.table_size[table]
        if out.size - at < size + LINE_BYTES:
            return i, begin, gaps_before
        at = copy_forward(out, at, known.texts, text, text + size)
        row_id = changes.row_id_offset[i]
        at = copy_forward(out, at, changes.data, row_id, row_id + int(changes.row_id_length[i]))
        first, middle, last = changes.entry_first[i], changes.entry_after[i], 0
        last = changes.entry_first[i + 1]
        for image in range(1 if code == 4 else 0, 1 if code == 5 else 2):
            if image == 0:
                at = copy_forward(out, at, _BEFORE_TEXT, 0, _BEFORE_SIZE)
            elif code == 4:
                out[at] = 34
                at = copy_forward(out, at + 1, _AFTER_TEXT, 0, _AFTER_SIZE)
            else:
                at = copy_forward(out, at, _AFTER_TEXT, 0, _AFTER_SIZE)
            place = at
            at, count = _put_image(
                changes, first if image == 0 else middle, middle if image == 0 else last,
                known.has_twins[table] != 0, known, i, out, at, gaps, count,
            )  # fmt: skip
            if at < 0 or out.size - at < LINE_BYTES:
                return i, begin, gaps_before
            if len(images):
                images[i, 2 * image], images[i, 2 * image + 1] = place, at
        if len(images) and code != 6:
            without = 0 if code == 4 else 2
            images[i, without], images[i, without + 1] = -1, -1
        at = copy_forward(out, at, _END_TEXT, 0, 2)
        line_end[i] = at
    return end, at, count
