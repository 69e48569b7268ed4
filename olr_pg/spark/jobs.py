"""Runs one task for each payload on Spark, and yields the results in the order of the payloads.

A task returns a few large binary pieces, not a row per change (architecture, “Few large results
from Spark”). Jobs use RDDs. A DataFrame with ``mapInArrow`` would give the same results. But such a
DataFrame costs the JVM twice as much per job (five times as much for the first jobs), and it needs
pandas in every process.

Spark schedules in the same way on one machine and on a cluster. Two jobs run at a time, so that no
core waits for the slowest task of a job or for the driver. The next job is submitted when the
caller has taken all results of the oldest job. So the results of at most two jobs exist at a time,
in memory or on disk.

The driver and the executors can share a directory (`session.RESULTS_PROPERTY`). On one machine, the
driver and the executors share a directory, unless files are encrypted. In a shared directory, each
task writes its result to a file (`files.result_files`), and the driver takes the result as soon as
the file is complete. Otherwise results pass through Java when their job ends, as cells.

**Errors.** If a task raises an error, the error is its result. So the driver raises the same
`OlrPgError`, and Spark does not retry a task that fails for a permanent reason. If a worker or an
executor is lost, Spark retries its tasks, provided that the master URL allows retries
(``local[N,F]``, clusters). Each attempt writes its own file, and the first complete file gets the
result's name.

`plan_jobs` groups tasks into Spark tasks, and Spark tasks into jobs. Each job costs Java about 15
ms of processor time, and each Spark task 3 ms more. So there are few jobs, and each core gets its
share of a job as one Spark task.

`archive_classes` creates an archive of the classes that a session loads (`java.runtime`).

`SparkCall` holds the resources that one call of `run_tasks` uses in Spark, and releases them at its
end. Most of the time of a small job is communication between Java and the driver. Three measures
reduce it. Jobs are submitted asynchronously (``collectAsync``) without a thread for each.
Results need no additional socket. The payloads are the data of the partitions, not a part of the
function. So a job takes about 20 ms; with `RDD.collect` in a thread it would take 40 ms.

**Cells** pass through Java. If results are files (`files.result_files`), only errors are cells. If
results are not files, cells contain the compressed results. Compression reduces results to a tenth,
because messages repeat names; so the driver's network is fast enough for the results of many
executors. A large result is divided into several cells, because a cell is copied several times and
must fit into Java's heap.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import pickle
import re
import socket
import threading
import time
import traceback
import uuid
from collections import OrderedDict, deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.result_files import Kind, ResultFile, ResultFiles
from olr_pg.files.system_errors import system_failure
from olr_pg.java.runtime import archive_options, find_java, make_archive
from olr_pg.observability.logging_setup import get_logger
from olr_pg.spark.session import (
    RESULTS_PROPERTY,
    SparkSettings,
    get_session,
    spark_home,
    stop_session,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from pyspark import Broadcast, SparkContext
    from pyspark.sql import SparkSession

    from olr_pg.files.result_files import Result, TaskResult


PART_MAX: Final = 8 * 1024 * 1024
"""Maximum bytes of a cell; a larger result is divided into several cells."""

_CODEC: Final = "zstd"
"""zstd at level 1 (Arrow's default) compresses 0.8 GB/s; LZ4 compresses 1.3 GB/s, but its output
has twice the size.
"""


class Cell(NamedTuple):
    """A part of a task's result.

    Attributes:
        task: the task's number.
        kind: the kind of `data`.
        size: bytes of the whole result before it was compressed; 0 for an error.
    """

    task: int
    kind: Kind
    data: bytes = b""
    size: int = 0


class CompressedResult:
    """A result that is compressed while it is written."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._data = pa.BufferOutputStream()
        self._stream = pa.CompressedOutputStream(self._data, _CODEC)
        self._size = 0

    def write(self, data: Result) -> None:
        """Append bytes."""
        self._stream.write(data)
        self._size += memoryview(data).nbytes

    def cells(self, task: int) -> Iterator[Cell]:
        """Yield the cells of the result, in order; call it after the last write."""
        self._stream.close()
        view = memoryview(self._data.getvalue())
        for start in range(0, len(view), PART_MAX):
            data = view[start : start + PART_MAX]
            yield Cell(task, Kind.RESULT, data.tobytes(), self._size)


def error_cell(task: int, error: Exception) -> Cell:
    """Return the cell for an exception of a task; call it while the exception is handled."""
    failure = error if isinstance(error, OlrPgError) else system_failure(error)
    if failure is None:
        record: dict[str, Any] = {"error": _words(error), "traceback": traceback.format_exc()}
        return Cell(task, Kind.CRASH, orjson.dumps(record))
    record = {
        "code": failure.code,
        "detail": failure.detail,
        "action": failure.action,
        "where": failure.where,
        "traceback": traceback.format_exc(),
    }
    return Cell(task, Kind.ERROR, orjson.dumps(record))


def _words(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


@contextmanager
def errors_of_task(**where: str) -> Iterator[None]:
    """Convert errors of a task that runs in this process, as `join_cells` does: an exception that
    is not an `OlrPgError` becomes error 1108 if the operating system refused an operation, else
    6004 with the place `where`.
    """
    try:
        yield
    except OlrPgError:
        raise
    except Exception as error:
        failure = system_failure(error)
        raise failure or OlrPgError(Code.TASK_FAILED, _words(error), **where) from error


def join_cells(task: int, cells: list[Cell]) -> Result:
    """Join the cells of a result, on the driver.

    Args:
        cells: all cells of the task, in order.

    Raises:
        OlrPgError: the OlrPgError that the task raised; 1108 the operating system refused an
            operation of the task; 6004 the task raised another exception;
            6006 the result is incomplete.
    """
    for cell in cells:
        raise_error(task, cell.kind, cell.data)
    import pyarrow as pa

    data = b"".join(cell.data for cell in cells)
    try:
        whole = pa.Codec(_CODEC).decompress(data, cells[0].size)
    except (OSError, IndexError) as error:
        detail = f"parts of the result are missing: {plain_reason(error)}"
        raise OlrPgError(Code.TASK_RESULT_LOST, detail, task=task) from error
    return memoryview(whole).cast("B")


def raise_error(task: int, kind: Kind, data: Result) -> None:
    """Raise the error in a cell or file; do nothing if it contains a result.

    Raises:
        OlrPgError: the OlrPgError that the task raised; 6004 the task raised another exception.
    """
    if kind not in (Kind.ERROR, Kind.CRASH):
        return
    said: dict[str, Any] = orjson.loads(data)
    if kind is Kind.ERROR:
        where = said["where"]
        error = OlrPgError(said["code"], said["detail"], action=said["action"], **where)
    else:
        error = OlrPgError(Code.TASK_FAILED, said["error"], task=task)
        get_logger("spark").debug("task failed", task=task, traceback=said["traceback"])
    error.add_note(f"In the task:\n{said['traceback']}")
    raise error


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


JOB_BYTES: Final = 128 << 20
"""Bytes of input per core in one job, if tasks are small enough to combine. The last job can be
larger by up to a half, because an additional small job would cost as much as a large one.
"""

FIRST_JOB_BYTES: Final = 16 << 20
"""Bytes of input per core in the first job, if results arrive only when their job ends. The second
job has twice as much, and so on up to `JOB_BYTES`. So the caller gets the first results soon.
"""

Job: TypeAlias = "list[list[int]]"
"""A job: for each of its Spark tasks, the numbers of the tasks, in order."""


def plan_jobs(count: int, width: int, sizes: Sequence[int], *, growing: bool) -> list[Job]:
    """Divide tasks into jobs. A job has `width` tasks, or more if all its tasks are small.

    Args:
        count: number of tasks.
        width: number of tasks that run in parallel, at least 1.
        sizes: bytes of input of each task; empty if unknown.
        growing: whether the first jobs are smaller than the later ones.
    """
    jobs: list[Job] = []
    first, left = 0, sum(sizes)
    while first < count:
        end = min(first + width, count)
        room = job_bytes(len(jobs), growing=growing) * width
        room = (left if left <= 1.5 * room else room) - sum(sizes[first:end])
        while sizes and end < count and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        left -= sum(sizes[first:end])
        jobs.append(_shares(range(first, end), width, sizes))
        first = end
    return jobs


def job_bytes(number: int, *, growing: bool) -> int:
    """Return the bytes of input that each core gets in the job `number`; the first job has number
    0.
    """
    return min(FIRST_JOB_BYTES << min(number, 8), JOB_BYTES) if growing else JOB_BYTES


def _shares(tasks: range, width: int, sizes: Sequence[int]) -> Job:
    """Distribute the tasks of a job to the cores; each task goes to the core that has the fewest
    bytes so far.

    So results arrive approximately in the order in which the caller takes them. Few results wait
    for others, and their files are soon reused.
    """
    if not sizes:
        return [[task] for task in tasks]
    shares: Job = [[] for _ in range(min(width, len(tasks)))]
    given = [0] * len(shares)
    for task in tasks:
        least = given.index(min(given))
        shares[least].append(task)
        given[least] += max(1, sizes[task])
    return shares


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
        payloads: the input of each task. Keep the payloads small (a path and a range, not the
            data), because they pass through the driver's JVM.
        task: the function that is called in a worker process as ``task(payload)``, or
            ``task(payload, broadcast)`` if there is a broadcast. The function must be
            importable in the worker process, or be a closure. The function can run more than once
            for a payload, so it must not have side effects.
        broadcast: data that all tasks need. The broadcast is sent to each executor once; later
            calls with the same bytes reuse it.
        max_parallel: maximum number of tasks that run in parallel, at least 1; default: the
            session's number of cores.
        sizes: approximate bytes of input of each task. If given, small tasks are combined into
            larger Spark tasks.
        inline_only: whether to pass every result through the JVM, even if the driver and the
            executors share a directory.
        writes: whether the task writes its result to an additional last argument, a `TaskResult`,
            instead of returning it. A task that writes in this way need not have its whole result
            in memory.
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


_JOBS_UNDER_WAY: Final = 2

_POLL_SECONDS: Final = (0.001, 0.016)
"""The first pause and the longest pause between two checks for a result file, in seconds."""

_ASK_SECONDS: Final = 0.1
"""Interval at which we ask Java whether a job has ended, while we wait for its result files."""

_VISIBLE_SECONDS: Final = 10.0
"""Maximum time for which the cache of a network file system can hide the result file of a job that
has ended.
"""

_ENDING_SECONDS: Final = 0.5
"""Time that the last job gets to end by itself after all its results have arrived. Cancelling a job
would kill its workers, and the next job would have to wait for new ones.
"""


def planned_results(
    call: SparkCall,
    payloads: Sequence[bytes],
    jobs: Sequence[Job],
    files: ResultFiles | None,
    description: str,
) -> Iterator[tuple[int, Result]]:
    """Yield the results in the order of the tasks. Submit the next job when the caller has taken
    the results of the oldest one.

    Args:
        files: the files for results; None to pass the results through Java.
        description: description of the jobs on Spark's page.
    """
    work = _work(call, None if files is None else str(files.directory))
    waiting = deque(jobs)
    under_way: deque[tuple[list[int], SparkJob]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < _JOBS_UNDER_WAY:
            job = waiting.popleft()
            tasks = sorted(task for share in job for task in share)
            part = "" if len(jobs) == 1 else f" ({tasks[-1] + 1} of {len(payloads)} parts)"
            shares = [[(task, payloads[task]) for task in share] for share in job]
            under_way.append((tasks, call.submit(work, shares, description + part)))
        tasks, submitted = under_way[0]
        if files is None:
            _wait(submitted)
            yield from _from_cells(tasks, submitted.result())
        else:
            for task in tasks:
                yield task, _from_file(task, submitted, files)
        # Remove the job only now, because a job whose results were not taken yet counts as under
        # way.
        under_way.popleft()
        if not waiting and not under_way:
            _wait(submitted, _ENDING_SECONDS)


def _work(call: SparkCall, directory: str | None) -> Work:
    """Return the function that a Spark task calls with its share of the tasks."""
    task = call.task

    def work(shares: Iterable[Share]) -> Iterator[Cell]:
        for share in shares:
            for number, payload in share:
                yield from cells(number, partial(_run, task, payload), directory)

    return work


def _run(task: Callable[[], Callable[..., None]], payload: bytes, result: TaskResult) -> None:
    task()(payload, result)


def _pauses() -> Iterator[float]:
    """Yield the pauses before the next checks, in seconds: first short ones, then longer ones."""
    seconds, longest = _POLL_SECONDS
    while True:
        yield seconds
        seconds = min(2 * seconds, longest)


def _wait(job: SparkJob, seconds_max: float = math.inf) -> None:
    """Wait for a job's end in Python, because a Ctrl-C during a call of Java would break the
    connection to it.
    """
    until = time.monotonic() + seconds_max
    for pause in _pauses():
        if job.done() or time.monotonic() > until:
            return
        time.sleep(pause)


def cells(task: int, run: Callable[[TaskResult], None], directory: str | None) -> Iterator[Cell]:
    """In a worker, run a task. Yield its error, or its result unless the result is in a file, as
    cells.

    Args:
        run: runs the task with a `TaskResult`, to which the task writes its result.
        directory: the directory for the file with the result; None to yield the result as cells.
    """
    try:
        if directory is None:
            written = CompressedResult()
            run(written)
            yield from written.cells(task)
            return
        file = ResultFile(directory, task)
        try:
            run(file)
            file.finish()
        except Exception as error:
            # Also write the error to the file, so that the driver sees it before the job ends. This
            # may fail too, for example because the disk is full.
            with suppress(OlrPgError, OSError, ValueError):
                file.fail(*error_cell(task, error)[1:3])
            raise
        finally:
            file.close()
    except Exception as error:  # noqa: BLE001 - the supervisor of a task: all it raises is reported
        yield error_cell(task, error)


def _from_file(task: int, job: SparkJob, files: ResultFiles) -> Result:
    """Wait for the file with a task's result, and return the result."""
    ended_at: float | None = None
    asked_at = time.monotonic()
    for pause in _pauses():
        if (found := files.take(task)) is not None:
            kind, data = found
            raise_error(task, kind, data)
            return data
        now = time.monotonic()
        if ended_at is not None:
            _check_hidden(task, job.result(), now - ended_at)
        elif now - asked_at > _ASK_SECONDS:
            asked_at = now
            ended_at = now if job.done() else None
        time.sleep(pause)
    raise AssertionError("pauses do not end")


def _check_hidden(task: int, ended: Iterable[Cell], seconds: float) -> None:
    """Raise the error because of which an ended job has no file for a task; do nothing while a
    cache may still hide the file.
    """
    for cell in ended:
        if cell.task == task:
            raise_error(task, cell.kind, cell.data)
    if seconds > _VISIBLE_SECONDS:
        raise OlrPgError(Code.TASK_RESULT_LOST, "the file with the result is missing", task=task)


def _from_cells(tasks: Sequence[int], ended: Iterable[Cell]) -> Iterator[tuple[int, Result]]:
    of_task: dict[int, list[Cell]] = {task: [] for task in tasks}
    for cell in ended:
        of_task[cell.task].append(cell)
    for task in tasks:
        # Remove the cells from the dictionary, so that their memory is free after the caller has
        # used the result.
        yield task, join_cells(task, of_task.pop(task))


_SECONDS_MAX: Final = 300.0
"""Time limit for Java to write the archive, which takes a few seconds on an idle host."""


def archive_classes() -> bool:
    """Create the archive of classes if there is none for this Java and this Spark.

    Call this function only while no session runs in this process.

    Returns:
        Whether the archive exists now. Some versions of Java cannot create the archive; sessions
        also work without it.

    Raises:
        OlrPgError: as for `get_session`; 6002 the archive cannot be written.
    """
    java, spark = find_java(), spark_home()
    if not archive_options(java, spark):
        make_archive(java, spark, _run_session)
    return bool(archive_options(java, spark))


def _run_session(*java_options: str) -> bool:
    """Run a session that uses a task and SQL; return whether its Java ended normally."""
    try:
        session = get_session(SparkSettings("local[1]", java_options=java_options))
        for _ in run_tasks(session, [b""], bytes):
            pass
        session.range(1)  # the first use starts the SQL part, which has most classes
    finally:
        # Java writes the archive when it ends, unless it is killed.
        whole = stop_session(_SECONDS_MAX)
    return whole
