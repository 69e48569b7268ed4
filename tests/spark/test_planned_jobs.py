"""Which tasks share a job on a cluster."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.spark.planned_jobs import FIRST_JOB_BYTES, JOB_BYTES, job_bytes, plan_jobs


@given(
    sizes=st.lists(st.integers(0, 3 * JOB_BYTES), min_size=1, max_size=30),
    width=st.integers(1, 4),
)
def test_small_tasks_share_jobs(sizes: list[int], width: int) -> None:
    jobs = plan_jobs(len(sizes), width, sizes)

    assert [task for job in jobs for task in job] == list(range(len(sizes)))
    for number, (job, following) in enumerate(pairwise(jobs)):
        held = sum(sizes[task] for task in job)
        assert len(job) >= width
        assert len(job) == width or held <= width * job_bytes(number)
        assert held + sizes[following.start] > width * job_bytes(number)


def test_jobs_grow_to_the_size_that_wastes_nothing() -> None:
    jobs = plan_jobs(200, 2, [4 << 20] * 200)
    assert [len(job) for job in jobs] == [8, 16, 32, 64, 64, 16]
    assert job_bytes(0) == FIRST_JOB_BYTES
    assert job_bytes(10_000) == JOB_BYTES


def test_tasks_of_unknown_size_go_out_by_their_number() -> None:
    assert plan_jobs(5, 2, ()) == [range(2), range(2, 4), range(4, 5)]
