"""Runs one task for each payload on Spark, and yields the results in the order of the payloads.

A task returns a few large binary pieces, not a row per change (architecture, “Few large results
from Spark”). Jobs use RDDs. A DataFrame with ``mapInArrow`` would give the same results. But such a
DataFrame costs the JVM twice as much per job (five times as much for the first jobs), and it needs
pandas in every process.

Spark schedules in the same way on one machine and on a cluster. Two jobs run at a time, so that no
core waits for the slowest task of a job or for the driver. The next job is submitted when the
caller has taken all results of the oldest job. So the results of at most two jobs exist at a time,
in memory or on disk.

The driver and the executors can share a directory (`session.RESULTS_PROPERTY`). On one machine, the
driver and the executors share a directory, unless files are encrypted. In a shared directory, each
task writes its result to a file (`files.result_files`), and the driver takes the result as soon as
the file is complete. Otherwise results pass through the JVM (`result_cells`) when their job ends.

**Errors.** If a task raises an error, the error is its result. So the driver raises the same
`OlrPgError`, and Spark does not retry a task that fails for a permanent reason. If a worker or an
executor is lost, Spark retries its tasks, provided that the master URL allows retries
(``local[N,F]``, clusters). Each attempt writes its own file, and the first complete file gets the
result's name.

`plan_jobs` groups tasks into Spark tasks, and Spark tasks into jobs. Each job costs Java about 15
ms of processor time, and each Spark task 3 ms more. So there are few jobs, and each core gets its
share of a job as one Spark task. Two such jobs run at a time.

`archive_classes` creates an archive of the classes that a session loads (`java.class_archive`).
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.result_files import ResultFile, ResultFiles
from olr_pg.java.class_archive import archive_options, make_archive
from olr_pg.java.runtime import find_java
from olr_pg.spark.result_cells import Cell, CompressedResult, error_cell, join_cells, raise_error
from olr_pg.spark.session import SparkSettings, get_session, spark_home, stop_session
from olr_pg.spark.spark_call import SparkCall

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.files.result_files import Result, TaskResult
    from olr_pg.spark.spark_call import Share, SparkJob, Work

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


_SPARE_FILES: Final = 4
"""Number of result files per core, of about 16 MB each, that are kept for later calls. A task needs
one to write to while the driver still reads another.
"""


def run_tasks(
    spark: SparkSession,
    payloads: Sequence[bytes],
    task: Callable[..., Any],
    *,
    broadcast: bytes | None = None,
    max_parallel: int | None = None,
    sizes: Sequence[int] | None = None,
    inline_only: bool = False,
    writes: bool = False,
    description: str = "tasks of olr_pg",
) -> Generator[tuple[int, Result], None, None]:
    """Run `task` for each payload, and yield ``(index, result)`` in the order of the payloads.

    Nothing is submitted before the first result is requested. The amount of work that is done
    before the caller takes its results is limited. Closing the iterator cancels running tasks.

    Args:
        spark: the session.
        payloads: the input of each task. Keep the payloads small (a path and a range, not the
            data), because they pass through the driver's JVM.
        task: the function that is called in a worker process as ``task(payload)``, or
            ``task(payload, broadcast)`` if there is a broadcast. The function must be
            importable in the worker process, or be a closure. The function can run more than once
            for a payload, so it must not have side effects.
        broadcast: data that all tasks need. The broadcast is sent to each executor once; later
            calls with the same bytes reuse it.
        max_parallel: maximum number of tasks that run in parallel, at least 1; default: the
            session's number of cores.
        sizes: approximate bytes of input of each task. If given, small tasks are combined into
            larger Spark tasks.
        inline_only: whether to pass every result through the JVM, even if the driver and the
            executors share a directory.
        writes: whether the task writes its result to an additional last argument, a `TaskResult`,
            instead of returning it. A task that writes in this way need not have its whole result
            in memory.
        description: the description of the jobs on Spark's page.

    Raises:
        OlrPgError: the OlrPgError that a task raised, after the results of the tasks before it;
            6004 a task raised another exception; 6005 Spark could not run a job; 6006 a result
            could not be transferred.
    """
    if not payloads:
        return
    call = task if writes else partial(_returned, task)
    with SparkCall(spark, call) as on_spark:
        on_spark.prepare(broadcast)
        directory = None if inline_only else on_spark.shared_directory
        width = max_parallel or on_spark.cores
        jobs = plan_jobs(len(payloads), width, sizes or (), growing=directory is None)
        with ExitStack() as ending:
            files = None
            if directory is not None:
                files = ResultFiles(directory, kept=_SPARE_FILES * on_spark.cores)
                ending.callback(files.remove)
            yield from planned_results(on_spark, payloads, jobs, files, description)


def _returned(task: Callable[..., Result], *arguments: Any) -> None:
    """Call `task`, and write the result that it returns to the last argument."""
    result: TaskResult = arguments[-1]
    result.write(task(*arguments[:-1]))


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
        raise OlrPgError(Code.TASK_RESULT_LOST, "the file with the result is missing", task=task)


def _from_cells(tasks: Sequence[int], ended: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
    of_task: dict[int, list[Cell]] = {task: [] for task in tasks}
    for cell in ended:
        of_task[cell.task].append(cell)
    for task in tasks:
        # Remove the cells from the dictionary, so that their memory is free after the caller has
        # used the result.
        yield task, join_cells(task, of_task.pop(task))


_SECONDS_MAX: Final = 300.0
"""Time limit for Java to write the archive, which takes a few seconds on an idle host."""


def archive_classes() -> bool:
    """Create the archive of classes if there is none for this Java and this Spark.

    Call this function only while no session runs in this process.

    Returns:
        Whether the archive exists now. Some versions of Java cannot create the archive; sessions
        also work without it.

    Raises:
        OlrPgError: as for `get_session`; 6002 the archive cannot be written.
    """
    java, spark = find_java(), spark_home()
    if not archive_options(java, spark):
        make_archive(java, spark, _run_session)
    return bool(archive_options(java, spark))


def _run_session(*java_options: str) -> bool:
    """Run a session that uses a task and SQL; return whether its Java ended normally."""
    try:
        session = get_session(SparkSettings("local[1]", java_options=java_options))
        for _ in run_tasks(session, [b""], bytes):
            pass
        session.range(1)  # the first use starts the SQL part, which has most classes
    finally:
        # Java writes the archive when it ends, unless it is killed.
        whole = stop_session(_SECONDS_MAX)
    return whole
