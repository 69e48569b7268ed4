"""Running one task per payload on Spark, results in order.

A task returns few large binary pieces, not a row per change (architecture, “Few large results from
Spark”). Jobs are RDDs: a DataFrame with ``mapInArrow`` does the same, but its planning costs the
JVM twice as much for each job, five times as much for the first ones, and it needs pandas in every
process.

Spark schedules, the same way on this machine and on a cluster: `job_plan` chooses the jobs and
their Spark tasks, `planned_jobs` keeps two jobs under way and takes their results in order. Where
the driver and the executors share a directory (`session.RESULTS_PROPERTY`; always on one machine)
each result is a file (`files.result_files`) that is taken as soon as it is there. Else results
pass through the JVM (`result_cells`) at the end of their job.

**Errors.** A task that raises has its error as its result, so that the driver raises the same
`OlrPgError`, and Spark does not repeat what fails for a reason. Spark itself repeats tasks whose
worker or executor was lost, where the master has retries (``local[N,F]``, clusters); every attempt
writes a file of its own, and the first one that is whole gets the result's name.
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
"""Files of results per core that are kept between calls, some 16 MB each: a task writes one, and
the driver has another, or is about to take it."""


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

    Nothing is submitted before the first result is asked for, and what is done before its results
    are taken is bounded. Closing the iterator cancels what is under way.

    Args:
        spark: the session.
        payloads: what each task is given; small (a path and a range, not the data), since on a
            cluster every task of a job is sent the payloads of that job.
        task: called in a worker process as ``task(payload)``, or ``task(payload, broadcast)`` where
            there is a broadcast; importable there, or a closure. It may run more than once for a
            payload, so it changes nothing outside.
        broadcast: what all tasks need; sent to each executor once, for later calls with the same
            bytes too.
        max_parallel: tasks at a time, at least 1; default: the session's number of cores.
        sizes: bytes of input of each task, about: tasks of little input go out several at a time,
            and of such that are short more may be done ahead.
        inline_only: send every result through the JVM, as on a cluster.
        writes: the task returns nothing but writes its result into a further argument, a
            `TaskResult`: what it has written need not be in its memory any more.
        description: what Spark's page says of the jobs.

    Raises:
        OlrPgError: the error that a task raised, after the results before it; 6004 a task raised
            anything else; 6005 Spark could not run a job; 6006 a result could not be handed over.
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
    """Do a task that returns its result, and write that."""
    result: TaskResult = arguments[-1]
    result.write(task(*arguments[:-1]))
