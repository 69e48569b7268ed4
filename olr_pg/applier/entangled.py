"""Changes of one transaction that have to do with one another, because they share keys.

Oracle checks keys at the end of a statement, so rows may take one another's keys
(``SET k = k + 1``, two rows that change places). Such changes conflict one by one, though they go
in as a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.netchange import ABSENT
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.applier.changes import Changes
    from olr_pg.applier.netchange import Cells

I64 = npt.NDArray[np.int64]
Key = tuple[bytes, ...]

ATTEMPTS_MAX: Final = 16
"""Sets of a transaction's entangled changes that may be refused: each costs as much as all rows."""


def entangled(changes: Changes, key: I64) -> I64:
    """For each change, the first of those that it shares keys with, also through others.

    Args:
        changes: with the key's columns of all images.
        key: places of the key's columns.
    """
    first = list(range(len(changes.kind)))

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = number = first[first[number]]
        return number

    known: dict[Key, int] = {}
    for number in range(len(first)):
        for one in keys(changes, number, key):
            pair = root(known.setdefault(one, number)), root(number)
            first[max(pair)] = min(pair)
    return np.array([root(number) for number in range(len(first))], np.int64)


def keys(changes: Changes, number: int, key: I64) -> Iterator[Key]:
    """The keys that a change names: of the row before it, of the row after it."""
    kind = int(changes.kind[number])
    before, after = changes.before, changes.after
    if kind == DmlKind.INSERT:
        found = [[_value(after, number, column) for column in key]]
    else:
        found = [[_value(before, number, column) for column in key]]
        if kind == DmlKind.UPDATE:
            sets = after.length[number, key] != ABSENT
            images = [after if one else before for one in sets]
            found.append(
                [_value(image, number, column) for image, column in zip(images, key, strict=True)]
            )
    for values in found:
        whole = tuple(value for value in values if value is not None)
        if whole and len(whole) == len(key):
            yield whole


def _value(image: Cells, number: int, column: int) -> bytes | None:
    start, size = int(image.offset[number, column]), int(image.length[number, column])
    return None if size < 0 else image.data[start : start + size].tobytes()
