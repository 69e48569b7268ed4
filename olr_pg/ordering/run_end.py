"""Ends a run at a given point (``run --until-scn``, ``--until-time``).

Transactions are delivered in the order of their commit SCNs, and a restart continues after the last
delivered transaction. So a time is converted to an SCN: the run ends before the first transaction,
in commit order, whose commit record has a later time. The times in redo come from the clock of the
database server, in seconds and without a time zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.transactions.finished_columns import TransactionColumns


class Until:
    """The point at which the run ends.

    Args:
        scn: the highest commit SCN; None if a time is given.
        redo_time: the latest commit time, in the redo's format; None if an SCN is given.

    Attributes:
        scn: transactions up to this commit SCN are applied; `MAX_SCN` while unknown.
    """

    def __init__(self, scn: int | None = None, redo_time: int | None = None) -> None:
        self.scn = MAX_SCN if scn is None else scn
        self._time = redo_time

    def see_transactions(self, transactions: TransactionColumns) -> None:
        """Process committed transactions, in any order, before any of them is released."""
        if self._time is None:
            return
        later = transactions.commit_scn[transactions.commit_time > np.uint32(self._time)]
        if later.size:
            self._lower(int(later.min()) - 1)

    def see_log(self, log: ArchivedLog) -> None:
        """Process a log that will be read: if it began after the given time, all its commits are
        too late.
        """
        if self._time is not None and log.header.first_time > self._time:
            self._lower(log.header.first_scn - 1)

    def see_end(self, log: ArchivedLog) -> None:
        """Process a log that was read to its end: if it ended after the given time, all later
        commits are too late.
        """
        if self._time is not None and log.header.next_time > self._time:
            self._lower(log.next_scn - 1)

    def is_passed(self, scn: int) -> bool:
        """Return whether the run can end, if all redo before `scn` was read."""
        return scn > self.scn

    def _lower(self, scn: int) -> None:
        self.scn = min(self.scn, scn)
