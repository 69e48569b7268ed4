"""The order inside of a group; any split of the real logs gives what one pass gives."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo import log_extraction
from olr_pg.redo.batch import EventKind
from olr_pg.redo.format.file_fields import VLD_VALID
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
    """At every third one of the long log; test_every_block_a_split_of_its_own has all of them."""
    for log in real_logs:
        whole = changes_between(log, wanted)
        events = events_of(whole)
        expected, account = assemble([[whole]], wanted)
        nab = log.header.nab or 0
        for block in range(2, nab + 1, 1 if nab < 200 else 3):
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


# --- the order inside of a group (redo-format §2.5) ---


def records_of(*places: tuple[int, int]) -> Any:
    """Records by SCN and sub-SCN; one of sub-SCN −1 is not valid."""
    scn, subscn = (np.array(column) for column in zip(*places, strict=True))
    return SimpleNamespace(scn=scn, subscn=subscn, vld=np.where(subscn < 0, 0, VLD_VALID))


@pytest.mark.parametrize(
    ("places", "order"),
    [
        (((5, 1), (5, 2), (6, 1)), [0, 1, 2]),
        (((5, 1), (7, 1), (6, 1), (8, 1)), [0, 2, 1, 3]),
        (((5, 2), (6, 1), (5, 1), (5, 3)), [2, 0, 3, 1]),
        (((7, 1), (6, 1), (5, 1), (4, 1), (3, 1)), [4, 3, 2, 1, 0]),
        (((6, 1), (5, -1), (5, 1), (6, 1)), [2, 0, 3]),
        (((5, 1), (5, 1), (4, 1), (5, 1)), [2, 0, 1, 3]),
    ],
)
def test_the_strands_of_a_group_are_merged(
    places: tuple[tuple[int, int], ...], order: list[int]
) -> None:
    count = len(places)
    room: Any = SimpleNamespace(order=np.full(count, -1), scratch=np.full(count, -1))
    valid = interpreted(log_extraction._order_group)(records_of(*places), count, room)
    assert room.order[:valid].tolist() == order


COMMIT, CHANGE, LOB = EventKind.COMMIT, EventKind.CHANGE, EventKind.LOB


def places_after(
    kernel: Any,
    *events: tuple[int, int, int, int],
    first: int = 0,
    delays: list[int] | None = None,
) -> list[Any]:
    """(block, offset) of events (kind, SCN, block, offset) once the kernel has moved them."""
    kind, scn, block, offset = (np.array(column) for column in zip(*events, strict=True))
    table: Any = SimpleNamespace(
        kind=kind, scn=scn, block=block, offset=offset, xid=np.zeros(len(events), np.int64),
        session=np.zeros(len(events), np.int64) if delays is None else np.array(delays),
    )  # fmt: skip
    interpreted(kernel)(table, first, len(events))
    return list(zip(table.block.tolist(), table.offset.tolist(), strict=True))


def test_places_of_commits_with_one_scn_ascend_as_they_committed() -> None:
    order = log_extraction._order_places
    behind = [(COMMIT, 5, 9, 40), (CHANGE, 5, 4, 0), (COMMIT, 5, 9, 16), (COMMIT, 5, 3, 80)]
    assert places_after(order, *behind) == [(3, 80), (4, 0), (9, 16), (9, 40)]
    assert places_after(order, *behind, first=1) == [(9, 40), (4, 0), (3, 80), (9, 16)]
    other_scn = [(COMMIT, 5, 9, 40), (COMMIT, 6, 9, 16)]
    assert places_after(order, *other_scn) == [(9, 40), (9, 16)]


def test_children_of_parallel_dml_take_places_of_commits_of_their_own_record_scn_only() -> None:
    order = log_extraction._order_places
    parent_and_children = [
        (COMMIT, 5, 9, 40), (COMMIT, 5, 9, 16), (COMMIT, 7, 8, 80), (COMMIT, 5, 3, 80),
        (COMMIT, 7, 2, 16),
    ]  # fmt: skip
    places = places_after(order, *parent_and_children, delays=[0, 2, 0, 2, 0])
    assert places == [(9, 40), (3, 80), (2, 16), (9, 16), (8, 80)]
    page = [(COMMIT, 7, 9, 16), (COMMIT, 5, 9, 80), (LOB, 7, 3, 0)]
    assert places_after(log_extraction._place_pages, *page, delays=[0, 2, 0])[2] == (9, 17)
    page = [(LOB, 7, 9, 0), (COMMIT, 5, 1, 80), (COMMIT, 7, 3, 16)]
    assert places_after(log_extraction._place_pages, *page, delays=[0, 2, 0])[0] == (3, 16)


@pytest.mark.parametrize(
    ("events", "place"),
    [
        ([(LOB, 5, 9, 0), (COMMIT, 5, 3, 16)], (3, 16)),
        ([(LOB, 5, 3, 0), (COMMIT, 5, 9, 16)], (3, 0)),
        ([(LOB, 5, 9, 0), (COMMIT, 5, 9, 16)], (9, 0)),
        ([(LOB, 5, 9, 0), (COMMIT, 6, 3, 16)], (9, 0)),
        ([(LOB, 5, 9, 0), (CHANGE, 5, 1, 0), (COMMIT, 5, 3, 16)], (3, 16)),
        ([(COMMIT, 5, 9, 16), (LOB, 5, 3, 0)], (9, 17)),
        ([(COMMIT, 5, 3, 16), (LOB, 5, 9, 0)], (9, 0)),
        ([(COMMIT, 4, 9, 16), (LOB, 5, 3, 0)], (3, 0)),
    ],
)
def test_a_page_that_names_no_transaction_is_placed_by_the_commits_around_it(
    events: list[tuple[int, int, int, int]], place: tuple[int, int]
) -> None:
    places = places_after(log_extraction._place_pages, *events)
    assert places[[kind for kind, *_ in events].index(LOB)] == place
