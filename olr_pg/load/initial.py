"""The initial load: Spark copies every table in parts, as of an SCN. After the load,
replication continues from that SCN. When all partitions of a table are loaded, the table is
analysed, and its row in the ledger records that the table contains all changes up to the SCN.
`olr-pg run` skips changes that were committed up to that SCN. The run starts at the begin SCN of
the oldest transaction that was open at that SCN (`applier.session.handover`). Until a table is
loaded, `run` refuses to replicate it.
"""

from __future__ import annotations

import math
import pickle
import shlex
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from psycopg import Connection, sql

from olr_pg.applier.session.handover import begin_again
from olr_pg.applier.statements.target_plan import TablePlan, check_names, plan_table, target_name
from olr_pg.applier.target.catalogue import empty_table, has_rows
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.crash_watch import look_for_crash
from olr_pg.applier.target.database_kind import refuse_database
from olr_pg.applier.target.ledger import check_source, ensure_ledger
from olr_pg.applier.target.set_aside import set_aside
from olr_pg.applier.target.table_identity import COPIED
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.column_binding import bind_columns
from olr_pg.load.copied_rows import CopyStep, check_copy, check_moment, check_written
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, copy_task, part_results
from olr_pg.load.cutover_steps import check_no_cutover
from olr_pg.load.load_progress import LoadState, TableLoadProgress, lock_subscription
from olr_pg.load.table_data import UNDO_GONE, SourceTable
from olr_pg.load.verification.target_state import SourceArrival
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.load.copied_rows import Copy
    from olr_pg.load.target_structure import StructureBuilder

RESTARTS_MAX: Final = 3
"""Maximum number of times that one load restarts a table."""

PRELOAD: Final = ("olr_pg.load.kernel_warmup:warm_load",)
"""The function that Spark's daemon calls before it forks workers."""

_log = structlog.get_logger(__name__)


class LoadedTable(NamedTuple):
    """The result of loading a table.

    Attributes:
        table, target: names.
        rows, bytes: rows in the target, and bytes sent by COPY, by this run and earlier runs.
        parts, parts_before: number of parts, and how many of them were loaded before this run.
        seconds: time from the table's first partition to its last one in this run.
        losses: counts of values that policies changed in this run, by column.
    """

    table: str
    target: str
    scn: int
    start_scn: int
    rows: int
    bytes: int
    parts: int
    parts_before: int
    seconds: float
    losses: Mapping[str, Counters]


class Loaded(NamedTuple):
    """The result of a load.

    Attributes:
        tables: the loaded tables.
        failures: the errors of the tables that were not loaded; each error names its table.
    """

    tables: list[LoadedTable]
    failures: list[OlrPgError]


class LoadOptions(NamedTuple):
    """The options of a load.

    Attributes:
        resume: continue an interrupted load.
        restart: empty the tables of an interrupted load, and start over.
        anew: empty all the tables, including loaded and replicated ones, and start over. No
            appliance may be running for these tables.
        copy: a step of a copy by another tool, for tables of `copied_tables`; None to load.
        progress: called after each loaded partition with (table, rows of the partition).
        builder: creates unique keys, indexes, foreign keys and sequences; None to create none.
        undo_retention: describes how long the source currently keeps undo; see `TableSource`.
        later: returns a table as of the current SCN. This function is called to restart the load of
            a table whose rows can no longer be read as of the original SCN. None to fail instead.
    """

    resume: bool = False
    restart: bool = False
    anew: bool = False
    copy: Copy | None = None
    progress: Callable[[str, int], None] = lambda _table, _rows: None
    builder: StructureBuilder | None = None
    undo_retention: Callable[[], str] = lambda: ""
    later: Callable[[SourceTable], SourceTable | None] | None = None


class _Work:
    """The state of one table during the load."""

    def __init__(
        self, source: SourceTable, table: LoadTable, plan: TablePlan, state: LoadState
    ) -> None:
        self.source = source
        self.table = table
        self.plan = plan
        self.restarts = 0
        self.state = state
        self.waiting = {n for n in range(state.parts) if n not in state.done}
        self.losses = dict[str, Counters]()
        self.failure: OlrPgError | None = None
        self.began = self.ended = time.monotonic()


def initial_load(
    settings: ApplierSettings,
    sources: Sequence[SourceTable],
    session: Callable[[], SparkSession],
    options: LoadOptions,
) -> Loaded:
    """Load the tables; tables that are already loaded are reported and not changed.

    If another tool copies the rows, this records the copy's begin, or hands the tables over at its
    end. The begin reports only the tables that are not loaded. For a copy that has begun before, it
    reports the SCN of that begin, because the other tool may already have read the rows.

    If a table fails, the others are still loaded. The loaded partitions of the failed table are
    kept for `LoadOptions.resume`. Foreign keys and sequences are created last; if a table failed,
    the resumed load creates them.

    Args:
        settings: settings of the target. If `create_tables` is set, missing tables are created.
        session: returns the Spark session; called only if there is too much data for this process.
        options: the options of the load.

    Raises:
        OlrPgError: 5003–5007, 5014–5016, 5027, 5040–5046 errors of the target, 5101–5110 errors of
            the load, 5171 the tables cannot be emptied after a cut-over.
    """
    check_names(settings, [source.table for source in sources])
    with connect_with(settings) as connection:
        refuse_database(connection, settings)
        ensure_ledger(connection)
        if options.anew:
            check_no_cutover(connection, settings.subscription)
        look_for_crash(connection, settings.subscription)
        dbid = settings.dbid
        names = [source.table.full_name for source in sources]
        if not options.anew:  # otherwise the load deletes the positions of the other database
            check_source(connection, settings.subscription, dbid, names)
        lock_subscription(connection, settings.subscription)
        targets = [target_name(settings, one.table.owner, one.table.name) for one in sources]
        set_aside(connection, settings, targets)
        # Check all tables before loading any of them.
        planned = [_plan(connection, settings, source, options) for source in sources]
        arrival = SourceArrival(refusal=Code.TARGET_AHEAD_OF_SOURCE)
        for one in planned:
            _check(connection, *one, options, arrival)
        works = [_begin(connection, *one, options) for one in planned]
        if options.copy is not None and options.copy.step is CopyStep.BEGIN:
            begun = [work for work in works if not work.state.finished]
            return Loaded([_report(connection, work) for work in begun], [])
        _run(connection, settings, works, session, options)
        check_source(connection, settings.subscription, dbid, names)
        failures = [work.failure for work in works if work.failure is not None]
        if options.builder is not None and not failures:
            options.builder.make_the_rest(connection)
            set_aside(connection, settings, targets)
        return Loaded(
            [_report(connection, work) for work in works if work.failure is None], failures
        )


def _plan(
    connection: Connection[Any],
    settings: ApplierSettings,
    source: SourceTable,
    options: LoadOptions,
) -> tuple[SourceTable, LoadTable, TablePlan]:
    name = source.table.full_name
    target = target_name(settings, source.table.owner, source.table.name)
    progress = TableLoadProgress(settings.subscription, name, ".".join(target))
    state = progress.read(connection)
    begins = options.anew or (options.restart and state is not None and not state.finished)
    is_copied = options.copy is not None and options.copy.step is CopyStep.END
    # The rows are in the target. Their columns are those of the SCN of the rows. The source's table
    # may have others by now, which the target gets when `run` replicates the DDL.
    is_filled = not begins and state is not None and (state.source == COPIED or state.finished)
    present = replace(settings, create_tables=settings.create_tables and not is_copied)
    described = None if is_filled else source.table
    plan = plan_table(connection, present, source.table, described, begins=begins)
    if not is_filled and options.copy is None:
        bind_columns(plan, source.table, source.data.schema, settings)
    if options.resume and state is not None and not begins:
        source = _as_begun(source, state)
    return source, LoadTable(source.table, *target, progress), plan


def _as_begun(source: SourceTable, state: LoadState) -> SourceTable:
    """Return the table with the SCN and the parts with which the load began, because the rows
    that are already loaded belong to these. Return the table unchanged if its data have only one
    SCN.
    """
    data = source.data
    if state.source == COPIED:
        return source._replace(scn=state.scn, start_scn=state.start_scn)
    if data.as_of is None:
        return source
    data = data.as_of(state.scn, state.source)
    return source._replace(data=data, scn=state.scn, start_scn=state.start_scn)


def _check(
    connection: Connection[Any],
    source: SourceTable,
    table: LoadTable,
    plan: TablePlan,
    options: LoadOptions,
    arrival: SourceArrival,
) -> None:
    """Raise an error if the load would lose or duplicate rows.

    Raises:
        OlrPgError: 5046 the loaded parts are in another table, 5104 the table has rows, 5105
            the table is replicated, 5106 an earlier load was interrupted, 5110 the table data has
            changed since that load started, 5119 another tool copies the rows, or the step does
            not fit its copy, 7101 that load read a source with a higher SCN; 70xx,
            the source cannot be queried.
    """
    if options.anew:
        return
    name = source.table.full_name
    state = table.progress.read(connection)
    if state is not None and state.finished:
        check_moment(name, state, options.copy)
        if source.data.as_of is not None:
            # Another instance of a RAC cluster may be slightly behind the instance that the load
            # read from.
            arrival.wait_for(source, state.scn)
        return
    check_copy(source, None if options.restart else state, options.copy)
    step = None if options.copy is None else options.copy.step
    is_first = state is None or options.restart
    if step is CopyStep.END or (step is CopyStep.BEGIN and is_first):
        check_written(connection, name, plan.target.oid)
    if table.progress.applied_scn(connection) > 0:
        raise OlrPgError(
            Code.TABLE_REPLICATED_ALREADY, "the ledger already contains the table", table=name
        )
    if state is None and step is not CopyStep.END:
        if has_rows(connection, sql.Identifier(table.schema, table.name)):
            raise OlrPgError(
                Code.TARGET_TABLE_NOT_EMPTY, f"{table.schema}.{table.name}", table=name
            )
        return
    if state is None or options.restart:
        return
    if not options.resume:
        raise OlrPgError(
            Code.LOAD_INTERRUPTED,
            f"{len(state.done)} of {counted(state.parts, 'part')} loaded",
            table=name,
        )
    if state.done and state.target_oid not in (None, plan.target.oid):
        raise OlrPgError(
            Code.TARGET_TABLE_REPLACED,
            f"{len(state.done)} of {counted(state.parts, 'part')} loaded into another table, which"
            " had its name",
            action="if that table was renamed, rename it back. Otherwise load this table from the"
            f" beginning: `olr-pg initial-load --restart --table {shlex.quote(name)}`",
            table=name,
        )
    incarnations = {state.resetlogs_id, source.resetlogs_id}
    if None not in incarnations and len(incarnations) > 1:
        raise OlrPgError(
            Code.TABLE_DATA_CHANGED,
            f"the load began in incarnation {state.resetlogs_id} of the source, which has"
            f" incarnation {source.resetlogs_id} now",
            action=begin_again(name) if state.source == COPIED else None,
            table=name,
        )
    if (state.source, state.scn) != (source.data.identity, source.scn):
        raise OlrPgError(Code.TABLE_DATA_CHANGED, f"the load began at SCN {state.scn}", table=name)


def _begin(
    connection: Connection[Any],
    source: SourceTable,
    table: LoadTable,
    plan: TablePlan,
    options: LoadOptions,
) -> _Work:
    progress = table.progress
    with connection.transaction():
        state = progress.read(connection)
        interrupted = state is not None and not state.finished
        if options.anew or (interrupted and options.restart):
            progress.forget(connection)
            if options.anew:
                progress.forget_applied(connection)
            empty_table(connection, plan.target.identifier)
            state = None
        if state is None:
            begun = LoadState(
                source.scn,
                source.start_scn,
                source.data.identity,
                len(source.data.partitions),
                resetlogs_id=source.resetlogs_id,
                target_oid=plan.target.oid,
            )
            progress.begin(connection, begun)
            state = progress.read(connection)
    assert state is not None
    return _Work(source, table, plan, state)


def _run(
    connection: Connection[Any],
    settings: ApplierSettings,
    works: list[_Work],
    session: Callable[[], SparkSession],
    options: LoadOptions,
) -> None:
    """Load the missing parts; restart a table if the source no longer has the undo for the
    table's SCN.
    """
    while True:
        try:
            return _load(connection, settings, works, session, options)
        except OlrPgError as error:
            number = next(
                (
                    number
                    for number, work in enumerate(works)
                    if work.source.table.full_name == error.where.get("table")
                ),
                None,
            )
            if error.code != UNDO_GONE or number is None:
                raise
            again = _anew(connection, works[number], options, error)
            if again is None:
                raise _undo_needed(connection, works, works[number], options, error) from error
            works[number] = again


def _anew(
    connection: Connection[Any], work: _Work, options: LoadOptions, error: OlrPgError
) -> _Work | None:
    """Restart the load of a table as of a later SCN, which becomes the SCN in the table's row of
    the ledger.

    The whole table is restarted, not only the failed range, because the ledger has one SCN per
    table, and `run` skips changes that were committed up to that SCN. If one range had a later SCN,
    changes committed between the two SCNs would be applied to its rows a second time (inserts of
    existing rows, updates over later values), or would be lost for the other ranges. One SCN per
    range would not work either: redo identifies a row by its current ROWID, and a row that moves
    changes its range.

    Returns:
        The restarted work; None if the options do not allow a restart, or the table was restarted
        too often.
    """
    later = None
    if options.later is not None and work.restarts < RESTARTS_MAX:
        later = options.later(work.source)
    if later is None:
        return None
    _log.warning("loading the table again from the start", reason=str(error), scn=later.scn)
    again = _begin(connection, later, work.table, work.plan, options._replace(restart=True))
    again.restarts = work.restarts + 1
    return again


def _undo_needed(
    connection: Connection[Any],
    works: Sequence[_Work],
    work: _Work,
    options: LoadOptions,
    error: OlrPgError,
) -> OlrPgError:
    """Return `error` with an estimate of the undo retention that the load would have needed.

    The remaining time is estimated from the parts that this run has loaded, because all parts have
    about the same size.
    """
    passed = work.table.progress.age_seconds(connection)
    running = max(time.monotonic() - min(one.began for one in works), 0.0)
    left = sum(len(one.waiting) for one in works)
    done = sum(one.state.parts - len(one.state.done) for one in works) - left
    rest = running / max(done, 1) * left
    needed = math.ceil(passed + rest)
    source = options.undo_retention()
    words = (
        f"{error.detail}; the load reads rows as of SCN {work.state.scn}, which was"
        f" current {passed:.0f} seconds ago. For the remaining {counted(left, 'part')}, the load"
        f" needs about {rest:.0f} more seconds. So it needs undo of {needed} seconds"
    )
    return OlrPgError(
        error.code,
        f"{words}; {source}" if source else words,
        action=f"if UNDO_RETENTION is lower than {needed + needed // 4}, run"
        f" ALTER SYSTEM SET UNDO_RETENTION = {needed + needed // 4}. Make sure that the undo"
        " tablespace is large enough, then run `olr-pg initial-load --restart`. Or load the table"
        " again as of the current SCN: `olr-pg initial-load --resume --later-scn`",
        **error.where,
    )


def _load(
    connection: Connection[Any],
    settings: ApplierSettings,
    works: Sequence[_Work],
    session: Callable[[], SparkSession],
    options: LoadOptions,
) -> None:
    job = pickle.dumps(LoadJob(settings, tuple(work.table for work in works)))
    tasks = [
        PartTask(number, part, work.source.data.partitions[part], work.state.scn)
        for number, work in enumerate(works)
        if not work.state.finished and work.failure is None
        for part in sorted(work.waiting)
    ]
    for work in works:
        if not work.waiting:
            _finish(connection, work, options)
    if not tasks:
        return
    payloads = [pickle.dumps(task) for task in tasks]
    tables = len({task.table for task in tasks})
    says = f"load {counted(len(tasks), 'part')} of {counted(tables, 'table')}"
    sizes = [task.partition.size for task in tasks]
    tasks_done = part_results(session, payloads, copy_task, job, sizes, says)
    with closing(tasks_done) as results:
        for index, packed in results:
            done = pickle.loads(packed)  # noqa: S301 - made by our task
            task = tasks[index]
            work = works[task.table]
            if isinstance(done, OlrPgError):
                _fail(work, done)
                continue
            work.waiting.discard(task.part)
            work.ended = time.monotonic()
            for column, lost in done.losses.items():
                work.losses[column] = work.losses.get(column, NOTHING) + lost
            options.progress(work.source.table.full_name, task.partition.rows)
            if not work.waiting:
                _finish(connection, work, options)


def _fail(work: _Work, error: OlrPgError) -> None:
    if work.failure is None:
        _log.error("a table could not be loaded; the other tables continue", reason=str(error))
        work.failure = error


def _finish(connection: Connection[Any], work: _Work, options: LoadOptions) -> None:
    """Create the indexes, analyse the table, and hand it over to replication."""
    if options.builder is not None:
        options.builder.make_keys_and_indexes(connection, work.source.table.full_name)
    if work.state.finished:
        return
    name = sql.Identifier(work.table.schema, work.table.name)
    connection.execute(sql.SQL("ANALYZE {}").format(name))
    rows, size = work.table.progress.finish(connection, work.state.scn, work.plan.target.oid)
    work.state = work.state._replace(finished=True)
    work.ended = time.monotonic()
    full_name = work.source.table.full_name
    if work.state.source != COPIED:
        _log.info("table loaded", table=full_name, rows=rows, bytes=size)
    elif not has_rows(connection, name):
        _log.warning("the table that another tool has copied has no rows", table=full_name)


def _report(connection: Connection[Any], work: _Work) -> LoadedTable:
    progress, state = work.table.progress, work.state
    row = connection.execute(
        "SELECT coalesce(rows, 0), coalesce(bytes, 0) FROM olr_pg.load"
        " WHERE subscription = %s AND source_table = %s",
        progress[:2],
    ).fetchone()
    assert row is not None
    return LoadedTable(
        progress.source_table,
        progress.target_table,
        state.scn,
        state.start_scn,
        int(row[0]),
        int(row[1]),
        state.parts,
        len(state.done),
        work.ended - work.began,
        work.losses,
    )
