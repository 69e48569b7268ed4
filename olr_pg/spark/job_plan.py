"""Which tasks share a Spark task, and which of these a job.

A job costs Java some 15 ms of the processor and each Spark task 3 more, whatever they do, and two
jobs are under way at a time (`planned_jobs`). So the window of what is done ahead is cut in two,
and each core gets its part of a job as one Spark task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_BYTES: Final = 128 << 20
"""Bytes of input that a core is given in one job, where single tasks have less; a last job has up
to half as much more, since one of little would cost as much as any."""

FIRST_JOB_BYTES: Final = 16 << 20
"""The same of the first job where results come with the job's end; the second has twice as much,
and so on up to `JOB_BYTES`: who takes them is to have something to do soon."""

Job: TypeAlias = "list[list[int]]"
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
    """Return the bytes of input that a core is given in job `number`, counted from 0."""
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES) if growing else JOB_BYTES


def _shares(tasks: range, width: int, sizes: Sequence[int]) -> Job:
    """Deal the tasks of a job out to the cores, each to the one that has least so far.

    So results come about in the order in which they are taken: few wait, and their files are soon
    used again.
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
