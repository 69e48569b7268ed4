"""Combines tasks into Spark tasks, and Spark tasks into jobs.

Each job costs Java about 15 ms of processor time, and each Spark task 3 ms more, and two jobs run
at a time (`planned_jobs`). So the work that is done ahead is divided into two jobs, and each core
gets its share of a job as one Spark task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_BYTES: Final = 128 << 20
"""Bytes of input per core in one job, if single tasks are smaller. The last job can have up to half
as much more, because a small extra job would cost as much as any.
"""

FIRST_JOB_BYTES: Final = 16 << 20
"""Bytes per core in the first job, if results arrive at the end of a job; the second has twice as
much, and so on up to `JOB_BYTES`. So the caller soon gets the first results.
"""

Job: TypeAlias = "list[list[int]]"
"""The tasks of each Spark task of a job, in order."""


def plan_jobs(count: int, width: int, sizes: Sequence[int], *, growing: bool) -> list[Job]:
    """Divide tasks into jobs: `width` tasks per job, or as many as its bytes allow.

    Args:
        count: number of tasks.
        width: number of parallel tasks, at least 1.
        sizes: bytes of input of each task; empty if unknown.
        growing: whether the first jobs are smaller.
    """
    jobs: list[Job] = []
    first, left = 0, sum(sizes)
    while first < count:
        end = min(first + width, count)
        room = job_bytes(len(jobs), growing=growing) * width
        room = (left if left <= 1.5 * room else room) - sum(sizes[first:end])
        while sizes and end < count and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        left -= sum(sizes[first:end])
        jobs.append(_shares(range(first, end), width, sizes))
        first = end
    return jobs


def job_bytes(number: int, *, growing: bool) -> int:
    """Return how many bytes of input each core gets in job `number`, counted from 0."""
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES) if growing else JOB_BYTES


def _shares(tasks: range, width: int, sizes: Sequence[int]) -> Job:
    """Distribute the tasks of a job to the cores, each to the core with the least so far.

    So results arrive approximately in the order in which they are needed: few wait, and their files
    are soon reused.
    """
    if not sizes:
        return [[task] for task in tasks]
    shares: Job = [[] for _ in range(min(width, len(tasks)))]
    given = [0] * len(shares)
    for task in tasks:
        least = given.index(min(given))
        shares[least].append(task)
        given[least] += max(1, sizes[task])
    return shares
