"""Doing the tasks of a load or a verification: on Spark, or in this process where there is little.

A session takes seconds to start, and a job some tens of milliseconds. So parts that one core does
in about that time are done by the thread that wants them, one after the other, with the function
that tasks call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.result_cells import errors_of_task

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.files.result_files import Result

    PartFunction = Callable[[bytes, bytes], bytes]

HERE_BYTES: Final = 8 << 20
"""Up to how many bytes of rows are done in this process."""


def part_results(
    session: Callable[[], SparkSession],
    payloads: Sequence[bytes],
    task: PartFunction,
    job: bytes,
    sizes: Sequence[int],
    description: str,
) -> Generator[tuple[int, Result], None, None]:
    """Do `task` once per payload and yield ``(index, result)`` in the payloads' order.

    Args:
        session: gives the Spark session; only called where there is much to do.
        payloads: what each task is given, a pickle.
        task: called with a payload and the job.
        job: what all tasks need.
        sizes: bytes of rows that each task reads, about.
        description: what Spark's page says of the jobs.

    Raises:
        OlrPgError: what a task raises, after the results before it; 6004 it raised anything else;
            as `run_tasks`.
    """
    if sum(sizes) > HERE_BYTES:
        yield from run_tasks(
            session(), payloads, task, broadcast=job, sizes=sizes, description=description
        )
        return
    for index, payload in enumerate(payloads):
        with errors_of_task():
            result = task(payload, job)
        yield index, result
