"""Holds what one call of `run_tasks` has in Spark, and releases it at the call's end."""

from __future__ import annotations

import contextlib
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.broadcasts import BROADCASTS
from olr_pg.spark.session import RESULTS_PROPERTY
from olr_pg.spark.spark_failures import spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from pyspark import Broadcast, SparkContext
    from pyspark.sql import SparkSession

Work: TypeAlias = "Callable[[Iterable[int]], Iterator[Any]]"

_JOBS_MAX: Final = 4
"""Two are under way; one may wait for cores that have been given to others, or just be ending."""


class SparkCall:
    """A call: its task, and the jobs that do it.

    Args:
        spark: the session.
        task: called in a worker as ``task(payload, result)`` or ``task(payload, broadcast,
            result)``.

    Attributes:
        cores: of the session.
    """

    def __init__(self, spark: SparkSession, task: Callable[..., None]) -> None:
        self.cores = 1
        self._in_thread: Callable[[Callable[..., Any]], Callable[..., Any]]
        self._spark = spark
        self._task = task
        self._broadcast: Broadcast[bytes] | None = None
        self._borrowed = contextlib.ExitStack()
        self._group = f"olr_pg-{uuid.uuid4()}"
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(_JOBS_MAX, thread_name_prefix="spark-job")

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

    def prepare(self, broadcast: bytes | None) -> None:
        """Set up what every job needs.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        from pyspark.util import inheritable_thread_target

        with spark_errors():
            context = self._spark.sparkContext
            # It closes a thread's connection to the JVM when the job is done.
            self._in_thread = inheritable_thread_target(self._spark)
            self.cores = max(1, context.defaultParallelism)
            if broadcast is not None:
                shared = BROADCASTS.borrow(context, broadcast)
                self._broadcast = self._borrowed.enter_context(shared)

    @property
    def shared_directory(self) -> str | None:
        """A directory that driver and executors share; None: there is none.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        with spark_errors():
            return _shared_directory(self._spark.sparkContext)

    @property
    def task(self) -> Callable[[], Callable[..., None]]:
        """Gives the task in a worker: it takes a payload, and where the result goes."""
        # Only what the worker needs is captured, above all not `self`.
        task, broadcast = self._task, self._broadcast

        def in_worker() -> Callable[..., None]:
            if broadcast is None:
                return task
            value = broadcast.value
            return lambda payload, result: task(payload, value, result)

        return in_worker

    def submit(self, work: Work, count: int, description: str) -> Future[list[Any]]:
        """Run a job, which is waited for in a thread of its own.

        Args:
            work: what a Spark task does, called with its number.
            count: of Spark tasks.
            description: what Spark's page says of the job.

        Returns:
            What the tasks yield. It raises 6005 where the job failed.
        """
        return self._threads.submit(self._translated, work, count, description)

    def _translated(self, work: Work, count: int, description: str) -> list[Any]:
        with spark_errors(job=description):  # what is around `_collect` calls Spark, too
            collected: list[Any] = self._in_thread(self._collect)(work, count, description)
        return collected

    def _collect(self, work: Work, count: int, description: str) -> list[Any]:
        if self._closing.is_set():
            raise OlrPgError(Code.SPARK_JOB_FAILED, "it was cancelled")
        context = self._spark.sparkContext
        context.setJobGroup(self._group, description)
        return context.parallelize(range(count), count).mapPartitions(work).collect()


@lru_cache(maxsize=1)
def _shared_directory(context: SparkContext) -> str | None:
    """Look it up; a context's settings come one by one, in a hundred calls."""
    directory: str | None = context.getConf().get(RESULTS_PROPERTY)
    return directory
