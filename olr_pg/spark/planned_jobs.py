"""Runs Spark jobs and takes their results in order.

Two jobs run at a time, so that no core waits for the slowest task of a job or for the driver. The
next job is submitted when the caller has taken all results of the oldest job. So the results of at
most two jobs exist at a time, in memory or on disk.
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
"""The first pause and the longest pause between two checks for a result file, in seconds."""

_ASK_SECONDS: Final = 0.1
"""Interval at which we ask Java whether a job has ended, while we wait for its result files."""

_VISIBLE_SECONDS: Final = 10.0
"""Maximum time for which the cache of a network file system can hide the result file of a job that
has ended.
"""

_ENDING_SECONDS: Final = 0.5
"""Time that the last job gets to end by itself after all its results have arrived. Cancelling a job
would kill its workers, and the next job would have to wait for new ones.
"""


def planned_results(
    call: SparkCall,
    payloads: Sequence[bytes],
    jobs: Sequence[Job],
    files: ResultFiles | None,
    description: str,
) -> Iterator[tuple[int, Result]]:
    """Yield the results in the order of the tasks. Submit the next job when the caller has taken
    the results of the oldest one.

    Args:
        files: the files for results; None to pass the results through Java.
        description: description of the jobs on Spark's page.
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
        # Remove the job only now, because a job whose results were not taken yet counts as under
        # way.
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
    """Yield the pauses before the next checks, in seconds: first short ones, then longer ones."""
    seconds, longest = _POLL_SECONDS
    while True:
        yield seconds
        seconds = min(2 * seconds, longest)


def _wait(job: SparkJob, seconds_max: float = math.inf) -> None:
    """Wait for a job's end in Python, because a Ctrl-C during a call of Java would break the
    connection to it.
    """
    until = time.monotonic() + seconds_max
    for pause in _pauses():
        if job.done() or time.monotonic() > until:
            return
        time.sleep(pause)


def cells(task: int, run: Callable[[TaskResult], None], directory: str | None) -> Iterator[Cell]:
    """In a worker, run a task. Yield its error, or its result unless the result is in a file, as
    cells.

    Args:
        run: runs the task with a `TaskResult`, to which the task writes its result.
        directory: the directory for the file with the result; None to yield the result as cells.
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
            # Also write the error to the file, so that the driver sees it before the job ends. This
            # may fail too, for example because the disk is full.
            with suppress(OlrPgError, OSError, ValueError):
                file.fail(*error_cell(task, error)[1:3])
            raise
        finally:
            file.close()
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield error_cell(task, error)


def _from_file(task: int, job: SparkJob, files: ResultFiles) -> Result:
    """Wait for the file with a task's result, and return the result."""
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
    """Raise the error because of which an ended job has no file for a task; do nothing while a
    cache may still hide the file.
    """
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
        # Remove the cells from the dictionary, so that their memory is free after the caller has
        # used the result.
        yield task, join_cells(task, of_task.pop(task))
