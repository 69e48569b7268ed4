"""Transactions that do not fit in memory in output format: part by part, to one run of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.replicator.split import Encoded, of_view
from olr_pg.transactions.left_out import leave_out
from olr_pg.wire.encoder import BEGIN_FRAME, COMMIT_FRAME, EncodedTransactions, write_messages
from olr_pg.wire.output import InParts

if TYPE_CHECKING:
    from olr_pg.replicator.split import Subscription
    from olr_pg.transactions.batch import DmlColumns, TransactionColumns
    from olr_pg.transactions.large import LargeTransaction
    from olr_pg.transactions.storage import Storage


def encode_large(
    subscription: Subscription, large: LargeTransaction, storage: Storage
) -> list[Encoded]:
    """A large transaction in output format, once for each view; empty where nothing is left of it.

    Afterwards its account is that of what was encoded.
    """
    while True:
        views = range(len(subscription.views))
        encoders = [_ViewEncoder(subscription, number, storage) for number in views]
        for part in large.parts():
            dml = _without_dropped(subscription, large, part)
            for encoder in encoders:
                encoder.add(large.columns, dml)
        if large.is_whole:
            break
    if large.account.committed and not large.account.rows:
        large.account.committed = 0
        large.account.transactions_filtered = 1
    return [encoder.finish(large.columns) for encoder in encoders if encoder.rows]


def _without_dropped(
    subscription: Subscription, large: LargeTransaction, dml: DmlColumns
) -> DmlColumns:
    """The row changes without those that are left out for everyone, which are counted."""
    if subscription.dropped is None:
        return dml
    left = leave_out(_columns(large.columns, dml), dml, subscription.dropped)
    rows = int(left.rows.sum())
    large.account.rows -= rows
    large.account.rows_filtered += rows
    large.table_rows -= left.rows
    return left.dml


def _columns(transaction: TransactionColumns, dml: DmlColumns) -> TransactionColumns:
    """The transaction with these row changes alone."""
    return transaction._replace(dml_first=np.array([0, dml.kind.size]))


class _ViewEncoder:
    """The messages of one transaction for one view.

    Attributes:
        rows: row changes so far.
    """

    def __init__(self, subscription: Subscription, number: int, storage: Storage) -> None:
        self._subscription = subscription
        self._number = number
        self._messages = 2
        self._output = InParts(BEGIN_FRAME, COMMIT_FRAME, storage)
        self.rows = 0

    def add(self, transaction: TransactionColumns, dml: DmlColumns) -> None:
        """The next row changes."""
        view = self._subscription.views[self._number]
        columns = _columns(transaction, dml)
        columns, dml = of_view(self._subscription, self._number, columns, dml)
        if dml.kind.size == 0:
            return
        plan = self._subscription.element_plan
        self._output.next_part()
        encoded = write_messages(
            columns, dml, plan, view.big_endian, self._output, view.chunk_bytes
        )
        self._messages += int(encoded.messages[0]) - 2
        self.rows += dml.kind.size

    def finish(self, transaction: TransactionColumns) -> Encoded:
        """All of it; there must be rows."""
        blob = self._output.finish()
        messages = EncodedTransactions(blob, np.array([0, blob.size]), np.array([self._messages]))
        columns = transaction._replace(dml_first=np.array([0, self.rows]))
        return Encoded(columns, messages, self._number)
