"""The net change per key: what a run of row changes comes to, computed by one kernel.

A batch sent to PostgreSQL holds each key once (apply §4): deletes first, then updates, then
inserts. A key that is deleted and comes back is in both the deletes and the inserts. A change of
the key is the delete of the old one and the insert of the whole new row.

Values are cells: an offset and a length into the batch's data; a length of −1 is NULL and −2 says
that the change does not have the column.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

NULL: Final = -1
ABSENT: Final = -2

REST: Final = 0
"""The run ends before `end`: the next change needs a state that only the table knows."""
SINGLE: Final = 1
"""The next change moves a key, and its whole row is not known: an UPDATE of its own."""
NO_KEY: Final = 2
"""The next change does not have its key's values."""


class Cells(NamedTuple):
    """Images of n rows in the target's form, m columns each.

    Attributes:
        data: the bytes.
        offset, length: shape (n, m); see the module.
    """

    data: U8
    offset: I64
    length: I64


class NetChange(NamedTuple):
    """What ``changes[start:end]`` come to; every array of rows is sorted by key.

    Attributes:
        end: the first change that is not in it.
        reason: why it ends there, where that is before the last.
        delete: rows of `key` to delete.
        update: rows of `image` to update; shape (k), with the columns that are not `ABSENT`.
        insert: rows of `image` to insert.
        image_offset, image_length: shape (keys, m).
    """

    end: int
    reason: int
    delete: I64
    update: I64
    insert: I64
    image_offset: I64
    image_length: I64


@kernel
def _hash_key(data: U8, offset: I64, length: I64, key: I64) -> np.uint64:
    digest = np.uint64(14695981039346656037)
    prime = np.uint64(1099511628211)
    for column in key:
        digest = (digest ^ np.uint64(length[column])) * prime
        for i in range(offset[column], offset[column] + length[column]):
            digest = (digest ^ np.uint64(data[i])) * prime
    return digest ^ (digest >> np.uint64(29))


@kernel
def _same_key(
    data: U8, offset: I64, length: I64, other_offset: I64, other_length: I64, key: I64
) -> bool:
    for column in key:
        if length[column] != other_length[column]:
            return False
        a, b = offset[column], other_offset[column]
        for i in range(length[column]):
            if data[a + i] != data[b + i]:
                return False
    return True


class Keys(NamedTuple):
    """The state per key while a run is folded; room for two keys per change.

    Attributes:
        slots: open addressing, number + 1; a power of two of at least twice the keys.
        offset, length: cells of the key (other columns mean nothing).
        image_offset, image_length: what is known of the row as it will be.
        prior: 1 where the target has a row of this key before the run.
        current: 1 where it has one after.
        replaced: 1 where those are different rows.
        owner: identity of the row that has the key now, 0 = not known.
    """

    slots: I64
    offset: I64
    length: I64
    image_offset: I64
    image_length: I64
    prior: U8
    current: U8
    replaced: U8
    owner: U64


@kernel
def _find(data: U8, offset: I64, length: I64, key: I64, keys: Keys) -> tuple[int, int]:
    """(number of that key or −1, its slot)."""
    mask = np.uint64(keys.slots.size - 1)
    slot = _hash_key(data, offset, length, key) & mask
    while keys.slots[slot] != 0:
        number = keys.slots[slot] - 1
        if _same_key(data, offset, length, keys.offset[number], keys.length[number], key):
            return int(number), int(slot)
        slot = (slot + np.uint64(1)) & mask
    return -1, int(slot)


@kernel
def _add(
    offset: I64, length: I64, slot: int, prior: int, row: np.uint64, keys: Keys, count: int
) -> None:
    keys.slots[slot] = count + 1
    keys.offset[count] = offset
    keys.length[count] = length
    keys.image_length[count] = -2
    keys.prior[count] = prior
    keys.current[count] = 1
    keys.replaced[count] = 0
    keys.owner[count] = row


@kernel
def _overlay(offset: I64, length: I64, from_offset: I64, from_length: I64) -> None:
    for column in range(length.size):
        if from_length[column] != -2:
            offset[column] = from_offset[column]
            length[column] = from_length[column]


@kernel
def _has_all(length: I64, columns: I64, least: int) -> bool:
    for column in columns:  # noqa: SIM110 - compiled as a loop
        if length[column] < least:
            return False
    return True


@kernel
def _is_displaced(keys: Keys, number: int, row: np.uint64) -> bool:
    """Whether the change is of the target's own row, while a row that this run moved has its key.

    Oracle checks keys at the end of a statement (UPDATE … SET k = k + 1).
    """
    return bool(
        number >= 0
        and keys.current[number] == 1
        and keys.prior[number] == 0
        and row != 0
        and keys.owner[number] != 0
        and keys.owner[number] != row
    )


@kernel
def _insert(
    data: U8, offset: I64, length: I64, row: np.uint64, key: I64, keys: Keys, count: int
) -> int:
    """Give the key a new row, unless it has one (−1); the number of keys."""
    number, slot = _find(data, offset, length, key, keys)
    if number >= 0 and keys.current[number] == 1:
        return -1
    if number < 0:
        number = count
        count += 1
        _add(offset, length, slot, 0, row, keys, number)
    elif keys.prior[number] == 1:
        keys.replaced[number] = 1
    keys.current[number] = 1
    keys.owner[number] = row
    keys.image_offset[number] = offset
    keys.image_length[number] = length
    return count


@kernel
def _leave(
    offset: I64, length: I64, slot: int, number: int, row: np.uint64, keys: Keys, count: int
) -> int:
    """Take the row of this key away; the number of keys."""
    if number < 0:
        number = count
        count += 1
        _add(offset, length, slot, 1, row, keys, number)
    if _is_displaced(keys, number, row):
        keys.prior[number] = 1
        keys.replaced[number] = 1
    else:
        keys.current[number] = 0
        keys.replaced[number] = 0
    return count


@kernel
def net_change_kernel(
    data: U8,
    kind: U8,
    row: U64,
    start: int,
    before_offset: I64,
    before_length: I64,
    after_offset: I64,
    after_length: I64,
    key: I64,
    whole: I64,
    keys: Keys,
) -> tuple[int, int, int]:
    """Fold the changes from `start` on into `keys`; arguments as of `net_change`.

    Returns:
        (end, reason, number of keys)
    """
    count = 0
    width = before_length.shape[1]
    offset, length = np.empty(width, np.int64), np.empty(width, np.int64)
    for i in range(start, kind.size):
        number = slot = -1
        if kind[i] == 4:
            if not _has_all(after_length[i], key, 0):
                return i, 2, count
            added = _insert(data, after_offset[i], after_length[i], row[i], key, keys, count)
            if added < 0:
                return i, 0, count
            count = added
            continue
        if not _has_all(before_length[i], key, 0):
            return i, 2, count
        number, slot = _find(data, before_offset[i], before_length[i], key, keys)
        if number >= 0 and keys.current[number] == 0:
            return i, 0, count
        if kind[i] == 5:
            count = _leave(before_offset[i], before_length[i], slot, number, row[i], keys, count)
            continue
        displaced = _is_displaced(keys, number, row[i])
        length[:] = -2
        _overlay(offset, length, before_offset[i], before_length[i])
        if number >= 0 and not displaced:
            _overlay(offset, length, keys.image_offset[number], keys.image_length[number])
        _overlay(offset, length, after_offset[i], after_length[i])
        if not _has_all(length, key, 0):
            return i, 2, count
        if _same_key(data, before_offset[i], before_length[i], offset, length, key):
            if displaced:
                return i, 0, count
            if number < 0:
                number = count
                count += 1
                _add(before_offset[i], before_length[i], slot, 1, row[i], keys, number)
            _overlay(
                keys.image_offset[number],
                keys.image_length[number],
                after_offset[i],
                after_length[i],
            )
            continue
        if not _has_all(length, whole, -1):
            return i, 1, count
        taken, _ = _find(data, offset, length, key, keys)
        if taken >= 0 and keys.current[taken] == 1:
            return i, 0, count
        count = _leave(before_offset[i], before_length[i], slot, number, row[i], keys, count)
        count = _insert(data, offset, length, row[i], key, keys, count)
    return kind.size, 0, count


@kernel
def _compare_keys(data: U8, offset: I64, length: I64, a: int, b: int, key: I64) -> int:
    for column in key:
        left, right = length[a, column], length[b, column]
        for i in range(min(left, right)):
            x, y = data[offset[a, column] + i], data[offset[b, column] + i]
            if i == 0:
                # Integers, numbers and times lead with their sign.
                x ^= np.uint8(128)
                y ^= np.uint8(128)
            if x != y:
                return -1 if x < y else 1
        if left != right:
            return -1 if left < right else 1
    return 0


@kernel
def sort_keys_kernel(data: U8, offset: I64, length: I64, key: I64, order: I64, room: I64) -> None:
    """Sort `order` (key numbers) by their keys' bytes: a merge sort, `room` as large as `order`."""
    count = order.size
    width = 1
    source, target = order, room
    swapped = False
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j = low, middle
            for at in range(low, high):
                take_left = j >= high or (
                    i < middle
                    and _compare_keys(data, offset, length, source[i], source[j], key) <= 0
                )
                if take_left:
                    target[at] = source[i]
                    i += 1
                else:
                    target[at] = source[j]
                    j += 1
        source, target = target, source
        swapped = not swapped
        width *= 2
    if swapped:
        order[:] = room


def net_change(
    kind: U8, row: U64, before: Cells, after: Cells, key: I64, whole: I64, start: int
) -> NetChange:
    """The net change of the longest run of changes from `start` on that has one.

    Args:
        kind: `DmlKind` of each change.
        row: hash of each change's ROWID, 0 = not known.
        before, after: the images; they share their data.
        key: columns of the key.
        whole: columns that a whole row must have.
    """
    count, width = kind.size - start, before.length.shape[1]
    room = 2 * count
    keys = Keys(
        slots=np.zeros(1 << max(4, int(2 * room - 1).bit_length()), np.int64),
        offset=np.empty((room, width), np.int64),
        length=np.empty((room, width), np.int64),
        image_offset=np.empty((room, width), np.int64),
        image_length=np.empty((room, width), np.int64),
        prior=np.zeros(room, np.uint8),
        current=np.zeros(room, np.uint8),
        replaced=np.zeros(room, np.uint8),
        owner=np.zeros(room, np.uint64),
    )
    end, reason, n = net_change_kernel(
        before.data, kind, row, start, before.offset, before.length, after.offset, after.length,
        key, whole, keys,
    )  # fmt: skip
    order = np.arange(n)
    sort_keys_kernel(before.data, keys.offset[:n], keys.length[:n], key, order, order.copy())
    had, has, again = keys.prior[order] == 1, keys.current[order] == 1, keys.replaced[order] == 1
    # An update's key stays as it was; deletes need it where no image has it.
    for column in key:
        keys.image_offset[:n, column] = keys.offset[:n, column]
        keys.image_length[:n, column] = keys.length[:n, column]
    return NetChange(
        int(end),
        int(reason),
        order[had & (~has | again)],
        order[had & has & ~again],
        order[has & (~had | again)],
        keys.image_offset[:n],
        keys.image_length[:n],
    )
