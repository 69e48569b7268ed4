"""Runs one task per payload on Spark; results are in order.

A task returns few large binary pieces, not a row per change (architecture, “Few large results from
Spark”). Jobs are RDDs: a DataFrame with ``mapInArrow`` does the same, but its planning costs the
JVM twice as much for each job, five times as much for the first ones, and it needs pandas in every
process.

Spark schedules in the same way on one machine and on a cluster: `job_plan` determines the jobs and
their Spark tasks, and `planned_jobs` keeps two jobs running and takes their results in order. If
the driver and the executors share a directory (`session.RESULTS_PROPERTY`; always on one machine),
each result is a file (`files.result_files`), which is taken as soon as it exists. Otherwise results
pass through the JVM (`result_cells`) at the end of their job.

**Errors.** If a task raises an error, the error is its result. So the driver raises the same
`OlrPgError`, and Spark does not retry a task that fails for a permanent reason. Spark retries tasks
whose worker or executor was lost, if the master has retries (``local[N,F]``, clusters); every
attempt writes its own file, and the first complete file gets the result's name.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from olr_pg.files.result_files import ResultFiles
from olr_pg.spark.job_plan import plan_jobs
from olr_pg.spark.planned_jobs import planned_results
from olr_pg.spark.spark_call import SparkCall

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.files.result_files import Result, TaskResult

_SPARE_FILES: Final = 4
"""Result files per core that are kept between calls, about 16 MB each: a task writes one, and the
driver has another.
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
    """Run `task` once per payload and yield ``(index, result)`` in the payloads' order.

    Nothing is submitted before the first result is requested, and the work that is done ahead is
    limited. Closing the iterator cancels running work.

    Args:
        spark: the session.
        payloads: the input of each task; small (a path and a range, not the data), because on a
            cluster every task of a job receives the payloads of that job.
        task: called in a worker process as ``task(payload)``, or ``task(payload, broadcast)`` if
            there is a broadcast; importable there, or a closure. It can run more than once for a
            payload, so it must not have side effects.
        broadcast: data that all tasks need; sent to each executor once, also for later calls with
            the same bytes.
        max_parallel: maximum number of parallel tasks, at least 1; default: the session's number of
            cores.
        sizes: approximate bytes of input of each task: small tasks are combined, and more of them
            can be done ahead.
        inline_only: pass every result through the JVM, as on a cluster.
        writes: the task writes its result to a further argument, a `TaskResult`, instead of
            returning it, so that the result does not have to be in memory.
        description: the description of the jobs on Spark's page.

    Raises:
        OlrPgError: the error that a task raised, after the results before it; 6004 a task raised
            anything else; 6005 Spark could not run a job; 6006 a result could not be transferred.
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
    """Return a task that writes the result that `task` returns."""
    result: TaskResult = arguments[-1]
    result.write(task(*arguments[:-1]))
