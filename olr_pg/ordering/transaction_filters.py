"""Applies the filters that leave out whole transactions (`decoding.filters`). These filters need
the session of every transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.decoding.filters import NO_FILTERS, Filters
from olr_pg.redo.events import names_no_transaction
from olr_pg.redo.sessions import SessionDirectory, SessionKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from olr_pg.transactions.finished import Account
    from olr_pg.transactions.finished_columns import TransactionColumns
    from olr_pg.transactions.row_fault import RowFault


class TransactionFilters:
    """The transaction filters, and the sessions that they need.

    Args:
        filters: decide which transactions are left out.
        view_filters: further filters, one for each view of the subscription.
        sessions: receives the sessions found in the redo; None to begin with no known session.

    Attributes:
        sessions: the sessions found so far.
    """

    def __init__(
        self,
        filters: Filters = NO_FILTERS,
        view_filters: Sequence[Filters] = (),
        sessions: SessionDirectory | None = None,
    ) -> None:
        self._filters = filters
        self._view_filters = view_filters
        self.sessions = SessionDirectory() if sessions is None else sessions

    def delivered(self, columns: TransactionColumns, view: int) -> npt.NDArray[np.bool_]:
        """Return which transactions of a view the filters do not leave out; shape
        (transactions).
        """
        filters = self._of_transactions(self._filters, *self._view_filters[view : view + 1])
        if not filters:
            return np.ones(len(columns.xid), np.bool_)
        sessions = zip(
            columns.commit_thread.tolist(), columns.session.tolist(), columns.serial.tolist(),
            strict=True,
        )  # fmt: skip
        return np.array(
            [
                not self._drop(filters, xid, *session)
                for xid, session in zip(columns.xid.tolist(), sessions, strict=True)
            ],
            np.bool_,
        )

    def drop(self, fault: RowFault) -> bool:
        """Return whether the filters leave out the transaction of a fault."""
        if names_no_transaction(fault.xid):
            return False  # its transaction is unknown
        return self._drop(
            self._of_transactions(self._filters),
            fault.xid, fault.position.thread, fault.session, fault.serial,
        )  # fmt: skip

    @staticmethod
    def _of_transactions(*filters: Filters) -> list[Filters]:
        return [one for one in filters if one.concerns_transactions]

    def _drop(
        self, filters: Sequence[Filters], xid: int, thread: int, session: int, serial: int
    ) -> bool:
        """Return whether filters leave a transaction out, because of its XID or its session."""
        if not filters:
            return False
        key = SessionKey(thread, session, serial)
        found = self.sessions.find(key) or self.sessions.find_in_any_thread(session, serial)
        return any(one.drops(xid, found) for one in filters)


def count_left_out(
    account: Account, columns: TransactionColumns, delivered: npt.NDArray[np.bool_]
) -> None:
    """Count transactions and row changes as left out by filters, not as delivered."""
    rows = int(np.diff(columns.dml_first)[~delivered].sum())
    transactions = int((~delivered).sum())
    account.rows -= rows
    account.rows_filtered += rows
    account.committed -= transactions
    account.transactions_filtered += transactions
