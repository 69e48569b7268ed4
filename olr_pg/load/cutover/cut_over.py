"""The cut-over: from the last change of the source to a target that applications can use.

The target records the start and end of each step, so an interrupted or failed cut-over continues
where it stopped. Every step can be repeated. Nothing is changed in the source. Until applications
write to the target, they can return simply by using the source again.

`check_constraints` checks that applications can rely on the target's foreign keys, checks and
triggers. While a table is replicated its foreign keys do not fire (``session_replication_role =
replica``). So rows that replication wrote may violate a foreign key that PostgreSQL marks as valid.
A query checks the rows of such a foreign key. The step validates each foreign key that is not valid
yet. The validation also checks the key's rows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import Connection, sql

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.opened_target import OpenedTarget, opened_target
from olr_pg.appliance.target import data_directory
from olr_pg.applier.settings import ApplierSettings, TriggerHandling
from olr_pg.applier.statements.target_plan import target_name
from olr_pg.applier.target.catalogue import find_tables, relation_exists
from olr_pg.applier.target.set_aside import PutBack, put_back
from olr_pg.config.source_section import OfflineSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import prepare
from olr_pg.fallback.preparation import begun_record
from olr_pg.load import sources
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.load.cutover.quiet_point import cutover_source
from olr_pg.load.cutover.structure_check import accepted, lacking_structure
from olr_pg.load.cutover_steps import (
    DONE,
    FAILED,
    RUNNING,
    SKIPPED,
    StepState,
    begin_again,
    forget_steps,
    note_step,
    read_steps,
)
from olr_pg.load.target_structure import (
    advance_past_rows,
    advance_sequence,
    create_sequence,
    owned_sequences,
    sequence_name,
)
from olr_pg.load.verification.verification import Verification, verify
from olr_pg.observability.redaction import mask
from olr_pg.observability.wording import counted
from olr_pg.postgres.sqlstates import (
    Meaning,
    is_of_statement,
    meant,
    target_error,
    text_without_values,
)
from olr_pg.schema.followed_steps import step_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Table
    from olr_pg.load.table_data import SourceTable, TableSource

_CONSTRAINTS: Final = """
SELECT c.conname, c.contype::text, c.convalidated,
    coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true),
    n.nspname, r.relname, pn.nspname, pr.relname,
    (SELECT array_agg(a.attname::text ORDER BY k.n)
     FROM unnest(c.conkey) WITH ORDINALITY k(attnum, n)
     JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum),
    (SELECT array_agg(a.attname::text ORDER BY k.n)
     FROM unnest(c.confkey) WITH ORDINALITY k(attnum, n)
     JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum)
FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_class pr ON pr.oid = c.confrelid LEFT JOIN pg_namespace pn ON pn.oid = pr.relnamespace
WHERE c.conrelid = ANY(%s) AND c.conparentid = 0
    AND (c.contype = 'f' OR (c.contype = 'c' AND NOT c.convalidated))
ORDER BY n.nspname, r.relname, c.conname
"""
_TRIGGERS: Final = """
SELECT n.nspname, r.relname, t.tgname, t.tgenabled::text, t.tgisinternal
FROM pg_trigger t
JOIN pg_class r ON r.oid = t.tgrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE t.tgrelid = ANY(%s) AND t.tgenabled <> 'O' ORDER BY 1, 2, 3
"""
_FOREIGN: Final = "f"
_TRIGGER_STATES: Final = {
    "D": "is disabled",
    "R": "fires for replicated changes only",
    "A": "fires always, also for replicated changes",
}
_ALWAYS: Final = "A"


class TargetConstraint(NamedTuple):
    """A foreign key or check constraint of a target table; the attributes of the parent are set
    only for foreign keys.

    Attributes:
        is_enforced: False if the constraint is NOT ENFORCED (since PostgreSQL 18).
    """

    name: str
    kind: str
    is_valid: bool
    is_enforced: bool
    schema: str
    table: str
    parent_schema: str | None
    parent: str | None
    columns: list[str]
    parent_columns: list[str] | None

    @property
    def title(self) -> str:
        """The constraint's name for display."""
        return f"{self.schema}.{self.table}: {self.name}"


class Checked(NamedTuple):
    """The result of the check of the constraints.

    Attributes:
        validated: constraints that have now been validated.
        checked: valid foreign keys whose rows were checked.
        problems: problems that prevent applications from using the tables.
        remarks: further information for the operator.
    """

    validated: list[str]
    checked: list[str]
    problems: list[str]
    remarks: list[str]


def check_constraints(connection: Connection[Any], tables: Sequence[int]) -> Checked:
    """Validate or check every constraint of the tables, and check their triggers.

    Args:
        tables: their OIDs.
    """
    found = Checked([], [], [], [])
    for row in connection.execute(_CONSTRAINTS, (list(tables),)).fetchall():
        _check(connection, TargetConstraint(*row), found)
    for schema, table, name, state, internal in connection.execute(_TRIGGERS, (list(tables),)):
        what = "a foreign key's trigger" if internal else f"trigger {name}"
        words = f"{schema}.{table}: {what} {_TRIGGER_STATES[state]}"
        (found.remarks if state == _ALWAYS else found.problems).append(words)
    return found


def _check(connection: Connection[Any], constraint: TargetConstraint, found: Checked) -> None:
    if not constraint.is_enforced:
        found.remarks.append(f"{constraint.title} is NOT ENFORCED: PostgreSQL does not check it")
        return
    if constraint.is_valid:
        orphans = _orphans(connection, constraint)
        if orphans:
            found.problems.append(_violated(constraint, orphans))
        else:
            found.checked.append(constraint.title)
        return
    try:
        with connection.transaction():
            connection.execute(
                sql.SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}").format(
                    sql.Identifier(constraint.schema, constraint.table),
                    sql.Identifier(constraint.name),
                )
            )
    except psycopg.errors.ForeignKeyViolation:
        found.problems.append(_violated(constraint, _orphans(connection, constraint)))
    except psycopg.errors.CheckViolation:
        found.problems.append(f"{constraint.title}: rows violate this check")
    except psycopg.Error as error:
        if not is_of_statement(error, connection) or meant(error).meaning is Meaning.OPERATOR:
            raise  # e.g. a missing privilege: show PostgreSQL's own error
        found.problems.append(f"{constraint.title}: {mask(text_without_values(error))}")
    else:
        found.validated.append(constraint.title)


def _violated(constraint: TargetConstraint, orphans: int) -> str:
    return (
        f"{constraint.title}:"
        f" {counted(orphans, 'row refers to a missing row', 'rows refer to missing rows')} in"
        f" {constraint.parent_schema}.{constraint.parent}"
    )


def _orphans(connection: Connection[Any], constraint: TargetConstraint) -> int:
    """Count the rows that reference a missing row. A row with a NULL in the foreign key references
    no row.
    """
    assert constraint.kind == _FOREIGN
    assert constraint.parent_schema is not None
    assert constraint.parent is not None
    assert constraint.parent_columns is not None
    pairs = list(zip(constraint.columns, constraint.parent_columns, strict=True))
    query = sql.SQL(
        "SELECT count(*) FROM {} AS c WHERE {} AND NOT EXISTS (SELECT FROM {} AS p WHERE {})"
    ).format(
        sql.Identifier(constraint.schema, constraint.table),
        sql.SQL(" AND ").join(
            sql.SQL("c.{} IS NOT NULL").format(sql.Identifier(own)) for own, _ in pairs
        ),
        sql.Identifier(constraint.parent_schema, constraint.parent),
        sql.SQL(" AND ").join(
            sql.SQL("p.{} = c.{}").format(sql.Identifier(parent), sql.Identifier(own))
            for own, parent in pairs
        ),
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


_log = structlog.get_logger(__name__)

_LEDGER: Final = """
SELECT source_table, commit_scn, stopped, paused, inserted, updated, deleted, conflicts
FROM olr_pg.ledger WHERE subscription = %s AND source_table = ANY(%s) ORDER BY source_table
"""
_POSITIONS: Final = """
SELECT source_table, commit_scn FROM olr_pg.ledger WHERE subscription = %s
"""
_REFERRING: Final = """
WITH RECURSIVE part AS (
    SELECT unnest(%s::int8[])::oid AS oid
  UNION
    SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT DISTINCT k.conrelid::int8 FROM pg_constraint k JOIN part ON part.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0
"""
_BACK_TO_SOURCE: Final = (
    "let the applications use the source again and start `olr-pg run`; begin the cut-over again"
    " later with `olr-pg cutover --restart`"
)


class CutOverStep(NamedTuple):
    """A step of the cut-over.

    Attributes:
        title: a short description of the step.
        way_back: how to return to the source after this step.
    """

    name: str
    title: str
    way_back: str


STEPS: Final = (
    CutOverStep("quiet", "the source is quiet", _BACK_TO_SOURCE),
    CutOverStep("archived", "the last redo is archived", _BACK_TO_SOURCE),
    CutOverStep("applied", "everything is applied", _BACK_TO_SOURCE),
    CutOverStep("verified", "the tables are identical", _BACK_TO_SOURCE),
    CutOverStep(
        "sequences",
        "the sequences continue after the source's values",
        f"{_BACK_TO_SOURCE}; sequences that are ahead cause no problem",
    ),
    CutOverStep(
        "constraints",
        "foreign keys, checks and triggers are ready for the applications",
        f"{_BACK_TO_SOURCE}; valid constraints do not disturb replication",
    ),
    CutOverStep(
        "report",
        "applications can use the target",
        f"as long as nobody has written to the target: {_BACK_TO_SOURCE}. Later, the"
        " source lacks the new rows of the target, unless a way back was begun (`olr-pg"
        " cutover --fallback`)",
    ),
)
_BACK_WITH_ROWS: Final = (
    "stop the applications and run `olr-pg fallback cutover`; then Oracle contains"
    " everything that they have written to the target. When you no longer need to go"
    " back, run `olr-pg fallback end`"
)
WAY_BACK: Final = CutOverStep("fallback", "the way back has begun", _BACK_WITH_ROWS)


def steps_of(*, fallback: bool) -> tuple[CutOverStep, ...]:
    """Return the steps in order.

    Args:
        fallback: whether the fallback begins before applications write to the target.
    """
    *before, report = STEPS
    return (*before, WAY_BACK, report._replace(way_back=_BACK_WITH_ROWS)) if fallback else STEPS


class CutoverOptions(NamedTuple):
    """The options of a cut-over.

    Attributes:
        tables: directory with the source's final rows; None for the configured directory or the
            live database.
        dictionary: the final export of an offline source's dictionary; a file for each container.
        final_scn: the SCN at which an offline source ends.
        unverified: skip the comparison.
        accept: names of objects of the source that may be missing in the target, as in
            `structure_check.Lacking`; with wildcards ``*`` and ``?``.
        until: the last step to run; None for all.
        fallback: whether to begin the fallback to the source before applications write to the
            target.
        progress: called with (step, its title) as each one begins.
    """

    tables: Path | None = None
    dictionary: Sequence[Path] = ()
    final_scn: int | None = None
    unverified: bool = False
    accept: Sequence[str] = ()
    until: str | None = None
    fallback: bool = False
    progress: Callable[[CutOverStep], None] = lambda _step: None


def cutover_state(config: Config) -> list[StepState]:
    """Return the recorded steps, in order."""
    with opened_target(config, ledger="required") as target:
        found = read_steps(target.connection, sources.apply_section(config).subscription)
    return [found[step.name] for step in steps_of(fallback=True) if step.name in found]


def restart_cutover(config: Config) -> None:
    """Delete the recorded steps."""
    with opened_target(config, ledger="required") as target:
        forget_steps(target.connection, sources.apply_section(config).subscription)


def cut_over(config: Config, session: Callable[[], SparkSession], options: CutoverOptions) -> None:
    """Run the remaining steps of the cut-over.

    Raises:
        OlrPgError: 5004, 5121–5129 and errors of the steps; the step is then recorded as failed.
            4044, an appliance is running. 1090 or 5135, the options do not fit the source or the
            recorded steps. 5123, the cut-over has ended before, and replication has continued since
            then.
    """
    if options.fallback and config.fallback is None:
        raise OlrPgError(Code.NO_WAY_BACK, "there is no `fallback` section", key="fallback")
    cutover = _Cutover(config, session, options)
    cutover.check_end()
    cutover.check_rows()
    cutover.check_lock()
    cutover.check_not_continued()
    for step in steps_of(fallback=options.fallback):
        known = cutover.known(step)
        if known is None or not known.is_over:
            cutover.note(step, RUNNING, {})
            options.progress(step)
            try:
                state, detail = cutover.do(step)
            except (OlrPgError, psycopg.Error) as error:
                failure = _coded(error)
                cutover.note(step, FAILED, {"error": failure.label, "reason": failure.detail})
                raise failure from error
            cutover.note(step, state, detail)
        if step.name == options.until:
            return


def _tables_of(connection: Connection[Any], back: PutBack) -> list[int]:
    """Return the tables whose foreign keys were restored. The result can contain tables that are
    not replicated.
    """
    names = {one.identifier.as_string(connection) for one in back.done if one.definition}
    found = connection.execute(
        "SELECT to_regclass(n)::oid::int8 FROM unnest(%s::text[]) n", (list(names),)
    )
    return [oid for (oid,) in found]


def _referring(connection: Connection[Any], tables: Sequence[int]) -> list[int]:
    """Return the tables whose foreign keys reference these tables or their partitions."""
    return [oid for (oid,) in connection.execute(_REFERRING, (list(tables),)).fetchall()]


def _coded(error: OlrPgError | psycopg.Error) -> OlrPgError:
    """Convert the exception of a step to an error with a code."""
    if isinstance(error, OlrPgError):
        return error
    return target_error(error, code=Code.CUTOVER_STEP_REFUSED)


def _rows_of(source: TableSource, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
    """Return the rows to compare with.

    Raises:
        OlrPgError: 5125, the rows of an offline source are missing; errors of reading.
    """
    try:
        return source.sources(tables)
    except OlrPgError as error:
        if error.code != sources.NO_FOLDER:
            raise
        raise OlrPgError(
            Code.NOTHING_TO_COMPARE_WITH, "neither `source.tables` nor --tables is set"
        ) from error


class _Cutover:
    def __init__(
        self, config: Config, session: Callable[[], SparkSession], options: CutoverOptions
    ) -> None:
        self._config = config
        self._session = session
        self._options = options
        self._apply = sources.apply_section(config)
        self._source = cutover_source(config, options.dictionary, options.final_scn)
        self._is_compared = False
        self._work: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
            "quiet": self._quiet,
            "archived": self._archived,
            "applied": self._applied,
            "verified": self._verified,
            "sequences": self._sequences,
            "constraints": self._constraints,
            WAY_BACK.name: self._begin_way_back,
            "report": self._report,
        }

    def check_end(self) -> None:
        """Check that `options.final_scn` is the recorded end SCN, if there is one. Otherwise the
        option would have no effect.

        Raises:
            OlrPgError: 5135, another end SCN is recorded.
        """
        wanted, quiet = self._options.final_scn, self.known(STEPS[0])
        if wanted is not None and quiet is not None and quiet.is_over:
            recorded = int(quiet.detail["scn"])
            if recorded != wanted:
                raise OlrPgError(
                    Code.OTHER_END_SCN,
                    f"the cut-over began with the end SCN {recorded}, not {wanted}",
                )

    def check_rows(self) -> None:
        """Check that the rows of an offline source are available and not older than the target,
        if they will be compared. Otherwise the step `verified` would fail after hours of work.

        Raises:
            OlrPgError: 5125, the rows are missing; 5111, they are older than the target; errors of
                reading.
        """
        is_offline = isinstance(self._config.source, OfflineSource)
        if not is_offline or self._options.unverified or not self._is_due("verified"):
            return
        with (
            opened_target(self._config, ledger="required") as target,
            sources.open_tables(self._config, folder=self._options.tables) as source,
        ):
            key = self._apply.subscription
            applied = dict(target.connection.execute(_POSITIONS, (key,)).fetchall())
            for one in _rows_of(source, source.choose(())):
                reached = applied.get(one.table.full_name, 0)
                if 0 < one.scn < reached:
                    raise OlrPgError(
                        Code.NOT_COMPARABLE_AT_SCN,
                        f"the target contains changes up to commit SCN {reached}, but the rows of"
                        f" the source are as of SCN {one.scn}",
                        action="export the rows after the last change of the source, and name their"
                        " directory with `olr-pg cutover --tables DIR`",
                        table=one.table.full_name,
                    )

    def check_lock(self) -> None:
        """If the step `applied` will be executed, check that no appliance is running. Otherwise the
        step would fail after the first step has recorded the end SCN, although the source may still
        change.

        Raises:
            OlrPgError: 4044, an appliance uses `context.data`.
        """
        if self._is_due("applied"):
            with hold_data_lock(data_directory(self._config)):
                pass

    def _is_due(self, name: str) -> bool:
        """Return whether this command will execute a step."""
        names = [step.name for step in STEPS]
        until = self._options.until
        if until in names and names.index(until) < names.index(name):
            return False
        known = self.known(STEPS[names.index(name)])
        return known is None or not known.is_over

    def check_not_continued(self) -> None:
        """Check that the target has no later commits if the cut-over has ended before, for example
        a rehearsal after which applications have used the source again. Otherwise the command would
        say that applications can use the target, although the last changes may be missing. The
        source is not needed for this: it may have been shut down since.

        Raises:
            OlrPgError: 5123, the target has later commits; 5128, 5130, a table has stopped or is
                paused.
        """
        report = self.known(STEPS[-1])
        if report is not None and report.is_over:
            with opened_target(self._config, ledger="required") as target:
                self._ledger(target, [one["table"] for one in report.detail["tables"]])

    def known(self, step: CutOverStep) -> StepState | None:
        """Return the recorded state of a step; None if it has not begun."""
        with opened_target(self._config, ledger="required") as target:
            return read_steps(target.connection, self._apply.subscription).get(step.name)

    def note(self, step: CutOverStep, state: str, detail: dict[str, Any]) -> None:
        """Store the state of a step in the target."""
        with opened_target(self._config, ledger="required") as target:
            note_step(target.connection, self._apply.subscription, step.name, state, detail)
        _log.info("cut-over", step=step.name, state=state)

    def do(self, step: CutOverStep) -> tuple[str, dict[str, Any]]:
        """Run a step; return its state and its findings."""
        return self._work[step.name]()

    def _replicated(self, target: OpenedTarget) -> tuple[tuple[Table, ...], ApplierSettings]:
        with sources.open_tables(self._config) as source:
            string = target.connect_string
            return source.choose(()), sources.target_settings(self._config, source.snapshot, string)

    def _scn(self) -> int:
        """Return the SCN at which the source ends, from the first step."""
        quiet = self.known(STEPS[0])
        assert quiet is not None
        return int(quiet.detail["scn"])

    def _quiet(self) -> tuple[str, dict[str, Any]]:
        found = self._source.quiet()
        return DONE, {"scn": found.scn, "remark": found.remark}

    def _archived(self) -> tuple[str, dict[str, Any]]:
        scn, ends = self._scn(), self._source.archived()
        late = {thread: end for thread, end in ends.items() if end < scn}
        if late or not ends:
            words = ", ".join(f"thread {thread} up to SCN {end}" for thread, end in late.items())
            raise OlrPgError(
                Code.LAST_REDO_NOT_ARCHIVED,
                f"{words or 'nothing'}, the source ends at {scn}",
                scn=scn,
            )
        return DONE, {"threads": {str(thread): end for thread, end in ends.items()}}

    def _applied(self) -> tuple[str, dict[str, Any]]:
        run_appliance(self._config, once=True, apply=True, translate=step_sql)
        return DONE, self._ended()

    def _ended(self) -> dict[str, Any]:
        """Read the rows of the ledger of the tables that the configuration selects; errors as in
        `_ledger`.
        """
        with opened_target(self._config, ledger="required") as target:
            tables, _ = self._replicated(target)
            return self._ledger(target, [table.full_name for table in tables])

    def _ledger(self, target: OpenedTarget, names: list[str]) -> dict[str, Any]:
        """Read the rows of the ledger of these tables.

        Raises:
            OlrPgError: 5128 a table has stopped, 5130 a table is paused, 5123 the ledger contains
                later commits.
        """
        scn = self._scn()
        rows = target.connection.execute(_LEDGER, (self._apply.subscription, names)).fetchall()
        counts = ("inserted", "updated", "deleted", "conflicts")
        columns = ("table", "commit_scn", "stopped", "paused", *counts)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        for one in found:
            stopped, paused = one.pop("stopped"), one.pop("paused")
            if stopped:
                code = Code.TABLE_PAUSED if paused else Code.TABLE_STOPPED
                raise OlrPgError(code, f"at SCN {one['commit_scn']}", table=one["table"])
            if one["commit_scn"] > scn:
                raise OlrPgError(
                    Code.SOURCE_CHANGED_AFTER_CUTOVER,
                    f"the target contains the commit SCN {one['commit_scn']}, although"
                    f" the source should have ended at SCN {scn}",
                    table=one["table"],
                )
        return {"tables": found}

    def _verified(self) -> tuple[str, dict[str, Any]]:
        if self._options.unverified:
            return SKIPPED, {"remark": "skipped because of --unverified"}
        # Files contain their own SCN. A live source is read as of now and not as of its end SCN, so
        # that a change that somebody has committed since then is found.
        found = self._compared(None)
        self._is_compared = True
        if found.differing and not isinstance(self._config.source, OfflineSource):
            self._check_no_later_changes(found.differing)
        return DONE, found.require_identical()

    def _check_no_later_changes(self, differing: Sequence[str]) -> None:
        """Check that tables that differ now also differ as of the end SCN.

        Raises:
            OlrPgError: 5123, a table was identical at the end SCN: the source has changed since.
        """
        scn = self._scn()
        then = self._compared(scn, differing)
        changed = [one.table.source.full_name for one in then.tables if one.identical]
        if changed:
            raise OlrPgError(
                Code.SOURCE_CHANGED_AFTER_CUTOVER,
                f"rows were changed after the end SCN {scn}, and are missing in the target:"
                f" {', '.join(changed)}",
                table=changed[0],
            )

    def _compared(self, scn: int | None, names: Sequence[str] = ()) -> Verification:
        """Compare the tables.

        Args:
            scn: the SCN of a live source's rows; None for the current SCN.
            names: the tables to compare; empty for all.

        Raises:
            OlrPgError: 5125, the rows of an offline source are missing; errors of reading.
        """
        config, folder = self._config, self._options.tables
        with (
            opened_target(config, ledger="required") as target,
            sources.open_tables(config, folder=folder, scn=scn) as source,
        ):
            string = target.connect_string
            settings = sources.target_settings(config, source.snapshot, string)
            work = _rows_of(source, source.choose(names))
            return verify(settings, work, self._session)

    def _sequences(self) -> tuple[str, dict[str, Any]]:
        scn = self._scn()
        advanced, missing = list[dict[str, Any]](), list[str]()
        with opened_target(self._config, ledger="required") as target:
            connection = target.connection
            tables, settings = self._replicated(target)
            for one in self._source.sequences({table.owner for table in tables}, scn):
                name = sequence_name(settings, one)
                if not relation_exists(connection, name.as_string(connection)):
                    if not settings.create_tables:
                        missing.append(one.full_name)
                        continue
                    create_sequence(connection, name, one)
                step = advance_sequence(connection, name, one)
                advanced.append(
                    {
                        "sequence": one.full_name,
                        "target": list(target_name(settings, one.owner, one.name)),
                        **step._asdict(),
                    }
                )
            # An existing target can have sequences of its own, which nothing has advanced.
            owned = [
                {"column": one.column, **past._asdict()}
                for one in owned_sequences(connection, _oids(connection, tables, settings))
                if (past := advance_past_rows(connection, one)) is not None
            ]
        return DONE, {"advanced": advanced, "past_rows": owned, "not_in_the_target": missing}

    def _constraints(self) -> tuple[str, dict[str, Any]]:
        with opened_target(self._config, ledger="required") as target:
            connection = target.connection
            back = put_back(connection, self._apply.subscription)
            tables, settings = self._replicated(target)
            oids = _oids(connection, tables, settings)
            others = _tables_of(connection, back)
            if settings.triggers is TriggerHandling.DISABLE:
                # Include the tables of an earlier attempt, because its record may be lost.
                others += _referring(connection, oids)
            found = check_constraints(connection, [*oids, *others])
            problems = [*back.lost, *found.problems]
            if problems:
                raise OlrPgError(Code.CONSTRAINTS_NOT_READY, "; ".join(problems))
            allowed = self._check_structure(target)
        return DONE, {
            "put_back": [one.title for one in back.done],
            "validated": found.validated,
            "checked": found.checked,
            "remarks": found.remarks,
            "accepted": allowed,
        }

    def _check_structure(self, target: OpenedTarget) -> list[str]:
        """Compare the source's structure with the target's; return the missing objects that the
        options accept.

        Raises:
            OlrPgError: 5131, an object is missing and not accepted.
        """
        lacking = lacking_structure(
            target.connection, self._config, target.connect_string, self._options.dictionary
        )
        allowed = accepted(lacking, self._options.accept)
        missing = [one.words for one in lacking if one not in allowed]
        if missing:
            raise OlrPgError(Code.STRUCTURE_LACKING, f"{len(missing)}: {'; '.join(missing)}")
        return [one.name for one in allowed]

    def _begin_way_back(self) -> tuple[str, dict[str, Any]]:
        """Create the objects that the fallback needs. Transactions that commit in the target from
        then on are replicated to Oracle.

        Raises:
            OlrPgError: 5132, applications may already have written to the target; 73xx, the
                fallback cannot begin.
        """
        report = self.known(STEPS[-1])
        if report is not None and report.is_over:
            raise OlrPgError(
                Code.WAY_BACK_TOO_LATE, f"the cut-over ended at {report.finished_at:%Y-%m-%d %H:%M}"
            )
        with (
            open_ways_back(self._config) as ways,
            opened_target(self._config, ledger="required") as target,
        ):
            begun = [prepare(way) for way in ways]
            begin_again(target.connection, self._apply.subscription)
        return DONE, begun_record(begun)

    def _report(self) -> tuple[str, dict[str, Any]]:
        # Somebody may have begun to write again since the first step.
        self._source.quiet()
        found = self._ended()
        is_live = not isinstance(self._config.source, OfflineSource)
        if is_live and not self._is_compared and not self._options.unverified:
            # An earlier run of the command has compared, maybe days ago. If applications have used
            # the source since, and replication did not run, only a comparison shows it.
            _log.info("comparing again, because an earlier command has compared the tables")
            self._verified()
        return DONE, {"scn": self._scn(), **found, "grants": self._grants()}

    def _grants(self) -> list[str]:
        """Return the GRANT statements that applications need on the tables and their sequences."""
        known = self.known(STEPS[4])
        advanced = known.detail.get("advanced", ()) if known is not None else ()
        sequences = [(one["target"][0], one["target"][1]) for one in advanced]
        with opened_target(self._config, ledger="required") as target:
            tables, settings = self._replicated(target)
            names = [target_name(settings, table.owner, table.name) for table in tables]
            found = find_tables(target.connection, names)
            there = filter(found.__contains__, names)
            return application_grants(target.connection, there, sequences)


def _oids(
    connection: Connection[Any], tables: Sequence[Table], settings: ApplierSettings
) -> list[int]:
    """Return the OIDs of the target's tables."""
    names = [target_name(settings, table.owner, table.name) for table in tables]
    return [oid for oid, _ in find_tables(connection, names).values()]


APPLICATION: Final = "application"
"""The placeholder in the statements for the role that applications use."""

_KINDS: Final = (
    ("SELECT, INSERT, UPDATE, DELETE ON TABLE", 0),
    ("USAGE, SELECT ON SEQUENCE", 1),
)


def application_grants(
    connection: Connection[Any],
    tables: Iterable[tuple[str, str]],
    sequences: Iterable[tuple[str, str]],
) -> list[str]:
    """Return the statements, one per line: for each schema, then for its tables and sequences.

    Args:
        tables, sequences: schema and name of each.
    """
    found = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    named = [(name, 0) for name in tables]
    named += [(name, 1) for name in sequences]
    for (schema, name), kind in named:
        quoted = sql.Identifier(schema, name).as_string(connection)
        found[schema][kind].append(quoted)
    statements = []
    for schema, parts in sorted(found.items()):
        quoted = sql.Identifier(schema).as_string(connection)
        statements.append(f"GRANT USAGE ON SCHEMA {quoted} TO {APPLICATION};")
        statements += [
            f"GRANT {rights} {', '.join(parts[kind])} TO {APPLICATION};"
            for rights, kind in _KINDS
            if parts[kind]
        ]
    return statements
