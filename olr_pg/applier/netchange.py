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

from olr_pg.kernels import inlined, kernel

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


STATE: Final = np.dtype([("prior", "u1"), ("current", "u1"), ("replaced", "u1"), ("owner", "u8")])
"""What is known of a key while a run is folded.

`prior`: 1 where the target has a row of this key before the run; `current`: 1 where it has one
after; `replaced`: 1 where those are different rows; `owner`: identity of the row that has the key
now, 0 = not known.
"""


class Keys(NamedTuple):
    """The state per key while a run is folded; room for two keys per change.

    Cells have row 0 for the change's before image and row 1 for its whole image, then one for
    each key (other columns mean nothing), then one for each key's image: what is known of the row
    as it will be.

    Attributes:
        slots: open addressing, number + 1; a power of two of at least twice the keys.
        state: shape (room), `STATE`.
        offset, length: shape (2 + 2 room, m).
    """

    slots: I64
    state: npt.NDArray[np.void]
    offset: I64
    length: I64


@inlined
def _hash_key(data: U8, offset: I64, length: I64, at: int, key: I64) -> np.uint64:
    digest = np.uint64(14695981039346656037)
    prime = np.uint64(1099511628211)
    for column in key:
        size, start = length[at, column], offset[at, column]
        digest = (digest ^ np.uint64(size)) * prime
        for i in range(start, start + size):
            digest = (digest ^ np.uint64(data[i])) * prime
    return digest ^ (digest >> np.uint64(29))


@inlined
def _same_key(data: U8, offset: I64, length: I64, one: int, other: int, key: I64) -> bool:
    for column in key:
        if length[one, column] != length[other, column]:
            return False
        a, b = offset[one, column], offset[other, column]
        for i in range(length[one, column]):
            if data[a + i] != data[b + i]:
                return False
    return True


@inlined
def _find(data: U8, at: int, key: I64, keys: Keys) -> int:
    """The number of the key of cells `at`, or ``~slot`` where it would be noted."""
    mask = keys.slots.size - 1
    slot = np.int64(_hash_key(data, keys.offset, keys.length, at, key)) & mask
    while keys.slots[slot] != 0:
        number = keys.slots[slot] - 1
        if _same_key(data, keys.offset, keys.length, at, 2 + number, key):
            return int(number)
        slot = (slot + 1) & mask
    return int(~slot)


@inlined
def _overlay(keys: Keys, at: int, offset: I64, length: I64, row: int) -> None:
    """Lay the cells of a row over the cells `at`."""
    for column in range(length.shape[1]):
        if length[row, column] != -2:
            keys.offset[at, column] = offset[row, column]
            keys.length[at, column] = length[row, column]


@inlined
def _clear(length: I64, at: int) -> None:
    for column in range(length.shape[1]):
        length[at, column] = -2


@inlined
def _has_all(length: I64, at: int, columns: I64, least: int) -> bool:
    for column in columns:  # noqa: SIM110 - compiled as a loop
        if length[at, column] < least:
            return False
    return True


@inlined
def _add(at: int, slot: int, prior: int, row: np.uint64, keys: Keys, count: int) -> None:
    """Note the key of cells `at` as number `count`, without an image."""
    keys.slots[slot] = count + 1
    _clear(keys.length, 2 + count)
    _overlay(keys, 2 + count, keys.offset, keys.length, at)
    _clear(keys.length, 2 + keys.state.size + count)
    state = keys.state[count]
    state["prior"] = prior
    state["current"] = 1
    state["replaced"] = 0
    state["owner"] = row


@inlined
def _is_displaced(keys: Keys, number: int, row: np.uint64) -> bool:
    """Whether the change is of the target's own row, while a row that this run moved has its key.

    Oracle checks keys at the end of a statement (UPDATE … SET k = k + 1).
    """
    if number < 0:
        return False
    state = keys.state[number]
    return bool(
        state["current"] == 1
        and state["prior"] == 0
        and row != 0
        and state["owner"] != 0
        and state["owner"] != row
    )


@inlined
def _insert(data: U8, row: np.uint64, key: I64, keys: Keys, count: int) -> int:
    """Give the key of the merged image a new row, unless it has one (−1); the number of keys."""
    number = _find(data, 1, key, keys)
    if number >= 0 and keys.state[number]["current"] == 1:
        return -1
    if number < 0:
        slot, number = ~number, count
        count += 1
        _add(1, slot, 0, row, keys, number)
    elif keys.state[number]["prior"] == 1:
        keys.state[number]["replaced"] = 1
    keys.state[number]["current"] = 1
    keys.state[number]["owner"] = row
    image = 2 + keys.state.size + number
    _clear(keys.length, image)
    _overlay(keys, image, keys.offset, keys.length, 1)
    return count


@inlined
def _leave(number: int, row: np.uint64, keys: Keys, count: int) -> int:
    """Take the row of the before image's key (as `_find` says) away; the number of keys."""
    if number < 0:
        slot, number = ~number, count
        count += 1
        _add(0, slot, 1, row, keys, number)
    if _is_displaced(keys, number, row):
        keys.state[number]["prior"] = 1
        keys.state[number]["replaced"] = 1
    else:
        keys.state[number]["current"] = 0
        keys.state[number]["replaced"] = 0
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
    for i in range(start, kind.size):
        _clear(keys.length, 0)
        _clear(keys.length, 1)
        if kind[i] == 4:
            if not _has_all(after_length, i, key, 0):
                return i, 2, count
            _overlay(keys, 1, after_offset, after_length, i)
            added = _insert(data, row[i], key, keys, count)
            if added < 0:
                return i, 0, count
            count = added
            continue
        if not _has_all(before_length, i, key, 0):
            return i, 2, count
        _overlay(keys, 0, before_offset, before_length, i)
        number = _find(data, 0, key, keys)
        if number >= 0 and keys.state[number]["current"] == 0:
            return i, 0, count
        if kind[i] == 5:
            count = _leave(number, row[i], keys, count)
            continue
        displaced = _is_displaced(keys, number, row[i])
        _overlay(keys, 1, before_offset, before_length, i)
        if number >= 0 and not displaced:
            _overlay(keys, 1, keys.offset, keys.length, 2 + keys.state.size + number)
        _overlay(keys, 1, after_offset, after_length, i)
        if not _has_all(keys.length, 1, key, 0):
            return i, 2, count
        if _same_key(data, keys.offset, keys.length, 0, 1, key):
            if displaced:
                return i, 0, count
            if number < 0:
                slot, number = ~number, count
                count += 1
                _add(0, slot, 1, row[i], keys, number)
            _overlay(keys, 2 + keys.state.size + number, after_offset, after_length, i)
            continue
        if not _has_all(keys.length, 1, whole, -1):
            return i, 1, count
        taken = _find(data, 1, key, keys)
        if taken >= 0 and keys.state[taken]["current"] == 1:
            return i, 0, count
        count = _leave(number, row[i], keys, count)
        count = _insert(data, row[i], key, keys, count)
    return kind.size, 0, count


@inlined
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
        for at in range(count):
            order[at] = room[at]


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
    cells = (2 + 2 * room, width)
    keys = Keys(
        slots=np.zeros(1 << max(4, int(2 * room - 1).bit_length()), np.int64),
        state=np.zeros(room, STATE),
        offset=np.empty(cells, np.int64),
        length=np.empty(cells, np.int64),
    )
    end, reason, n = net_change_kernel(
        before.data, kind, row, start, before.offset, before.length, after.offset, after.length,
        key, whole, keys,
    )  # fmt: skip
    key_offset, key_length = keys.offset[2 : 2 + n], keys.length[2 : 2 + n]
    images = slice(2 + room, 2 + room + n)
    image_offset, image_length = keys.offset[images], keys.length[images]
    order = np.arange(n)
    sort_keys_kernel(before.data, key_offset, key_length, key, order, order.copy())
    state = keys.state[order]
    had, has, again = state["prior"] == 1, state["current"] == 1, state["replaced"] == 1
    # An update's key stays as it was; deletes need it where no image has it.
    image_offset[:, key], image_length[:, key] = key_offset[:, key], key_length[:, key]
    return NetChange(
        int(end),
        int(reason),
        order[had & (~has | again)],
        order[had & has & ~again],
        order[has & (~had | again)],
        image_offset,
        image_length,
    )
