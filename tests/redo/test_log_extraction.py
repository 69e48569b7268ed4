"""Any split of the real logs gives the events and transactions of one pass."""

from __future__ import annotations

import itertools
import random

import pytest

from olr_pg.redo.window import Log, group_runs
from olr_pg.scalars import format_xid
from olr_pg.transactions.assembler import Assembler
from tests.redo.chain import (
    Subscription,
    assemble,
    changes_between,
    events_of,
    subscribe,
    transactions_of,
)

SYS_OBJECTS = (4, 14, 19, 22, 81, 72726)
"""What the pluggable database's transactions in the real logs change (redo-format §10.6)."""


@pytest.fixture(scope="module")
def wanted() -> Subscription:
    return subscribe(SYS_OBJECTS, 3)


def test_one_pass_gives_the_listed_changes(
    real_logs: tuple[Log, Log], wanted: Subscription
) -> None:
    """redo-format §10.6."""
    assembler = Assembler(wanted.plan, wanted.tables, is_split=False)
    found = transactions_of(assembler.feed(changes_between(real_logs[0], wanted)), wanted.plan)
    listed = [
        (one.commit_scn, format_xid(one.facts[1]), dml.kind, SYS_OBJECTS[dml.table])
        for one in found
        for dml in one.dml
    ]
    assert listed == [
        (2266635, "4.9.568", "UPDATE", 22),
        (2266640, "9.27.598", "INSERT", 14),
        (2267414, "9.28.598", "INSERT", 14),
        (2267417, "9.29.598", "UPDATE", 14),
        (2267696, "9.33.598", "INSERT", 14),
        (2267701, "9.24.598", "DELETE", 81),
        (2267701, "9.24.598", "DELETE", 81),
        (2267701, "9.24.598", "UPDATE", 4),
        (2267701, "9.24.598", "UPDATE", 19),
        (2267701, "9.24.598", "UPDATE", 14),
        (2267701, "9.24.598", "UPDATE", 14),
        (2267708, "10.12.572", "INSERT", 72726),
    ]
    insert = found[-1].dml[0]
    assert insert.rowid == "AAARwWAAYAAAAAOAAA"
    assert insert.images[:2] == ((1, 0, b"\xc1\x02"), (1, 1, b"hello world"))


def test_two_splits_at_every_block(real_logs: tuple[Log, Log], wanted: Subscription) -> None:
    for log in real_logs:
        whole = changes_between(log, wanted)
        events = events_of(whole)
        expected, account = assemble([[whole]], wanted)
        for block in range(2, (log.header.nab or 0) + 1):
            parts = [
                changes_between(log, wanted, 2, block),
                changes_between(log, wanted, block, None),
            ]
            assert [event for part in parts for event in events_of(part)] == events
            assert assemble([[part] for part in parts], wanted) == (expected, account)


def test_every_block_a_split_of_its_own(real_logs: tuple[Log, Log], wanted: Subscription) -> None:
    for log in real_logs:
        expected = assemble([[changes_between(log, wanted)]], wanted)
        nab = log.header.nab or 0
        parts = [[changes_between(log, wanted, block, block + 1)] for block in range(2, nab)]
        assert assemble(parts, wanted) == expected


def test_random_partitions_and_windows(real_logs: tuple[Log, Log], wanted: Subscription) -> None:
    rng = random.Random(3)
    log = real_logs[0]
    nab = log.header.nab or 0
    expected = assemble([[changes_between(log, wanted)]], wanted)
    for _ in range(40):
        cuts = sorted(rng.sample(range(3, nab), rng.randrange(1, 12)))
        bounds = itertools.pairwise([2, *cuts, nab])
        parts = [
            [changes_between(log, wanted, low, high, rng.choice([1, 5000, 1 << 20]))]
            for low, high in bounds
        ]
        assert assemble(parts, wanted) == expected


def test_every_range_of_a_small_log(real_logs: tuple[Log, Log]) -> None:
    wanted = subscribe([273], 1)
    log = real_logs[1]
    whole = events_of(changes_between(log, wanted))
    assert whole
    for first in range(2, 11):
        for middle in range(first, 11):
            parts = [(2, first), (first, middle), (middle, 10)]
            events = [e for low, high in parts for e in events_of(
                changes_between(log, wanted, low, high))]  # fmt: skip
            assert events == whole


def test_splits_begin_where_the_ones_before_end(real_logs: tuple[Log, Log]) -> None:
    for log in real_logs:
        nab = log.header.nab or 0
        runs = [run for block in range(2, nab) for run in group_runs(log, block, block + 1)]
        assert [run.first for run in runs] == [2, *(run.end for run in runs[:-1])]
        assert runs[-1].end == nab
        for before, run in itertools.pairwise(runs):
            (known,) = group_runs(log, before.first + 1, run.first + 1, first_group=run.first)
            assert (known.first, known.end) == (run.first, run.end)
