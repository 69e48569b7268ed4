"""Which tasks share a Spark task, and a job."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.spark.job_plan import FIRST_JOB_BYTES, JOB_BYTES, SHARE_BYTES, job_bytes, plan_jobs

MIB = 1 << 20


@given(
    sizes=st.lists(st.integers(0, 3 * JOB_BYTES), min_size=1, max_size=30),
    width=st.integers(1, 4),
    growing=st.booleans(),
)
def test_small_tasks_share_jobs(sizes: list[int], width: int, growing: bool) -> None:
    planned = plan_jobs(len(sizes), width, sizes, growing=growing)
    jobs = [[task for share in job for task in share] for job in planned]

    assert [task for job in jobs for task in job] == list(range(len(sizes)))
    for number, (job, following) in enumerate(pairwise(jobs)):
        held = sum(sizes[task] for task in job)
        room = width * job_bytes(number, growing=growing)
        assert len(job) >= width
        assert len(job) == width or held <= room
        assert held + sizes[following[0]] > room


@given(
    sizes=st.lists(st.integers(0, 2 * SHARE_BYTES), min_size=1, max_size=30),
    width=st.integers(1, 4),
)
def test_a_spark_task_has_one_task_or_several_small_ones(sizes: list[int], width: int) -> None:
    for job in plan_jobs(len(sizes), width, sizes, growing=False):
        for share in job:
            assert share
            assert len(share) == 1 or sum(sizes[task] for task in share) <= SHARE_BYTES


def test_spark_tasks_are_smaller_towards_the_end() -> None:
    jobs = plan_jobs(32, 2, [16 * MIB] * 32, growing=False)
    assert [[len(share) for share in job] for job in jobs] == [
        [4, 4, 4, 4],
        [4, 3, 2, 1, 1, 1, 1, 1, 1, 1],
    ]


def test_jobs_grow_where_results_come_with_their_end() -> None:
    jobs = plan_jobs(200, 2, [4 * MIB] * 200, growing=True)
    assert [sum(map(len, job)) for job in jobs] == [8, 16, 32, 64, 64, 16]
    assert [len(share) for share in jobs[0]] == [4, 4], "each core has something to do"
    assert job_bytes(0, growing=True) == FIRST_JOB_BYTES
    assert job_bytes(10_000, growing=True) == JOB_BYTES


@pytest.mark.parametrize("growing", [False, True])
def test_tasks_of_unknown_size_go_out_by_their_number(growing: bool) -> None:
    jobs = plan_jobs(5, 2, (), growing=growing)
    assert jobs == [[range(1), range(1, 2)], [range(2, 3), range(3, 4)], [range(4, 5)]]
