"""Jobs whose workers, all on this machine, ask the driver for tasks (`worker_exchange`)."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.handing_out import HandingOut, Portions
from olr_pg.spark.result_cells import result
from olr_pg.spark.result_files import Spool
from olr_pg.spark.worker_exchange import Exchange, take_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from olr_pg.spark.call import SparkCall
    from olr_pg.spark.result_cells import Result

_ENDING_SECONDS: Final = 0.5
"""How long jobs have to end by themselves: a worker that is cancelled meanwhile is lost, and the
next job has to wait for a new one. Longer takes only one that waits for others' cores."""


def local_results(
    call: SparkCall,
    payloads: Sequence[bytes],
    width: int,
    sizes: Sequence[int] | None,
) -> Iterator[tuple[int, Result]]:
    """Yield the results in order.

    Args:
        payloads: one or more.
        width: workers at a time, at least 1.
        sizes: bytes of input of each task; None: unknown.

    Raises:
        OlrPgError: as `run_tasks`.
    """
    portions = Portions.of(len(payloads), sizes, width)
    jobs: list[Future[list[Any]]] = []

    def begin_turn(turn: int) -> None:
        job = call.submit(_work(call, spool.directory, turn), range(width))
        jobs.append(job)
        job.add_done_callback(lambda job: handing_out.turn_ended(turn, _failure(job, width)))

    handing_out = HandingOut(portions, width, begin_turn)
    spool = _new_spool(call.local_directory, portions.tasks_at_once)
    try:
        with _exchange(spool, handing_out, payloads):
            try:
                handing_out.start()
                for task in range(len(payloads)):
                    yield task, result(task, handing_out.result(task), spool)
                    handing_out.taken(task)
                wait(jobs, _ENDING_SECONDS)
            finally:
                handing_out.close()
    finally:
        spool.remove()


def _work(call: SparkCall, directory: Path, turn: int) -> Callable[[Iterable[int]], Iterator[int]]:
    """Make what a Spark task does; it says its number at the end."""
    task = call.task

    def work(numbers: Iterable[int]) -> Iterator[int]:
        take_part(directory, turn, task())
        yield from numbers

    return work


def _failure(job: Future[list[Any]], width: int) -> BaseException | None:
    """Say why a job has not done what it should."""
    if job.cancelled():
        return None
    error = job.exception()
    if error is None and len(job.result()) < width:
        # PySpark takes the end of a connection for the end of the results.
        return OlrPgError(Code.SPARK_JOB_FAILED, "Java ended before its tasks did")
    return error


def _new_spool(parent: str | None, kept: int) -> Spool:
    """Make the files of the results of one call."""
    try:
        return Spool(parent, kept)
    except OSError as error:
        raise OlrPgError(Code.TASK_RESULT_LOST, f"{error.strerror}", directory=parent) from error


def _exchange(spool: Spool, handing_out: HandingOut, payloads: Sequence[bytes]) -> Exchange:
    try:
        return Exchange(spool.directory, handing_out, payloads)
    except OSError as error:
        directory = str(spool.directory)
        raise OlrPgError(Code.TASK_RESULT_LOST, f"{error.strerror}", directory=directory) from error
