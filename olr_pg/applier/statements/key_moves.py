"""Decides how a changed key is applied if the target table has columns that the source lacks.

Normally a changed key is applied as a delete of the old row and an insert of the new row
(`net_change`). This would reset the target's own columns to their defaults. So in such a table an
UPDATE changes the key. But a row may get the key of another row whose key is changed only later.
PostgreSQL would refuse this UPDATE as a duplicate, so the delete and the insert are used
nevertheless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.net_change import ABSENT
from olr_pg.applier.statements.shared_keys import Key, images
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from olr_pg.applier.statements.table_changes import TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan

I64 = npt.NDArray[np.int64]


def whole_row(plan: TablePlan, changes: TargetChanges) -> I64:
    """Return the indexes of the columns whose values must be known to delete a row and insert it
    with a new key.
    """
    if len(plan.movable) == len(plan.whole) or _overlap(plan, changes):
        return plan.whole
    return plan.movable


def _overlap(plan: TablePlan, changes: TargetChanges) -> bool:
    """Return whether a row gets the key of another row whose key is changed only later."""
    length = changes.after.length[:, plan.key]
    sets_key = (changes.kind == DmlKind.UPDATE) & (length != ABSENT).any(axis=1)
    taken: set[Key | None] = set()
    for number in np.flatnonzero(sets_key).tolist():
        old, new = images(changes, number, plan.key)
        if old == new:
            continue
        if old in taken:
            return True
        taken.add(new)
    return False
