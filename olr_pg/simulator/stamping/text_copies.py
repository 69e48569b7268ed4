"""Makes copies of the truth; each copy has its own SCNs, transaction ids, ROWIDs and keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.scalars import parse_rowid

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from olr_pg.simulator.sessions.keys import KeyForm
    from olr_pg.simulator.stamping.marks import Steps

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

WIDTH: Final = 15
"""Digits that are reserved for numbers whose length may change."""

KEY_DIGITS: Final = 4
"""Number of digits of the copy's number in a key."""

ROWID_BLOCK: Final = 9
ROWID_DIGITS: Final = 6
"""Position of the block number in a ROWID, and its number of characters."""

_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_HEAD: Final = re.compile(
    rb'\{"op":"\w+","scn":(\d+),"commit_scn":(\d+),"xid":"(\d+)\.(\d+)\.(\d+)"'
    rb'(?:,"table":"\w+\.(\w+)","rowid":"([^"]*)")?'
)


def put_digits(target: Bytes, at: Ints, values: Ints, width: int) -> None:
    """Write decimal numbers into fields of `width` bytes, with NUL bytes before the first digit."""
    for place in range(width):
        rest = values // 10 ** (width - 1 - place)
        target[at + place] = np.where(rest > 0, rest % 10 + ord("0"), 0)


def put_rowid_blocks(target: Bytes, at: Ints, blocks: Ints) -> None:
    """Write block numbers in the form of ROWIDs."""
    for place in range(ROWID_DIGITS):
        target[at + place] = _ALPHABET[blocks >> 6 * (ROWID_DIGITS - 1 - place) & 63]


class TextCopies:
    """Makes copies of the lines of a truth.

    Args:
        text: the lines of the first copy.
        steps: the differences between copies.
        keys: the forms of key columns, by table and column name.
        tables: the data object number of each table.
    """

    def __init__(
        self,
        text: bytes,
        steps: Steps,
        keys: Mapping[str, Mapping[str, KeyForm]],
        tables: Mapping[str, int],
    ) -> None:
        self._steps, self._tables = steps, tables
        self._keys = {table.encode(): own for table, own in keys.items()}
        self._names = {
            table: re.compile(rb'"(%s)":(\d+)' % b"|".join(name.encode() for name in own))
            for table, own in ((table, own) for table, own in self._keys.items() if own)
        }
        self._pieces, self._size = list[bytes](), 0
        self._found: dict[str, list[tuple[int, int, int]]] = {"number": [], "key": [], "block": []}
        for line in text.splitlines(keepends=True):
            self._read(line)
        self._text = np.frombuffer(b"".join(self._pieces), np.uint8)
        self._numbers, self._key_digits, self._blocks = (
            np.array(self._found[kind], np.int64).reshape(-1, 3).T
            for kind in ("number", "key", "block")
        )

    def _read(self, line: bytes) -> None:
        head = _HEAD.match(line)
        assert head is not None
        first = self._steps.first_scn
        done = 0
        for group, step in (
            *((1, self._steps.scn), (2, self._steps.scn)),
            (5, self._steps.slots[int(head[3]), int(head[4])]),
        ):
            assert group == 5 or int(head[group]) >= first
            self._add(line[done : head.start(group)])
            self._found["number"].append((self._size, int(head[group]), step))
            self._add(bytes(WIDTH))
            done = head.end(group)
        start = self._size - done
        self._add(line[done:])
        if not head[6]:
            return
        if head[7]:
            _, dba, _ = parse_rowid(head[7].decode())
            step = self._steps.blocks[self._tables[head[6].decode()]]
            place = start + head.start(7) + ROWID_BLOCK
            self._found["block"].append((place, dba & 0x3FFFFF, step))
        if head[6] in self._names:
            forms = self._keys[head[6]]
            for match in self._names[head[6]].finditer(line, head.end()):
                place = match.start(2) + forms[match[1].decode()].digits_at
                number = int(line[place : place + KEY_DIGITS])
                self._found["key"].append((start + place, number, 1))

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)

    def text(self, copy: int) -> Bytes:
        """Return the lines of the copy with this number, from 0."""
        text = self._text.copy()
        at, value, step = self._numbers
        put_digits(text, at, value + copy * step, WIDTH)
        at, value, step = self._blocks
        put_rowid_blocks(text, at, value + copy * step)
        at, value, step = self._key_digits
        for place in range(KEY_DIGITS):
            digits = (value + copy * step) // 10 ** (KEY_DIGITS - 1 - place) % 10
            text[at + place] = digits + ord("0")
        copied: Bytes = text[text != 0]
        return copied
