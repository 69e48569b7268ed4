"""Encodes transactions that do not fit in memory, part by part, to one sequence of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.decoding.split import Encoded, of_view
from olr_pg.transactions.finished import Finished
from olr_pg.transactions.left_out import kept_changes, leave_out
from olr_pg.transactions.row_conditions import fulfil
from olr_pg.wire.encoder import BEGIN_FRAME, COMMIT_FRAME
from olr_pg.wire.output import InParts
from olr_pg.wire.packed_changes import PACKED_BEGIN, PACKED_COMMIT
from olr_pg.wire.room_filling import EncodedTransactions, Form

if TYPE_CHECKING:
    from olr_pg.decoding.split import Subscription
    from olr_pg.transactions.finished_columns import DmlColumns, TransactionColumns
    from olr_pg.transactions.large_finishing import LargeTransaction
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage


def encode_large(
    subscription: Subscription, large: LargeTransaction, storage: Storage
) -> tuple[list[Encoded], list[RowFault]]:
    """Encode a large transaction once for each view. Return (encoded transactions, errors that each
    affect only one view).

    Views without row changes are not in the result. Afterwards, the account of the transaction
    contains the counts of the encoded changes.
    """
    faults: list[RowFault] = []
    while True:
        views = range(len(subscription.views))
        encoders = [_ViewEncoder(subscription, number, storage, faults) for number in views]
        known = len(large.faults), len(faults)
        is_way_back = False
        for part in large.parts():
            if subscription.ledgers is not None:
                is_way_back |= bool(subscription.ledgers[part.table].any())
            dml = _without_rows(subscription, large, part)
            dml = _without_dropped(subscription, large, dml)
            for encoder in encoders:
                encoder.add(large.columns, dml)
            if (len(large.faults), len(faults)) != known:
                break  # more tables have faults now, so what was encoded is invalid
        if large.is_whole and (len(large.faults), len(faults)) == known:
            break
    if is_way_back:
        return _left_out(large), []
    if large.account.committed and not large.account.rows:
        large.account.committed = 0
        large.account.transactions_filtered = 1
    return [encoder.finish(large.columns) for encoder in encoders if encoder.rows], faults


def _left_out(large: LargeTransaction) -> list[Encoded]:
    """Leave out the whole transaction with its faults, and count its changes as filtered."""
    account = large.account
    account.rows, account.rows_filtered = 0, account.rows_filtered + account.rows
    account.committed, account.transactions_filtered = 0, 1
    large.table_rows[:] = 0
    large.faults, large.lob_faults = (), ()
    return []


def _without_rows(
    subscription: Subscription, large: LargeTransaction, dml: DmlColumns
) -> DmlColumns:
    """Return the row changes that meet the row conditions for all targets; count the others as
    filtered.
    """
    if subscription.conditions is None:
        return dml
    left = fulfil(
        _columns(large.columns, dml), dml, subscription.conditions, subscription.tables,
        subscription.widths,
    )  # fmt: skip
    large.leave_out(left.faults)
    large.account.rows -= int(left.rows.sum())
    large.account.rows_filtered += left.left_out
    large.table_rows -= left.rows
    return left.dml


def _without_dropped(
    subscription: Subscription, large: LargeTransaction, dml: DmlColumns
) -> DmlColumns:
    """Remove the row changes whose operation is left out for all targets, and count them as
    filtered; return the others.
    """
    if subscription.dropped is None:
        return dml
    left = leave_out(_columns(large.columns, dml), dml, subscription.dropped)
    rows = int(left.rows.sum())
    large.account.rows -= rows
    large.account.rows_filtered += rows
    large.table_rows -= left.rows
    return left.dml


def _columns(transaction: TransactionColumns, dml: DmlColumns) -> TransactionColumns:
    """Return the columns of the transaction for these row changes only."""
    return transaction._replace(dml_first=np.array([0, dml.kind.size]))


class _ViewEncoder:
    """Encodes one transaction for one view.

    Args:
        faults: list of changes that cannot be encoded for a view; new faults are added to it.

    Attributes:
        rows: number of row changes that were encoded so far.
    """

    def __init__(
        self, subscription: Subscription, number: int, storage: Storage, faults: list[RowFault]
    ) -> None:
        self._faults = faults
        self._subscription = subscription
        self._number = number
        self._messages = 2
        self._form = Form.PACKED if subscription.views[number].packed else Form.MESSAGES
        is_packed = self._form is Form.PACKED
        edges = (PACKED_BEGIN, PACKED_COMMIT) if is_packed else (BEGIN_FRAME, COMMIT_FRAME)
        self._output = InParts(*edges, storage)
        self.rows = 0

    def add(self, transaction: TransactionColumns, dml: DmlColumns) -> None:
        """Encode the next row changes."""
        view = self._subscription.views[self._number]
        lost = [fault.table for fault in self._faults if fault.view == self._number]
        columns = _columns(transaction, dml)
        if lost:
            columns, dml = kept_changes(columns, dml, ~np.isin(dml.table, lost))
        seen = of_view(self._subscription, self._number, Finished(columns, dml))
        self._faults += seen.faults
        if seen.dml.kind.size == 0:
            return
        plan = self._subscription.element_plan
        self._output.next_part()
        encoded = view.write(seen, plan, self._output)
        self._messages += int(encoded.messages[0]) - 2
        self.rows += seen.dml.kind.size

    def finish(self, transaction: TransactionColumns) -> Encoded:
        """Return all messages. At least one row change must have been added."""
        found = self._output.finish()
        blob, stored = (
            (found, None) if isinstance(found, np.ndarray) else (np.empty(0, np.uint8), found)
        )
        messages = EncodedTransactions(
            blob, np.array([0, found.size]), np.array([self._messages]), self._form
        )
        columns = transaction._replace(dml_first=np.array([0, self.rows]))
        return Encoded(columns, messages, self._number, stored)
