"""Runs a migration. Each step calls the code of the command that does the same work."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import psycopg
import structlog

from olr_pg.appliance.all_checks import diagnose
from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.opened_target import OpenedTarget, opened_target
from olr_pg.applier.statements.target_plan import named_target, target_name
from olr_pg.applier.stopped.pausing import paused_tables
from olr_pg.applier.target.ledger import ensure_ledger, ledger_version
from olr_pg.applier.target.set_aside import set_aside
from olr_pg.config.source_section import OfflineSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.cutover.structure_check import lacking_structure
from olr_pg.load.cutover_steps import DONE, FAILED, RUNNING, SKIPPED, StepState
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.load_page import load_page
from olr_pg.load.target_structure import StructureBuilder, raise_for_failures
from olr_pg.load.verification.verification import AT_POSITION, Verification, verify
from olr_pg.migration.migration_progress import (
    STEPS,
    MigrationStep,
    MigrationWatch,
    migration_state,
    note_migration,
)
from olr_pg.observability.findings import Severity
from olr_pg.observability.wording import counted, some
from olr_pg.postgres.sqlstates import target_error
from olr_pg.schema import trial
from olr_pg.schema.followed_steps import step_sql
from olr_pg.schema.source_inventory import all_statements, read_schemas
from olr_pg.schema.statement import BEFORE_DATA, INDEXES, Statement
from olr_pg.spark import session as spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config

_CATCHES_UP: Final = "replication"
"""The step that runs again each time the migration is continued."""

_NOT_COMPARED: Final = "not_compared"
"""Key in the findings of the step `verify` if the comparison was skipped."""

_log = structlog.get_logger(__name__)


def state_of(config: Config) -> list[StepState]:
    """Return the recorded steps, in order. If the target has no ledger, do not create a ledger."""
    with opened_target(config, ledger="unused") as target:
        if not ledger_version(target.connection):
            return []
        ensure_ledger(target.connection)  # an earlier release may have created it
        found = migration_state(target.connection, sources.apply_section(config).subscription)
    return [found[step.name] for step in STEPS if step.name in found]


def is_ready(states: list[StepState]) -> bool:
    """Return whether every step is done."""
    return {state.step for state in states if state.is_over} == {step.name for step in STEPS}


def planned(config: Config) -> dict[str, Counter[str]]:
    """Return the numbers of objects that the steps would create or leave out, by kind."""
    schemas = read_schemas(config)
    statements = all_statements(config, schemas)
    replicated = sum(len(one.replicated) for one in schemas)
    made = Counter(one.kind for one in statements if one.runs)
    left = Counter(one.what or one.kind for one in statements if not one.runs)
    return {"made": made, "by hand": left, "loaded": Counter({"table": replicated})}


def migrate(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    progress: Callable[[MigrationStep], None] = lambda _step: None,
    watch: MigrationWatch | None = None,
) -> None:
    """Run the remaining steps.

    Args:
        session: returns the Spark session; called only if needed.
        progress: called with each step when it begins.
        watch: receives the events of the migration, to display its progress.

    Raises:
        OlrPgError: 5260 and errors of the steps; the step is then recorded as failed.
    """
    watch = watch or MigrationWatch(config)
    migration = _Migration(config, session, watch)
    over = {state.step: state.detail for state in state_of(config) if state.is_over}
    watch.note(needed(over))
    if len(over) < len(STEPS):
        # The target may be behind again, because the migration was interrupted: repeat the step
        # `replication`.
        over.pop(_CATCHES_UP, None)
    for step in STEPS:
        if step.name in over:
            continue
        migration.note(step, RUNNING, {})
        watch.begin(step)
        progress(step)
        try:
            detail = migration.do(step)
        except (OlrPgError, psycopg.Error) as error:
            failure = _coded(error, step)
            migration.note(step, FAILED, {"error": failure.label, "reason": failure.detail})
            raise failure from error
        migration.note(step, SKIPPED if _NOT_COMPARED in detail else DONE, detail)
        over[step.name] = detail
        watch.note(needed(over))


def needed(details: Mapping[str, dict[str, Any]]) -> tuple[str, ...]:
    """Return the actions that must be done by hand.

    Args:
        details: the findings of each step, by its name.
    """
    found = []
    for step, detail in details.items():
        left = detail.get("not_made", ())
        if left:
            found.append(
                f"{counted(len(left), 'object')} could not be created in the step {step}:"
                " `olr-pg migrate --plan` lists them with the reasons"
            )
        lacking = detail.get("lacking", ())
        if lacking:
            found.append(
                f"{counted(len(lacking), 'key, check, index, trigger or sequence')} of the source"
                " missing in the target: create these objects yourself, or name them with"
                " --accept at the cut-over"
            )
        warnings = detail.get("warnings", ())
        if warnings:
            found.append(f"{counted(len(warnings), 'warning')} of `olr-pg doctor --load`")
    return tuple(found)


def _is_of_files(config: Config, error: OlrPgError) -> bool:
    is_offline = isinstance(config.source, OfflineSource)
    return is_offline and error.code == Code.NOT_COMPARABLE_AT_SCN


def _coded(error: OlrPgError | psycopg.Error, step: MigrationStep) -> OlrPgError:
    if isinstance(error, OlrPgError):
        return error
    return target_error(error, code=Code.MIGRATION_STEP_FAILED, step=step.name)


class _Migration:
    def __init__(
        self, config: Config, session: Callable[[], SparkSession], watch: MigrationWatch
    ) -> None:
        self._config = config
        self._watch = watch
        self._session = session
        self._apply = sources.apply_section(config)
        self._work: dict[str, Callable[[], dict[str, Any]]] = {
            "doctor": self._doctor,
            "schema": self._schema,
            "load": self._load,
            "indexes": self._indexes,
            "replication": self._replication,
            "verify": self._verify,
            "rest": self._rest,
        }

    def note(self, step: MigrationStep, state: str, detail: dict[str, Any]) -> None:
        """Store the state of a step in the target."""
        with opened_target(self._config) as target:
            note_migration(target.connection, self._apply.subscription, step.name, state, detail)
        _log.info("migration", step=step.name, state=state)

    def do(self, step: MigrationStep) -> dict[str, Any]:
        """Run a step; return its findings."""
        return self._work[step.name]()

    def _doctor(self) -> dict[str, Any]:
        # A missing table is no error, because the next step creates it.
        created = self._apply.model_copy(update={"create_tables": True})
        findings = diagnose(self._config.model_copy(update={"apply": created}), for_load=True)
        errors = [one for one in findings if one.severity is Severity.ERROR]
        if errors:
            raise OlrPgError(
                Code.MIGRATION_STEP_FAILED,
                f"doctor: {'; '.join(f'{one.check}: {one.what}' for one in errors)}",
                action="`olr-pg doctor --load` prints the corrections",
                step="doctor",
            )
        return {"warnings": [f"{one.check}: {one.what}" for one in findings]}

    def _statements(
        self, target: OpenedTarget, wanted: Callable[[Statement], bool]
    ) -> dict[str, Any]:
        """Create the objects of the schema for which `wanted` is true and that are missing in the
        target.

        Raises:
            OlrPgError: 5260, a table cannot be created.
        """
        statements = all_statements(self._config, read_schemas(self._config))
        outcomes = trial.run_statements(
            target.connection, [one for one in statements if wanted(one)]
        )
        failed = [one for one in outcomes if one.state == trial.FAILED]
        for one in failed:
            if one.statement.kind in ("schema", "table", "partition"):
                raise OlrPgError(
                    Code.MIGRATION_STEP_FAILED,
                    f"{one.statement.kind} {one.statement.name}: {one.reason}",
                    step="schema",
                )
        left = [one for one in outcomes if one.state in (trial.FAILED, trial.LEFT_OUT)]
        return {
            "created": sum(one.state == trial.CREATED for one in outcomes),
            "present": sum(one.state == trial.PRESENT for one in outcomes),
            "not_made": [
                f"{one.statement.what or one.statement.kind} {one.statement.name}: {one.reason}"
                for one in left
            ],
        }

    def _schema(self) -> dict[str, Any]:
        with opened_target(self._config) as target:
            return self._statements(target, lambda one: one.kind in BEFORE_DATA)

    def _load(self) -> dict[str, Any]:
        config = self._config
        with sources.open_tables(config, for_load=True) as source, opened_target(config) as target:
            snapshot = source.snapshot
            settings = sources.target_settings(config, snapshot, target.connect_string)
            builder = StructureBuilder(settings, snapshot.structure, source.choose(()))
            work = source.sources(source.choose(()))
            tables = [one.table for one in work]
            names = {one.full_name: target_name(settings, one.owner, one.name) for one in tables}
            self._watch.loading(
                target.connect_string,
                settings.subscription,
                names,
                {one.table.full_name: one.data.rows or None for one in work},
            )
            page = load_page(config, target.connect_string, snapshot.database, names, work)
            try:
                options = LoadOptions(
                    resume=True,
                    builder=builder,
                    undo_retention=source.undo_retention,
                    later=source.later,
                )
                with page:
                    done = initial_load(settings, work, self._session, options)
            finally:
                self._watch.loaded()
        if done.failures:
            raise done.failures[0]
        raise_for_failures(builder.parts)
        return {"tables": len(done.tables), "rows": sum(one.rows for one in done.tables)}

    def _indexes(self) -> dict[str, Any]:
        with opened_target(self._config) as target:
            return self._statements(target, lambda one: one.kind in INDEXES)

    def _replication(self) -> dict[str, Any]:
        spark_session.stop_session()  # stop the load's session, because the appliance opens its own
        run_appliance(self._config, once=True, apply=True, translate=step_sql)
        with opened_target(self._config) as target:
            paused = paused_tables(target.connection, self._apply.subscription)
        if paused:
            raise OlrPgError(Code.TABLE_PAUSED, some(paused), table=paused[0])
        return {}

    def _verify(self) -> dict[str, Any]:
        config = self._config
        with opened_target(config) as target, sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, target.connect_string)
            work = source.sources(source.choose(()))
            try:
                found = verify(settings, work, self._session, AT_POSITION)
            except OlrPgError as error:
                found = Verification((), (error,))
        others = tuple(one for one in found.failures if not _is_of_files(config, one))
        counts = found._replace(failures=others).require_identical()
        if found.failures:
            # The files contain the rows as of their own SCN, and the target already contains later
            # changes.
            return {
                _NOT_COMPARED: "`olr-pg cutover --tables DIR` compares the target with files"
                " that contain the rows at the last SCN"
            }
        return counts

    def _rest(self) -> dict[str, Any]:
        with opened_target(self._config) as target:
            done = self._statements(target, lambda one: one.kind not in BEFORE_DATA | INDEXES)
            lacking = lacking_structure(target.connection, self._config, target.connect_string)
            self._set_aside(target)
            return {**done, "lacking": [one.words for one in lacking]}

    def _set_aside(self, target: OpenedTarget) -> None:
        """Disable the created triggers and foreign keys that must not be active before the
        cut-over.
        """
        schemas = read_schemas(self._config)
        named = {
            named_target(one.settings(self._config, target.connect_string), name)
            for one in schemas
            for name in one.replicated
        }
        joined = schemas[0].joined
        settings = sources.target_settings(self._config, joined, target.connect_string)
        set_aside(target.connection, settings, sorted(named))
