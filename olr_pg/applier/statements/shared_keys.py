"""Groups changes of one transaction that share keys.

Oracle checks keys at the end of a statement, so rows can exchange keys (``SET k = k + 1``, or two
rows that swap their keys). Changes that exchange keys conflict if they are applied one by one,
although they succeed as a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.net_change import ABSENT
from olr_pg.applier.statements.table_changes import ChangeError, encode_changes
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.applier.statements.net_change import Cells
    from olr_pg.applier.statements.table_changes import Selection, TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan

I64 = npt.NDArray[np.int64]
Key = tuple[bytes, ...]

ATTEMPTS_MAX: Final = 16
"""Maximum number of refused sets for each transaction. Each attempt may apply all changes of the
transaction.
"""


class PlacedKeys:
    """The keys at which a transaction has written rows, while it is applied change by change.

    In the target, a row can have a key that belonged to another row, because one statement in
    Oracle gave both rows new keys. If the other row is missing or overwritten in the target, a
    later change of it would find the wrong row by the key. So the later change must not be applied.

    Args:
        key: indexes of the key's columns.
    """

    def __init__(self, key: I64) -> None:
        self._key = key
        self._row: dict[Key, int] = {}

    def note(self, changes: TargetChanges, number: int) -> None:
        """Record the keys of a change that was applied."""
        before, after = images(changes, number, self._key)
        row = int(changes.row[number])
        if before == after:
            return
        if before is not None and self._row.get(before) == row:
            del self._row[before]
        if after is not None:
            self._row[after] = row

    def displaces(self, changes: TargetChanges, number: int) -> bool:
        """Return whether another row is known to have the key by which this change would find its
        row.
        """
        before, _ = images(changes, number, self._key)
        row = int(changes.row[number])
        return before is not None and row != 0 and self._row.get(before, row) not in (0, row)


class SharedKeys:
    """The changes of one transaction while it is applied change by change, in groups that share
    keys.

    Attributes:
        placed: the keys at which the applied changes have written rows.
        left: which changes remain: they are neither skipped nor already applied together with their
            group.
        attempts: how many sets were refused so far.
    """

    def __init__(self, plan: TablePlan, part: Selection, kept: npt.NDArray[np.bool_]) -> None:
        self._plan = plan
        self.part = part
        self.placed = PlacedKeys(plan.key)
        self._first: I64 | None = None
        self._size: I64 | None = None
        self._kept = kept
        self.left = kept.copy()
        self.attempts = 0

    def change(self, number: int) -> Selection:
        """Return the change with this index."""
        return self.part.part(slice(number, number + 1))

    def rest(self, number: int) -> npt.NDArray[np.bool_]:
        """Return the change `number` and the later remaining changes that share keys with it, as a
        mask.
        """
        rows = np.zeros(len(self.part), np.bool_)
        first = self._found()
        rows[number:] = (first == first[number])[number:]
        return rows & self.left

    def is_alone(self, number: int) -> bool:
        """Return whether a change must be applied alone: it shares keys with no other change, or
        `ATTEMPTS_MAX` is reached.
        """
        return self.attempts >= ATTEMPTS_MAX or self._sizes()[self._found()[number]] < 2

    def _sizes(self) -> I64:
        if self._size is None:
            self._size = np.bincount(self._found())
        return self._size

    def _found(self) -> I64:
        if self._first is None:
            self._first = np.arange(len(self.part))
            try:
                changes = encode_changes(self._plan, self.part.part(self._kept), whole=True)
            except ChangeError:
                return self._first  # the error is reported when the change is applied
            numbers = np.flatnonzero(self._kept)
            self._first[numbers] = numbers[groups_sharing_keys(changes, self._plan.key)]
        return self._first


def groups_sharing_keys(changes: TargetChanges, key: I64) -> I64:
    """Return for each change the first change of its group. Changes share a group if they share
    keys directly, or through other changes.

    Args:
        changes: the changes; all images contain the columns of the key.
        key: indexes of the key's columns.
    """
    first = list(range(len(changes.kind)))

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = number = first[first[number]]
        return number

    known: dict[Key, int] = {}
    for number in range(len(first)):
        for one in images(changes, number, key):
            if one is not None:
                pair = root(known.setdefault(one, number)), root(number)
                first[max(pair)] = min(pair)
    return np.array([root(number) for number in range(len(first))], np.int64)


def images(changes: TargetChanges, number: int, key: I64) -> tuple[Key | None, Key | None]:
    """Return the key of the row before and after a change. A key is None if it is unknown or if the
    row does not exist then.
    """
    kind = int(changes.kind[number])
    before = None if kind == DmlKind.INSERT else _key(changes.before, number, key, {})
    if kind == DmlKind.DELETE or (kind == DmlKind.UPDATE and before is None):
        return before, None
    after = _key(changes.after, number, key, {} if before is None else dict(enumerate(before)))
    return before, after


def _key(image: Cells, number: int, key: I64, known: Mapping[int, bytes]) -> Key | None:
    """Return the key of an image. Values that the image lacks are taken from `known`."""
    values = []
    for place, column in enumerate(key.tolist()):
        value = image.value(number, column)
        if image.length[number, column] == ABSENT:
            value = known.get(place)
        if value is None:
            return None
        values.append(value)
    return tuple(values) or None
