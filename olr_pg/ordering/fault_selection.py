"""Which row changes that could not be put together matter, and which of them end the delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.transactions.row_fault import RowFault


def without_dropped(fault: RowFault, dropped: npt.NDArray[np.bool_] | None) -> RowFault | None:
    """Return a fault without the LOB values of changes that are left out for everyone.

    Args:
        dropped: shape (tables, 3); see `decoding.filters.Filters.dropped`.

    Returns:
        None where nothing is left of it.
    """
    if not fault.lobs or dropped is None:
        return fault
    lobs = [lob.without(dropped[fault.table]) for lob in fault.lobs]
    left = tuple(lob for lob in lobs if lob is not None)
    return fault._replace(lobs=left) if left else None


def is_delivered(fault: RowFault, plan: RowPlan) -> bool:
    """Tell whether the table of a fault is a client's."""
    return not plan.delivered.size or bool(plan.delivered[fault.table])


def is_followed(fault: RowFault, plan: RowPlan, follower: DictionaryFollower | None) -> bool:
    """Tell whether a fault hides something of the dictionary that its snapshot does not know."""
    return (
        follower is not None
        and not fault.lobs
        and bool(plan.followed.size and plan.followed[fault.table])
        and fault.commit_scn > follower.snapshot_scn(fault.con_id)
    )


def ends_delivery(fault: RowFault, plan: RowPlan, follower: DictionaryFollower | None) -> bool:
    """Tell whether nobody can be told that the table's changes are missing."""
    if fault.lobs:
        return False
    is_alone = follower is None or follower.ends_delivery
    return is_alone or is_followed(fault, plan, follower)
