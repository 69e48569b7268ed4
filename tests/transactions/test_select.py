"""Events cut out of a batch, in groups that share their memory, and counted."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.redo.batch import EventKind
from olr_pg.transactions.delimit import delimit
from olr_pg.transactions.select import EventCutter, concatenate, count_changes, count_changes_of
from tests.transactions.event_model import Workload, batch_of

CHANGES = (EventKind.CHANGE, EventKind.UNDECODED, EventKind.LOB, EventKind.SPLIT_CHANGE)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), data=st.data())
def test_groups_are_what_each_is_by_itself(seed: int, data: st.DataObject) -> None:
    batch = batch_of(Workload(seed, 60).events)
    instances = delimit(batch.events)
    order, first = instances.order, instances.first
    chosen = data.draw(st.lists(st.integers(0, instances.key.size - 1), max_size=8))
    groups = EventCutter(batch).groups(order, first, chosen)
    alone = [EventCutter(batch).events(order[first[i] : first[i + 1]]) for i in chosen]

    assert len(groups) == len(alone)
    for group, one in zip(groups, alone, strict=True):
        for column, wanted in zip(group, one, strict=True):
            assert type(column) is type(wanted)
            assert column.dtype == wanted.dtype
            # By their fields: what lies between these in memory is nobody's.
            assert np.array_equal(column, wanted)
    joined, wanted_whole = concatenate(groups), concatenate(alone)
    assert np.array_equal(joined.data, wanted_whole.data)
    assert np.array_equal(joined.entries, wanted_whole.entries)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), data=st.data())
def test_changes_are_counted(seed: int, data: st.DataObject) -> None:
    events = batch_of(Workload(seed, 60).events).events
    instances = delimit(events)
    order, first = instances.order, instances.first
    events.kind[::3] = data.draw(st.sampled_from(EventKind))
    chosen = np.array(data.draw(st.lists(st.integers(0, instances.key.size - 1))), np.int64)

    assert count_changes(events) == np.isin(events.kind, CHANGES).sum()
    assert count_changes_of(events, order, first, chosen) == sum(
        int(np.isin(events.kind[order[first[i] : first[i + 1]]], CHANGES).sum()) for i in chosen
    )
