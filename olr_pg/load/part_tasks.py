"""Runs the tasks of a load or a verification: on Spark, or in this process if they are small.

Starting a session takes seconds, and a job some tens of milliseconds. So parts that take one core
about as long are processed in the calling thread, one after the other, by the same function as in
tasks.
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
        session: returns the Spark session; called only if there is much to do.
        payloads: the pickled input of each task.
        task: called with a payload and the job.
        job: the data that all tasks need.
        sizes: approximate bytes of rows that each task reads.
        description: the description of the jobs on Spark's page.

    Raises:
        OlrPgError: an OlrPgError of a task, after the results before it; 6004 another exception of
            a task; as for `run_tasks`.
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
