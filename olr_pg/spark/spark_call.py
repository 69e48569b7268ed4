"""Holds the resources that one call of `run_tasks` uses in Spark, and releases them at its end.

Each job costs time in Java and in the driver, mostly for communication between the two. Three
measures reduce it. Jobs are submitted asynchronously (``collectAsync``) without a thread for each.
Results need no additional socket. The payloads are the data of the partitions, not a part of the
function. So a job takes about 20 ms; with `RDD.collect` in a thread it would take 40 ms.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
import socket
import threading
import time
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.spark.session import RESULTS_PROPERTY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import Broadcast, SparkContext
    from pyspark.sql import SparkSession

Share: TypeAlias = "list[tuple[int, bytes]]"
"""The tasks that one Spark task runs: their numbers and payloads."""

Work: TypeAlias = "Callable[[Iterable[Share]], Iterator[Any]]"

_JOBS_MAX: Final = 4
"""Maximum number of jobs that `SparkCall` remembers to cancel. More jobs are remembered than run at
a time, because earlier jobs may not have ended yet.
"""

_CANCEL_SECONDS: Final = 10.0
"""Maximum time to wait for the end of cancelled jobs."""

_CALL_SITE: Final = "olr_pg"
"""The name of the stages on Spark's page; the default would be a line of PySpark's source."""


class SparkJob:
    """A submitted job.

    Args:
        action: Java's future for the result of the job.
        description: the job's description on Spark's page.
    """

    def __init__(self, action: Any, description: str) -> None:
        self._action = action
        self._description = description

    def done(self) -> bool:
        """Return whether the job has ended, successfully or not.

        Raises:
            OlrPgError: 6005, Java has ended.
        """
        with spark_errors(job=self._description):
            return bool(self._action.isDone())

    def result(self) -> list[Any]:
        """Wait for the job's end; return the results of its Spark tasks, in order.

        Raises:
            OlrPgError: 6005, the job failed; 6008, a host of the cluster lacks something that tasks
                need.
        """
        with spark_errors(job=self._description):
            batches = [bytes(batch) for batch in self._action.get()]
        return [value for batch in batches for value in pickle.loads(batch)]  # noqa: S301 - ours


class SparkCall:
    """One call of `run_tasks`, with its task and its jobs; used by one thread at a time.

    Args:
        spark: the session.
        task: called in a worker as ``task(payload, result)`` or ``task(payload, broadcast,
            result)``.

    Attributes:
        cores: number of cores of the session.
    """

    def __init__(self, spark: SparkSession, task: Callable[..., None]) -> None:
        self.cores = 1
        self._spark = spark
        self._task = task
        self._broadcast: Broadcast[bytes] | None = None
        self._borrowed = contextlib.ExitStack()
        self._group = f"olr_pg-{uuid.uuid4()}"
        self._jobs: deque[SparkJob] = deque(maxlen=_JOBS_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        from py4j.protocol import Py4JError

        # If the JVM has ended, nothing is left to cancel. (AttributeError: another thread has
        # stopped the session.)
        with contextlib.suppress(Py4JError, OSError, AttributeError, OlrPgError):
            java = self._spark.sparkContext._jsc
            if not self._have_ended():
                java.sc().cancelJobGroup(self._group)
                until = time.monotonic() + _CANCEL_SECONDS
                while not self._have_ended() and time.monotonic() < until:
                    time.sleep(_CANCEL_SECONDS / 1_000)
            java.clearJobGroup()
            java.clearCallSite()
        self._borrowed.close()

    def _have_ended(self) -> bool:
        return all(job.done() for job in self._jobs)

    def prepare(self, broadcast: bytes | None) -> None:
        """Create the broadcast that all jobs of the call use, and read the number of cores.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        with spark_errors():
            context = self._spark.sparkContext
            self.cores = max(1, context.defaultParallelism)
            if broadcast is not None:
                shared = BROADCASTS.borrow(context, broadcast)
                self._broadcast = self._borrowed.enter_context(shared)

    @property
    def shared_directory(self) -> str | None:
        """A directory that the driver and the executors share; None if there is none.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        with spark_errors():
            return _shared_directory(self._spark.sparkContext)

    @property
    def task(self) -> Callable[[], Callable[..., None]]:
        """A function without arguments that a worker calls to get the task. After getting the task,
        the worker calls the task with a payload, and an object to which the task writes its result.

        If the worker has another version of olr_pg, the function raises error 6008.
        """
        # The function is sent to workers, so it must refer only to objects that they need, and not
        # to `self`.
        task, broadcast, wanted = self._task, self._broadcast, installed_version()

        def in_worker() -> Callable[..., None]:
            if (found := installed_version()) != wanted:
                detail = f"it has version {found} of olr_pg, but the driver has version {wanted}"
                raise OlrPgError(Code.EXECUTOR_UNFIT, detail, host=socket.gethostname())
            if broadcast is None:
                return task
            value = broadcast.value
            return lambda payload, result: task(payload, value, result)

        return in_worker

    def submit(self, work: Work, shares: Sequence[Share], description: str) -> SparkJob:
        """Submit a job.

        Args:
            work: the function that each Spark task calls. The function's argument is an iterator
                that yields the share of that Spark task.
            shares: the shares of tasks, one for each Spark task.
            description: the description of the job on Spark's page.

        Raises:
            OlrPgError: 6005, the session is dead.
        """
        with spark_errors(job=description):
            context = self._spark.sparkContext
            # The job group is a setting of this thread, and lasts until `__exit__` clears it or
            # another call replaces it.
            context.setJobGroup(self._group, description)
            context._jsc.setCallSite(_CALL_SITE)
            rdd: Any = context.parallelize(shares, len(shares)).mapPartitions(work)
            job = SparkJob(rdd._jrdd.collectAsync(), description)
            self._jobs.append(job)
            return job


@lru_cache(maxsize=1)
def installed_version() -> str:
    """Return the version of olr_pg that is installed."""
    return version("olr-pg")


@lru_cache(maxsize=1)
def _shared_directory(context: SparkContext) -> str | None:
    """Return the shared directory. The directory is cached, because reading the settings of a
    context takes a hundred calls of Java.
    """
    directory: str | None = context.getConf().get(RESULTS_PROPERTY)
    return directory


# Broadcasts are kept after the call that created them, because the tasks of an appliance need the
# same data for each log. A new broadcast for each call would leave a file on disk each time, until
# the JVM collects its garbage.

KEPT: Final = 2
"""Number of broadcasts above which unused broadcasts are deleted."""

_Key = tuple[str, bytes]


@dataclass(slots=True)
class _Held:
    broadcast: Broadcast[bytes]
    users: int = 0


class Broadcasts:
    """Keeps the broadcasts of this process, ordered by their last use; thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def borrow(self, context: SparkContext, data: bytes) -> Iterator[Broadcast[bytes]]:
        """Yield the broadcast of `data`; it is not deleted while the context is active."""
        key = context.applicationId, hashlib.sha256(data).digest()
        with self._lock:
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(context.broadcast(data))
            held.users += 1
            self._held.move_to_end(key)
        try:
            yield held.broadcast
        finally:
            with self._lock:
                held.users -= 1
                self._drop_unused(key[0])

    def _drop_unused(self, application: str) -> None:
        from py4j.protocol import Py4JError

        unused = [key for key, held in self._held.items() if held.users == 0]
        for key in unused[: max(0, len(self._held) - KEPT)]:
            dropped = self._held.pop(key)
            # The broadcasts of an ended session were deleted with it.
            if key[0] == application:
                with contextlib.suppress(Py4JError, OSError):
                    dropped.broadcast.destroy()


BROADCASTS: Final = Broadcasts()


# --- conversion of errors of Spark, and of the connection to its JVM, to errors of the catalogue
# ---


@contextlib.contextmanager
def spark_errors(**where: str) -> Iterator[None]:
    """Convert errors of Spark, and of the connection to its JVM, to error 6005 or 6008."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        if lacking := _missing_on_executor(str(error)):
            raise OlrPgError(Code.EXECUTOR_UNFIT, lacking, **where) from error
        raise OlrPgError(Code.SPARK_JOB_FAILED, _reason(error), **where) from error


_MISSING_ON_EXECUTOR: Final = (
    (r"No module named '?(?:olr_pg|pyspark)\b", "the package is not installed on that machine"),
    (r"Cannot run program \"([^\"]+)\"", "Python is missing on that machine"),
    (r"PYTHON_VERSION_MISMATCH", "that machine has another version of Python"),
    (r"cannot cache function", "the compiled kernels cannot be stored on that machine"),
)
"""Patterns for the texts of Spark's errors after which a host could not start the process that runs
tasks, and the reason for each.
"""


def _missing_on_executor(words: str) -> str | None:
    """Return the reason why a host cannot run tasks; None if the error has another cause."""
    for pattern, meaning in _MISSING_ON_EXECUTOR:
        if found := re.search(rf".*{pattern}.*", words):
            return f"{meaning}: {found[0].strip()}"
    return None


def _reason(error: Exception) -> str:
    """Return the first message of Spark's innermost exception, without the JVM's stack trace."""
    from py4j.protocol import Py4JError

    words = str(error)
    cause: Any = getattr(error, "java_exception", None)
    with contextlib.suppress(Py4JError, OSError):  # this calls the JVM
        while cause is not None:
            said = str(cause.toString())
            if said.startswith("org.apache.spark."):
                words = said
            cause = cause.getCause()
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    # If the first line ends with a colon, it has only the exception's name, and the second line has
    # the message.
    first = lines[:2] if lines and lines[0].endswith(":") else lines[:1]
    return " ".join(first) or plain_reason(error)
