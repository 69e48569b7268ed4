"""Groups tasks into Spark tasks, and Spark tasks into jobs.

Each job costs Java about 15 ms of processor time, and each Spark task 3 ms more. So there are few
jobs, and each core gets its share of a job as one Spark task. Two jobs run at a time (`jobs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_BYTES: Final = 128 << 20
"""Bytes of input per core in one job, if tasks are small enough to combine. The last job can be
larger by up to a half, because an additional small job would cost as much as a large one.
"""

FIRST_JOB_BYTES: Final = 16 << 20
"""Bytes of input per core in the first job, if results arrive only when their job ends. The second
job has twice as much, and so on up to `JOB_BYTES`. So the caller gets the first results soon.
"""

Job: TypeAlias = "list[list[int]]"
"""A job: for each of its Spark tasks, the numbers of the tasks, in order."""


def plan_jobs(count: int, width: int, sizes: Sequence[int], *, growing: bool) -> list[Job]:
    """Divide tasks into jobs. A job has `width` tasks, or more if all its tasks are small.

    Args:
        count: number of tasks.
        width: number of tasks that run in parallel, at least 1.
        sizes: bytes of input of each task; empty if unknown.
        growing: whether the first jobs are smaller than the later ones.
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
    """Return the bytes of input that each core gets in the job `number`; the first job has number
    0.
    """
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES) if growing else JOB_BYTES


def _shares(tasks: range, width: int, sizes: Sequence[int]) -> Job:
    """Distribute the tasks of a job to the cores; each task goes to the core that has the fewest
    bytes so far.

    So results arrive approximately in the order in which the caller takes them. Few results wait
    for others, and their files are soon reused.
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
