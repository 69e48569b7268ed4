"""A Spark task of the initial load: copies one partition to the target, in one transaction.

One thread produces the next item while the other sends the current one. With a single thread, the
task would wait for the server while sending rows, and the server would wait while the task encodes.
Sending and encoding take about the same time, and encoding (kernels, Arrow) releases the
interpreter lock, so they can run at the same time.

A read is repeated after the connection to the source was lost.

The tasks of a load or a verification run on Spark, or in this process if they are small. Starting a
Spark session takes seconds, and starting a job takes some tens of milliseconds. Parts that one core
can process in about that time are therefore processed in the calling thread, one after the other.
The calling thread and the tasks use the same function for a partition.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import Connection, sql
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from olr_pg.applier.statements.images import COPY_END, COPY_HEADER
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.target.catalogue import missing_table, read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target_checks import close_key_columns, close_key_words
from olr_pg.datatypes.policies import Counters
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.load.column_binding import LoadColumn, add_losses, bind_columns
from olr_pg.load.large_rows import RowSpool
from olr_pg.load.load_progress import TableLoadProgress
from olr_pg.load.plain_tuples import plain_tuples
from olr_pg.load.table_data import SourcePartition, schema_of
from olr_pg.observability.wording import counted
from olr_pg.oracle.key_cuts import LargeRow
from olr_pg.postgres.sqlstates import is_conflict, is_transient, target_error
from olr_pg.spark.jobs import errors_of_task, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table
    from olr_pg.files.result_files import Result

    PartFunction = Callable[[bytes, bytes], bytes]

ATTEMPTS: Final = 4
LOST: Final = frozenset(
    {Code.ORACLE_UNREACHABLE, Code.ORACLE_CONNECTION_LOST, Code.ORACLE_NOT_OPEN}
)
"""Errors: the source cannot be reached, or the connection is lost. The codes are listed here
because `oracle.driver.bounded_calls` imports the driver, which tasks that read files do not need.
"""

_Result = TypeVar("_Result")


def retried(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`; call it again if the connection is lost.

    Args:
        work: the function to call; a call that fails must have no effects.

    Raises:
        OlrPgError: any error of `work`.
    """
    retrying = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, OlrPgError) and error.code in LOST
        ),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=5),
        reraise=True,
    )
    result: _Result = retrying(work)
    return result


class LoadTable(NamedTuple):
    """A table of a load.

    Attributes:
        source: the table in the source's dictionary.
        schema, name: schema and name of the target table.
        progress: the records of the load's progress in the target.
    """

    source: Table
    schema: str
    name: str
    progress: TableLoadProgress


class LoadJob(NamedTuple):
    """The data that all tasks of a load share."""

    settings: ApplierSettings
    tables: tuple[LoadTable, ...]


class PartTask(NamedTuple):
    """A task: copies a partition of a table.

    Attributes:
        table: number in `LoadJob.tables`.
        part: number of the partition in its table.
        scn: the SCN of the load.
    """

    table: int
    part: int
    partition: SourcePartition
    scn: int


class PartDone(NamedTuple):
    """The result of a task that copies a part of a table.

    Attributes:
        claimed: whether this task copied the partition; False if it was already loaded.
        rows, bytes: number of loaded rows, and of bytes sent by COPY.
        losses: counts of values that policies changed, by column.
    """

    claimed: bool
    rows: int
    bytes: int
    losses: dict[str, Counters]


def copy_task(payload: bytes, job: bytes) -> bytes:
    """Copy one partition in a Spark task; return a pickled `PartDone`, or a pickled `OlrPgError`
    about a row.

    An error about a row concerns only the table of that row, so it is returned and not raised.

    Raises:
        OlrPgError: errors of `postgres.sqlstates` that do not concern a row, and errors of reading.
            After such an error, the target contains no row of the partition.
    """
    task: PartTask = pickle.loads(payload)  # noqa: S301 - made by this driver
    todo = _job(job)
    try:
        return pickle.dumps(retried(lambda: load_partition(todo, task)))
    except OlrPgError as error:
        if not _is_of_rows(error):
            raise
        name = todo.tables[task.table].source.full_name
        return pickle.dumps(located(error, table=name, part=task.part))


def _is_of_rows(error: OlrPgError) -> bool:
    """Return whether an error concerns a value or a row that this table does not accept."""
    is_refusal = error.code == Code.TABLE_DATA_REFUSED
    return is_refusal or "column" in error.where or "sqlstate" in error.where


@lru_cache(maxsize=2)
def _job(packed: bytes) -> LoadJob:
    job: LoadJob = pickle.loads(packed)  # noqa: S301 - made by this driver
    return job


def load_partition(job: LoadJob, task: PartTask) -> PartDone:
    """Copy one partition, unless it is already loaded; see `copy_task`."""
    table = job.tables[task.table]
    try:
        with connect_with(job.settings) as connection:
            # This commit need not be durable, because the load ends with a durable commit, which
            # comes later in the WAL.
            connection.execute("SET synchronous_commit = off")
            with connection.transaction():
                if not table.progress.claim(connection, task.part, task.scn):
                    return PartDone(False, 0, 0, {})
                done = _copy(connection, job.settings, table, task.partition)
                table.progress.note(connection, task.part, done.rows, done.bytes)
            return done
    except psycopg.Error as error:
        raise _refused(error, job.settings, table, task) from error


def _copy(
    connection: Connection[Any],
    settings: ApplierSettings,
    table: LoadTable,
    partition: SourcePartition,
) -> PartDone:
    plan = plan_of(connection, settings, table)
    losses = dict[str, Counters]()
    rows = size = 0
    for stream, batch_rows in _streams(connection, plan, settings, table, partition, losses):
        rows += batch_rows
        size += stream
    return PartDone(True, rows, size, losses)


def plan_of(connection: Connection[Any], settings: ApplierSettings, table: LoadTable) -> TablePlan:
    """Return the plan of the table.

    Raises:
        OlrPgError: 5005, the target table no longer exists.
    """
    target = read_table(connection, table.schema, table.name)
    if target is None:
        raise missing_table(connection, table.schema, table.name, table.source.full_name)
    return TablePlan(table.source.full_name, target, table.source, settings)


def _streams(
    connection: Connection[Any],
    plan: TablePlan,
    settings: ApplierSettings,
    table: LoadTable,
    partition: SourcePartition,
    losses: dict[str, Counters],
) -> Iterator[tuple[int, int]]:
    """Copy batch by batch; yield the number of bytes and rows of each batch.

    Raises:
        OlrPgError: 5109, PostgreSQL has inserted fewer rows than were sent.
    """
    batches = partition.batches()
    first = next(batches, None)
    if first is None:
        return
    columns = bind_columns(plan, table.source, schema_of(first), settings)
    query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        plan.target.identifier,
        sql.SQL(", ").join(sql.Identifier(column.target.name) for column in columns),
    )
    images = prefetched(_images(columns, chain([first], batches), losses))
    sent = 0
    with closing(images), connection.cursor() as cursor:
        with cursor.copy(query) as copy:
            copy.write(COPY_HEADER.data)
            for image, rows in images:
                copy.write(image)
                sent += rows
                yield len(image), rows
            copy.write(COPY_END.data)
        check_inserted(table, sent, cursor.rowcount)


def check_inserted(table: LoadTable, sent: int, inserted: int) -> None:
    """Check that PostgreSQL has inserted every row that was sent. A row trigger that fires
    ``BEFORE INSERT`` and returns NULL discards its row without an error.

    Raises:
        OlrPgError: 5109, rows are missing.
    """
    if inserted != sent:
        raise OlrPgError(
            Code.TABLE_DATA_REFUSED,
            f"{counted(sent, 'row')} sent to {table.schema}.{table.name}, but only {inserted:,}"
            " inserted: a trigger of the table or of a partition discards rows",
            action="disable the trigger, which `olr-pg doctor` names, until the load and"
            " replication have ended, then continue with --resume",
            table=table.source.full_name,
        )


def _images(
    columns: tuple[LoadColumn, ...],
    batches: Iterable[pa.RecordBatch | LargeRow],
    losses: dict[str, Counters],
) -> Generator[tuple[memoryview | bytes, int], None, None]:
    """Yield the COPY data in pieces; with each piece, yield the number of rows that end in it."""
    spool = RowSpool(columns, losses)
    first_row = 0
    for batch in batches:
        if isinstance(batch, LargeRow):
            for piece in spool.copy_tuple(batch, first_row):
                yield piece, 0
            yield b"", 1
            first_row += 1
        else:
            tuples = plain_tuples(columns, batch, first_row)
            add_losses(losses, columns, tuples.losses)
            yield tuples.data, batch.num_rows
            first_row += batch.num_rows


def _refused(
    error: psycopg.Error, settings: ApplierSettings, table: LoadTable, task: PartTask
) -> OlrPgError:
    if is_transient(error):
        return target_error(error, table=table.source.full_name, part=task.part)
    # The context is "COPY t, line 5, column v"; lines count from 1 within the partition. The value
    # follows only in text format, which is not used here.
    place = error.diag.context
    told = target_error(error, code=Code.TABLE_DATA_REFUSED)
    close = close_key_columns(settings, table.source) if is_conflict(error) else []
    return OlrPgError(
        told.code,
        told.detail
        + (f" ({place})" if place else "")
        + "".join(f"; {close_key_words(column)}" for column in close),
        action=told.action,
        table=table.source.full_name,
        part=task.part,
        sqlstate=error.sqlstate,
        **task.partition.place,
    )


T = TypeVar("T")


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield items; each is produced in another thread while the caller uses the previous one.

    Args:
        items: the generator; it runs only in the other thread. An exception of the generator is
            raised to the caller, after the items before it. The generator is closed at the end, and
            also if the caller stops early.
    """
    with closing(items), ThreadPoolExecutor(1, "load-ahead") as maker:
        following = maker.submit(next, items, None)
        while (item := following.result()) is not None:
            following = maker.submit(next, items, None)
            yield item


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
