"""Marks the changes of a selection whose LOB values are missing, because the redo contains them
only partly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.lost_value_documents import LostValues
from olr_pg.transactions.lobs.lost_values import LostLob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.applier.statements.table_changes import Selection


class LostValueMarks:
    """Assigns the missing LOB values of one transaction and table to changes, which can arrive in
    several parts.

    Args:
        table: ``OWNER.NAME``.
        lobs: the missing values, in their order.
        total: the number of the transaction's changes of the table in all parts together, at least
            1.
    """

    def __init__(self, table: str, lobs: Sequence[LostLob], total: int) -> None:
        self.table = table
        # A target's filter can remove changes, so a position can be higher than the number of
        # changes.
        self._left = [(min(lob.place, total), lob) for lob in lobs]
        self._seen = 0

    def mark(self, selection: Selection, rows: npt.NDArray[np.int64]) -> Selection:
        """Return the next part of the changes with their missing values.

        Args:
            rows: the indexes of the transaction's changes of the table in the selection.
        """
        end = self._seen + len(rows)
        found: dict[int, LostValues] = {}
        while len(rows) and self._left and self._left[0][0] <= end:
            place, lob = self._left.pop(0)
            at = int(rows[max(place - 1 - self._seen, 0)])
            one = found.get(at, LostValues(self.table))
            is_before = place == 0
            before = (*one.before, lob) if is_before else one.before
            found[at] = one._replace(
                before=before, after=one.after if is_before else (*one.after, lob)
            )
        self._seen = end
        return with_lost(selection, found)


def with_lost(selection: Selection, found: Mapping[int, LostValues]) -> Selection:
    """Return the selection with more missing values. `found` contains them by the index of the
    change.
    """
    if not found:
        return selection
    mark = np.full(len(selection), -1, np.int64) if selection.mark is None else selection.mark
    mark = mark.copy()
    mark[list(found)] = len(selection.lost) + np.arange(len(found))
    return selection.with_lost(selection.lost + tuple(found.values()), mark)
