"""Which tasks share a Spark task, and a job."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.spark.jobs import FIRST_JOB_BYTES, JOB_BYTES, job_bytes, plan_jobs

MIB = 1 << 20

SIZES = st.lists(st.integers(0, 3 * JOB_BYTES), min_size=1, max_size=30)


@given(sizes=SIZES, width=st.integers(1, 4), growing=st.booleans())
def test_small_tasks_share_jobs(sizes: list[int], width: int, growing: bool) -> None:
    planned = plan_jobs(len(sizes), width, sizes, growing=growing)
    jobs = [sorted(task for share in job for task in share) for job in planned]

    assert [task for job in jobs for task in job] == list(range(len(sizes)))
    for number, (job, following) in enumerate(pairwise(jobs)):
        held = sum(sizes[task] for task in job)
        room = width * job_bytes(number, growing=growing)
        assert len(job) >= width
        assert len(job) == width or held <= room
        assert held + sizes[following[0]] > room
    room = width * job_bytes(len(jobs) - 1, growing=growing)
    assert len(jobs[-1]) <= width or sum(sizes[task] for task in jobs[-1]) <= 1.5 * room


@given(sizes=SIZES, width=st.integers(1, 4))
def test_each_core_has_one_share_of_a_job_about_as_large_as_others(
    sizes: list[int], width: int
) -> None:
    for job in plan_jobs(len(sizes), width, sizes, growing=False):
        tasks = [task for share in job for task in share]
        assert len(job) == min(width, len(tasks))
        amounts = [sum(sizes[task] for task in share) for share in job]
        assert max(amounts) - min(amounts) <= max(sizes[task] for task in tasks) + len(tasks)
        assert all(share == sorted(share) for share in job)


def test_tasks_are_dealt_out_in_turn() -> None:
    assert plan_jobs(5, 2, [16 * MIB] * 5, growing=False) == [[[0, 2, 4], [1, 3]]]
    large = [JOB_BYTES, 1, 1, 1]
    assert plan_jobs(4, 2, large, growing=False) == [[[0], [1, 2, 3]]]


def test_a_rest_is_no_job_of_its_own() -> None:
    assert len(plan_jobs(24, 2, [16 * MIB] * 24, growing=False)) == 1
    assert len(plan_jobs(25, 2, [16 * MIB] * 25, growing=False)) == 2


def test_jobs_grow_where_results_come_with_their_end() -> None:
    jobs = plan_jobs(204, 2, [4 * MIB] * 204, growing=True)
    assert [sum(map(len, job)) for job in jobs] == [8, 16, 32, 64, 84]
    assert [len(share) for share in jobs[0]] == [4, 4], "each core has something to do"
    assert job_bytes(0, growing=True) == FIRST_JOB_BYTES
    assert job_bytes(10_000, growing=True) == JOB_BYTES


@pytest.mark.parametrize("growing", [False, True])
def test_tasks_of_unknown_size_go_out_by_their_number(growing: bool) -> None:
    assert plan_jobs(5, 2, (), growing=growing) == [[[0], [1]], [[2], [3]], [[4]]]
