"""Numbers the tables and columns in messages, with hash tables that kernels can search.

A message contains the description of a column (37 bytes and its name) before each of its values. To
find the number of a column, `known_column` first compares the column with the one that followed the
previous column in an earlier row. If the two columns differ, `known_column` searches a hash table.
Python code adds unknown columns (`ColumnNumbers.describe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.integers import mix, read_u64
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.wire.column_directory import ColumnDirectory
from olr_pg.wire.elements import (
    Delete,
    Insert,
    Update,
    decode_element,
    encode_column_header,
    encode_name,
)

if TYPE_CHECKING:
    from olr_pg.wire.frames import Buffer, ByteOrder

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

T = TypeVar("T", bound=np.generic)


class Known(NamedTuple):
    """The known tables and columns of a stream.

    Attributes:
        text: the bytes of all descriptions. `column_at` is the offset of each column's description.
            `table_at` is the offset of each table's description: the sizes of its owner and its
            name, then the owner and the name.
        table_at: shape (tables).
        table_slots: hash table with open addressing; an entry is the number of a table + 1.
        first_of: shape (tables); the first column of the table's image that was read last; −1 if
            unknown.
        column_at, column_table: shape (columns).
        column_slots: hash table with open addressing; an entry is the number of a column + 1.
        next_of: shape (columns); the column that followed each column in the image that was read
            last; −1 if unknown.
    """

    text: U8
    table_at: I64
    table_slots: I32
    first_of: I32
    column_at: I64
    column_table: I32
    column_slots: I32
    next_of: I32


@inlined
def same_bytes(one: U8, at: int, other: U8, place: int, size: int) -> bool:
    """Return whether `size` bytes of `one` from `at` on equal the bytes of `other` from `place`
    on.
    """
    while size >= 8:
        if read_u64(one, at, False) != read_u64(other, place, False):
            return False
        at += 8
        place += 8
        size -= 8
    for i in range(np.uint64(size)):
        if one[np.uint64(at) + i] != other[np.uint64(place) + i]:
            return False
    return True


@inlined
def digest_bytes(data: U8, at: int, size: int, digest: np.uint64) -> np.uint64:
    """Return the digest with the `size` bytes at `at` added."""
    while size >= 8:
        digest = mix(digest, read_u64(data, at, False))
        at += 8
        size -= 8
    word = np.uint64(size)
    for i in range(np.uint64(size)):
        word = word << np.uint64(8) | np.uint64(data[np.uint64(at) + i])
    return mix(digest, word)


@inlined
def known_table(data: U8, sizes: int, names: int, size: int, last: int, known: Known) -> int:
    """Return the number of a row change's table; −1 if unknown.

    Args:
        sizes: the offset of two bytes, the sizes of the table's owner and name.
        names: the offset of the owner and the name, which have `size` bytes together.
        last: the number of the table to compare with first; −1 for none.
    """
    text = known.text
    if last >= 0:
        at = known.table_at[last]
        if same_bytes(data, sizes, text, at, 2) and same_bytes(data, names, text, at + 2, size):
            return last
    digest = digest_bytes(data, names, size, np.uint64(data[sizes]))
    mask = np.uint64(known.table_slots.size - 1)
    slot = digest & mask
    while known.table_slots[slot] != 0:
        number = int(known.table_slots[slot]) - 1
        at = known.table_at[number]
        if same_bytes(data, sizes, text, at, 2) and same_bytes(data, names, text, at + 2, size):
            return number
        slot = (slot + np.uint64(1)) & mask
    return -1


@inlined
def _is_column(data: U8, at: int, name: int, number: int, known: Known) -> bool:
    place = known.column_at[number]
    if data[at] != known.text[place]:
        return False
    return same_bytes(data, at + 9, known.text, place + 9, 28 + name)


@inlined
def known_column(data: U8, at: int, table: int, before: int, known: Known) -> int:
    """Return the number of the column that is described at `at`; −1 if unknown.

    Args:
        before: the number of the previous column; −1 if this is the first column of its image.
    """
    name = int(np.int64(data[np.uint64(at)]))
    expected = known.next_of[before] if before >= 0 else known.first_of[table]
    if expected >= 0 and _is_column(data, at, name, expected, known):
        return int(expected)
    digest = digest_bytes(data, at + 9, 28 + name, np.uint64(table))
    mask = np.uint64(known.column_slots.size - 1)
    slot = digest & mask
    while known.column_slots[slot] != 0:
        number = int(known.column_slots[slot]) - 1
        if known.column_table[number] == table and _is_column(data, at, name, number, known):
            if before >= 0:
                known.next_of[before] = number
            else:
                known.first_of[table] = number
            return number
        slot = (slot + np.uint64(1)) & mask
    return -1


@kernel
def note_tables_kernel(known: Known, first: int, end: int) -> None:
    """Add the tables from `first` to `end` to the hash table."""
    mask = np.uint64(known.table_slots.size - 1)
    for number in range(first, end):
        at = known.table_at[number]
        size = int(np.int64(known.text[at])) + int(np.int64(known.text[at + 1]))
        slot = digest_bytes(known.text, at + 2, size, np.uint64(known.text[at])) & mask
        while known.table_slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        known.table_slots[slot] = number + 1


@kernel
def note_columns_kernel(known: Known, first: int, end: int) -> None:
    """Add the columns from `first` to `end` to the hash table."""
    mask = np.uint64(known.column_slots.size - 1)
    for number in range(first, end):
        at = known.column_at[number]
        size = 28 + int(np.int64(known.text[at]))
        table = np.uint64(known.column_table[number])
        slot = digest_bytes(known.text, at + 9, size, table) & mask
        while known.column_slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        known.column_slots[slot] = number + 1


class ColumnNumbers:
    """The numbers of a stream's tables and columns, for Python code and for kernels. Only the
    parsing thread uses this object.

    Args:
        order: byte order of the protocol.

    Attributes:
        directory: the tables and columns for Python code.
        known: the same tables and columns for kernels. Adding a column may replace `known` by
            another object.
    """

    def __init__(self, order: ByteOrder) -> None:
        self._order = order
        self._used = 0
        self.directory = ColumnDirectory()
        self.known = Known(
            text=np.zeros(1 << 12, np.uint8),
            table_at=np.zeros(8, np.int64),
            table_slots=np.zeros(16, np.int32),
            first_of=np.full(8, -1, np.int32),
            column_at=np.zeros(64, np.int64),
            column_table=np.zeros(64, np.int32),
            column_slots=np.zeros(128, np.int32),
            next_of=np.full(64, -1, np.int32),
        )

    def describe(self, element: Buffer) -> None:
        """Give numbers to the table and the columns of a row change, if they have none yet.

        Raises:
            OlrPgError: 4005, a name is not UTF-8.
        """
        change = decode_element(element, self._order)
        assert isinstance(change, Insert | Delete | Update)
        directory = self.directory
        tables = len(directory.tables)
        table = directory.table(change.schema, change.table)
        if table == tables:
            owner, name = (encode_name(one, "a name") for one in directory.tables[table])
            self._add_table(table, bytes((len(owner), len(name))) + owner + name)
        for column in (*change.before, *change.after):
            columns = len(directory.columns)
            number = directory.column(table, column)
            if number == columns:
                self._add_column(number, table, encode_column_header(column, 0, self._order))

    def _add_table(self, number: int, text: bytes) -> None:
        if number == len(self.known.table_at):
            self.known = self.known._replace(
                table_at=_doubled(self.known.table_at, 0),
                first_of=_doubled(self.known.first_of, -1),
                table_slots=np.zeros(2 * len(self.known.table_slots), np.int32),
            )
            note_tables_kernel(self.known, 0, number)
        self.known.table_at[number] = self._keep(text)
        note_tables_kernel(self.known, number, number + 1)

    def _add_column(self, number: int, table: int, text: bytes) -> None:
        if number == len(self.known.column_at):
            self.known = self.known._replace(
                column_at=_doubled(self.known.column_at, 0),
                column_table=_doubled(self.known.column_table, 0),
                next_of=_doubled(self.known.next_of, -1),
                column_slots=np.zeros(2 * len(self.known.column_slots), np.int32),
            )
            note_columns_kernel(self.known, 0, number)
        self.known.column_at[number] = self._keep(text)
        self.known.column_table[number] = table
        note_columns_kernel(self.known, number, number + 1)

    def _keep(self, text: bytes) -> int:
        """Append a text; return its offset."""
        at, self._used = self._used, self._used + len(text)
        while self._used > len(self.known.text):
            self.known = self.known._replace(text=_doubled(self.known.text, 0))
        self.known.text[at : self._used] = np.frombuffer(text, np.uint8)
        return at


def _doubled(array: npt.NDArray[T], filling: int) -> npt.NDArray[T]:
    """Return a copy of the array with twice its size; `filling` is the value of the new
    elements.
    """
    larger = np.full(2 * len(array), filling, array.dtype)
    larger[: len(array)] = array
    return larger
