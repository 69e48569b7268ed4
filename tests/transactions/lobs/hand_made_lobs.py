"""LOB pieces and locators laid out by hand from values-and-lobs, and the values they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import columns_of
from olr_pg.redo.lob_pieces import LobOp
from olr_pg.transactions.finished_columns import VALUE
from olr_pg.transactions.lobs.pages import resolve_values
from olr_pg.transactions.lobs.value_tables import (
    Space,
    ValueRoom,
    Values,
    ValueStatus,
    empty_rows,
    sort_rows,
    value_room,
)
from tests.redo.chain import clear

if TYPE_CHECKING:
    from collections.abc import Sequence

LOB: Final = 0x1060FF
"""The LOB of the examples of values-and-lobs §16.6 and §19."""
BASIC_OUTSIDE: Final = bytes.fromhex("00700001 01080000 0001 00000001 0000001060ff")
"""values-and-lobs §16.6: a BASICFILE BLOB that is not stored in its row."""

SPACES: Final = {
    LobOp.LIST: Space.LIST, LobOp.LIST_AT: Space.LIST, LobOp.HEADER: Space.LIST,
    LobOp.INDEX: Space.INDEX, LobOp.OPERATION: Space.OPERATION,
}  # fmt: skip


def secure(body: str, lob: int = LOB) -> bytes:
    """A SECUREFILE locator that is not in its row, of this inode body (values-and-lobs §16.4)."""
    raw = bytes.fromhex(body)
    head = bytes.fromhex("00700001 010c0080 0001 00000001") + lob.to_bytes(6, "big")
    return (
        head + (len(raw) + 6).to_bytes(2, "big") + b"\x40\x90" + len(raw).to_bytes(2, "big") + raw
    )


HUNDRED: Final = secure("20 00 64 01 00 00 030002f3 01")
"""values-and-lobs §16.6: 100 bytes in block 030002f3."""


def pointers(pages: int, rest: int, blocks: Sequence[int]) -> bytes:
    """A BASICFILE locator with page addresses (values-and-lobs §16.3)."""
    inode = b"\x04\x00" + pages.to_bytes(4, "big") + rest.to_bytes(2, "big") + bytes(6)
    inode += b"".join(block.to_bytes(4, "big") for block in blocks)
    head = bytes.fromhex("00700001 010c0000 0001 00000001 0000001060ff")
    return head + (len(inode) + 2).to_bytes(2, "big") + inode


def index_row(blocks: Sequence[int], pages: int | None = None, rest: int = 0) -> bytes:
    """The 32 bytes of a row of a LOB index (values-and-lobs §19); that of page 0 tells the
    length.
    """
    listed = b"".join(block.to_bytes(4, "big") for block in blocks)
    if pages is None:
        return listed.ljust(32, b"\0")
    return (
        bytes(4) + pages.to_bytes(4, "big") + rest.to_bytes(2, "big") + bytes(6) + listed
    ).ljust(32, b"\0")


class Logged(NamedTuple):
    """A LOB piece: `number` is its block, or its page in the index; the rest as `LobRows`."""

    op: LobOp
    number: int
    content: bytes = b""
    at: int = 0
    span: int = 0
    form: int = 0
    lob: int = LOB
    owner: int = 0


class Value(NamedTuple):
    """A LOB column: its locator, maybe in parts, and what it was before."""

    locator: bytes | tuple[bytes, ...] | None
    before: bytes | None = None
    is_insert: bool = False
    owner: int = 0
    has_pages: bool = True


def resolved(
    values: Sequence[Value], logged: Sequence[Logged], parts: int = 1000, extra: int = 100_000
) -> list[bytes | ValueStatus] | None:
    """Every value's bytes, or why there are none; None where the room is too small."""
    rows, data = empty_rows(len(logged)), bytearray(b"\xee" * 7)
    clear(rows)
    for at, piece in enumerate(logged):
        space = SPACES.get(piece.op, Space.PAGE)
        row: Any = rows[at]
        row.owner, row.space, row.number, row.op = piece.owner, space, piece.number, piece.op
        row.lob = 0 if space is Space.LIST else piece.lob
        row.at, row.span, row.form = piece.at, piece.span, piece.form
        row.offset, row.length = len(data), len(piece.content)
        data += piece.content
    made = values_of(values, data)
    room = value_room(len(values), parts, np.zeros(extra, np.uint8))
    if not interpreted(resolve_values)(made, sort_rows(rows), room):
        return None
    return [_bytes_of(made, room, at) for at in range(len(values))]


def values_of(values: Sequence[Value], data: bytearray) -> Values:
    """The table of values whose bytes are put behind `data`."""
    entries: list[tuple[int, int, int]] = []

    def put(parts: tuple[bytes | None, ...]) -> int:
        for at, part in enumerate(parts):
            goes_on = len(entries) + 1 if at + 1 < len(parts) else -1
            entries.append((len(data), -1 if part is None else len(part), goes_on))
            data.extend(part or b"")
        return len(entries) - len(parts)

    entry = [put(one.locator if isinstance(one.locator, tuple) else (one.locator,))
             for one in values]  # fmt: skip
    before = [-1 if one.before is None else put((one.before,)) for one in values]
    table = columns_of(VALUE, len(entries))
    clear(table)
    table.offset, table.length, table.next = np.array(entries).T
    return Values(
        np.array(entry),
        np.array([one.owner for one in values]),
        np.array(before),
        np.array([one.is_insert for one in values]),
        np.array([one.has_pages for one in values], np.uint8),
        table,
        np.frombuffer(bytes(data), np.uint8),
    )


def _bytes_of(values: Values, room: ValueRoom, at: int) -> bytes | ValueStatus:
    if room.status[at] != ValueStatus.WHOLE:
        assert room.part_first[at] == room.part_first[at + 1]
        return ValueStatus(int(room.status[at]))
    found = b""
    for part in range(room.part_first[at], room.part_first[at + 1]):
        start, size = room.parts[:, part].tolist()
        source, begin = (values.data, start)
        if start >= values.data.size:
            source, begin = room.extra, start - values.data.size
        found += source[begin : begin + size].tobytes()
    return found
