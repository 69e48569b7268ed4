"""The changes of a journal, counted by kind."""

from __future__ import annotations

import numpy as np

from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.start import count_changes, count_interpreted


def transaction(*changes: tuple[int, int, int]) -> list[int]:
    """A transaction of the journal; of each change the kind, and values before and after."""
    head = [0] * at.TRANSACTION_INTS
    head[3] = len(changes)
    for kind, before, after in changes:
        change = [0] * at.CHANGE_INTS
        change[0], change[5], change[6] = kind, before, after
        head += change + [9] * (2 * (before + after))
    return head


def test_each_transaction_and_kind_is_counted() -> None:
    journal = np.array(
        transaction((1, 0, 4), (2, 2, 1)) + transaction() + transaction((1, 0, 1), (3, 3, 0)),
        np.int64,
    )
    for count in (count_changes, count_interpreted):
        counts = np.array([10, 0, 0, 0], np.int64)
        count(journal, counts)
        assert counts.tolist() == [13, 2, 1, 1]
