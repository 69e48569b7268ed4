"""Lag by its causes."""

from __future__ import annotations

import itertools
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.appliance.status_observer import table_status
from olr_pg.applier.batches.batch_applier import TableProgress
from olr_pg.applier.stopped.held_tables import FirstHeld
from olr_pg.applier.target.ledger import ChangeCounts
from olr_pg.errors import OlrPgError
from olr_pg.monitor.lag import MILESTONES_MAX, Lag, Milestones, Stages, held_lag, split_lag


def stage(*milestones: tuple[int, float]) -> Milestones:
    one = Milestones()
    for scn, at in milestones:
        one.add(scn, at)
    return one


def test_milestones_only_move_forward() -> None:
    one = stage((10, 1.0), (10, 2.0), (9, 3.0), (20, 4.0), (30, 3.5))
    assert (one.scn, one.at) == (30, 4.0)
    assert [one.passed(scn) for scn in (0, 9, 10, 19, 20, 29, 30)] == [
        *(1.0, 1.0, 4.0, 4.0, 4.0, 4.0, None)
    ]


def test_a_stage_that_has_not_begun() -> None:
    one = Milestones()
    assert (one.scn, one.at, one.passed(0)) == (0, None, None)


STEPS = st.lists(
    st.tuples(st.integers(1, 4 * MILESTONES_MAX), st.sampled_from((0.0, 1e-3, 0.075, 1.0, 60.0))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=10)
@given(STEPS)
def test_milestones_are_bounded_and_never_too_late(steps: list[tuple[int, float]]) -> None:
    """However long a stage works, in bursts and pauses: ages are right, and never too low."""
    one, every, now = Milestones(), [], 0.0
    for count, seconds in steps:
        for _ in range(count):
            now += seconds
            every.append(now)
            one.add(len(every), now)
    assert (one.scn, one.at) == (len(every), now)
    assert one.kept <= MILESTONES_MAX * 9 // 8
    burst = max(every.count(at) for at in set(every[:: max(1, len(every) // 50)]))
    for scn in range(0, len(every), max(1, len(every) // 200)):
        found = one.passed(scn)
        assert found is not None
        assert found <= every[scn]
        if burst < MILESTONES_MAX // 4:
            assert now - found <= (now - every[scn]) * 1.02 + 0.1


def test_the_lag_of_an_outage_of_a_day_with_online_redo() -> None:
    """Thirteen looks a second: 4,096 of them were five minutes, and the lag stayed at that."""
    one, seconds, looks = Milestones(), 86_400, 13
    for look in range(1, seconds * looks):
        one.add(look, look / looks)
    for age in (1, 60, 562, 3_600, 43_200, 86_000):
        scn = (seconds - age) * looks
        lag = split_lag(scn - 1, seconds, Stages(one, one, one, Milestones()))
        assert age <= lag.total <= age * 1.01 + 0.1


def test_where_a_change_spends_its_time() -> None:
    # Its log was written at 100, found at 101; it was queued at 103, taken at 110; now it is 111.
    stages = [stage((50, at)) for at in (100.0, 101.0, 103.0, 110.0)]

    def lag(passed: int, scn: int = 40) -> Lag:
        known = [*stages[:passed], *[Milestones()] * (4 - passed)]
        return split_lag(scn, 111.0, Stages(*known))

    assert lag(4) == Lag(1.0, 2.0, 7.0, 1.0)
    assert lag(3) == Lag(1.0, 2.0, 8.0)
    assert lag(2) == Lag(1.0, 10.0)
    assert lag(1) == Lag(11.0)
    assert lag(4, 50) == Lag()  # nothing lies behind it


def test_what_is_missing_counts_from_the_redo_before_it() -> None:
    lag = partial(
        split_lag,
        stages=Stages(stage((50, 100.0)), stage((50, 100.0)), stage((50, 103.0)), stage()),
        missing_since=100.0,
    )
    assert lag(50, 111.0) == Lag(reading=11.0)
    assert lag(40, 111.0) == Lag(0.0, 3.0, 8.0)  # that is here


points = st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1000)), max_size=8)


@given(st.integers(0, 100), st.floats(0, 2000), points, points, points, points)
def test_the_causes_are_the_age_and_never_negative(
    scn: int,
    now: float,
    archived: list[tuple[int, float]],
    read: list[tuple[int, float]],
    queued: list[tuple[int, float]],
    taken: list[tuple[int, float]],
) -> None:
    first = stage(*archived)
    rest = [stage(*points) for points in (read, queued, taken)]
    lag = split_lag(scn, now, Stages(first, *rest))
    assert all(part >= 0 for part in lag)
    since = first.passed(scn)
    age = 0.0 if since is None else max(0.0, now - since)
    assert abs(lag.total - age) < 1e-6
    times = [first.passed(one) for one in range(101)]
    known = list(itertools.takewhile(lambda time: time is not None, times))
    assert known == sorted(time for time in known if time is not None)


def test_a_stopped_table_is_behind_by_what_is_held() -> None:
    error = OlrPgError(5008, "no", table="S.T")
    found = TableProgress("S.T", 900, 0, None, ChangeCounts(), error)
    assert table_status(found, Lag(0.5), 1000.0).lag_seconds == 0.5  # nothing was read yet
    behind = table_status(found._replace(held=FirstHeld(500, 400.0)), Lag(0.5), 1000.0)
    assert (behind.lag, behind.lag_seconds) == (Lag(apply=600.0), 600.0)
    assert (behind.applied_scn, behind.held_scn, behind.held_since) == (499, 500, 400.0)
    # Its log was written earlier than that.
    assert held_lag(Lag(650.0, 10.0), 400.0, 1000.0) == Lag(apply=660.0)


def test_ages_of_every_magnitude_are_bounded_too() -> None:
    """Each milestone is older by a part of its age than the next, so that no group is small."""
    one, count = Milestones(), 2 * MILESTONES_MAX
    for number in range(count):
        one.add(number + 1, -(0.99 ** (number / 4)) * 1e9)
    assert one.scn == count
    assert one.kept <= MILESTONES_MAX * 9 // 8
