"""Computes the net change of each key in a run of row changes, by one kernel.

PostgreSQL receives first deletes, then updates, then inserts, and each key at most once in each of
them (architecture, “What PostgreSQL does and refuses”). A key that is deleted and inserted again is
in both the deletes and the inserts. A changed key becomes a delete of the old key and an insert of
the whole row with the new key.

A value is stored as a cell: its offset in the batch's data, and its length. A length of −1 means
NULL, and −2 (`ABSENT`) means that the change does not contain the column.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.transactions.finished_columns import DmlKind

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]

NULL: Final = -1
ABSENT: Final = -2

_INSERT = int(DmlKind.INSERT)
_DELETE = int(DmlKind.DELETE)

REST: Final = 0
"""Reason why a run ends: the effect of the next change depends on rows of the table that the run
has changed, so the run must be applied first.
"""
SINGLE: Final = 1
"""Reason why a run ends: the next change modifies a key and its whole row is unknown, so it needs
its own UPDATE.
"""
NO_KEY: Final = 2
"""Reason why a run ends: the next change lacks values of its key."""


class Cells(NamedTuple):
    """Images of rows in PostgreSQL's binary format. Each image has m columns.

    Attributes:
        data: the bytes of all values.
        offset, length: shape (rows, m); see the module's docstring.
    """

    data: U8
    offset: I64
    length: I64

    def value(self, row: int, column: int) -> bytes | None:
        """Return the bytes of a cell; None if it is NULL or absent."""
        start, size = int(self.offset[row, column]), int(self.length[row, column])
        return None if size < 0 else self.data[start : start + size].tobytes()


class NetChange(NamedTuple):
    """The net change of ``changes[start:end]``. The rows are indexes into the rows of `Cells`,
    sorted by the first bytes of the key.

    Attributes:
        end: the first change that is not included.
        reason: why the run ends there, if changes remain: `REST`, `SINGLE` or `NO_KEY`.
        delete: rows with the keys to delete. The columns outside the key have no meaning in these
            rows.
        update: rows to update. Each of these rows contains the key; the UPDATE sets the columns
            that are not `ABSENT`.
    """

    end: int
    reason: int
    delete: I64
    update: I64
    insert: I64


STATE: Final = np.dtype(
    [("prior", "u1"), ("current", "u1"), ("replaced", "u1"), ("owner", "u8"), ("key", "i8"),
     ("image", "i8")]
)  # fmt: skip
"""The state of a key while the net change of a run is computed.

`prior`: 1 if a row has this key before the run, else 0. `current`: 1 if a row has it after the
changes so far. `replaced`: 1 if these are different rows. `owner`: the hash of the ROWID of the row
that has the key now; 0 if unknown. `key`: the number of a row of cells with the key's values.
`image`: the number of the row of cells with the known new values of the row; −1 if there are none.
`image` is the row of the change itself until the values of another change must be added.
"""


class Fold(NamedTuple):
    """A run of changes while its net change is computed.

    Attributes:
        data, offset, length: the cells: n before images, n after images, n spare rows.
        key: columns of the key.
        slots: a hash table with open addressing; an entry is the number of a key + 1. The size of
            the table is a power of two, and at least twice the number of keys.
        state: shape (2 n), of type `STATE`; a change contains at most two keys.
    """

    data: U8
    offset: I64
    length: I64
    key: I64
    slots: I32
    state: npt.NDArray[np.void]


@inlined
def _hash_key(fold: Fold, at: int) -> np.uint64:
    digest = np.uint64(14695981039346656037)
    prime = np.uint64(1099511628211)
    for column in fold.key:
        size, start = np.uint64(fold.length[at, column]), np.uint64(fold.offset[at, column])
        digest = (digest ^ size) * prime
        for i in range(size):
            digest = (digest ^ np.uint64(fold.data[start + i])) * prime
    return digest ^ (digest >> np.uint64(29))


@inlined
def _same_key(fold: Fold, one: int, other: int) -> bool:
    for column in fold.key:
        size = fold.length[one, column]
        if size != fold.length[other, column]:
            return False
        a, b = np.uint64(fold.offset[one, column]), np.uint64(fold.offset[other, column])
        for i in range(np.uint64(size)):
            if fold.data[a + i] != fold.data[b + i]:
                return False
    return True


@inlined
def _find(fold: Fold, at: int) -> int:
    """Return the number of the key of row `at`. If the key is new, return ``~slot`` with the slot
    where to add it.
    """
    mask = np.uint64(fold.slots.size - 1)
    slot = _hash_key(fold, at) & mask
    while fold.slots[slot] != 0:
        number = np.int64(fold.slots[slot]) - 1
        if _same_key(fold, at, fold.state[number]["key"]):
            return int(number)
        slot = (slot + np.uint64(1)) & mask
    return int(~np.int64(slot))


@inlined
def _overlay(fold: Fold, at: int, row: int) -> None:
    """Copy the cells of a row that are not absent to the row `at`."""
    for column in range(fold.length.shape[1]):
        if fold.length[row, column] != -2:
            fold.offset[at, column] = fold.offset[row, column]
            fold.length[at, column] = fold.length[row, column]


@inlined
def _has_all(fold: Fold, at: int, columns: I64, least: int) -> bool:
    for column in columns:  # noqa: SIM110 - compiled as a loop
        if fold.length[at, column] < least:
            return False
    return True


@inlined
def _sets_key(fold: Fold, at: int) -> bool:
    for column in fold.key:  # noqa: SIM110 - compiled as a loop
        if fold.length[at, column] != -2:
            return True
    return False


@inlined
def _add(fold: Fold, at: int, slot: int, prior: int, row: np.uint64, count: int) -> None:
    """Add the key of row `at` with the number `count`, without an image."""
    fold.slots[slot] = count + 1
    state = fold.state[count]
    state["prior"] = prior
    state["current"] = 1
    state["replaced"] = 0
    state["owner"] = row
    state["key"] = at
    state["image"] = -1


@inlined
def _is_displaced(fold: Fold, number: int, row: np.uint64) -> bool:
    """Return whether the key of the row to be changed now belongs to another row, which an earlier
    change of the run has moved there.

    This happens because Oracle checks keys only at the end of a statement (UPDATE … SET k = k + 1).
    """
    if number < 0:
        return False
    state = fold.state[number]
    return bool(
        state["current"] == 1
        and state["prior"] == 0
        and row != 0
        and state["owner"] != 0
        and state["owner"] != row
    )


@inlined
def _insert(fold: Fold, image: int, row: np.uint64, count: int) -> int:
    """Record that a new row has the key of an image. Return the number of keys; −1 if another row
    has the key.
    """
    number = _find(fold, image)
    if number >= 0 and fold.state[number]["current"] == 1:
        return -1
    if number < 0:
        slot, number = ~number, count
        count += 1
        _add(fold, image, slot, 0, row, number)
    elif fold.state[number]["prior"] == 1:
        fold.state[number]["replaced"] = 1
    fold.state[number]["current"] = 1
    fold.state[number]["owner"] = row
    fold.state[number]["image"] = image
    return count


@inlined
def _leave(fold: Fold, at: int, number: int, row: np.uint64, count: int) -> int:
    """Record that the row with the key of row `at` is deleted or gets another key. `number` is the
    result of `_find`. Return the number of keys.
    """
    if number < 0:
        slot, number = ~number, count
        count += 1
        _add(fold, at, slot, 1, row, number)
    if _is_displaced(fold, number, row):
        fold.state[number]["prior"] = 1
        fold.state[number]["replaced"] = 1
    else:
        fold.state[number]["current"] = 0
        fold.state[number]["replaced"] = 0
    return count


@inlined
def _clear(fold: Fold, at: int) -> None:
    for column in range(fold.length.shape[1]):
        fold.length[at, column] = -2


@inlined
def _update_image(fold: Fold, number: int, after: int, room: int) -> int:
    """Add the values of an after image to the image of a key. Return the next free spare row."""
    state = fold.state[number]
    image = state["image"]
    if image < 0:
        state["image"] = after
        return room
    if image < 2 * (fold.length.shape[0] // 3):
        _clear(fold, room)
        _overlay(fold, room, image)
        state["image"] = image = room
        room += 1
    _overlay(fold, image, after)
    return room


@inlined
def _known_row(fold: Fold, before: int, after: int, number: int, room: int) -> None:
    """Write the known values of an updated row to the spare row `room`."""
    _clear(fold, room)
    _overlay(fold, room, before)
    if number >= 0 and fold.state[number]["image"] >= 0:
        _overlay(fold, room, fold.state[number]["image"])
    _overlay(fold, room, after)


@kernel
def net_change_kernel(
    kind: U8, row: U64, start: int, whole: I64, fold: Fold
) -> tuple[int, int, int]:
    """Compute the states of the keys in `fold` from the changes from `start` on. The arguments are
    the same as for `net_change`.

    Returns:
        (end, reason, number of keys), as in `NetChange`.
    """
    count, room = 0, 2 * kind.size
    for i in range(start, kind.size):
        after = kind.size + i
        if kind[i] == _INSERT:
            if not _has_all(fold, after, fold.key, 0):
                return i, NO_KEY, count
            added = _insert(fold, after, row[i], count)
            if added < 0:
                return i, REST, count
            count = added
            continue
        if not _has_all(fold, i, fold.key, 0):
            return i, NO_KEY, count
        number = _find(fold, i)
        if number >= 0 and fold.state[number]["current"] == 0:
            return i, REST, count
        if kind[i] == _DELETE:
            count = _leave(fold, i, number, row[i], count)
            continue
        displaced = _is_displaced(fold, number, row[i])
        moves = False
        if _sets_key(fold, after):
            _known_row(fold, i, after, -1 if displaced else number, room)
            if not _has_all(fold, room, fold.key, 0):
                return i, NO_KEY, count
            moves = not _same_key(fold, i, room)
        if not moves:
            if displaced:
                return i, REST, count
            if number < 0:
                slot, number = ~number, count
                count += 1
                _add(fold, i, slot, 1, row[i], number)
            room = _update_image(fold, number, after, room)
            continue
        if not _has_all(fold, room, whole, -1):
            return i, SINGLE, count
        taken = _find(fold, room)
        if taken >= 0 and fold.state[taken]["current"] == 1:
            return i, REST, count
        count = _leave(fold, i, number, row[i], count)
        count = _insert(fold, room, row[i], count)
        room += 1
    return kind.size, REST, count


@inlined
def key_prefix(data: U8, start: int, size: int, skip: int) -> np.uint64:
    """Return the eight bytes of a value of a key's first column that follow the first `skip` bytes,
    as a number that sorts like the values.
    """
    place = np.uint64(start + skip)
    word = np.uint64(0)
    for i in range(np.uint64(min(max(size - skip, 0), 8))):
        word |= np.uint64(data[place + i]) << (np.uint64(56) - np.uint64(8) * i)
    # The first bit of integers, numbers and times is their sign, so it is inverted.
    return word ^ np.uint64(1 << 63) if skip == 0 else word


@kernel
def prefixes_kernel(fold: Fold, skip: int, prefix: U64) -> None:
    """Write the `key_prefix` of each key."""
    column = fold.key[0]
    for number in range(prefix.size):
        at = fold.state[number]["key"]
        prefix[number] = key_prefix(
            fold.data, fold.offset[at, column], fold.length[at, column], skip
        )


@kernel
def outcome_kernel(
    fold: Fold, order: I64, delete: I64, update: I64, insert: I64
) -> tuple[int, int, int]:
    """Write the rows of a `NetChange` to `delete`, `update` and `insert`; return the numbers of
    these rows.
    """
    deletes = updates = inserts = 0
    for number in order:
        state = fold.state[number]
        had, has, again = state["prior"] == 1, state["current"] == 1, state["replaced"] == 1
        key, image = state["key"], state["image"]
        if had and (not has or again):
            delete[deletes] = key
            deletes += 1
        if not has:
            continue
        # The image of an update may not contain the whole key, so copy the key to it.
        for column in fold.key:
            fold.offset[image, column] = fold.offset[key, column]
            fold.length[image, column] = fold.length[key, column]
        if had and not again:
            update[updates] = image
            updates += 1
        else:
            insert[inserts] = image
            inserts += 1
    return deletes, updates, inserts


def _order(fold: Fold, count: int) -> I64:
    """Return the order of the keys by the first bytes of their first column, so that keys that are
    neighbours in the table's index follow each other.
    """
    first, second = np.empty((2, count), np.uint64)
    prefixes_kernel(fold, 0, first)
    order = np.argsort(first, kind="stable")
    ordered = first[order]
    if count > 1 and (ordered[1:] == ordered[:-1]).any():
        prefixes_kernel(fold, 8, second)
        order = np.lexsort((second, first))
    return order


def net_change(kind: U8, row: U64, cells: Cells, key: I64, whole: I64, start: int) -> NetChange:
    """Return the net change of the longest possible run of changes from `start` on.

    Args:
        kind: `DmlKind` of each of the n changes.
        row: the hash of each change's ROWID; 0 if unknown.
        cells: n before images, n after images, n spare rows. This function can modify the spare
            rows, and key columns of the images of changes before `end`.
        key: columns of the key.
        whole: the columns of a whole row.
    """
    keys = 2 * (kind.size - start)
    fold = Fold(
        *cells,
        key=key,
        slots=np.zeros(1 << max(4, int(2 * keys - 1).bit_length()), np.int32),
        state=np.empty(keys, STATE),
    )
    end, reason, count = net_change_kernel(kind, row, start, whole, fold)
    order = _order(fold, count)
    rows = np.empty((3, count), np.int64)
    deletes, updates, inserts = outcome_kernel(fold, order, *rows)
    return NetChange(int(end), int(reason), rows[0, :deletes], rows[1, :updates], rows[2, :inserts])
