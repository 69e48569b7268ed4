"""The applier: receives changes from the replication server and applies them to PostgreSQL."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog

from olr_pg.applier.batches.batch_applier import TableProgress
from olr_pg.applier.batches.replay import replay, stopped_tables
from olr_pg.applier.batches.shared_state import SharedState
from olr_pg.applier.batches.table_queue import BlockedError, patience, unless_locked
from olr_pg.applier.batches.worker import Worker, Workers
from olr_pg.applier.session.conversation import Conversation, NotedPositions
from olr_pg.applier.session.handover import (
    Created,
    Handover,
    begin_created,
    begin_created_again,
    read_handover,
)
from olr_pg.applier.session.server_side import ServerSide, check_not_ahead, connect_over_network
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.target_plan import check_names, named_target, plan_table, target_name
from olr_pg.applier.stopped.error_table import check_stopped
from olr_pg.applier.stopped.held_tables import HeldTables
from olr_pg.applier.stopped.left_out import left_out, stop_left_out, stop_unfit
from olr_pg.applier.stopped.pausing import Pauses
from olr_pg.applier.stopped.renaming import vacant_names
from olr_pg.applier.structure_maker import StructureMaker
from olr_pg.applier.target.applied_file import ledger_positions
from olr_pg.applier.target.blockers import Blocked
from olr_pg.applier.target.catalogue import find_tables, has_rows, read_table
from olr_pg.applier.target.crash_watch import look_for_crash, lost_tables
from olr_pg.applier.target.database_kind import refuse_database
from olr_pg.applier.target.ledger import (
    ChangeCounts,
    LoadsUnderWay,
    check_source,
    check_targets,
    ensure_ledger,
    ledger_version,
    noted_complete,
    other_subscriptions,
)
from olr_pg.applier.target.outage import retry_seconds, retrying
from olr_pg.applier.target.set_aside import set_aside
from olr_pg.applier.target.table_identity import record_tables
from olr_pg.applier.target.way_back_lives import register
from olr_pg.applier.target_health import TargetHealth
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.observability.periodic import steady_time
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.stopped.pausing import Pause
    from olr_pg.applier.target.outage import Outage
    from olr_pg.applier.target_health import HealthProblem
    from olr_pg.dictionary.model import Table
    from olr_pg.monitor.status_values import LoadStatus

_log = structlog.get_logger(__name__)

_REPORT_SECONDS: Final = 10.0
"""Interval of the messages about a long creation of tables."""


class ApplyReport(NamedTuple):
    """The result of a run of the applier.

    Attributes:
        tables: counts of applied changes by ``OWNER.NAME``.
        confirmed_scn: the highest SCN that was confirmed to the server.
    """

    tables: Mapping[str, ChangeCounts]
    confirmed_scn: int


class Overview(NamedTuple):
    """A summary of all tables.

    Attributes:
        changes: number of changes that were applied since the start.
        stopped, paused, blocked: names of the tables that are stopped, that an operator has paused,
            and that other sessions in PostgreSQL block.
    """

    changes: int = 0
    stopped: Sequence[str] = ()
    paused: Sequence[str] = ()
    blocked: Sequence[str] = ()


class Applier:
    """The applier of one subscription.

    Args:
        settings: the settings, which name the target.
        source_tables: the definitions of the source's tables, if the caller knows them. To create
            tables, the applier needs keys and types that the protocol does not contain.
        server: the server that delivers changes; None for the address in the settings.
        created: tables that need no initial load, because they were created while their redo was
            read, by ``OWNER.NAME``.

    Attributes:
        is_begun: whether the target was prepared, so that the session with the server begins.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        source_tables: Sequence[Table] = (),
        server: ServerSide | None = None,
        created: Mapping[str, Created] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._created = created
        here = partial(connect_over_network, settings.host, settings.port)
        self._server = server or ServerSide(here)
        self._shared = SharedState(settings, {table.full_name: table for table in source_tables})
        self._health = TargetHealth(settings, self._loaded_tables)
        self._structure = StructureMaker(settings)
        self._target = self._shared.connection(self._shared.applied.check)
        self._workers = Workers((), self._shared)
        self._locked: dict[str, Blocked] = {}
        self._held = HeldTables(settings.subscription)
        self._loads = LoadsUnderWay(settings.subscription)
        self._pauses = Pauses(settings.subscription)
        self._session: Conversation | None = None
        self._resumed: dict[str, OlrPgError] = {}
        self._before: dict[str, int] = {}
        self._complete_before = 0
        self._is_complete = False
        self.is_begun = False

    @property
    def tables(self) -> list[TableProgress]:
        """The progress of the known tables; thread-safe."""
        begun = {table.name: table for table in self._workers.progress()}
        stopped, paused = self._shared.stopped.copy(), self._pauses.tables
        locked = {one.table for one in self._workers.blocked() if one.is_held}
        odd = begun.keys() | stopped.keys() | paused | locked
        none = ChangeCounts()
        found = [
            TableProgress(
                name,
                self._position_before(name),
                0,
                None,
                none,
                None,
                incomplete=self._held.incomplete(name),
            )
            for name in self._shared.tables
            if name not in odd
        ]
        for name in odd & (begun.keys() | stopped.keys() | self._shared.tables.keys()):
            table = begun.get(name)
            if table is None:
                table = TableProgress(name, 0, 0, None, none, stopped.get(name))
            error = self._current(table)
            is_held = error is not None or name in paused or name in locked
            found.append(
                table._replace(
                    commit_scn=table.commit_scn or self._position_before(name),
                    error=error,
                    altered=self._settings.losses.of(name),
                    held=self._held.first(name) if is_held else None,
                    paused=name in paused,
                    incomplete=self._held.incomplete(name),
                )
            )
        return found

    @property
    def overview(self) -> Overview:
        """What `tables` says about all tables together; thread-safe. The summary reads only the
        tables that have received changes, so it is cheap if there are many tables.
        """
        progress = self._workers.progress()
        begun = {table.name for table in progress}
        stopped = {table.name for table in progress if self._current(table) is not None}
        stopped |= {
            name
            for name, error in self._shared.stopped.copy().items()
            if name not in begun and error is not self._resumed.get(name)
        }
        known = begun | stopped | self._shared.tables.keys()
        return Overview(
            sum(table.counters.changes for table in progress),
            sorted(stopped),
            sorted(self._pauses.tables & known),
            [one.table for one in self.blocked if one.table in known],
        )

    def _current(self, table: TableProgress) -> OlrPgError | None:
        """Return the error that stops a table; None if a command has resumed the table since."""
        return None if table.error is self._resumed.get(table.name) else table.error

    def _errors(self) -> dict[str, OlrPgError]:
        """Return the error of each table that was stopped when it was last written."""
        found = self._shared.stopped.copy()
        found |= {one.name: one.error for one in self._workers.progress() if one.error is not None}
        return found

    def _loaded_tables(self) -> list[Table]:
        """Return the source's tables that are not being loaded. A load creates indexes last, so
        missing indexes of a table are no problem while it is loaded.
        """
        loading = {load.table for load in self._loads.loads}
        return [table for name, table in self._shared.tables.items() if name not in loading]

    def _position_before(self, table: str) -> int:
        """Return a table's position before this run, or before the connection was lost."""
        return max(self._before.get(table, 0), self._shared.applied.scn_of(table))

    @property
    def loads(self) -> Sequence[LoadStatus]:
        """The initial loads that were in progress when the target was last queried; thread-safe."""
        return self._loads.loads

    @property
    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """The threads of each worker that works on a batch; thread-safe."""
        return self._workers.busy_threads()

    @property
    def blocked(self) -> Sequence[Blocked]:
        """The tables that other sessions in PostgreSQL block, with those sessions; thread-safe."""
        found = {one.table: one for one in (*self._shared.watch.blocked, *self._workers.blocked())}
        return sorted(found.values(), key=lambda one: one.table)

    @property
    def health(self) -> Sequence[HealthProblem]:
        """Problems that make the target slow or full; thread-safe."""
        return self._health.problems

    @property
    def crowded_out(self) -> Sequence[Blocked]:
        """The blocked tables, if so many changes are unconfirmed that no table receives more; else
        empty.
        """
        session = self._session
        is_full = self._shared.room.is_short or (session is not None and session.is_full)
        return [one for one in self._workers.blocked() if is_full and not one.is_held]

    @property
    def pause(self) -> Pause | None:
        """The pause of the whole subscription, or None; thread-safe."""
        return self._pauses.whole

    def _look_at_target(self) -> None:
        """Read states from the target.

        Raises:
            OlrPgError: 5140, a command of a later release has upgraded the ledger, and may have
                given it another meaning.
        """
        before, stopped, errors = self._pauses.whole, self._held.stopped, self._errors()
        looks = (ledger_version, self._held.look, self._loads.look, self._pauses.look)
        for look in looks:
            self._target.use(look)
        # A worker notices that a command has resumed its table only with the table's next batch,
        # which may be hours later. An error that the ledger has not recorded yet is not forgotten.
        for name in (stopped - self._held.stopped) & errors.keys():
            self._resumed[name] = errors[name]
        after = self._pauses.whole
        if (before is None) != (after is None):
            _log.info("paused" if after else "resumed", by=after.by if after else None)

    @property
    def outage(self) -> Outage | None:
        """The target outage in progress; None if the target answers."""
        return self._shared.outage.current

    @property
    def confirmed_scn(self) -> int:
        """The highest SCN that was confirmed to the server, in this run or in an earlier one."""
        confirmed = 0 if self._session is None else self._session.confirmed_scn
        return max(confirmed, self._complete_before)

    def wake(self) -> None:
        """Make `run` request changes at once, because the server has new changes; thread-safe."""
        self._shared.progress.set()

    def drain(self) -> None:
        """Make `run` request nothing more, apply and confirm all received changes, and end."""
        self._shared.drain.set()
        self._shared.progress.set()

    def stop(self) -> None:
        """Make `run` end after the current batches. Any thread or signal handler can call this
        method.
        """
        self._shared.stop.set()
        self._shared.progress.set()
        self._shared.room.wake()

    def abandon(self) -> None:
        """Make `run` end at once by cancelling running statements; thread-safe."""
        self.stop()
        self._shared.watch.abandon()

    def run(self, *, once: bool = False, drained: Callable[[], bool] | None = None) -> ApplyReport:
        """Apply changes until `stop` or `drain` is called.

        Args:
            once: also end when the source has no more changes, and all changes are durable and
                confirmed.
            drained: returns whether the server has read all redo of the source. If `drained` is
                None, `once` ends the run at the server's first NoMore.

        Raises:
            OlrPgError: 5003–5027; 5010, tables are stopped when the run ends.
        """
        if once and self._settings.outage_seconds is None:
            bound = self._settings.start_seconds
            self._settings = replace(self._settings, outage_seconds=bound)
        self._shared.watch.start()
        self._health.start()
        self._structure.start()
        try:
            return self._run(once=once, drained=drained or (lambda: True))
        except psycopg.Error as error:
            raise target_error(error) from error
        finally:
            self._target.close()
            self._health.stop()
            self._structure.stop()
            if self._is_complete:
                self._structure.finish()
            self._shared.watch.stop()

    def _run(self, *, once: bool, drained: Callable[[], bool]) -> ApplyReport:
        try:
            handover = self._reach_target(once=once)
            if once and self._pauses.whole is not None:
                raise OlrPgError(
                    Code.SUBSCRIPTION_PAUSED,
                    f"the subscription was paused by {self._pauses.whole.by}",
                    subscription=self._settings.subscription,
                )
        except psycopg.Error:
            if self.is_ending:
                return ApplyReport({}, 0)
            raise
        self._workers = workers = self._make_workers()
        self._session = session = Conversation(
            workers,
            NotedPositions(
                self._settings.subscription, self._target, handover, self._shared.applied
            ),
            self._server,
            self._pauses,
            self._look_at_target,
        )
        try:
            workers.start()
            self._run_sessions(session, once=once, drained=drained)
        finally:
            workers.close()
            self._shared.applied.save()
        workers.check()
        # Tables that are stopped do not keep the others from getting their indexes and constraints.
        self._is_complete = once and not self.is_ending
        self._conclude(session, once=once)
        return ApplyReport(
            {one.name: one.counters for one in workers.progress()}, session.confirmed_scn
        )

    def _reach_target(self, *, once: bool) -> Handover:
        """Prepare the target. Retry while the target is unreachable, unless the run should end or
        `once` is set.
        """

        def passes(error: BaseException) -> bool:
            return not (once or self.is_ending) and _may_pass(error)

        reaching = retrying(
            "preparing the target",
            passes,
            lambda _: self._settings.start_seconds,
            self._shared.stop,
        )
        handover: Handover = reaching(self._target.use, self._prepare)
        self.is_begun = True
        return handover

    @property
    def is_ending(self) -> bool:
        """Return whether the run should end; thread-safe."""
        return self._shared.is_ending

    def _make_workers(self) -> Workers:
        workers = [
            Worker(number, self._shared)
            for number in range(1 if self._is_stream else max(1, self._settings.workers))
        ]
        made = Workers(workers, self._shared)
        for blocked in self._locked.values():
            made.of(blocked.table).replay_unlocked(blocked)
        return made

    def _conclude(self, session: Conversation, *, once: bool) -> None:
        """Record the end of the run in the target, and raise if tables are stopped.

        If the connection was lost without notice while the target was not used, open a new one.
        """
        noting = retrying(
            "recording the end in the target",
            _may_pass,
            partial(retry_seconds, self._settings),
            self._shared.stop,
        )
        steps: list[Callable[[], None]] = [session.note]
        if once and not self.is_ending:
            steps.append(partial(self._target.use, self._replay_locked))
        steps.append(partial(self._target.use, self._stop_lost))
        steps.append(partial(self._target.use, self._check_stopped))
        for step in steps:
            was_open = self._target.is_open
            try:
                noting(step)
            except psycopg.Error as error:
                # `stop` ends all retries. Make one more attempt nevertheless if the connection was
                # open before: it may have been lost long ago without notice.
                if not (was_open and _may_pass(error)):
                    raise
                noting(step)

    @property
    def _is_stream(self) -> bool:
        return self._settings.consistency is Consistency.TRANSACTION

    def _prepare(self, connection: Connection[Any]) -> Handover:
        """Check and prepare the target before the first request to the server."""
        check_names(self._settings, self._shared.tables.values())
        refuse_database(connection, self._settings)
        ensure_ledger(connection)
        look_for_crash(connection, self._settings.subscription)
        targets = {
            name: ".".join(target_name(self._settings, table.owner, table.name))
            for name, table in self._shared.tables.items()
        }
        subscription = self._settings.subscription
        check_targets(connection, subscription, targets)
        check_source(connection, subscription, self._settings.dbid, targets)
        others = other_subscriptions(
            connection, subscription, targets, dbid=self._settings.dbid,
            start_scn=self._settings.start_scn,
        )  # fmt: skip
        for problem, is_certain in others:
            if is_certain:
                raise problem
            _log.warning("another subscription has filled a table", error=str(problem))
        check_not_ahead(
            connection, subscription, self._server.logs.current_scn, targets, self._shared.stop
        )
        register(connection, subscription, self._settings.known_ledgers, targets)
        set_aside(
            connection,
            self._settings,
            (target_name(self._settings, t.owner, t.name) for t in self._shared.tables.values()),
        )
        stop_unfit(connection, self._settings, self._shared.tables)
        record_tables(connection, subscription)
        self._begin_created_again(connection)
        begun = {name: one.scn for name, one in self._created.items()}
        stop_left_out(connection, self._settings, self._shared.tables, begun)
        if self._settings.create_tables:
            renamed = {name for name, one in self._created.items() if one.is_renamed}
            renamed |= vacant_names(connection, subscription)
            self._create_missing(
                connection,
                [one for name, one in self._shared.tables.items() if name not in renamed],
            )
        self._begin_created(connection)
        self._replay_stopped(connection)
        self._held.look(connection)
        self._pauses.look(connection)
        positions = ledger_positions(connection, subscription)
        self._before = {name: reach.commit_scn for name, reach in positions.items()}
        self._complete_before = noted_complete(connection, subscription)
        if self._is_stream:
            self._check_stopped(connection)
            for name in sorted(self._pauses.tables):
                # A stream applies new changes at once, so it would skip the held changes of this
                # table.
                raise OlrPgError(
                    Code.TABLE_NOT_PAUSABLE,
                    'the table was paused before `apply.consistency` was set to "transaction"',
                    action=f"resume the table with `olr-pg tables resume {shlex.quote(name)}`, then"
                    " start again",
                    table=name,
                )
        found = read_handover(connection, subscription, self._shared.tables)
        if found.scn:
            _log.info("continuing from the initial load", scn=found.scn, start_scn=found.start_scn)
        if found.unlisted:
            _log.warning(
                "redo is kept for loaded tables that are not replicated",
                tables=", ".join(sorted(found.unlisted)),
                action="to replicate a table, add it to `apply.tables`. If a pattern there selects"
                " the table, it was renamed shortly before its load: load it again with `olr-pg"
                " initial-load --anew --table OWNER.NAME`. If you do not replicate it, run `olr-pg"
                " tables remove OWNER.NAME`: then the redo since its load can be deleted",
            )
        return found

    def _begin_created_again(self, connection: Connection[Any]) -> None:
        listed = self._created.keys() & self._shared.tables.keys()
        subscription = self._settings.subscription
        for name in left_out(connection, subscription, listed):
            made = self._created[name]
            begin = partial(begin_created_again, connection, subscription, name, made)
            self._begin(connection, made, begin)

    def _begin(self, connection: Connection[Any], made: Created, begin: Callable[[], bool]) -> bool:
        """Record with `begin` that replication starts at the creation of a table. If it starts with
        the oldest log, check that this log contains the creation: logs may have been deleted since
        its redo was read.

        Raises:
            OlrPgError: 2010, the log is missing; nothing is recorded.
        """
        if made.start_scn:
            return begin()
        with connection.transaction():
            is_begun = begin()
            if is_begun:
                self._server.logs.check_from(made.scn)
        return is_begun

    def _begin_created(self, connection: Connection[Any]) -> None:
        for name in sorted(self._created.keys() & self._shared.tables.keys()):
            target = named_target(self._settings, name)
            made = self._created[name]
            named = self._settings.subscription, name, ".".join(target)
            if not self._begin(connection, made, partial(begin_created, connection, *named, made)):
                continue
            there = read_table(connection, *target)
            if there is not None and has_rows(connection, there.identifier):
                error = OlrPgError(Code.TARGET_TABLE_NOT_EMPTY, there.full_name, table=name)
                _log.warning("a new table of Oracle already has rows in the target", error=error)

    def _replay_stopped(self, connection: Connection[Any]) -> None:
        """Replay the stopped tables, because an operator may have removed the reason why they
        stopped. Repeat it for the others if a table resumes: a table can resume only after the
        table that was renamed to it.
        """
        before: list[str] = []
        while (stopped := stopped_tables(connection, self._settings.subscription)) != before:
            for table in stopped:
                self._replay(connection, table)
            before = stopped

    def _replay(self, connection: Connection[Any], table: str, *, patient: bool = False) -> None:
        """Apply the held changes of a table until one fails or a lock of another session blocks
        it.
        """
        self._shared.stopped.pop(table, None)
        self._locked.pop(table, None)
        work = partial(replay, settings=self._settings, table=table)
        try:
            milliseconds = patience(patient=patient)
            error = unless_locked(connection, work, milliseconds, is_brief=False).error
        except BlockedError as blocked:
            self._locked[table] = Blocked(table, steady_time(), blocked.error)
            return
        if error is not None:
            _log.error("table is still stopped", table=table, error=str(error), action=error.action)
            self._shared.stopped[table] = error

    def _replay_locked(self, connection: Connection[Any]) -> None:
        """Try once more to replay the tables whose changes are held because of a lock, because
        nothing retries them after the end of the run.
        """
        for one in self._workers.blocked():
            if one.is_held:
                self._replay(connection, one.table, patient=True)

    def _stop_lost(self, connection: Connection[Any]) -> None:
        """Stop the tables that a crash of PostgreSQL has emptied during the run, even if they have
        no new changes.
        """
        lost = lost_tables(connection, self._settings.subscription)
        known = {name: self._shared.tables[name] for name in lost if name in self._shared.tables}
        stop_unfit(connection, self._settings, known)

    def _check_stopped(self, connection: Connection[Any]) -> None:
        check_stopped(connection, self._settings.subscription)

    def _create_missing(self, connection: Connection[Any], tables: Sequence[Table]) -> None:
        """Create the tables that the target lacks. There can be tens of thousands."""
        wanted: dict[tuple[str, str], Table] = {}
        for table in tables:
            if table.refusal is None:
                wanted.setdefault(target_name(self._settings, table.owner, table.name), table)
        found = find_tables(connection, wanted)
        missing = [name for name in wanted if name not in found]
        reported_at = time.monotonic()
        for done, name in enumerate(missing):
            if time.monotonic() - reported_at >= _REPORT_SECONDS:
                reported_at = time.monotonic()
                _log.info("creating tables in the target", done=done, all=len(missing))
            self._create(connection, wanted[name])

    def _create(self, connection: Connection[Any], table: Table) -> None:
        try:
            plan_table(connection, self._settings, table, table)
        except OlrPgError as error:
            # The other tables continue. This table stops at its first change.
            _log.warning(
                "could not create a table in the target", table=table.full_name, error=str(error)
            )

    def _run_sessions(
        self, session: Conversation, *, once: bool, drained: Callable[[], bool]
    ) -> None:
        """Run a session; start a new one each time the connection to the server is lost."""
        opening = retrying(
            "connecting to the decoder's port",
            lambda error: isinstance(error, OSError) or _may_pass(error),
            partial(retry_seconds, self._settings),
            self._shared.stop,
        )
        while not self._shared.is_ending:
            try:
                opening(session.open)
            except OSError as error:
                if self._shared.stop.is_set():
                    return
                raise OlrPgError(
                    Code.SERVER_UNREACHABLE,
                    plain_reason(error),
                    address=f"{self._settings.host}:{self._settings.port}",
                ) from error
            except psycopg.Error:
                if self._shared.stop.is_set():
                    return
                raise
            try:
                session.converse(once=once, drained=drained)
                return
            except ConnectionError as error:
                if not self._shared.stop.is_set():
                    _log.warning(
                        "lost the connection to the decoder's port", error=plain_reason(error)
                    )
            finally:
                session.close()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, psycopg.Error) and is_transient(error)
