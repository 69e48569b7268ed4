"""Verification: compares source and target by digests of chunks. If digests differ, compares the
rows of these chunks.

Spark tasks compute the digests of parts of a table in the source and in the target, and fetch the
rows of chunks. The target's parts are ranges of its blocks or its key. All tasks read the parts in
one snapshot, which the driver exports. The driver reads the ledger in the same snapshot. So the
ledger shows exactly which commits the rows contain, although replication continues. TRUNCATE does
not respect snapshots. So a table is compared again if PostgreSQL replaced its file during the
comparison.
"""

from __future__ import annotations

import math
import pickle
import shlex
from collections import Counter
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg
import structlog
from psycopg import sql

from olr_pg.applier.session.handover import copy_under_way
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.statements.target_plan import TablePlan, check_names, target_name
from olr_pg.applier.target.catalogue import TargetTable, missing_table, read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.ledger import ensure_ledger, ledger_version
from olr_pg.applier.target.table_identity import COPIED
from olr_pg.applier.target.table_kinds import refuse_hidden
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.load.canonical import digest_expression, image_expression
from olr_pg.load.column_binding import bind_columns
from olr_pg.load.copy_task import part_results, retried
from olr_pg.load.table_data import RANGE_BYTES, UNDO_GONE, schema_of
from olr_pg.load.verification.digests import (
    ChunkDigests,
    ComparedColumns,
    KeyRange,
    SourceDigester,
    chunk_count,
)
from olr_pg.load.verification.target_state import SourceArrival, TargetState, files_of, read_state
from olr_pg.observability.wording import counted
from olr_pg.postgres.sqlstates import (
    INTERNAL_ERROR,
    is_transient,
    target_error,
    text_without_values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psycopg import Connection
    from pyspark.sql import SparkSession

    from olr_pg.errors import Place
    from olr_pg.load.table_data import SourcePartition, SourceTable, TableData
    from olr_pg.oracle.key_cuts import KeyCut


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
            text_without_values(error),
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


_log = structlog.get_logger(__name__)

ROWS_FETCHED_MAX: Final = 200_000
"""Maximum number of rows that are fetched from each side of a table if chunks differ."""

TARGET_PARTS: Final = 4

TRIES: Final = 4
"""Maximum number of attempts to compare a table that is rewritten during the comparison."""

_APPLIED: Final = """
SELECT l.commit_scn, l.stopped, l.paused,
    CASE WHEN coalesce(load.handed_over, true) THEN s.complete_scn ELSE 0 END
FROM olr_pg.ledger AS l LEFT JOIN olr_pg.load AS load USING (subscription, source_table)
    LEFT JOIN olr_pg.subscription AS s USING (subscription)
WHERE subscription = %s AND source_table = %s
"""
"""The last column is the SCN up to which all changes of a table that is not stopped are applied.

For a table that was added later, this SCN is lower than for the others until replication has caught
up.
"""

_UNFINISHED: Final = """
SELECT scn, source FROM olr_pg.load
WHERE subscription = %s AND source_table = %s AND finished_at IS NULL
"""
_COMPLETE: Final = "SELECT complete_scn FROM olr_pg.subscription WHERE subscription = %s"
_ESTIMATE: Final = "SELECT reltuples FROM pg_class WHERE oid = %s"

_LATER_SCN: Final = "omit --at-scn, or name an SCN that is not below the SCN of the target"
_LATER_FILES: Final = (
    "export the rows of the source as of an SCN that is not below the SCN of the target, and name"
    " their directory: `olr-pg verify --tables DIR`"
)

MISSING: Final = "missing"
EXTRA: Final = "extra"
DIFFERENT: Final = "different"


class RowDifference(NamedTuple):
    """A row that differs between the sides.

    Attributes:
        kind: `MISSING` in the target, `EXTRA` in the target, or `DIFFERENT`.
        source, target: the row's image on each side; None if that side lacks the row.
        copies: the number of equal rows in the target; None for a table with a key.
        version: ``xmin`` of the target's row; None if there is no row, or no key.
    """

    kind: str
    key: bytes
    source: bytes | None
    target: bytes | None
    copies: int | None = None
    version: int | None = None


class VerifiedTable(NamedTuple):
    """The result of verifying a table.

    Attributes:
        table: the table, and the compared columns.
        scn: the SCN of the source's rows; 0 if unknown.
        state: the state of the target's table, which a repair compares with the current one.
        source_rows, target_rows: total number of rows on each side.
        chunks, differing: number of compared chunks, and of chunks that differ.
        skipped: number of differing chunks whose rows were not fetched, because they have too many
            rows.
        losses: counts of values that the type mapping does not preserve, by column; the comparison
            ignores what was lost.
    """

    table: VerifyTable
    compared: ComparedColumns
    scn: int
    state: TargetState
    source_rows: int
    target_rows: int
    chunks: int
    differing: int
    skipped: int
    differences: tuple[RowDifference, ...]
    losses: Mapping[str, Counters]

    @property
    def applied_scn(self) -> int:
        """The commit SCN of the table's last change, according to the ledger."""
        return self.state.position[0]

    @property
    def identical(self) -> bool:
        """Return whether no difference was found."""
        return self.differing == 0


class Verification(NamedTuple):
    """The result of a verification.

    Attributes:
        tables: the compared tables.
        failures: the errors of the tables that could not be compared; each error names its table.
    """

    tables: tuple[VerifiedTable, ...]
    failures: tuple[OlrPgError, ...]

    @property
    def identical(self) -> bool:
        """Return whether every table was compared and no row differs."""
        return not self.failures and not self.differing

    @property
    def differing(self) -> list[str]:
        """Return the names of the compared tables that differ."""
        return [one.table.source.full_name for one in self.tables if not one.identical]

    def require_identical(self, action: str | None = None) -> dict[str, int]:
        """Return the numbers of the tables and of their rows, if all tables are identical.

        Args:
            action: what to do if tables differ; default: the action of the error.

        Raises:
            OlrPgError: 5124, tables differ; or the error of a table that could not be compared.
        """
        if differing := self.differing:
            raise OlrPgError(
                Code.SOURCE_AND_TARGET_DIFFER,
                f"differences in {len(differing)} of {counted(len(self.tables), 'table')}:"
                f" {', '.join(differing)}",
                action=action,
            )
        if self.failures:
            raise self.failures[0]
        return {"tables": len(self.tables), "rows": sum(one.target_rows for one in self.tables)}


class KeyedPart(NamedTuple):
    """A range of a table's key, in the form that each side reads."""

    part: KeyRange
    cuts: tuple[KeyCut, ...]


class _Side:
    """The results of the tasks of one side of a table."""

    def __init__(self, chunks: int) -> None:
        self.digests = ChunkDigests.none(chunks)
        self.rows = 0
        self.found = Counter[CanonicalRow]()
        self.versions = dict[bytes, int]()

    def add_rows(self, rows: Iterable[CanonicalRow]) -> None:
        """Add fetched rows; `found` contains them without their versions."""
        for row in rows:
            self.versions[row.key] = row.version
            self.found[row._replace(version=0)] += 1


class _Work:
    """The state of one table during the verification."""

    def __init__(
        self,
        source: SourceTable,
        table: VerifyTable,
        compared: ComparedColumns,
        part: KeyRange | None = None,
    ) -> None:
        self.state = TargetState()
        self.source = source
        self.part = part
        self.table = table
        self.compared = compared
        self.sides = (_Side(table.chunks), _Side(table.chunks))
        self.losses = dict[str, Counters]()
        self.differing = list[int]()
        self.fetched = list[int]()
        self.failure: OlrPgError | None = None

    @property
    def name(self) -> str:
        return self.source.table.full_name


class Scope(NamedTuple):
    """Which part of the tables is compared, and as of which SCN.

    Attributes:
        at_position: read a live source not as of its given SCN, but as of the SCN up to which the
            target contains all changes. If a table's own position is higher, that position is used.
        within: compare only this range of the key; requires a live source and `at_position`.
        sample: share of the chunks to compare, above 0 up to 1.
    """

    at_position: bool = False
    within: KeyedPart | None = None
    sample: float = 1.0


EVERYTHING: Final = Scope()
AT_POSITION: Final = Scope(at_position=True)


def verify(
    settings: ApplierSettings,
    sources: Sequence[SourceTable],
    session: Callable[[], SparkSession],
    scope: Scope = EVERYTHING,
    *,
    progress: Callable[[str, int], None] = lambda _table, _rows: None,
) -> Verification:
    """Compare the tables. If a table cannot be compared, the other tables are still compared.

    Args:
        progress: called with (table, rows of a part that has been read).

    Raises:
        OlrPgError: 5003, 5004, 5026, and errors of reading the table data.
    """
    check_names(settings, [source.table for source in sources])
    found: dict[str, VerifiedTable] = {}
    failures: dict[str, OlrPgError] = {}
    with connect_with(settings, writes=False) as connection:
        # A comparison does not create the ledger, so there may be none before the first
        # replication.
        has_ledger = ledger_version(connection) > 0
        if has_ledger:
            ensure_ledger(connection)
        planner = _Planner(connection, settings, scope, SourceArrival(), has_ledger, failures)
        todo = list(sources)
        for _ in range(TRIES):
            works, rewritten = _compare(planner, todo, session, progress)
            # In the next round, `todo` contains only the tables that were rewritten during the
            # comparison.
            for work in works:
                if work.failure is None:
                    found[work.name] = _result(work)
                else:
                    failures[work.name] = work.failure
            todo = [one for one in todo if one.table.full_name in rewritten]
            if not todo:
                break
            _log.info(
                "tables were rewritten in the target during the comparison: comparing them again",
                tables=rewritten,
            )
        for one in todo:
            name = one.table.full_name
            failures[name] = OlrPgError(
                Code.TARGET_TABLE_KEEPS_CHANGING, f"{TRIES} times in a row", table=name
            )
    names = [source.table.full_name for source in sources]
    return Verification(
        tuple(found[name] for name in names if name not in failures),
        tuple(failures[name] for name in names if name in failures),
    )


class _Planner(NamedTuple):
    """Prepares the comparison of tables.

    Attributes:
        arrival: waits for the source.
        has_ledger: whether the target has a ledger.
        failures: receives the errors of the tables that cannot be compared.
    """

    connection: Connection[Any]
    settings: ApplierSettings
    scope: Scope
    arrival: SourceArrival
    has_ledger: bool
    failures: dict[str, OlrPgError]

    def planned(self, sources: Sequence[SourceTable]) -> Iterator[_Work]:
        """Yield the tables that can be compared; add the errors of the others to `failures`."""
        for source in sources:
            try:
                yield self._plan(source)
            except psycopg.Error as error:
                # The error aborted the transaction that holds the snapshot, so no other table can
                # be compared.
                raise target_error(error, table=source.table.full_name) from error
            except OlrPgError as error:
                if error.where.get("table") != source.table.full_name:
                    raise
                self.failures[source.table.full_name] = error

    def _plan(self, source: SourceTable) -> _Work:
        connection, settings, within = self.connection, self.settings, self.scope.within
        name = source.table.full_name
        schema, table_name = target_name(settings, source.table.owner, source.table.name)
        target = read_table(connection, schema, table_name)
        if target is None:
            raise missing_table(connection, schema, table_name, name)
        refuse_hidden(connection, settings, target, name)
        plan = TablePlan(name, target, source.table, settings)
        bind_columns(plan, source.table, source.data.schema, settings)
        applied_scn, complete_scn = (
            _position(connection, settings, name) if self.has_ledger else (0, 0)
        )
        if self.scope.at_position and source.data.as_of is not None:
            # No change of this table commits between its position and `complete_scn`, so the source
            # need not be read later than its own SCN.
            scn = max(applied_scn, min(complete_scn, source.scn)) or source.scn
            self.arrival.wait_for(source, scn)
            try:
                source = source._replace(data=_data_as_of(source.data, scn, within), scn=scn)
            except OlrPgError as error:
                raise _without_undo(error, {"table": name, "scn": scn}) from error
        if 0 < source.scn < applied_scn:
            raise OlrPgError(
                Code.NOT_COMPARABLE_AT_SCN,
                f"the target contains changes up to commit SCN {applied_scn}, but the rows of the"
                f" source are as of SCN {source.scn}",
                action=_LATER_FILES if source.data.as_of is None else _LATER_SCN,
                table=name,
            )
        part = None if within is None else within.part
        rows = source.data.rows or estimated_rows(connection, target)
        chunks = chunk_count(rows if part is None else part.rows)
        table = VerifyTable(
            source.table, target, chunks, max(math.ceil(chunks * self.scope.sample), 1)
        )
        return _Work(source, table, compared_by(plan, source.table), part)


def _compare(
    planner: _Planner,
    sources: Sequence[SourceTable],
    session: Callable[[], SparkSession],
    progress: Callable[[str, int], None],
) -> tuple[list[_Work], list[str]]:
    """Compare tables in one snapshot. Return the compared tables and the names of tables that were
    rewritten during the comparison.

    A truncated or rewritten table looks empty in old snapshots (PostgreSQL documentation, "Caveats"
    of concurrency control), so its result is invalid. Such a table is recognised because its file
    has changed.
    """
    connection, settings = planner.connection, planner.settings
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        works = list(planner.planned(sources))
        has_ledger = ledger_version(connection) > 0
        for work in works:
            ledger = settings.subscription, work.name
            oid = work.table.target.oid
            work.state = read_state(connection, ledger, oid, has_ledger=has_ledger)
        job = pickle.dumps(VerifyJob(settings, row[0], tuple(work.table for work in works)))
        _digest(connection, works, job, session, progress)
        for work in works:
            if work.failure is None:
                _choose(work)
        _fetch(connection, works, job, session)
    rewritten = [
        work.name
        for work in works
        if files_of(connection, work.table.target.oid) != work.state.files
    ]
    return works, rewritten


def _without_undo(error: OlrPgError, where: Mapping[str, Place]) -> OlrPgError:
    """If `error` says that Oracle lacks the undo for the SCN, return an error of the comparison
    instead, because `error` recommends to load again. Otherwise return `error`.

    Args:
        where: ``table`` and ``scn`` of the comparison.
    """
    if error.code not in (UNDO_GONE, Code.ORACLE_SNAPSHOT_TOO_OLD):
        return error
    return OlrPgError(
        Code.NOT_COMPARABLE_AT_SCN,
        f"Oracle lacks the undo: {error.detail}",
        action="replicate the later changes (`olr-pg run`), so that the SCN of the target is more"
        " recent, then compare again. If the comparison itself takes too long, raise"
        " UNDO_RETENTION",
        **{key: where[key] for key in ("table", "scn") if key in where},
    )


def _data_as_of(data: TableData, scn: int, within: KeyedPart | None) -> TableData:
    if within is None:
        assert data.as_of is not None
        return data.as_of(scn, None)
    assert data.within is not None
    return data.within(scn, within.cuts)


def _position(
    connection: Connection[Any], settings: ApplierSettings, table: str
) -> tuple[int, int]:
    """Return the commit SCN of a table's last change, and the SCN up to which all of its changes
    are applied. Changes that are held for other tables do not matter for this table.

    Raises:
        OlrPgError: 5107 the table is loaded only in part, 5111 the table is stopped or paused, 5119
            another tool copies its rows.
    """
    row = connection.execute(_APPLIED, (settings.subscription, table)).fetchone()
    if row is None:
        loading = connection.execute(_UNFINISHED, (settings.subscription, table)).fetchone()
        if loading is not None and loading[1] == COPIED:
            raise copy_under_way(table, loading[0])
        if loading is not None:
            raise OlrPgError(
                Code.TABLE_LOADED_IN_PART,
                f"the load of the table as of SCN {loading[0]} is not complete",
                action="wait until the load ends, then compare. If the load was interrupted,"
                f" continue it with `olr-pg initial-load --resume --table {shlex.quote(table)}`",
                table=table,
            )
        found = connection.execute(_COMPLETE, (settings.subscription,)).fetchone()
        return 0, int(found[0]) if found else 0
    commit_scn, stopped, paused, complete_scn = row
    if paused:
        raise OlrPgError(
            Code.NOT_COMPARABLE_AT_SCN,
            "the table is paused, and its changes are held",
            action=f"resume the table with `olr-pg tables resume {shlex.quote(table)}`, then"
            " compare again",
            table=table,
        )
    if stopped:
        raise OlrPgError(
            Code.NOT_COMPARABLE_AT_SCN,
            "the table has stopped, and its changes are held",
            table=table,
        )
    return commit_scn, complete_scn or 0


def estimated_rows(connection: Connection[Any], target: TargetTable) -> int:
    """Return PostgreSQL's estimate of the number of rows."""
    row = connection.execute(_ESTIMATE, (target.oid,)).fetchone()
    return max(int(row[0]), 0) if row else 0


def _tasks(
    connection: Connection[Any], works: Sequence[_Work], wanted: bool
) -> list[tuple[int, VerifyTask]]:
    """Return (side, task); the side is 0 for the source, 1 for the target."""
    tasks = []
    for number, work in enumerate(works):
        chunks = np.array(work.fetched, np.int64) if wanted else None
        if wanted and not work.fetched:
            continue
        tasks += [(0, VerifyTask(number, part, chunks)) for part in work.source.data.partitions]
        if work.part is not None:
            tasks.append((1, VerifyTask(number, work.part, chunks)))
            continue
        try:
            blocks = target_parts(connection, work.table.target, TARGET_PARTS)
        except psycopg.Error as error:
            raise target_error(error, table=work.name) from error
        tasks += [(1, VerifyTask(number, part, chunks)) for part in blocks]
    return tasks


def _run(
    tasks: Sequence[tuple[int, VerifyTask]], job: bytes, session: Callable[[], SparkSession]
) -> Iterable[tuple[int, VerifyTask, Any]]:
    if not tasks:
        return
    payloads = [pickle.dumps(task) for _, task in tasks]
    says = f"verify {len(tasks)} parts of tables, of both sides"
    # A key range is small on both sides, so its task has size 0.
    sizes = [0 if isinstance(task.part, KeyRange) else task.part.size for _, task in tasks]
    tasks_done = part_results(session, payloads, verify_task, job, sizes, says)
    try:
        with closing(tasks_done) as results:
            for index, packed in results:
                yield *tasks[index], pickle.loads(packed)  # noqa: S301 - made by our task
    except OlrPgError as error:
        raise _without_undo(error, error.where) from error


def _digest(
    connection: Connection[Any],
    works: Sequence[_Work],
    job: bytes,
    session: Callable[[], SparkSession],
    progress: Callable[[str, int], None],
) -> None:
    for side, task, found in _run(_tasks(connection, works, wanted=False), job, session):
        work = works[task.table]
        if isinstance(found, OlrPgError):
            work.failure = found
            continue
        part: PartDigests = found
        work.sides[side].digests.add(part.digests)
        work.sides[side].rows += part.rows
        for column, lost in part.losses.items():
            work.losses[column] = work.losses.get(column, NOTHING) + lost
        progress(work.name, part.rows)


def _choose(work: _Work) -> None:
    """Select the differing chunks whose rows are fetched."""
    source, target = (side.digests for side in work.sides)
    work.differing = source.differing(target)
    rows = 0
    for chunk in work.differing:
        rows += int(max(source.rows[chunk], target.rows[chunk]))
        if work.fetched and rows > ROWS_FETCHED_MAX:
            return
        work.fetched.append(chunk)


def _fetch(
    connection: Connection[Any],
    works: Sequence[_Work],
    job: bytes,
    session: Callable[[], SparkSession],
) -> None:
    for side, task, found in _run(_tasks(connection, works, wanted=True), job, session):
        if isinstance(found, OlrPgError):
            works[task.table].failure = found
        else:
            works[task.table].sides[side].add_rows(found)


def _result(work: _Work) -> VerifiedTable:
    source, target = work.sides
    return VerifiedTable(
        work.table,
        work.compared,
        work.source.scn,
        work.state,
        source.rows,
        target.rows,
        work.table.sampled,
        len(work.differing),
        len(work.differing) - len(work.fetched),
        tuple(_differences(source, target, keyed=work.compared.keyed)),
        work.losses,
    )


def _differences(source: _Side, target: _Side, *, keyed: bool) -> Iterable[RowDifference]:
    """Yield the rows that differ between the sides. Rows with the same key are compared with each
    other.
    """
    only_source = sorted((source.found - target.found).elements())
    only_target = sorted((target.found - source.found).elements())
    here = {row.key: row for row in only_target}
    for row in only_source:
        other = here.pop(row.key, None)
        copies = None if keyed else target.found[row]
        if other is not None:
            known = target.versions[row.key]
            yield RowDifference(DIFFERENT, row.key, row.image, other.image, version=known)
        else:
            yield RowDifference(MISSING, row.key, row.image, None, copies)
    paired = {row.key for row in only_source}
    for row in only_target:
        if row.key not in paired:
            copies = None if keyed else target.found[row]
            version = target.versions[row.key] if keyed else None
            yield RowDifference(EXTRA, row.key, None, row.image, copies, version)
