"""Plain Spark jobs, whose results are taken in order.

Two jobs are under way at a time, so that no core waits for the slowest task of a job or for the
driver; the next one is submitted when all results of the oldest have been taken. So at most what
two jobs hold exists at once, in memory or on disk.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.result_cells import (
    Cell,
    CompressedResult,
    Kind,
    error_cell,
    joined,
    raise_error,
)
from olr_pg.spark.result_files import ResultFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from olr_pg.spark.call import SparkCall
    from olr_pg.spark.job_plan import Job
    from olr_pg.spark.result_cells import Result, TaskResult
    from olr_pg.spark.result_files import ResultFiles

    Collected = Future[list[Cell]]

_JOBS_UNDER_WAY: Final = 2

_POLL_SECONDS: Final = (0.001, 0.016)
"""How long to wait before a file is looked for again: at first, and at most."""

_VISIBLE_SECONDS: Final = 10.0
"""How long a file of a job that has ended may be hidden by a network file system's cache."""

_ENDING_SECONDS: Final = 0.5
"""How long jobs have to end by themselves when their results are there: a worker that is cancelled
meanwhile is lost, and the next job has to wait for a new one."""


def planned_results(
    call: SparkCall,
    payloads: Sequence[bytes],
    jobs: Sequence[Job],
    files: ResultFiles | None,
    description: str,
) -> Iterator[tuple[int, Result]]:
    """Yield the results in order, submitting jobs as they are taken.

    Args:
        files: where results go; None: through Java.
        description: of the jobs, for people.
    """
    directory = None if files is None else str(files.directory)
    waiting = deque(jobs)
    under_way: deque[tuple[range, Collected]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < _JOBS_UNDER_WAY:
            shares = waiting.popleft()
            tasks = range(shares[0].start, shares[-1].stop)
            part = "" if len(jobs) == 1 else f" ({tasks.stop} of {len(payloads)} parts)"
            work = _share_task(call, shares, payloads, directory)
            under_way.append((tasks, call.submit(work, len(shares), description + part)))
        tasks, job = under_way[0]
        if files is None:
            yield from _from_cells(tasks, job.result())
        else:
            for task in tasks:
                yield task, _from_file(task, job, files)
        # Only now: results that wait to be taken count as under way.
        under_way.popleft()
        if not waiting and not under_way:
            wait([job], _ENDING_SECONDS)


def _share_task(
    call: SparkCall, shares: Job, payloads: Sequence[bytes], directory: str | None
) -> Callable[[Iterable[int]], Iterator[Cell]]:
    task, first = call.task, shares[0].start
    payloads = payloads[first : shares[-1].stop]

    def work(numbers: Iterable[int]) -> Iterator[Cell]:
        run = task()
        for number in numbers:
            for index in shares[number]:
                yield from cells(index, partial(run, payloads[index - first]), directory)

    return work


def cells(task: int, run: Callable[[TaskResult], None], directory: str | None) -> Iterator[Cell]:
    """Do a task, and hand over what comes out (on the worker).

    Args:
        run: the task, which writes its result.
        directory: for the file with the result; None: it goes into cells.
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
        yield Cell(task, Kind.IN_FILE)
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield error_cell(task, error)


def _from_file(task: int, job: Collected, files: ResultFiles) -> Result:
    """Wait for the file with a result, or for its job's end."""
    seconds, longest = _POLL_SECONDS
    hidden_since = None
    while True:
        is_ended = job.done()
        if (found := files.take(task)) is not None:
            kind, data = found
            raise_error(task, kind, data)
            return data
        if is_ended:
            hidden_since = hidden_since or time.monotonic()
            _check_hidden(task, job.result(), time.monotonic() - hidden_since)
            time.sleep(seconds)
        else:
            wait([job], seconds)
        seconds = min(2 * seconds, longest)


def _check_hidden(task: int, ended: Iterable[Cell], seconds: float) -> None:
    """Tell why a file is not there, unless only a cache hides it."""
    for cell in _there([cell for cell in ended if cell.task == task]):
        raise_error(task, cell.kind, cell.data)
    if seconds > _VISIBLE_SECONDS:
        raise OlrPgError(Code.TASK_RESULT_LOST, "its file is not there", task=task)


def _from_cells(tasks: range, ended: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
    of_task: dict[int, list[Cell]] = {task: [] for task in tasks}
    for cell in ended:
        of_task[cell.task].append(cell)
    for task in tasks:
        # Taken out: what was handed on need not be kept.
        yield task, joined(task, _there(of_task.pop(task)))


def _there(said: list[Cell]) -> list[Cell]:
    if not said:
        # PySpark takes the end of a connection for the end of the results.
        raise OlrPgError(Code.SPARK_JOB_FAILED, "Java ended before all results were there")
    return said
