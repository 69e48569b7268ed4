"""Spark tasks of verification. A task computes the digests of a part of a table in the source or in
the target, or fetches the rows of some chunks.

The target's parts are ranges of its blocks or its key. The parts are read in a snapshot that the
driver exports, so that all tasks see the same state.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.target.catalogue import TargetTable
from olr_pg.applier.target.connection import connect_with
from olr_pg.datatypes.policies import Counters
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.load.canonical import digest_expression, image_expression
from olr_pg.load.column_binding import bind_columns
from olr_pg.load.copy_task import retried
from olr_pg.load.table_data import RANGE_BYTES, schema_of
from olr_pg.load.verification.digests import ChunkDigests, ComparedColumns, SourceDigester
from olr_pg.load.verification.key_ranges import KeyRange
from olr_pg.postgres.sqlstates import INTERNAL_ERROR, is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

    from olr_pg.load.table_data import SourcePartition


class VerifyTable(NamedTuple):
    """A table of a verification.

    Attributes:
        source, target: the table in the source's dictionary, and in the target's catalog.
        chunks: number of chunks, a power of two.
        sampled: number of chunks to compare, beginning with chunk 0.
    """

    source: Table
    target: TargetTable
    chunks: int
    sampled: int


class VerifyJob(NamedTuple):
    """The data that all tasks share; `snapshot` is the identifier of the snapshot that PostgreSQL
    exported.
    """

    settings: ApplierSettings
    snapshot: str
    tables: tuple[VerifyTable, ...]


class Blocks(NamedTuple):
    """Blocks ``first … end − 1`` of a target table.

    Attributes:
        end: None for all remaining blocks.
        size: approximate bytes; `RANGE_BYTES` if unknown.
    """

    first: int
    end: int | None
    size: int = RANGE_BYTES


class VerifyTask(NamedTuple):
    """A task of verification: reads a part of one table, in the source or in the target.

    Attributes:
        table: number in `VerifyJob.tables`.
        part: the part to read: a partition of the source; or blocks, or a range of the key, of the
            target.
        wanted: the chunks whose rows to return; None to return digests.
    """

    table: int
    part: SourcePartition | Blocks | KeyRange
    wanted: npt.NDArray[np.int64] | None = None


class PartDigests(NamedTuple):
    """The digests of a part.

    Attributes:
        rows: number of rows in the part, including rows of chunks that are not compared.
        losses: counts of values that policies changed, by column.
    """

    digests: ChunkDigests
    rows: int
    losses: dict[str, Counters]


class CanonicalRow(NamedTuple):
    """A row in the canonical form.

    Attributes:
        version: for a row of the target, the number of the transaction that wrote it (``xmin``).
    """

    key: bytes
    image: bytes
    version: int = 0


def verify_task(payload: bytes, job: bytes) -> bytes:
    """Digest one partition or list its rows, in a Spark task.

    An `OlrPgError` about a value, or 5116, concerns only the table that is read, so it is returned
    and not raised.

    Raises:
        OlrPgError: errors of connecting and of reading.
    """
    task: VerifyTask = pickle.loads(payload)  # noqa: S301 - made by this driver
    todo = _job(job)
    try:
        with (
            connect_with(todo.settings, writes=False) as connection,
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.execute(
                sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(todo.snapshot))
            )
            return pickle.dumps(_done(connection, todo, task))
    except psycopg.Error as error:
        name = todo.tables[task.table].source.full_name
        raise target_error(error, table=name) from error
    except OlrPgError as error:
        named = located(error, table=todo.tables[task.table].source.full_name)
        if "column" in named.where:
            return pickle.dumps(named)
        raise named from error


@lru_cache(maxsize=2)
def _job(packed: bytes) -> VerifyJob:
    job: VerifyJob = pickle.loads(packed)  # noqa: S301 - made by this driver
    return job


def _done(
    connection: Connection[Any], job: VerifyJob, task: VerifyTask
) -> PartDigests | list[CanonicalRow] | OlrPgError:
    try:
        return _do(connection, job, task)
    except psycopg.Error as error:
        # PostgreSQL reports some memory limits as internal errors. The row that it reads is too
        # large, so a retry cannot help.
        if is_transient(error) and error.sqlstate != INTERNAL_ERROR:
            raise
        name = job.tables[task.table].source.full_name
        return OlrPgError(
            Code.TARGET_TABLE_UNREADABLE,
            error.diag.message_primary or str(error).strip(),
            table=name,
        )


def _do(
    connection: Connection[Any], job: VerifyJob, task: VerifyTask
) -> PartDigests | list[CanonicalRow]:
    table = job.tables[task.table]
    plan = TablePlan(table.source.full_name, table.target, table.source, job.settings)
    if not isinstance(task.part, Blocks | KeyRange):
        reader = _SourceReader(plan, job.settings, table, task.part)
        wanted = task.wanted
        if wanted is None:
            return retried(reader.digests)
        return retried(lambda: list(reader.rows(wanted)))
    compared = compared_by(plan, table.source)
    if task.wanted is None:
        return _target_digests(connection, table, compared, task.part)
    return list(_target_rows(connection, table, compared, task.part, task.wanted))


def compared_by(plan: TablePlan, source: Table) -> ComparedColumns:
    """Choose the columns to compare, using only the dictionary.

    The partitions of the source contain every delivered column, so the result is the same for both
    sides.
    """
    fields = sorted(
        field
        for column in source.delivered
        if not plan.target.columns[field := plan.field(column.name)].generated
    )
    keyed = len(plan.key) > 0 and set(plan.key.tolist()) <= set(fields)
    key = tuple(map(fields.index, plan.key.tolist())) if keyed else tuple(range(len(fields)))
    return ComparedColumns(tuple(plan.target.columns[field] for field in fields), key, keyed)


class _SourceReader:
    def __init__(
        self, plan: TablePlan, settings: ApplierSettings, table: VerifyTable, part: SourcePartition
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._table = table
        self._part = part

    def _batches(self, losses: dict[str, Counters]) -> Iterator[Any]:
        digester: SourceDigester | None = None
        for batch in self._part.batches():
            if digester is None:
                schema = schema_of(batch)
                columns = bind_columns(self._plan, self._table.source, schema, self._settings)
                compared = compared_by(self._plan, self._table.source)
                digester = SourceDigester(columns, compared, self._table.chunks, losses)
            yield digester.digest(batch)

    def digests(self) -> PartDigests:
        """Read the rows of the partition, and return the digests of its chunks."""
        losses = dict[str, Counters]()
        found = ChunkDigests.none(self._table.chunks)
        rows = 0
        for batch in self._batches(losses):
            rows += len(batch.chunk)
            chosen = batch.chunk < self._table.sampled
            found.add_rows(batch.chunk[chosen], batch.digest[chosen])
        return PartDigests(found, rows, losses)

    def rows(self, wanted: npt.NDArray[np.int64]) -> Iterator[CanonicalRow]:
        """Yield the rows of the partition in these chunks."""
        for batch in self._batches({}):
            for row in np.flatnonzero(np.isin(batch.chunk, wanted)).tolist():
                yield CanonicalRow(batch.keys.image(row), batch.images.image(row))


def _within(part: Blocks | KeyRange) -> tuple[sql.Composable, list[Any]]:
    """Return the SQL condition that a row of ``t`` is in the part, and the parameters of the
    condition.
    """
    if isinstance(part, KeyRange):
        return part.condition()
    first = sql.SQL("t.ctid >= {}::tid").format(sql.Literal(f"({part.first},0)"))
    if part.end is None:
        return first, []
    end = sql.Literal(f"({part.end},0)")
    return sql.SQL("{} AND t.ctid < {}::tid").format(first, end), []


def _target_digests(
    connection: Connection[Any],
    table: VerifyTable,
    compared: ComparedColumns,
    part: Blocks | KeyRange,
) -> PartDigests:
    condition, parameters = _within(part)
    query = sql.SQL(
        "SELECT chunk, count(*), sum(digest) FROM (SELECT {} & {} AS chunk, {} AS digest"
        " FROM {} AS t WHERE {}) s GROUP BY chunk"
    ).format(
        escape_percent_signs(digest_expression(compared.key_columns)),
        sql.Literal(table.chunks - 1),
        escape_percent_signs(digest_expression(compared.columns)),
        escape_percent_signs(table.target.identifier),
        condition,
    )
    sums = connection.execute(query, parameters).fetchall()
    found = ChunkDigests.none(table.chunks)
    found.add_sums([one for one in sums if one[0] < table.sampled])
    return PartDigests(found, sum(one[1] for one in sums), {})


def _target_rows(
    connection: Connection[Any],
    table: VerifyTable,
    compared: ComparedColumns,
    part: Blocks | KeyRange,
    wanted: npt.NDArray[np.int64],
) -> Iterator[CanonicalRow]:
    condition, parameters = _within(part)
    query = sql.SQL(
        "SELECT {}, {}, t.xmin::text::int8 FROM {} AS t WHERE {} AND {} & {} = ANY(%s)"
    ).format(
        escape_percent_signs(image_expression(compared.key_columns)),
        escape_percent_signs(image_expression(compared.columns)),
        escape_percent_signs(table.target.identifier),
        condition,
        escape_percent_signs(digest_expression(compared.key_columns)),
        sql.Literal(table.chunks - 1),
    )
    with connection.cursor(binary=True) as cursor:
        for key, image, version in cursor.execute(query, [*parameters, wanted.tolist()]):
            yield CanonicalRow(bytes(key), bytes(image), version)


def target_parts(connection: Connection[Any], target: TargetTable, parts: int) -> Sequence[Blocks]:
    """Divide a table into about `parts` ranges of blocks. A partitioned table is not divided.

    Raises:
        OlrPgError: 5005, the table no longer exists.
    """
    row = connection.execute(
        "SELECT relkind::text, pg_relation_size(oid), current_setting('block_size')::int8"
        " FROM pg_class WHERE oid = %s",
        (target.oid,),
    ).fetchone()
    if row is None:
        raise OlrPgError(Code.TARGET_TABLE_MISSING, f"{target.full_name} does not exist")
    kind, size, block_size = row
    if kind == "p":
        return [Blocks(0, None)]
    blocks = size // block_size
    step = max(-(-blocks // parts), 1)
    starts = range(0, max(blocks, 1), step)
    return [Blocks(s, s + step if s + step < blocks else None, step * block_size) for s in starts]
