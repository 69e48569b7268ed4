"""Verification: compares source and target by digests of chunks. If digests differ, compares the
rows of these chunks.

The target's tables and its ledger are read in one snapshot. So the ledger shows exactly which
commits the rows contain, although replication continues. TRUNCATE does not respect snapshots. So a
table is compared again if PostgreSQL replaced its file during the comparison.
"""

from __future__ import annotations

import math
import pickle
import shlex
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import psycopg
import structlog

from olr_pg.applier.statements.target_plan import TablePlan, check_names, target_name
from olr_pg.applier.target.catalogue import missing_table, read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.ledger import ensure_ledger, ledger_version
from olr_pg.applier.target.table_kinds import refuse_hidden
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.column_binding import bind_columns
from olr_pg.load.copy_task import part_results
from olr_pg.load.table_data import UNDO_GONE
from olr_pg.load.verification.digests import ChunkDigests, chunk_count
from olr_pg.load.verification.key_ranges import KeyRange
from olr_pg.load.verification.target_state import SourceArrival, TargetState, files_of, read_state
from olr_pg.load.verification.verification_task import (
    CanonicalRow,
    PartDigests,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    compared_by,
    target_parts,
    verify_task,
)
from olr_pg.postgres.sqlstates import target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psycopg import Connection
    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetTable
    from olr_pg.errors import Place
    from olr_pg.load.table_data import SourceTable, TableData
    from olr_pg.load.verification.digests import ComparedColumns
    from olr_pg.oracle.key_cuts import KeyCut

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
SELECT scn FROM olr_pg.load
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
        return not self.failures and all(one.identical for one in self.tables)


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
        refuse_hidden(connection, target, name)
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
        OlrPgError: 5107 the table is loaded only in part, 5111 the table is stopped or paused.
    """
    row = connection.execute(_APPLIED, (settings.subscription, table)).fetchone()
    if row is None:
        loading = connection.execute(_UNFINISHED, (settings.subscription, table)).fetchone()
        if loading is not None:
            raise OlrPgError(
                Code.TABLE_LOADED_IN_PART,
                f"the load of the table as of SCN {loading[0]} is not complete",
                action="wait until the load ends, then compare. If the load was interrupted,"
                " continue it with `olr-pg initial-load --resume`",
                table=table,
            )
        found = connection.execute(_COMPLETE, (settings.subscription,)).fetchone()
        return 0, int(found[0]) if found else 0
    commit_scn, stopped, paused, complete_scn = row
    if paused:
        raise OlrPgError(
            Code.NOT_COMPARABLE_AT_SCN,
            "the table is paused, and its changes are held",
            action=f"resume it with `olr-pg tables resume {shlex.quote(table)}`, then compare"
            " again",
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
