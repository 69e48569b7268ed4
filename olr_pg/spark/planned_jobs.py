"""Jobs that are planned before they run: those of a cluster.

Two jobs are under way at a time, so that no core waits for the slowest task of a job or for the
driver; the next one is submitted when all results of the oldest have been taken. So at most twice
what a job holds exists at once.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.result_cells import cells, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from olr_pg.spark.call import SparkCall
    from olr_pg.spark.result_cells import Cell, Result

_JOBS_UNDER_WAY: Final = 2

JOB_BYTES: Final = 128 << 20
"""Bytes of input that a core is given in one job, where single tasks have less."""

FIRST_JOB_BYTES: Final = 16 << 20
"""The same of the first job; the second has twice as much, and so on up to `JOB_BYTES`: results
come in jobs, and who takes them is to have something to do soon."""


def plan_jobs(count: int, width: int, sizes: Sequence[int]) -> list[range]:
    """Choose the tasks of each job: `width`, or as many as its bytes (`job_bytes`) allow.

    Args:
        count: of tasks.
        width: at least 1.
        sizes: bytes of input of each task; empty where nobody knows.
    """
    jobs: list[range] = []
    first = 0
    while first < count:
        end = min(first + width, count)
        room = job_bytes(len(jobs)) * width - sum(sizes[first:end])
        while sizes and end < count and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        jobs.append(range(first, end))
        first = end
    return jobs


def job_bytes(number: int) -> int:
    """Bytes of input that a core is given in job `number`, from 0."""
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES)


def planned_results(
    call: SparkCall, payloads: Sequence[bytes], jobs: Sequence[range]
) -> Iterator[tuple[int, Result]]:
    """Yield the results in order, submitting jobs as they are taken."""
    waiting = deque(jobs)
    under_way: deque[tuple[range, Future[list[Cell]]]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < _JOBS_UNDER_WAY:
            tasks = waiting.popleft()
            work = _partition_task(call, tasks.start, payloads[tasks.start : tasks.stop])
            under_way.append((tasks, call.submit(work, tasks)))
        tasks, job = under_way[0]
        yield from _read(tasks, job.result())
        # Only now: results that wait to be taken count as under way.
        under_way.popleft()


def _partition_task(
    call: SparkCall, first: int, payloads: Sequence[bytes]
) -> Callable[[Iterable[int]], Iterator[Cell]]:
    task = call.task

    def work(indices: Iterable[int]) -> Iterator[Cell]:
        run = task()
        for index in indices:
            yield from cells(index, partial(run, payloads[index - first]), None)

    return work


def _read(indices: range, job: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
    of_task: dict[int, list[Cell]] = {index: [] for index in indices}
    for cell in job:
        of_task[cell.task].append(cell)
    for index in indices:
        if not of_task[index]:
            # PySpark takes the end of a connection for the end of the results.
            raise OlrPgError(Code.SPARK_JOB_FAILED, "Java ended before all results were there")
        # Taken out: what was handed on need not be kept.
        yield index, result(index, of_task.pop(index), None)
