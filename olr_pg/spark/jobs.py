"""Running one task per payload on Spark, results in order.

A task returns few large binary cells, not a row per change (architecture, “Few large cells from
Spark”). Jobs are RDDs: a DataFrame
with ``mapInArrow`` does the same, but its planning costs the JVM twice as much for each job, five
times as much for the first ones, and it needs pandas in every process.

**On this machine** (`local_jobs`) a job's Spark tasks, one for each core, ask the driver for one
payload after the other (`worker_exchange`, `handing_out`): a job costs the JVM some 50 ms of the
processor whatever it does, and a backlog takes few of them. A result of more than
`result_cells.INLINE_MAX` bytes is left in a spool file (`result_files`), and the cell holds the
file's name.

**On a cluster** (`planned_jobs`), whose executors need not reach the driver, payloads go out in
jobs of `max_parallel` tasks; small tasks share jobs, and where they are many a core gets them in
one Spark task, one after the other. Large results are compressed, and cut into cells of
`result_cells.PART_MAX` bytes: what passes through the JVM is copied several times and has to fit
its heap.

**Errors.** A task that raises has its error in its cell, so that the driver raises the same
`OlrPgError`, and Spark does not repeat what fails for a reason. Spark itself repeats tasks whose
worker or executor was lost, where the master has retries (``local[N,F]``, clusters); every attempt
has a spool file of its own, and only the one named by the cell that arrives is read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from olr_pg.spark.call import SparkCall
from olr_pg.spark.local_jobs import local_results
from olr_pg.spark.planned_jobs import plan_jobs, planned_results

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.spark.result_cells import Result, TaskResult


@overload
def run_tasks(
    spark: SparkSession,
    payloads: Sequence[bytes],
    task: Callable[[bytes], Result],
    *,
    broadcast: None = None,
    max_parallel: int | None = None,
    sizes: Sequence[int] | None = None,
    inline_only: bool = False,
) -> Generator[tuple[int, Result], None, None]: ...


@overload
def run_tasks(
    spark: SparkSession,
    payloads: Sequence[bytes],
    task: Callable[[bytes, bytes], Result],
    *,
    broadcast: bytes,
    max_parallel: int | None = None,
    sizes: Sequence[int] | None = None,
    inline_only: bool = False,
) -> Generator[tuple[int, Result], None, None]: ...


@overload
def run_tasks(
    spark: SparkSession,
    payloads: Sequence[bytes],
    task: Callable[[bytes, bytes, TaskResult], None],
    *,
    broadcast: bytes,
    max_parallel: int | None = None,
    sizes: Sequence[int] | None = None,
    inline_only: bool = False,
    writes: Literal[True],
) -> Generator[tuple[int, Result], None, None]: ...


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
            `result_cells.TaskResult`: what it has written need not be in its memory any more.

    Raises:
        OlrPgError: the error that a task raised, after the results before it; 6004 a task raised
            anything else; 6005 Spark could not run a job; 6006 a result could not be handed over.
    """
    if not payloads:
        return
    call = task if writes else partial(_returned, task)
    with SparkCall(spark, call) as on_spark:
        on_spark.prepare(broadcast)
        if on_spark.local and not inline_only:
            width = min(max_parallel or on_spark.cores, on_spark.cores, len(payloads))
            yield from local_results(on_spark, payloads, width, sizes)
        else:
            jobs = plan_jobs(len(payloads), max_parallel or on_spark.cores, sizes or ())
            yield from planned_results(on_spark, payloads, jobs)


def _returned(task: Callable[..., Result], *arguments: Any) -> None:
    """Do a task that returns its result, and write that."""
    result: TaskResult = arguments[-1]
    result.write(task(*arguments[:-1]))
