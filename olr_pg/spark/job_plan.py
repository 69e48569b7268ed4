"""Which tasks share a Spark task, and which of these a job.

Jobs and Spark tasks cost the processor something, and two jobs are under way at a time
(`planned_jobs`). So the window of what is done ahead is cut in two, and small tasks go several at a
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_BYTES: Final = 128 << 20
"""Bytes of input that a core is given in one job, where single tasks have less."""

FIRST_JOB_BYTES: Final = 16 << 20
"""The same of the first job where results come with the job's end; the second has twice as much,
and so on up to `JOB_BYTES`: who takes them is to have something to do soon."""

SHARE_BYTES: Final = 64 << 20
"""Bytes of input of one Spark task, where single tasks have less: it costs Java some 5 ms of the
processor, and a core decodes this much in 100."""

Job: TypeAlias = "list[range]"
"""The tasks of each Spark task of a job, one after the other."""


def plan_jobs(count: int, width: int, sizes: Sequence[int], *, growing: bool) -> list[Job]:
    """Choose what each job does: `width` tasks, or as many as its bytes allow.

    Args:
        count: of tasks.
        width: how many are done at a time, at least 1.
        sizes: bytes of input of each task; empty where nobody knows.
        growing: whether the first jobs are smaller.
    """
    jobs: list[Job] = []
    first, left = 0, sum(sizes)
    while first < count:
        end = min(first + width, count)
        room = job_bytes(len(jobs), growing=growing) * width - sum(sizes[first:end])
        while sizes and end < count and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        jobs.append(_shares(range(first, end), width, sizes, left))
        left -= sum(sizes[first:end])
        first = end
    return jobs


def job_bytes(number: int, *, growing: bool) -> int:
    """Bytes of input that a core is given in job `number`, from 0."""
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES) if growing else JOB_BYTES


def _shares(tasks: range, width: int, sizes: Sequence[int], left: int) -> Job:
    """Put the tasks of a job together: less towards the end, so that no core has much left to do.

    Args:
        left: bytes of input of these tasks and of all that follow.
    """
    if not sizes:
        return [range(task, task + 1) for task in tasks]
    job = []
    first = tasks.start
    of_core = sum(sizes[tasks.start : tasks.stop]) // width
    while first < tasks.stop:
        room = min(SHARE_BYTES, left // (2 * width), of_core) - sizes[first]
        end = first + 1
        while end < tasks.stop and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        job.append(range(first, end))
        left -= sum(sizes[first:end])
        first = end
    return job
