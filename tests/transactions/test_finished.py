"""The order of delivery, and the counts of what became of transactions."""

from __future__ import annotations

import random

import numpy as np

from olr_pg.transactions.finished import Account, commit_order, count_rows
from olr_pg.transactions.finished_columns import DmlKind


def test_commits_of_one_scn_leave_by_delay_thread_and_place() -> None:
    keys = [
        (scn, delay, thread, sequence, block, offset)
        for scn in (5, 6) for delay in (0, 3) for thread in (1, 2) for sequence in (7, 8)
        for block in (2, 900) for offset in (16, 200)
    ]  # fmt: skip
    random.Random(1).shuffle(keys)
    columns = np.array(keys, np.uint64).T
    assert [keys[i] for i in commit_order(*columns)] == sorted(keys)


def test_rows_are_counted_by_table_and_kind() -> None:
    rows = np.zeros((2, 3), np.int64)
    kinds = [DmlKind.INSERT, DmlKind.UPDATE, DmlKind.UPDATE, DmlKind.DELETE]
    count_rows(np.array([0, 1, 1, 0], np.int32), np.array(kinds, np.uint8), rows)
    assert rows.tolist() == [[1, 1, 0], [0, 0, 2]]


def test_accounts_add_up_in_every_count() -> None:
    names = list(Account.__slots__)
    one = Account(**{name: number for number, name in enumerate(names)})
    one.add(Account(**dict.fromkeys(names, 100)))
    assert [getattr(one, name) for name in names] == [100 + i for i in range(len(names))]
