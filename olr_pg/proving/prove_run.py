"""The run of `olr-pg prove`: tries one scenario after the other, and writes a result file for each
to `--out`.

An interrupted run continues with the next scenario. After a complete run, the next run begins with
the first scenario.

The end-to-end judge of a scenario is an initial load, `run --once`, and verification of every row.
Each scenario is replicated with its own subscription to its own schema. Both are removed
afterwards.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import psycopg
import sqlalchemy.exc
import structlog
from psycopg import sql
from pydantic import SecretStr
from sqlalchemy import Connection, text

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.opened_target import open_target
from olr_pg.applier.target.connection import connect
from olr_pg.config.address import LOOPBACK, Address
from olr_pg.config.model import Apply, Config, Context, DdlSection, Target
from olr_pg.config.port_sections import Status
from olr_pg.config.source_section import OracleSource
from olr_pg.config.table_patterns import OWN_SCHEMA, TableName
from olr_pg.config.table_sections import Filter
from olr_pg.datatypes.mapping import LOB_TYPES
from olr_pg.dictionary.inventory import named_version
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.true_charsets import is_explicit, with_true_charsets
from olr_pg.errors import Code, OlrPgError, Place
from olr_pg.files.durable import replace_file
from olr_pg.files.owned import make_private_directory
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.lob_fetching import fetch_lobs
from olr_pg.load.verification.verification import VerifiedTable, verify
from olr_pg.observability.wording import counted
from olr_pg.oracle.driver.bounded_calls import PASSING, SNAPSHOT_AGE
from olr_pg.oracle.facts import CurrentDatabase, read_facts, read_scn
from olr_pg.oracle.source_containers import ContainerDatabases
from olr_pg.proving import logminer
from olr_pg.proving.logminer import LOST, decoded_events
from olr_pg.proving.replay import DIFFERENCES_MAX, Difference, Moment, RowReader, check_replay
from olr_pg.proving.report_page import Judge, Proof, ScenarioResult, Verdict, Word, html_page
from olr_pg.proving.scenario import Scenario, ScenarioStep, read_scenario
from olr_pg.proving.scratch_schema import JOURNAL, ScratchSchema, made_objects, open_scratch
from olr_pg.proving.script import (
    ScenarioFailedError,
    difference_error,
    logs_with,
    masked_incident,
    may_commit,
    run_steps,
)
from olr_pg.schema.followed_steps import step_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.load.table_data import SourcePartition, SourceTable, TableData
    from olr_pg.oracle.key_cuts import LargeRow
    from olr_pg.proving.logminer import Event


SUBSCRIPTION: Final = "olr_pg_prove"
SCHEMA: Final = "olr_pg_prove"
WORK: Final = "work"
"""The folder in the command's directory with the files of the current scenario."""
EMBEDDED: Final = Apply.model_validate({"connect-string": "embedded", "tables": ["PROVE.NONE"]})
"""The `apply` section that is used if no target is configured."""

_STOPPED: Final = """
SELECT source_table, operation, code, message FROM olr_pg.error
WHERE subscription = %s AND resolution = 'stopped' ORDER BY id
"""
_SUBSCRIBED: Final = """
SELECT table_name FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = %s AND column_name = 'subscription' AND table_type = 'BASE TABLE'
"""
_WRONG: Final = (Code.CHANGE_REFUSED, Code.CHANGE_CONFLICTS)
"""Errors that stop a table because its changes do not match its rows. Other errors that stop a
table count as refusals.
"""
_GRAVITY: Final = (Word.DIFFERS, Word.REFUSED, Word.UNTRIED, Word.RIGHT)


def scenario_config(
    config: Config, owner: str, tables: Sequence[str], target: str, data: Path
) -> Config:
    """Return the configuration that replicates exactly a scenario's tables.

    Args:
        owner: the owner of the scratch schema.
        tables: names of the tables.
        target: the target's connection string.
        data: the directory to use as `context.data`.
    """
    source = config.source
    if source.kind == "oracle" and source.vault is not None:
        vault = source.vault.model_copy(update={"directory": data / "vault"})
        source = source.model_copy(update={"vault": vault})
    own = {
        "connect_string": SecretStr(target),
        "tables": tuple(TableName(owner, name) for name in tables),
        "subscription": SUBSCRIPTION,
        "create_tables": True,
        "start_scn": 0,
        "schema_mapping": {owner: SCHEMA},
        "table_mapping": {},
        "on_conflict": "error",
        "ddl": DdlSection(),
    }
    given = config.apply or EMBEDDED
    return config.model_copy(
        update={
            "source": source,
            "context": Context.model_validate({"data": str(data)}).model_copy(
                update={"memory": config.context.memory}
            ),
            "apply": given.model_copy(update=own),
            "filter": Filter(),
            "target": Target().model_copy(update={"address": Address(LOOPBACK, 0)}),
            "status": Status().model_copy(update={"enabled": False}),
            "metrics": None,
        }
    )


class SmallPartition(NamedTuple):
    """A partition of a table that is reported as small, so that Spark is not started for it."""

    inner: SourcePartition

    @property
    def rows(self) -> int:
        """See `SourcePartition.rows`."""
        return self.inner.rows

    @property
    def size(self) -> int:
        """See `SourcePartition.size`."""
        return 0

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        return self.inner.place

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """See `SourcePartition.batches`."""
        return self.inner.batches()


def _small(data: TableData) -> TableData:
    return replace(data, partitions=tuple(map(SmallPartition, data.partitions)))


class WholeWay:
    """A target for scenarios, one after the other.

    Args:
        config: the configuration of the command.
        owner: the owner of the scratch schema.
        target: the target's connection string.
        out: the directory of the command. A file in this directory records that the target had no
            ledger before. If the current run is killed, the next run reads this file.
        session: returns the Spark session; called only if there is too much data for this process.
    """

    def __init__(
        self,
        config: Config,
        owner: str,
        target: str,
        out: Path,
        session: Callable[[], SparkSession],
    ) -> None:
        self._config, self._owner, self._target = config, owner, target
        self._data, self._note, self._session = out / WORK / "data", out / "made-ledger", session
        self._refused: Verdict | None = None
        self._restarts = 0
        with self._connected() as connection:
            if not _has_schema(connection, OWN_SCHEMA):
                self._note.touch()

    def _connected(self) -> psycopg.Connection[Any]:
        return connect(self._target, replica=None)

    def clear(self) -> None:
        """Remove the objects and files that a scenario has left in the target and on disk."""
        shutil.rmtree(self._data, ignore_errors=True)
        with self._connected() as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(SCHEMA))
            )
            tables = [
                sql.Identifier(OWN_SCHEMA, name)
                for (name,) in connection.execute(_SUBSCRIBED, (OWN_SCHEMA,)).fetchall()
            ]
            others = False
            for table in tables:
                delete = sql.SQL("DELETE FROM {} WHERE subscription = %s").format(table)
                connection.execute(delete, (SUBSCRIPTION,))
                some = connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table))
                others = others or some.fetchone() is not None
            # Keep the ledger if another subscription now uses it.
            if self._note.exists() and not others:
                connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(OWN_SCHEMA))
                )

    def end(self) -> None:
        """Remove the objects and files, and the file `note`."""
        self.clear()
        self._note.unlink(missing_ok=True)

    def load(self, tables: Sequence[str]) -> None:
        """Load the current rows of the tables.

        Raises:
            OlrPgError: the error of the first table that is not loaded.
        """
        self._refused, self._restarts = None, 0
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        self._data.mkdir(parents=True, exist_ok=True)
        with sources.open_tables(config, for_load=True) as source:
            settings = sources.target_settings(config, source.snapshot, self._target)
            work = self._work(source.sources(source.choose(())))
            done = initial_load(settings, work, self._session, LoadOptions())
        if done.failures:
            raise done.failures[0]

    def go_on(self, tables: Sequence[str]) -> None:
        """Replicate all redo that is archived now, and end. Replication continues from there at the
        next call.
        """
        self._restarts += 1
        self._replicate(tables)

    def judge(
        self,
        tables: Sequence[str],
        left: Sequence[str],
        scn: int,
        stops: Collection[tuple[str, str]],
    ) -> Verdict:
        """Replicate the changes since the load, then compare source and target.

        Args:
            left: names in `tables` that still exist at the end.
            scn: the SCN as of which the source's rows are compared.
            stops: names of tables that may stop, each with the code of the error.
        """
        self._replicate(tables)
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        try:
            stopped = self._stopped(stops)
            if self._refused is not None:
                return next(iter(stopped.values()), self._refused)
            fetched = sum(one.fetched for one in fetch_lobs(config, ()))
            going = [name for name in left if f"{self._owner}.{name}" not in stopped]
            compared = self._compared(going, scn) if going or not stopped else None
        except OlrPgError as error:
            return Verdict.refused(error)
        found = [*stopped.values(), *([compared] if compared else [])]
        verdict = min(found, key=lambda one: _GRAVITY.index(one.word))
        if verdict.word is not Word.RIGHT:
            return verdict
        said = [
            f"{counted(fetched, 'LOB value')} fetched from the source" if fetched else "",
            f"the reader was restarted {counted(self._restarts, 'time')}" if self._restarts else "",
            verdict.reason,
        ]
        return verdict._replace(reason=", ".join(filter(None, said)))

    def _replicate(self, tables: Sequence[str]) -> None:
        if self._refused is not None:
            return
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        try:
            run_appliance(config, once=True, apply=True, translate=step_sql)
        except OlrPgError as error:
            self._refused = Verdict.refused(error)

    def _stopped(self, stops: Collection[tuple[str, str]]) -> dict[str, Verdict]:
        """Return the verdict for each stopped table."""
        found: dict[str, Verdict] = {}
        with self._connected() as connection:
            rows = connection.execute(_STOPPED, (SUBSCRIPTION,)).fetchall()
        for table, operation, code, message in rows:
            label, said = f"OLR-{int(code):05}", f"{table} has stopped: {message}"
            is_named = code not in _WRONG or (table.removeprefix(f"{self._owner}."), label) in stops
            found.setdefault(
                table,
                Verdict(Word.REFUSED, said, label)
                if is_named
                else Verdict(Word.DIFFERS, code=label, differences=(f"{operation}: {said}",)),
            )
        return found

    def _compared(self, left: Sequence[str], scn: int) -> Verdict:
        if not left:
            return Verdict(Word.UNTRIED, "the scenario has dropped all its tables")
        config = scenario_config(self._config, self._owner, left, self._target, self._data)
        with sources.open_tables(config, scn=scn) as source:
            settings = sources.target_settings(config, source.snapshot, self._target)
            work = self._work(source.sources(source.choose(())))
            found = verify(settings, work, self._session)
        if found.failures:
            return Verdict.refused(found.failures[0])
        differing = [one for one in found.tables if not one.identical]
        if differing:
            return Verdict(Word.DIFFERS, differences=tuple(map(_words, differing)))
        rows = sum(one.source_rows for one in found.tables)
        return Verdict(
            Word.RIGHT, f"{counted(rows, 'row')} of {counted(len(found.tables), 'table')} identical"
        )

    def _work(self, found: Sequence[SourceTable]) -> tuple[SourceTable, ...]:
        return tuple(one._replace(data=_small(one.data)) for one in found)


def _words(table: VerifiedTable) -> str:
    kinds = [one.kind for one in table.differences]
    said = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return (
        f"{table.table.source.full_name}: {counted(table.source_rows, 'row')} in the source,"
        f" {table.target_rows} in the target: {said}"
    )


def _has_schema(connection: psycopg.Connection[Any], name: str) -> bool:
    return (
        connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone()
        is not None
    )


FOLDER: Final = "prove"
"""Folder in `context.data` for the results if --out is not given."""

SCENARIOS: Final = Path(__file__).parent / "scenarios"
RESULTS: Final = "results"
RUN: Final = "run.json"
PAGE: Final = "proof.html"
DOCUMENT: Final = "proof.json"
INCIDENTS: Final = "incidents"
MOMENTS_MAX: Final = 200
"""Maximum number of commits of a scenario after which rows are compared. The rows at the end are
always compared.
"""

SETTLE_SECONDS: Final = 30.0
"""Maximum number of seconds for which Oracle may refuse to read a newly defined table as of an
SCN.
"""

_ORACLE_AREA: Final = 7
_FATAL: Final = PASSING | {
    *(Code.ORACLE_LOGIN_REFUSED, Code.SCENARIO_REDO_MISSING, Code.SCRATCH_SCHEMA_IN_USE),
    Code.ORACLE_CLIENT_LIBRARY,
}
"""Errors that end the run, because the next scenario would fail with the same error."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProveOptions:
    """The options of a run.

    Attributes:
        patterns: patterns for the names of the scenarios to run; empty for all scenarios.
        out: the folder for the results, the page and the incident files.
        keep: whether to keep the tables of the last scenario, and the files of each scenario.
    """

    patterns: Sequence[str]
    out: Path
    keep: bool = False


def chosen_scenarios(patterns: Sequence[str]) -> list[Scenario]:
    """Return the scenarios whose names match one of the patterns, such as ``types/*``; return all
    scenarios if there are no patterns.

    Raises:
        OlrPgError: 8053, a file is not a scenario; 8054, a pattern matches no scenario.
    """
    known = [read_scenario(path) for path in sorted(SCENARIOS.rglob("*.sql"))]
    for pattern in patterns:
        if not any(fnmatchcase(one.name, pattern) for one in known):
            raise OlrPgError(Code.SCENARIO_UNKNOWN, pattern)
    return [
        one for one in known
        if not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns)
    ]  # fmt: skip


def prove(
    config: Config,
    options: ProveOptions,
    session: Callable[[], SparkSession],
    progress: Callable[[int, int, str], None] = lambda _done, _all, _name: None,
) -> Proof:
    """Run scenarios in the source database, and judge the changes that are decoded from their redo.

    Args:
        session: returns the Spark session; called only if there is too much data for this process.
        progress: called with (number of finished scenarios, total number, name of the scenario that
            begins).

    Raises:
        OlrPgError: 1093 the source is not a live database, 7200 and 7201 errors of the scratch
            schema, 7001 to 7009, 8053 and 8054 errors of the scenarios; 4044 another run uses the
            same directory.
    """
    if not isinstance(config.source, OracleSource):
        raise OlrPgError(Code.LIVE_SOURCE_NEEDED, "scenarios are run in the source database")
    # The scratch schema is in one container, so only the first configured container is used.
    one = config.source.model_copy(update={"containers": config.source.containers[:1]})
    config = config.model_copy(update={"source": one})
    assert isinstance(config.source, OracleSource)
    scenarios = chosen_scenarios(options.patterns)
    make_private_directory(options.out)
    with ExitStack() as stack:
        stack.enter_context(hold_data_lock(options.out))
        containers = ContainerDatabases(config.source)
        stack.callback(containers.close)
        oracle = containers.first
        facts = oracle.read("reading the properties of the database", read_facts)
        known = replace(facts.database, true_charsets=_sets(config.source))
        facts = facts._replace(database=known)
        told = oracle.read(
            "reading the properties of the database", lambda one: database_facts(one, facts)
        )
        run = _Run(options.out, scenarios, facts)
        scratch = stack.enter_context(
            open_scratch(config.source, config.prove, oracle, options.out / "made-user")
        )
        left = scratch.prepare()
        if left:
            _log.warning("removed objects of an earlier run that was interrupted", objects=left)
        if not options.keep:
            stack.callback(scratch.end)
        target = open_target(config.apply or EMBEDDED, options.out, stack)
        way = WholeWay(config, scratch.owner, target, options.out, session)
        way.clear()
        if not options.keep:
            stack.callback(way.end)
        trial = _Trial(config, scratch, containers, way, options)
        for number, scenario in enumerate(scenarios):
            if run.is_done(scenario):
                continue
            progress(number, len(scenarios), scenario.name)
            run.note(trial.judged(scenario))
        proof = Proof(version("olr-pg"), told, run.results())
        run.finish(proof)
    return proof


def _sets(source: OracleSource) -> tuple[tuple[str, str], ...]:
    return tuple(source.character_sets.items())


class _Run:
    """The results of the run so far, stored in files."""

    def __init__(self, out: Path, scenarios: Sequence[Scenario], facts: CurrentDatabase) -> None:
        self._out, self._scenarios = out, scenarios
        self._folder = out / RESULTS
        identity = {
            "version": version("olr-pg"),
            "dbid": facts.dbid,
            "scenarios": [one.name for one in scenarios],
            "character_sets": [list(one) for one in facts.database.true_charsets],
            "digest": hashlib.sha256(repr(scenarios).encode()).hexdigest(),
        }
        path = out / RUN
        known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        if known != identity:
            shutil.rmtree(self._folder, ignore_errors=True)
            shutil.rmtree(out / INCIDENTS, ignore_errors=True)
            replace_file(path, json.dumps(identity).encode())
        self._folder.mkdir(exist_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name.replace('/', '.')}.json"

    def is_done(self, scenario: Scenario) -> bool:
        """Return whether a scenario has a result."""
        return self._path(scenario.name).exists()

    def note(self, result: ScenarioResult) -> None:
        """Store a result."""
        replace_file(self._path(result.name), json.dumps(result.as_json(), indent=1).encode())

    def results(self) -> tuple[ScenarioResult, ...]:
        """Read all results."""
        paths = [self._path(one.name) for one in self._scenarios]
        return tuple(ScenarioResult.of(json.loads(path.read_text("utf-8"))) for path in paths)

    def finish(self, proof: Proof) -> None:
        """Write the page and the JSON. The next run begins with the first scenario again."""
        document = json.dumps(proof.as_json(), indent=1).encode()
        replace_file(self._out / DOCUMENT, document)
        replace_file(self._out / PAGE, html_page(proof).encode())
        (self._out / RUN).unlink()


class _Trial:
    """Runs scenarios, one after the other."""

    def __init__(
        self,
        config: Config,
        scratch: ScratchSchema,
        containers: ContainerDatabases,
        way: WholeWay,
        options: ProveOptions,
    ) -> None:
        assert isinstance(config.source, OracleSource)
        self._config, self._source, self._scratch = config, config.source, scratch
        self._containers, self._way, self._options = containers, way, options
        self._place = options.out / WORK

    def judged(self, scenario: Scenario) -> ScenarioResult:
        """Run a scenario; return the verdicts of the judges. An error of the scenario becomes a
        verdict.

        Raises:
            OlrPgError: the database does not answer, or its redo is not archived.
        """
        began = time.monotonic()
        try:
            self._scratch.note(made_objects(step.text for step in scenario.steps))
            verdicts = self._verdicts(scenario)
        except ScenarioFailedError as failure:
            verdicts = dict.fromkeys(Judge, Verdict(Word.UNTRIED, str(failure)))
        except OlrPgError as error:
            if error.code in _FATAL:
                raise
            verdicts = dict.fromkeys(Judge, _refusal(error))
        if not self._options.keep:
            self._way.clear()
            shutil.rmtree(self._place, ignore_errors=True)
        self._scratch.clear()
        return ScenarioResult(scenario.name, scenario.purpose, verdicts, time.monotonic() - began)

    def _verdicts(self, scenario: Scenario) -> dict[Judge, Verdict]:
        """Run a scenario and return the verdict of each judge."""
        users = (self._scratch.source, self._source)
        run_steps(self._scratch.source, scenario.steps[: scenario.start])
        names = sorted(one.name for one in self._scratch.objects() if one.kind == "TABLE")
        names.remove(JOURNAL)
        self._scratch.grant_reading(names, self._source.user)
        with _Notes(self._source, self._scratch.owner, names, self._containers) as notes:
            notes.begin()
            loading = self._loaded(names)
            every = max(sum(map(may_commit, scenario.steps[scenario.start :])) // MOMENTS_MAX, 1)
            reached = partial(self._restart, scenario, names, notes) if loading is None else _pass
            steps = scenario.steps[scenario.start :]
            run_steps(self._scratch.source, steps, partial(notes.take, every), reached)
            notes.finish(scenario.steps[-1].line)
        data = self._place / "logs"
        config = scenario_config(self._config, self._scratch.owner, names, "", data)
        first, last = notes.start.scn, notes.moments[-1].scn
        with logs_with(config, data, first, last, users) as logs:
            found = self._decoded(scenario, notes, logs)
        if loading is None:
            loading = self._way.judge(names, sorted(notes.left), last, scenario.stops)
        return {**found, Judge.WHOLE_WAY: loading}

    def _loaded(self, names: Sequence[str]) -> Verdict | None:
        """Load the tables for the end-to-end judge. If the tables cannot be loaded, return the
        verdict for this failure; otherwise None.
        """
        try:
            self._way.load(names)
        except OlrPgError as error:
            return _refusal(error)
        return None

    def _restart(
        self, scenario: Scenario, names: Sequence[str], notes: _Notes, step: ScenarioStep
    ) -> None:
        """If the scenario restarts the reader (the appliance of the end-to-end judge) before this
        statement, let it replicate up to now and end.

        When the reader continues, it must know the transactions that are open now; this is what
        such a scenario tests.
        """
        if step not in (scenario.steps[number] for number in scenario.restarts):
            return
        scn = self._containers.first.read("reading the current SCN", read_scn)
        data, users = self._place / "logs", (self._scratch.source, self._source)
        config = scenario_config(self._config, self._scratch.owner, names, "", data)
        with logs_with(config, data, notes.start.scn, scn, users):
            self._way.go_on(names)

    def _decoded(
        self, scenario: Scenario, notes: _Notes, logs: Sequence[str]
    ) -> dict[Judge, Verdict]:
        incidents = self._options.out / INCIDENTS
        try:
            events = decoded_events(notes.snapshot, logs, notes.tables, incidents)
        except OlrPgError as error:
            refused = _refusal(error)
            return {Judge.REPLAY: refused, Judge.LOGMINER: refused}
        differences = check_replay(notes.start, notes.moments, events)
        commits = len({one["xid"] for one in events if one["op"] == "commit"})
        reason = f"{counted(commits, 'commit')}, compared at {counted(len(notes.moments), 'SCN')}"
        verdict = Verdict(Word.RIGHT, reason)
        lost = [one for one in events if one["op"] == LOST]
        if lost:
            reason = f"incomplete in the redo, and reported: {counted(len(lost), 'LOB value')}"
            verdict = Verdict(Word.REFUSED, reason, f"OLR-{lost[0]['code']:05}")
        if differences:
            path = incidents / f"{scenario.name.replace('/', '.')}.incident.json"
            verdict = Verdict(
                Word.DIFFERS,
                differences=tuple(one.words for one in differences),
                incident=_incident(scenario.name, differences, logs, path),
            )
        return {Judge.REPLAY: verdict, Judge.LOGMINER: self._mined(notes, events)}

    def _mined(self, notes: _Notes, events: Sequence[Event]) -> Verdict:
        owner, first, last = self._scratch.owner, notes.start.scn, notes.moments[-1].scn
        lobs = [one for one in notes.tables if any(c.type_code in LOB_TYPES for c in one.delivered)]
        left_out = frozenset(one.full_name for one in lobs)
        if len(left_out) == len(notes.tables):
            return Verdict(
                Word.UNTRIED, "all tables have LOBs, which LogMiner shows only in pieces"
            )
        mined = logminer.read_changes(self._source, owner, first, last)
        if isinstance(mined, str):
            return Verdict(Word.UNTRIED, mined)
        converted = frozenset(
            (table.full_name, column.name)
            for table in notes.tables
            for column in table.delivered
            if is_explicit(column)
        )
        left_out |= {f"{owner}.{JOURNAL}"}
        differences = logminer.compare(mined, events, left_out, converted)
        if differences:
            return Verdict(Word.DIFFERS, differences=tuple(differences[:DIFFERENCES_MAX]))
        return Verdict(Word.RIGHT, counted(len(mined), "change"))


def _pass(_step: ScenarioStep) -> None:
    """Do nothing: there is no reader to restart, because the tables were not loaded."""


def _refusal(error: OlrPgError) -> Verdict:
    """Return the verdict for an error: either decoding refuses a form of change, or the scenario
    cannot be run in this Oracle database.
    """
    if error.code // 1000 == _ORACLE_AREA:
        return Verdict(Word.UNTRIED, f"{error.title}: {error.detail}", error.label)
    return Verdict.refused(error)


def _incident(
    scenario: str, differences: Sequence[Difference], logs: Sequence[str], path: Path
) -> str:
    """Write the incident file for the first difference with a known transaction."""
    for one in differences:
        if one.xid:
            error = difference_error(scenario, one.table, one.kind)
            return masked_incident(logs, one.xid, error, path)
    return ""


class _Notes:
    """The rows of the tables at the start and after commits, read from the source with queries.

    Attributes:
        snapshot: the dictionary at the start.
        tables: the scenario's tables, from the snapshot.
        start, moments: the rows at the start, and after commits.
        left: names of the tables that still exist.
    """

    def __init__(
        self,
        source: OracleSource,
        owner: str,
        names: Sequence[str],
        containers: ContainerDatabases,
    ) -> None:
        self._source, self._containers = source, containers
        self._names = [(owner, name) for name in names]
        self._reader: RowReader | None = None
        self._taken = 0
        self.moments: list[Moment] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    @property
    def left(self) -> list[str]:
        """Names of the tables that still exist."""
        return [one.name for one in self._now]

    def begin(self) -> None:
        """Record the dictionary and the rows at the start."""
        self.snapshot = self._dictionary()
        self.tables = find_tables(self.snapshot, self._names)
        self._now = self.tables
        self._reader = RowReader(self._source, self.snapshot.database)
        self._note(0)
        self.start = self.moments.pop()
        # No table has changed since the dictionary was read, so the dictionary is also valid at the
        # SCN of the rows.
        self.snapshot = replace(self.snapshot, scn=self.start.scn)

    def take(self, every: int, step: ScenarioStep) -> None:
        """Record the rows after a statement. Of the COMMIT statements, only every n-th is recorded.

        Args:
            every: the number n. All other statements are always recorded.
        """
        self._taken += 1
        is_commit = step.text.strip().upper().startswith("COMMIT")
        if is_commit and self._taken % every:
            return
        if not is_commit:
            self._follow()
        self._note(step.line)

    def finish(self, line: int) -> None:
        """Record the rows of the tables at the end of the scenario."""
        self._follow()
        self._note(line)

    def _dictionary(self) -> Snapshot:
        found = self._containers.read_dictionaries(self._names, structure=False)[0]
        return with_true_charsets(found, _sets(self._source))

    def _follow(self) -> None:
        """Read the tables' definitions again, so that dropped tables are no longer compared."""
        objects = {one.obj for one in self.tables}
        snapshot = self._dictionary()
        wanted = set(self._names)
        self._now = tuple(
            one for one in snapshot.tables
            if (one.owner, one.name) in wanted and one.obj in objects
        )  # fmt: skip

    def _note(self, line: int) -> None:
        """Record the current rows.

        Oracle can refuse to read a table as of an SCN that is too close to the last change of its
        definition (ORA-01466). After this error, the function tries a later SCN. The table has the
        same rows as of that SCN, because the script waits.
        """
        assert self._reader is not None
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            scn = self._containers.first.read("reading the current SCN", read_scn)
            try:
                self.moments.append(self._reader.read(self._now, scn, line))
            except OlrPgError as error:
                if error.code != SNAPSHOT_AGE or time.monotonic() > deadline:
                    raise
                time.sleep(1)
            else:
                return


_UNKNOWN: Final = "not readable"
_QUERIES: Final = {
    "patch": "SELECT VERSION_FULL FROM PRODUCT_COMPONENT_VERSION",
    "platform": "SELECT PLATFORM_NAME FROM V$DATABASE",
    "block size": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'db_block_size'",
    "compatible": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'compatible'",
    "undo management": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'undo_management'",
    "temp undo": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'temp_undo_enabled'",
    "local undo": "SELECT PROPERTY_VALUE FROM DATABASE_PROPERTIES WHERE PROPERTY_NAME ="
    " 'LOCAL_UNDO_ENABLED'",
    "log mode": "SELECT LOG_MODE FROM V$DATABASE",
    "force logging": "SELECT FORCE_LOGGING FROM V$DATABASE",
    "supplemental logging": "SELECT 'minimal ' || SUPPLEMENTAL_LOG_DATA_MIN || ', primary key ' ||"
    " SUPPLEMENTAL_LOG_DATA_PK || ', unique ' || SUPPLEMENTAL_LOG_DATA_UI || ', foreign key ' ||"
    " SUPPLEMENTAL_LOG_DATA_FK || ', all ' || SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE",
    "encrypted tablespaces": "SELECT TO_CHAR(COUNT(*)) FROM V$ENCRYPTED_TABLESPACES",
    "redo threads": "SELECT TO_CHAR(COUNT(*)) FROM V$THREAD",
    "cluster (RAC)": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'cluster_database'",
    "container database": "SELECT CDB FROM V$DATABASE",
    "role": "SELECT DATABASE_ROLE FROM V$DATABASE",
}


def database_facts(connection: Connection, current: CurrentDatabase) -> dict[str, str]:
    """Return the properties by name. If the account cannot read a property, its value says this."""
    database = current.database
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    found = {"name": database.name, "version": named_version(version) or version}
    for name, query in _QUERIES.items():
        found[name] = _asked(connection, query)
    found["container"] = database.con_name or "none"
    found["character sets"] = f"{database.charset}, national {database.ncharset}"
    if database.true_charsets:
        found["configured character sets"] = ", ".join(map(": ".join, database.true_charsets))
    found["time zone"] = database.timezone
    found["byte order"] = "big endian" if database.big_endian else "little endian"
    return found


def _asked(connection: Connection, query: str) -> str:
    try:
        row: Any = connection.execute(text(query)).first()
    except sqlalchemy.exc.DBAPIError:
        return _UNKNOWN
    return _UNKNOWN if row is None or row[0] is None else str(row[0])
