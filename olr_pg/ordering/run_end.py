"""The end of a run that is to apply only up to a moment (``run --until-scn``, ``--until-time``).

Transactions are delivered in the order of their commit SCNs, and what a restart goes on with is
what comes behind. So a time is made an SCN: the run ends before the first transaction, in that
order, whose commit record is later. Redo has times as the clock of the database server showed them,
without a zone, to the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.transactions.finished_columns import TransactionColumns


class Until:
    """The last moment that is applied.

    Args:
        scn: the highest commit SCN; None: given by the time.
        redo_time: the latest commit time, as redo has it; None: given by the SCN.

    Attributes:
        scn: what is applied commits at this SCN or before; `MAX_SCN` while nobody knows.
    """

    def __init__(self, scn: int | None = None, redo_time: int | None = None) -> None:
        self.scn = MAX_SCN if scn is None else scn
        self._time = redo_time

    def see_transactions(self, transactions: TransactionColumns) -> None:
        """Note committed transactions, in any order, before any of them leaves."""
        if self._time is None:
            return
        later = transactions.commit_scn[transactions.commit_time > np.uint32(self._time)]
        if later.size:
            self._lower(int(later.min()) - 1)

    def see_log(self, log: ArchivedLog) -> None:
        """Note a log to be read: what commits from one on that began too late is later, too."""
        if self._time is not None and log.header.first_time > self._time:
            self._lower(log.header.first_scn - 1)

    def see_end(self, log: ArchivedLog) -> None:
        """Note that a log was read to its end."""
        if self._time is not None and log.header.next_time > self._time:
            self._lower(log.next_scn - 1)

    def is_passed(self, scn: int) -> bool:
        """Tell whether everything is known once all redo before `scn` is."""
        return scn > self.scn

    def _lower(self, scn: int) -> None:
        self.scn = min(self.scn, scn)
