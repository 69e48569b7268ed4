"""Runs Spark jobs and takes their results in order.

Two jobs run at a time, so that no core waits for the slowest task of a job or for the driver. The
next job is submitted when all results of the oldest have been taken. So at most the results of two
jobs exist at once, in memory or on disk.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.result_files import ResultFile
from olr_pg.spark.result_cells import (
    Cell,
    CompressedResult,
    error_cell,
    join_cells,
    raise_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.files.result_files import Result, ResultFiles, TaskResult
    from olr_pg.spark.job_plan import Job
    from olr_pg.spark.spark_call import Share, SparkCall, SparkJob, Work

_JOBS_UNDER_WAY: Final = 2

_POLL_SECONDS: Final = (0.001, 0.016)
"""First and maximum pause before a result file is checked again."""

_ASK_SECONDS: Final = 0.1
"""Interval at which Java is asked whether a job has ended, while its files are expected."""

_VISIBLE_SECONDS: Final = 10.0
"""How long a network file system's cache can hide the file of an ended job."""

_ENDING_SECONDS: Final = 0.5
"""How long jobs have to end by themselves when their results have arrived. A cancelled worker is
lost, and the next job would have to wait for a new one.
"""


def planned_results(
    call: SparkCall,
    payloads: Sequence[bytes],
    jobs: Sequence[Job],
    files: ResultFiles | None,
    description: str,
) -> Iterator[tuple[int, Result]]:
    """Yield the results in order; submit jobs as results are taken.

    Args:
        files: the files for results; None to pass them through Java.
        description: of the jobs, for display.
    """
    work = _work(call, None if files is None else str(files.directory))
    waiting = deque(jobs)
    under_way: deque[tuple[list[int], SparkJob]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < _JOBS_UNDER_WAY:
            job = waiting.popleft()
            tasks = sorted(task for share in job for task in share)
            part = "" if len(jobs) == 1 else f" ({tasks[-1] + 1} of {len(payloads)} parts)"
            shares = [[(task, payloads[task]) for task in share] for share in job]
            under_way.append((tasks, call.submit(work, shares, description + part)))
        tasks, submitted = under_way[0]
        if files is None:
            _wait(submitted)
            yield from _from_cells(tasks, submitted.result())
        else:
            for task in tasks:
                yield task, _from_file(task, submitted, files)
        # Only now: results that wait to be taken count as under way.
        under_way.popleft()
        if not waiting and not under_way:
            _wait(submitted, _ENDING_SECONDS)


def _work(call: SparkCall, directory: str | None) -> Work:
    """Return the function that a Spark task calls with its share of the tasks."""
    task = call.task

    def work(shares: Iterable[Share]) -> Iterator[Cell]:
        for share in shares:
            for number, payload in share:
                yield from cells(number, partial(_run, task, payload), directory)

    return work


def _run(task: Callable[[], Callable[..., None]], payload: bytes, result: TaskResult) -> None:
    task()(payload, result)


def _pauses() -> Iterator[float]:
    """Yield the pauses before each check: short ones first."""
    seconds, longest = _POLL_SECONDS
    while True:
        yield seconds
        seconds = min(2 * seconds, longest)


def _wait(job: SparkJob, seconds_max: float = math.inf) -> None:
    """Wait for a job's end, but not inside Java, where Ctrl-C would break the connection."""
    until = time.monotonic() + seconds_max
    for pause in _pauses():
        if job.done() or time.monotonic() > until:
            return
        time.sleep(pause)


def cells(task: int, run: Callable[[TaskResult], None], directory: str | None) -> Iterator[Cell]:
    """Run a task on the worker, and yield its result as cells.

    Args:
        run: runs the task, which writes its result.
        directory: for the file with the result; None to return it as cells.
    """
    try:
        if directory is None:
            written = CompressedResult()
            run(written)
            yield from written.cells(task)
            return
        file = ResultFile(directory, task)
        try:
            run(file)
            file.finish()
        except Exception as error:
            # Seen before the job ends. On a full disk there may be no room for it, either.
            with suppress(OlrPgError, OSError, ValueError):
                file.fail(*error_cell(task, error)[1:3])
            raise
        finally:
            file.close()
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield error_cell(task, error)


def _from_file(task: int, job: SparkJob, files: ResultFiles) -> Result:
    """Wait for the file with a result, or for its job's end."""
    ended_at: float | None = None
    asked_at = time.monotonic()
    for pause in _pauses():
        if (found := files.take(task)) is not None:
            kind, data = found
            raise_error(task, kind, data)
            return data
        now = time.monotonic()
        if ended_at is not None:
            _check_hidden(task, job.result(), now - ended_at)
        elif now - asked_at > _ASK_SECONDS:
            asked_at = now
            ended_at = now if job.done() else None
        time.sleep(pause)
    raise AssertionError("pauses do not end")


def _check_hidden(task: int, ended: Iterable[Cell], seconds: float) -> None:
    """Raise why a file is missing, unless a cache may hide it."""
    for cell in ended:
        if cell.task == task:
            raise_error(task, cell.kind, cell.data)
    if seconds > _VISIBLE_SECONDS:
        raise OlrPgError(Code.TASK_RESULT_LOST, "its file is missing", task=task)


def _from_cells(tasks: Sequence[int], ended: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
    of_task: dict[int, list[Cell]] = {task: [] for task in tasks}
    for cell in ended:
        of_task[cell.task].append(cell)
    for task in tasks:
        # Taken out: what was handed on need not be kept.
        yield task, join_cells(task, of_task.pop(task))
