"""Runs the tasks of a load or a verification: on Spark, or in this process if they are small.

Starting a Spark session takes seconds, and starting a job takes some tens of milliseconds. Parts
that one core can process in about that time are therefore processed in the calling thread, one
after the other. The same function processes them there and in tasks.
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
"""Maximum bytes of rows that are processed in this process."""


def part_results(
    session: Callable[[], SparkSession],
    payloads: Sequence[bytes],
    task: PartFunction,
    job: bytes,
    sizes: Sequence[int],
    description: str,
) -> Generator[tuple[int, Result], None, None]:
    """Run `task` once per payload and yield ``(index, result)`` in the payloads' order.

    Args:
        session: returns the Spark session; called only if there is too much data for this process.
        payloads: the pickled input of each task.
        task: the function to run; it is called with a payload and the job.
        job: the data that all tasks need.
        sizes: approximate bytes of rows that each task reads.
        description: the description of the jobs on Spark's page.

    Raises:
        OlrPgError: an OlrPgError of a task, raised after the results of the tasks before it were
            yielded; 6004 another exception of a task; the errors of `run_tasks`.
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
