"""Running one task per payload on Spark, results in order.

Payloads go out in jobs of `max_parallel` tasks; a task returns few large binary cells, not a row
per change (design §4). They are RDDs: a DataFrame with ``mapInArrow`` does the same, but its
planning costs the JVM twice as much for each job, five times as much for the first ones, and it
needs pandas in every process. Small tasks share jobs, and where they are many a core gets them in
one Spark task, one after the other: each costs the JVM some 10 ms, whatever it does. Two jobs are
under way at a time, so that no core waits for the slowest task of a job or for the driver; the next
one is submitted when all results of the oldest have been taken. So at most twice what a job holds
(`plan_jobs`) exists at once.

**Large results.** What passes through the JVM is copied several times and has to fit its heap. When
all tasks run on this machine, a result of more than `cells.INLINE_MAX` bytes is therefore left in a
spool file (`spool`), and the cell holds the file's name. On a cluster it is cut into cells of
`cells.PART_MAX` bytes.

**Errors.** A task that raises has its error in its cell, so that the driver raises the same
`OlrPgError`, and Spark does not repeat what fails for a reason. Spark itself repeats tasks whose
worker or executor was lost, where the master has retries (``local[N,F]``, clusters); every attempt
has a spool file of its own, and only the one named by the cell that arrives is read.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

from olr_pg.errors import OlrPgError
from olr_pg.spark.broadcasts import BROADCASTS
from olr_pg.spark.spool import Spool

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext
    from pyspark.sql import SparkSession

    from olr_pg.spark.cells import Cell, Result, TaskResult

_JOBS_UNDER_WAY: Final = 2

JOB_BYTES: Final = 128 << 20
"""Bytes of input that a core is given in one job, where single tasks have less."""

FIRST_JOB_BYTES: Final = 16 << 20
"""The same of the first job; the second has twice as much, and so on up to `JOB_BYTES`: results
come in jobs, and who takes them is to have something to do soon."""


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

    Nothing is submitted before the first result is asked for, and no more than two jobs before
    their results are taken. Closing the iterator cancels what is under way.

    Args:
        spark: the session.
        payloads: what each task is given; small (a path and a range, not the data), since every
            task of a job is sent the payloads of that job.
        task: called in a worker process as ``task(payload)``, or ``task(payload, broadcast)`` where
            there is a broadcast; importable there, or a closure. It may run more than once for a
            payload, so it changes nothing outside.
        broadcast: what all tasks need; sent to each executor once, for later calls with the same
            bytes too.
        max_parallel: tasks of one job, at least 1; default: the session's number of cores.
        sizes: bytes of input of each task, about: tasks of little input go out in jobs of more, up
            to `JOB_BYTES` a core, as a job costs Spark the same whatever it does.
        inline_only: send every result through the JVM, as on a cluster.
        writes: the task returns nothing but writes its result into a further argument, a
            `cells.TaskResult`: what it has written need not be in its memory any more.

    Raises:
        OlrPgError: the error that a task raised, after the results before it; 6004 a task raised
            anything else; 6005 Spark could not run a job; 6006 a result could not be handed over.
    """
    if not payloads:
        return
    with _Run(spark, task, shared=not inline_only, writes=writes) as run:
        run.prepare(broadcast)
        jobs = plan_jobs(len(payloads), max_parallel or run.cores, sizes or ())
        run.open_spool(kept=_JOBS_UNDER_WAY * max(len(job) for job in jobs))
        yield from run.results(payloads, jobs)


def plan_jobs(count: int, width: int, sizes: Sequence[int]) -> list[range]:
    """Which tasks make a job: `width` of them, or as many as its bytes (`job_bytes`) allow.

    Args:
        count: of tasks.
        width: at least 1.
        sizes: bytes of input of each task; empty where nobody knows.
    """
    jobs: list[range] = []
    first = 0
    while first < count:
        end = min(first + width, count)
        room = job_bytes(len(jobs)) * width - sum(sizes[first:end])
        while sizes and end < count and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        jobs.append(range(first, end))
        first = end
    return jobs


def job_bytes(number: int) -> int:
    """Bytes of input that a core is given in job `number`, from 0."""
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES)


class _Run:
    """One call of `run_tasks`: what it holds in Spark and on disk, released at its end."""

    def __init__(
        self, spark: SparkSession, task: Callable[..., Any], *, shared: bool, writes: bool
    ) -> None:
        self.cores = 1
        self._spark = spark
        self._task = task
        self._writes = writes
        self._shared = shared
        self._spool: Spool | None = None
        self._broadcast: Broadcast[bytes] | None = None
        self._borrowed = contextlib.ExitStack()
        self._group = f"olr_pg-{uuid.uuid4()}"
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(_JOBS_UNDER_WAY, thread_name_prefix="spark-job")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        from py4j.protocol import Py4JError

        self._closing.set()
        # A JVM that has gone away has nothing left to cancel (AttributeError: the session was
        # stopped from another thread).
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            # Future ones too: a thread may be about to submit the next job.
            context = self._spark.sparkContext
            context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._borrowed.close()
        if self._spool is not None:
            self._spool.remove()

    def prepare(self, broadcast: bytes | None) -> None:
        """Set up what every job needs.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        with spark_errors():
            context = self._spark.sparkContext
            self.cores = max(1, context.defaultParallelism)
            if broadcast is not None:
                shared = BROADCASTS.borrow(context, broadcast)
                self._broadcast = self._borrowed.enter_context(shared)

    def open_spool(self, kept: int) -> None:
        """Have large results written into files, where every task runs on this machine.

        Args:
            kept: how many files are kept to be used again.

        Raises:
            OlrPgError: 6005 the session is dead, 6006 there is no room for the spool directory.
        """
        with spark_errors():
            context = self._spark.sparkContext
            if self._shared and str(context.master).startswith("local"):
                self._spool = _new_spool(_local_directory(context), kept)

    def results(
        self, payloads: Sequence[bytes], jobs: Sequence[range]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the results in order, submitting jobs as they are taken."""
        from pyspark.util import inheritable_thread_target

        # The wrapper closes the thread's connection to the JVM when the job is done.
        with spark_errors():
            collect = inheritable_thread_target(self._spark)(self._collect)
        waiting = deque(jobs)
        under_way: deque[tuple[range, Future[list[Cell]]]] = deque()
        while waiting or under_way:
            while waiting and len(under_way) < _JOBS_UNDER_WAY:
                tasks = waiting.popleft()
                job = self._threads.submit(collect, tasks.start, payloads[tasks.start : tasks.stop])
                under_way.append((tasks, job))
            tasks, job = under_way[0]
            with spark_errors():  # the wrapper of `collect` calls Spark, too
                cells = job.result()
            yield from self._read(tasks, cells)
            # Only now: results that wait to be taken count as under way.
            under_way.popleft()

    def _collect(self, first: int, payloads: Sequence[bytes]) -> list[Cell]:
        """Run one job (in a thread of its own) and return its cells."""
        if self._closing.is_set():
            raise OlrPgError(6005, "it was cancelled")
        count = len(payloads)
        with spark_errors(tasks=f"{first}-{first + count - 1}"):
            context = self._spark.sparkContext
            context.setJobGroup(self._group, "olr_pg tasks")
            indices = context.parallelize(range(first, first + count), min(count, self.cores))
            cells = indices.mapPartitions(self._partition_task(first, payloads)).collect()
        if len({cell.task for cell in cells}) < count:
            # PySpark takes the end of a connection for the end of the results.
            raise OlrPgError(6005, "Java ended before all results were there")
        return cells

    def _partition_task(
        self, first: int, payloads: Sequence[bytes]
    ) -> Callable[[Iterable[int]], Iterator[Cell]]:
        # Only what the worker needs is captured, above all not `self`.
        task, broadcast, writes = self._task, self._broadcast, self._writes
        spool = None if self._spool is None else str(self._spool.directory)

        def run(indices: Iterable[int]) -> Iterator[Cell]:
            from olr_pg.spark.cells import cells

            arguments = () if broadcast is None else (broadcast.value,)
            for index in indices:
                call = partial(task, payloads[index - first], *arguments)
                yield from cells(index, call if writes else partial(_write, call), spool)

        return run

    def _read(self, indices: range, job: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
        from olr_pg.spark.cells import result

        of_task: dict[int, list[Cell]] = {index: [] for index in indices}
        for cell in job:
            of_task[cell.task].append(cell)
        for index in indices:
            # Taken out: what was handed on need not be kept.
            yield index, result(index, of_task.pop(index), self._spool)


@lru_cache(maxsize=1)
def _local_directory(context: SparkContext) -> str | None:
    """Spark's directory on this machine; its settings come one by one, in a hundred calls."""
    directory: str | None = context.getConf().get("spark.local.dir")
    return directory


def _write(task: Callable[[], Result], result: TaskResult) -> None:
    result.write(task())


def _new_spool(parent: str | None, kept: int) -> Spool:
    """The files of the results of one call."""
    try:
        return Spool(parent, kept)
    except OSError as error:
        raise OlrPgError(6006, f"{error.strerror}", directory=parent) from error


@contextlib.contextmanager
def spark_errors(**where: str) -> Iterator[None]:
    """Turn what Spark and the connection to its JVM raise into 6005."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        raise OlrPgError(6005, _reason(error), **where) from error
    except UnboundLocalError as error:
        # Of PySpark, which then has no socket to close: `__context__` is what went wrong.
        reason = str(error.__context__ or error)
        raise OlrPgError(6005, reason.strip().splitlines()[0], **where) from error


def _reason(error: Exception) -> str:
    """What Spark's innermost exception says first, without the JVM's stack."""
    from py4j.protocol import Py4JError

    words = str(error)
    cause: Any = getattr(error, "java_exception", None)
    with contextlib.suppress(Py4JError, OSError):  # the exception's words are in the JVM
        while cause is not None:
            said = str(cause.toString())
            if said.startswith("org.apache.spark."):
                words = said
            cause = cause.getCause()
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    # Where the text begins with a line of its own, the first one has only the exception's name.
    first = lines[:2] if lines and lines[0].endswith(":") else lines[:1]
    return " ".join(first) or type(error).__name__
