"""Runs one task for each payload on Spark, and yields the results in the order of the payloads.

A task returns a few large binary pieces, not a row per change (architecture, “Few large results
from Spark”). Jobs use RDDs. A DataFrame with ``mapInArrow`` would give the same results, but it
costs the JVM twice as much per job (five times as much for the first jobs), and it needs pandas in
every process.

Spark schedules in the same way on one machine and on a cluster: `job_plan` determines the jobs and
their Spark tasks, and `planned_jobs` keeps two jobs running and takes their results in order. If
the driver and the executors share a directory (`session.RESULTS_PROPERTY`), as they do on one
machine unless files are encrypted, each task writes its result to a file there
(`files.result_files`), and the driver takes the result as soon as the file is complete. Otherwise
results pass through the JVM (`result_cells`) when their job ends.

**Errors.** If a task raises an error, the error is its result. So the driver raises the same
`OlrPgError`, and Spark does not retry a task that fails for a permanent reason. If a worker or an
executor is lost, Spark retries its tasks, provided that the master URL allows retries
(``local[N,F]``, clusters). Each attempt writes its own file, and the first complete file gets the
result's name.
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
        payloads: the input of each task. Keep them small (a path and a range, not the data),
            because they pass through the driver's JVM.
        task: the function that is called in a worker process as ``task(payload)``, or
            ``task(payload, broadcast)`` if there is a broadcast. It must be importable there, or be
            a closure. It can run more than once for a payload, so it must not have side effects.
        broadcast: data that all tasks need. It is sent to each executor once; later calls with the
            same bytes reuse it.
        max_parallel: maximum number of tasks that run in parallel, at least 1; default: the
            session's number of cores.
        sizes: approximate bytes of input of each task. If given, small tasks are combined into
            larger Spark tasks.
        inline_only: whether to pass every result through the JVM, even if the driver and the
            executors share a directory.
        writes: whether the task writes its result to an additional last argument, a `TaskResult`,
            instead of returning it. Then the whole result need not be in memory.
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
