"""Received bytes to columns: one kernel walks the framed answers, no Python per element.

Facts: protocol, “Frames”, “Elements”. The one-element codec in `olr_pg.wire.elements`
reads the same bytes (tests compare them).

Changes that have the same table, kind and list of columns share a *layout*
(`applier.received.layouts`): the values of a layout's column are one strided slice of the entries.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.integers import mix as mix
from olr_pg.applier.received.integers import read_u16 as read_u16
from olr_pg.applier.received.integers import read_u32 as read_u32
from olr_pg.applier.received.integers import read_u64 as read_u64
from olr_pg.datatypes.columns import read_only
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import AnswerCode

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]

_WHOLE: Final = 0
_BAD_FRAME: Final = 1
_BAD_ELEMENT: Final = 2
_FULL: Final = 3

CHUNKED: Final = -3
"""Length of a chunked value whose chunks have not been put together."""

_HEAD: Final = 29
_BEGIN_BYTES: Final = 35
_CHUNK_LEAST: Final = 42
"""Bytes of what every element begins with, of a Begin, and of a Chunk without data."""

_DATA = int(AnswerCode.DATA)
_BEGIN = int(ElementCode.BEGIN)
_COMMIT = int(ElementCode.COMMIT)
_INSERT = int(ElementCode.INSERT)
_UPDATE = int(ElementCode.UPDATE)
_CHUNK = int(ElementCode.CHUNK)


class Answers(NamedTuple):
    """The answers of one received chunk, in order; arrays with one item per answer unless said.

    Attributes:
        consumed: bytes of whole frames.
        code: operation code.
        body: offset of the body (for Data: of the element).
        kind: element code of a Data answer, else 0.
        layout: number of the layout of an Insert, Delete or Update, else −1.
        entry_first: shape (n + 1); where the element's column values begin.
        value_offset, value_length: shape (entries); length −1 is NULL, −3 a chunked value
            (`applier.received.chunk_assembly` puts them together).
        layout_of: shape (layouts); the answer that has the layout first.
        lob_bytes: bytes of the element's chunks.
        chunked: whether there are chunks, or values that come in them.
    """

    data: U8
    consumed: int
    code: I32
    body: I64
    body_length: I64
    kind: I32
    scn: U64
    commit_scn: U64
    xid: U64
    layout: I32
    entry_first: I64
    value_offset: I64
    value_length: I64
    layout_of: I64
    lob_bytes: I64
    chunked: bool


@inlined
def _same_bytes(data: U8, left: int, right: int, size: int) -> bool:
    while size >= 8:
        if read_u64(data, left, False) != read_u64(data, right, False):
            return False
        left += 8
        right += 8
        size -= 8
    for i in range(np.uint64(size)):
        if data[np.uint64(left) + i] != data[np.uint64(right) + i]:
            return False
    return True


@inlined
def _same_layout(data: U8, left: int, left_end: int, right: int, right_end: int, big: bool) -> bool:
    """Tell whether two DML elements differ in their values only. Both are well formed."""
    if data[left] != data[right] or not _same_bytes(data, left + 33, right + 33, 2):
        return False
    names = int(data[left + 33]) + int(data[left + 34])
    if not _same_bytes(data, left + 36, right + 36, names):
        return False
    a = left + 36 + names + int(data[left + 35])
    b = right + 36 + names + int(data[right + 35])
    while a < left_end and b < right_end:
        count = read_u16(data, a, big)
        if read_u16(data, b, big) != count:
            return False
        a += 2
        b += 2
        for _ in range(count):
            name = int(data[a])
            if name != int(data[b]) or not _same_bytes(data, a + 9, b + 9, 28 + name):
                return False
            a += 37 + name + int(read_u64(data, a + 1, big))
            b += 37 + name + int(read_u64(data, b + 1, big))
    return a == left_end and b == right_end


@inlined
def _scan_row_change(
    data: U8, first: int, end: int, big: bool, value_offset: I64, value_length: I64, entries: int
) -> tuple[int, np.uint64, bool]:
    """Note the column values of one Insert, Delete or Update.

    Returns:
        (entries, digest, chunked): the number of entries with these (−1 = malformed); a digest of
        the kind, the counts and the ends of the names; whether a value comes in chunks.
    """
    digest, chunked = np.uint64(data[first]), False
    if end - first < 38:
        return -1, digest, chunked
    names = first + 36 + int(data[first + 33]) + int(data[first + 34])
    place = names + int(data[first + 35])
    if place > end:
        return -1, digest, chunked
    digest = mix(digest, read_u64(data, names - 8, False))
    for _ in range(2 if data[first] == _UPDATE else 1):
        if end - place < 2:
            return -1, digest, chunked
        count = read_u16(data, place, big)
        digest = mix(digest, np.uint64(count))
        place += 2
        for _column in range(count):
            if end - place < 37:
                return -1, digest, chunked
            start = place + 37 + int(data[place])
            wide = read_u64(data, place + 1, big)
            if start > end or wide > np.uint64(end - start):
                return -1, digest, chunked
            digest = mix(digest, read_u64(data, start - 8, False))
            value_offset[entries] = start
            value_length[entries] = int(wide) if wide > np.uint64(0) else -1
            if wide == np.uint64(0) and data[place + 36] != 0:
                value_length[entries] = CHUNKED
                chunked = True
            entries += 1
            place = start + int(wide)
    return (entries if place == end else -1), digest, chunked


@inlined
def _find_layout(
    data: U8,
    big: bool,
    answer: int,
    digest: np.uint64,
    body: I64,
    body_length: I64,
    layouts: int,
    layout_of: I64,
    layout_hash: I64,
) -> int:
    """Find the layout of that answer: < `layouts` known, = `layouts` new (noted), −1 no room."""
    mask = np.uint64(layout_hash.size - 1)
    slot = digest & mask
    first, end = body[answer], body[answer] + body_length[answer]
    while layout_hash[slot] != 0:  # open addressing; holds layout + 1
        candidate = layout_hash[slot] - 1
        other = body[layout_of[candidate]]
        other_end = other + body_length[layout_of[candidate]]
        if _same_layout(data, first, end, other, other_end, big):
            return int(candidate)
        slot = (slot + np.uint64(1)) & mask
    if layouts >= layout_of.size:
        return -1
    layout_of[layouts] = answer
    layout_hash[slot] = layouts + 1
    return layouts


@kernel
def parse_kernel(
    room: Answers, layout_hash: I64, big: bool
) -> tuple[int, int, int, int, int, bool]:
    """Fill the arrays of `Answers` from its data; the value arrays hold ``data.size // 37 + 1``.

    It walks over framed answers, one after the other:

        at                first                                                      end
        | size 4 | code 2 | kind 1 | SCN 8 | commit SCN 8 | XID 8 | time 4 | content |

    What is behind `code` is there where the answer is Data. Of the content only that of a row
    change is looked into: its values are noted, and the rest is its layout.

    Returns:
        (status, position, answers, entries, layouts, chunked): position is the end of the last
        whole frame, or where the malformed one begins; `chunked` whether there are chunks, or
        values that come in them.
    """
    data, code, kind, layout = room.data, room.code, room.kind, room.layout
    body, body_length, layout_of = room.body, room.body_length, room.layout_of
    scn, commit_scn, xid = room.scn, room.commit_scn, room.xid
    entry_first, value_offset = room.entry_first, room.value_offset
    value_length = room.value_length
    at = answers = entries = layouts = 0
    chunked = False
    entry_first[0] = 0
    while data.size - at >= 4:
        size = read_u32(data, at, big)
        if size < 2:  # OperationCode
            return _BAD_FRAME, at, answers, entries, layouts, chunked
        if data.size - at - 4 < size:
            break
        if answers >= code.size:
            return _FULL, at, answers, entries, layouts, chunked
        first, end = at + 6, at + 4 + size
        code[answers] = read_u16(data, at + 4, big)
        body[answers], body_length[answers] = first, end - first
        kind[answers], layout[answers] = 0, -1
        scn[answers] = commit_scn[answers] = xid[answers] = np.uint64(0)
        if code[answers] == _DATA:
            if end - first < _HEAD:
                return _BAD_ELEMENT, at, answers, entries, layouts, chunked
            element = int(data[first])
            kind[answers] = element
            scn[answers] = read_u64(data, first + 1, big)
            commit_scn[answers] = read_u64(data, first + 9, big)
            xid[answers] = read_u64(data, first + 17, big)
            if _INSERT <= element <= _UPDATE:
                entries, digest, parts = _scan_row_change(
                    data, first, end, big, value_offset, value_length, entries
                )
                chunked |= parts
                if entries < 0:
                    return _BAD_ELEMENT, at, answers, 0, layouts, chunked
                found = _find_layout(
                    data, big, answers, digest, body, body_length, layouts, layout_of, layout_hash
                )
                if found < 0:
                    return _FULL, at, answers, entries, layouts, chunked
                layout[answers] = found
                layouts = max(layouts, found + 1)
            elif element == _CHUNK and end - first >= _CHUNK_LEAST:
                chunked = True
            elif not (
                (element == _BEGIN and end - first == _BEGIN_BYTES)
                or (element == _COMMIT and end - first == _HEAD)
            ):
                return _BAD_ELEMENT, at, answers, entries, layouts, chunked
        answers += 1
        entry_first[answers] = entries
        at = end
    return _WHOLE, at, answers, entries, layouts, chunked


def parse_answers(data: U8, order: ByteOrder) -> Answers:
    """Parse the whole answers at the beginning of `data`.

    Raises:
        OlrPgError: 5013, the bytes are not what protocol says.
    """
    answers, layouts = max(64, data.size // 32), 64
    data = read_only(data)
    while True:
        result = _parse(data, order, answers, layouts)
        if result is not None:
            return result
        answers, layouts = answers * 3, layouts * 4


def _parse(data: U8, order: ByteOrder, answers: int, layouts: int) -> Answers | None:
    room = _room(data, answers, layouts)
    status, position, n, m, k, chunked = parse_kernel(
        room, np.zeros(layouts * 4, np.int64), order.is_big
    )
    if status == _FULL:
        return None
    if status != _WHOLE:
        what = "frame" if status == _BAD_FRAME else "element"
        raise OlrPgError(Code.ANSWER_MALFORMED, f"a malformed {what}", offset=int(position))
    # Copies: there was room for many times as many.
    return Answers(
        data=data,
        consumed=int(position),
        code=room.code[:n].copy(),
        body=room.body[:n].copy(),
        body_length=room.body_length[:n].copy(),
        kind=room.kind[:n].copy(),
        scn=room.scn[:n].copy(),
        commit_scn=room.commit_scn[:n].copy(),
        xid=room.xid[:n].copy(),
        layout=room.layout[:n].copy(),
        entry_first=room.entry_first[: n + 1].copy(),
        value_offset=room.value_offset[:m].copy(),
        value_length=room.value_length[:m].copy(),
        layout_of=room.layout_of[:k].copy(),
        lob_bytes=np.zeros(n, np.int64),
        chunked=bool(chunked),
    )


def _room(data: U8, answers: int, layouts: int) -> Answers:
    """Make room for so many answers and layouts."""
    entries = data.size // 37 + 1  # no ColumnValue is shorter
    return Answers(
        data=data,
        consumed=0,
        code=np.empty(answers, np.int32),
        body=np.empty(answers, np.int64),
        body_length=np.empty(answers, np.int64),
        kind=np.empty(answers, np.int32),
        scn=np.empty(answers, np.uint64),
        commit_scn=np.empty(answers, np.uint64),
        xid=np.empty(answers, np.uint64),
        layout=np.empty(answers, np.int32),
        entry_first=np.empty(answers + 1, np.int64),
        value_offset=np.empty(entries, np.int64),
        value_length=np.empty(entries, np.int64),
        layout_of=np.empty(layouts, np.int64),
        lob_bytes=np.empty(0, np.int64),
        chunked=False,
    )
