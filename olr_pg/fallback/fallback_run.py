"""Applies the transactions that commit in PostgreSQL to Oracle, in commit order.

Several PostgreSQL transactions are written in one Oracle transaction, as net changes per table. If
Oracle refuses the batch, the batch is applied again, transaction by transaction and change by
change. So the run finds the change that Oracle refuses. The table of that change is stopped; the
other tables continue. While a table is stopped, the replication slot keeps the WAL from the
transaction that stopped it. The changes of the table are not stored anywhere else.

The ledger in Oracle is updated in the same transaction as the rows. The slot is confirmed after
that commit. If the process is killed between the two, PostgreSQL sends transactions again that
Oracle already has, and the run skips them.

While a table is stopped, the run checks periodically whether it was resumed. After a resume, the
run reads the WAL again from the point at which that table stopped. During this second reading, the
run skips changes of the other tables, because Oracle already has them.
"""

from __future__ import annotations

import time
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg
import structlog

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.statement_watch import StatementWatch
from olr_pg.errors import Code, OlrPgError, format_place, located
from olr_pg.fallback.oracle_ledger import LedgerState, OracleLedger, Record, TableStop, open_account
from olr_pg.fallback.oracle_set_aside import OracleSetAside
from olr_pg.fallback.oracle_writer import CONSTRAINT, NetRows, OracleWriter, check_bytes_are_kept
from olr_pg.fallback.pgoutput import Relation, TransactionReader, Truncate, lsn_number, lsn_text
from olr_pg.fallback.preparation import (
    begin,
    end_life,
    log_whole_rows_of_partitions,
    read_beginning,
    read_invalidation,
    read_slot,
    remove_target,
    wait_until_free,
)
from olr_pg.fallback.relation_plans import (
    OWN_TABLES,
    PartitionWatch,
    RelationPlans,
    target_tables,
    unpublished,
)
from olr_pg.fallback.slot_stream import SlotStream
from olr_pg.oracle.driver.bounded_calls import PASSING, oracle_error
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import Connection

    from olr_pg.fallback.pgoutput import Transaction
    from olr_pg.fallback.preparation import Prepared, Slot
    from olr_pg.fallback.relation_plans import RelationPlan
    from olr_pg.fallback.slot_stream import System
    from olr_pg.fallback.way_back import WayBack

POLL_SECONDS: Final = 0.5
BATCH_BYTES: Final = 8 << 20
IDLE_SECONDS: Final = 30.0
"""Interval at which the ledger's position is moved past WAL that contains no changes, so that
PostgreSQL can remove that WAL.
"""

LOOK_SECONDS: Final = 1.0
"""Interval at which a run checks whether stopped tables were resumed."""

PUBLICATION_SECONDS: Final = 10.0
"""Interval at which a run checks whether PostgreSQL still publishes all tables."""

FIRST_WAIT_SECONDS: Final = 0.2
LAST_WAIT_SECONDS: Final = 10.0

_OF_TABLE: Final = frozenset(
    {
        *(Code.FALLBACK_CONFLICT, Code.FALLBACK_ROW_WITHOUT_KEY, Code.FALLBACK_ROW_UNREADABLE),
        *(Code.FALLBACK_TABLE_UNFIT, Code.FALLBACK_TABLE_CHANGED, Code.ORACLE_ERROR),
        *(Code.ORACLE_PRIVILEGE,),
    }
)
"""Errors that stop only one table: the table whose change caused the error."""

_PASSING_NUMBERS: Final = (
    # Locks and deadlocks.
    *("ORA-00054", "ORA-00060", "ORA-02049", "ORA-04020", "ORA-04021", "ORA-08177", "ORA-30006"),
    # Memory, undo, archived logs, and the temporary tablespace are full; undo was overwritten.
    *("ORA-04030", "ORA-04031", "ORA-04036", "ORA-30036", "ORA-00257", "ORA-01652"),
    *("ORA-01555", "ORA-22924"),
    # The database has become a standby, and the service moves to the primary.
    *("ORA-16000", "ORA-16456"),
    # The network, and a session that has moved to another instance.
    *("ORA-12153", "ORA-12547", "ORA-12570", "ORA-25402", "ORA-25408", "ORA-25425"),
    # Code that the statement needs was compiled again.
    *("ORA-04061", "ORA-04065", "ORA-04068"),
)
"""Oracle's errors that do not depend on the change, after which the batch is retried. A table would
stop until somebody resumes it.
"""

_TABLE_OF_CONSTRAINT: Final = """
SELECT table_name FROM sys.dba_constraints WHERE owner = :1 AND constraint_name = :2
"""

_PLACES: Final[tuple[str, ...]] = ("column", "policy")
"""Parts of an error's location that are included in the reason of a stopped table."""

_log = structlog.get_logger(__name__)


class Status(NamedTuple):
    """The progress of a fallback.

    Attributes:
        begun: the record in the target of the fallback's start; None if the fallback has not begun.
        slot: the replication slot; None if it is missing.
        ledger: the ledger in Oracle; None if it is missing.
        lag_bytes: bytes of WAL that are not yet applied to Oracle.
        set_aside: SQL statements that enable the triggers and foreign keys that are disabled in
            Oracle.
        records: the differences that policies caused, each with its count.
        container: the name of the PDB, if the source has several; otherwise empty.
        containers: the status of each PDB, if this is the joined status of several.
    """

    begun: str | None
    slot: Slot | None
    ledger: LedgerState | None
    lag_bytes: int | None
    set_aside: list[str]
    records: dict[Record, int] = {}  # noqa: RUF012 - of a tuple; nobody writes to it
    container: str = ""
    containers: tuple[Status, ...] = ()


def prepare(way: WayBack) -> Prepared:
    """Create the missing objects that the fallback needs in PostgreSQL and Oracle, and set the list
    of published tables. A fallback that has begun keeps its position.

    Raises:
        OlrPgError: see `preparation.begin`; 7351, Oracle changes the bytes of text with a
            configured character set.
    """
    with _coded(way), ExitStack() as stack:
        target = _open_target(way, stack)
        stream = _open_stream(way, stack)
        oracle = _open_oracle(way, stack)
        check_bytes_are_kept(oracle, way.tables)
        return begin(way, target, OracleLedger(oracle, way.subscription), stream.identify())


def status(way: WayBack) -> Status:
    """Return the progress of the fallback."""
    with _coded(way), ExitStack() as stack:
        target = _open_target(way, stack)
        connection = _open_oracle(way, stack)
        oracle_ledger = OracleLedger(connection, way.subscription)
        ledger = oracle_ledger.read()
        aside = OracleSetAside(connection, way.subscription, way.tables).noted()
        lag = None
        if ledger is not None:
            row = target.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s::pg_lsn)::int8",
                (lsn_text(ledger.lsn),),
            ).fetchone()
            lag = None if row is None else max(0, row[0])
        return Status(
            begun=read_beginning(target, way),
            slot=read_slot(target, way.slot),
            ledger=ledger,
            lag_bytes=lag,
            set_aside=[one.enabling for one in aside],
            records=oracle_ledger.records(),
            container=way.container,
        )


def status_of_all(ways: Sequence[WayBack]) -> Status:
    """Return the joined progress of the fallbacks to all PDBs."""
    return joined([status(way) for way in ways])


def joined(found: Sequence[Status]) -> Status:
    """Join the status of all PDBs.

    The joined status has the position and the slot of the PDB that is furthest behind. If one PDB
    lacks its slot or its ledger, the joined status lacks it too. `containers` contains the status
    of each PDB.
    """
    if len(found) == 1:
        return found[0]
    slots = [one.slot for one in found if one.slot is not None]
    ledgers = [one.ledger for one in found if one.ledger is not None]
    lags = [one.lag_bytes for one in found if one.lag_bytes is not None]
    begun = [one.begun for one in found if one.begun is not None]
    return Status(
        begun="; ".join(begun) if len(begun) == len(found) else None,
        slot=_furthest_behind(slots) if len(slots) == len(found) else None,
        ledger=_ledger_of_all(ledgers) if len(ledgers) == len(found) else None,
        lag_bytes=max(lags) if len(lags) == len(found) else None,
        set_aside=[statement for one in found for statement in one.set_aside],
        records={record: count for one in found for record, count in one.records.items()},
        containers=tuple(found),
    )


def _furthest_behind(slots: Sequence[Slot]) -> Slot:
    lost = [one for one in slots if one.wal_bytes is None or one.wal_status == "lost"]
    most = max(slots, key=lambda one: one.wal_bytes or 0)
    return (lost[0] if lost else most)._replace(
        lsn=min(one.lsn for one in slots), is_active=all(one.is_active for one in slots)
    )


def _ledger_of_all(ledgers: Sequence[LedgerState]) -> LedgerState:
    behind = min(ledgers, key=lambda one: one.lsn)
    return behind._replace(
        transactions=sum(one.transactions for one in ledgers),
        stops={name: stop for one in ledgers for name, stop in one.stops.items()},
    )


def resume_table(way: WayBack, table: str, *, skip: bool = False) -> bool:
    """Resume a stopped table; return whether it was stopped.

    Args:
        skip: whether to skip the table's changes in the transaction that stopped it.
    """
    with _coded(way), ExitStack() as stack:
        connection = _open_oracle(way, stack)
        ledger = OracleLedger(connection, way.subscription)
        resumed = ledger.resume_table(table, skip=skip)
        connection.commit()
        return resumed


def end(way: WayBack) -> None:
    """Remove the slot and the publication from PostgreSQL and the ledger from Oracle.

    First, enable the triggers and foreign keys in Oracle again.

    Raises:
        OlrPgError: 7302 a process still reads the slot, 7316 Oracle refuses to enable a trigger or
            foreign key.
    """
    with _coded(way), ExitStack() as stack:
        connection = _open_oracle(way, stack)
        target = _open_target(way, stack)
        wait_until_free(target, way.slot)
        aside = OracleSetAside(connection, way.subscription, way.tables)
        aside.put_back()
        aside.remove()
        remove_target(way, target)
        ledger = OracleLedger(connection, way.subscription)
        end_life(way, target, ledger, lambda: _open_stream(way, stack).identify())
        ledger.remove()


def run_all(
    ways: Sequence[WayBack],
    *,
    once: bool = False,
    progress: Callable[[WayBack, LedgerState], None] = lambda _way, _state: None,
) -> int:
    """Run the fallbacks to all PDBs at the same time, each in a thread; return the sum of their
    results.

    With `once`, the fallbacks to all PDBs finish before an error is raised. Without `once`, the
    first error stops the fallbacks to all PDBs, so that an operator notices that the service cannot
    continue.

    Raises:
        OlrPgError: see `run`.
    """
    if len(ways) == 1:
        return run(ways[0], once=once, progress=partial(progress, ways[0]))
    stopping = Event()
    with ThreadPoolExecutor(max(1, len(ways)), "olr-way-back") as threads:
        runs = [
            threads.submit(run, way, once=once, progress=partial(progress, way), stopping=stopping)
            for way in ways
        ]
        try:
            wait(runs, return_when=ALL_COMPLETED if once else FIRST_EXCEPTION)
        finally:
            stopping.set()
    return sum([one.result() for one in runs])


def run(
    way: WayBack,
    *,
    once: bool = False,
    progress: Callable[[LedgerState], None] = lambda _: None,
    stopping: Event | None = None,
) -> int:
    """Apply the transactions that commit in PostgreSQL to Oracle, until the process ends; return
    the number of row changes that were sent to Oracle. Row changes that were sent again, because
    Oracle refused a batch or a connection was lost, count again.

    If PostgreSQL or Oracle cannot be reached, retry without limit.

    Args:
        once: end when Oracle has all transactions that had committed in PostgreSQL at the start of
            the run.
        progress: called after each commit in Oracle.
        stopping: the run ends when this event is set.

    Raises:
        OlrPgError: 7301 to 7305 the fallback cannot continue, 7307 tables are stopped (only with
            `once`).
    """
    with _of_container(way):
        return _run(way, progress, stopping or Event(), once=once)


def _run(
    way: WayBack, progress: Callable[[LedgerState], None], stopping: Event, *, once: bool
) -> int:
    watch = StatementWatch(way.connect_string, way.settings.answer_seconds)
    watch.start()
    try:
        return _run_sessions(way, progress, stopping, watch, once=once)
    finally:
        watch.stop()


def _run_sessions(
    way: WayBack,
    progress: Callable[[LedgerState], None],
    stopping: Event,
    watch: StatementWatch,
    *,
    once: bool,
) -> int:
    changes = 0
    pause, mark, was_connected = FIRST_WAIT_SECONDS, None, False
    while not stopping.is_set():
        try:
            with ExitStack() as stack:
                session = _Session(way, stack, progress, stopping, watch)
                was_connected = True
                if once and mark is None:
                    mark = session.mark()
                try:
                    if not session.follow(mark):
                        continue
                finally:
                    changes += session.changes
                    if session.has_progress:
                        pause = FIRST_WAIT_SECONDS
                _raise_stopped(session.state)
                return changes
        except OlrPgError as error:
            if error.code != Code.FALLBACK_SLOT_IN_USE or not was_connected:
                raise
            # The slot is in use because PostgreSQL has not yet noticed that this process lost its
            # connection.
            _log.warning("the way back is retrying", reason=str(error), seconds=pause)
        except _PassingError as error:
            _log.warning("the way back is retrying", reason=str(error), seconds=pause)
        stopping.wait(pause)
        pause = min(2 * pause, LAST_WAIT_SECONDS)
    return changes


class _PassingError(Exception):
    """Raised for a temporary failure: PostgreSQL or Oracle cannot be reached, or another session
    holds a lock.
    """


def _raise_stopped(state: LedgerState) -> None:
    stopped = {name: one for name, one in state.stops.items() if one.is_stopped}
    if stopped:
        reasons = "; ".join(f"{name}: {one.reason}" for name, one in sorted(stopped.items()))
        raise OlrPgError(Code.FALLBACK_TABLES_STOPPED, reasons)


class _Session:
    """A session: a connection to PostgreSQL, a connection to Oracle, and the replication stream.

    Attributes:
        state: the state of the ledger.
        has_progress: whether a transaction was committed in Oracle.
        changes: number of row changes that were sent to Oracle.
    """

    def __init__(
        self,
        way: WayBack,
        stack: ExitStack,
        progress: Callable[[LedgerState], None],
        stopping: Event,
        watch: StatementWatch,
    ) -> None:
        self._way = way
        self._stopping = stopping
        self._progress = progress
        with _passing():
            self._target = _open_target(way, stack, watch)
            self._stream = _open_stream(way, stack, watch)
            self._oracle = _open_oracle(way, stack)
            self._ledger = OracleLedger(self._oracle, way.subscription)
            self.state = self._checked_state(self._stream)
            aside = OracleSetAside(self._oracle, way.subscription, way.tables).set_aside()
            if aside:
                _log.info(
                    "disabled triggers and foreign keys in Oracle",
                    statements=[one.disabling for one in aside],
                )
            # The plans read the tables' OIDs. They come first, so that the check notices a table
            # that was renamed before the OIDs were read, and the OIDs identify it afterwards.
            self._plans = RelationPlans(way, self._target)
            self._check_publication()
            self._partitions = PartitionWatch(way, self._target)
            self._start()
        self._reader = TransactionReader(way.directory)
        stack.callback(self._reader.close)
        self._writer = OracleWriter(self._oracle, way.conflict)
        self._idle_since = self._looked_at = time.monotonic()
        self.has_progress = False
        self.changes = 0

    def mark(self) -> int:
        """Write a message into PostgreSQL's WAL; return its LSN. PostgreSQL sends transactions that
        committed earlier before this message.
        """
        with _passing():
            found = self._target.execute(
                "SELECT pg_logical_emit_message(true, 'olr_pg', '')::text"
            ).fetchone()
        assert found is not None
        return lsn_number(str(found[0]))

    def follow(self, mark: int | None) -> bool:
        """Apply the transactions that arrive; return when Oracle has all transactions that
        committed before `mark`.

        Returns:
            True if Oracle has all these transactions. False if the run must stop, or if a table was
            resumed, so that the caller must start a new session.
        """
        batch: list[Transaction] = []
        while mark is None or self.state.lsn < mark:
            if self._stopping.is_set():
                return False
            with _passing():
                data = self._stream.next_message(0 if batch else POLL_SECONDS)
            ended = None if data is None else self._reader.feed(data)
            if ended is not None:
                if batch and self._is_known(batch[0]) != self._is_known(ended):
                    self._apply(batch)  # do not mix new and repeated transactions
                    batch = []
                batch.append(ended)
            if batch and (data is None or self._is_full(batch)):
                self._apply(batch)
                batch = []
            elif data is None:
                self._rest()
                with _passing():
                    self._stream.check(self._target)
            if not batch and self._is_resumed():
                _log.info("a table of the way back was resumed")
                return False
            if not batch and time.monotonic() - self._published_at >= PUBLICATION_SECONDS:
                self._check_publication()
                self._report_partitions()
        self._check_publication()
        return True

    def _report_partitions(self) -> None:
        with _passing():
            for one in self._partitions.emptied():
                _log.warning(
                    "a partition was truncated, rewritten or removed in PostgreSQL, which does not"
                    " send this: its rows may still be in Oracle",
                    **one._asdict(),
                )

    def _check_publication(self) -> None:
        """Stop the tables whose changes PostgreSQL does not publish any more. The stream does not
        show this, so the publication is read.

        Raises:
            OlrPgError: 7320, PostgreSQL does not publish the tables that show which transactions
                came from Oracle.
        """
        with _passing():
            log_whole_rows_of_partitions(self._way, self._target)
            missing = self._plans.replaced() | unpublished(self._way, self._target)
            for place in OWN_TABLES:
                if place in missing:
                    raise OlrPgError(Code.FALLBACK_NOT_PUBLISHED, missing[place])
            for place, table in target_tables(self._way).items():
                if place in missing and table.full_name not in self._stopped():
                    error = OlrPgError(Code.FALLBACK_NOT_PUBLISHED, missing[place])
                    late = self.state.stops.get(table.full_name)
                    # No transaction has failed, so there is none that `skip` could skip.
                    lsn = self.state.lsn if late is None else late.lsn
                    self._stop(table.full_name, error, lsn)
        self._published_at = time.monotonic()

    def _is_resumed(self) -> bool:
        """Return whether a stopped table was resumed; check this at most once per
        `LOOK_SECONDS`.
        """
        now, stopped = time.monotonic(), self._stopped()
        if not stopped or now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        with _passing():
            found = self._ledger.read()
        return found is not None and any(
            name not in found.stops or not found.stops[name].is_stopped for name in stopped
        )

    def _is_full(self, batch: Sequence[Transaction]) -> bool:
        changes = sum(one.changes for one in batch)
        size = sum(one.size for one in batch)
        return changes >= self._way.batch_changes or size >= BATCH_BYTES

    def _is_known(self, transaction: Transaction) -> bool:
        return transaction.end_lsn <= self.state.lsn

    def _checked_state(self, stream: SlotStream) -> LedgerState:
        """Check that ledger, slot and cluster belong together; return the ledger's state.

        Raises:
            OlrPgError: 7301, 7303, 7304 and 7309, ledger, slot and cluster do not belong together.
        """
        way, system = self._way, stream.identify()
        self._ledger.settle()
        known, slot = self._ledger.read(), read_slot(self._target, way.slot)
        if known is None:
            begun = read_beginning(self._target, way)
            code = Code.FALLBACK_NOT_BEGUN if begun is None else Code.FALLBACK_LEDGER_LOST
            raise OlrPgError(
                code, "the ledger in Oracle has no row for this subscription", slot=way.slot
            )
        if known.system_id != system.identifier:
            raise OlrPgError(
                Code.FALLBACK_OTHER_CLUSTER,
                f"the ledger belongs to the system {known.system_id}, but this PostgreSQL"
                f" is the system {system.identifier}",
            )
        _check_history(known, system, stream)
        if slot is None or slot.wal_status == "lost":
            what = (
                "the slot does not exist"
                if slot is None
                else read_invalidation(self._target, way.slot)
            )
            raise OlrPgError(Code.FALLBACK_SLOT_LOST, what, slot=way.slot)
        if slot.lsn > known.needed_lsn:
            raise OlrPgError(
                Code.FALLBACK_SLOT_AHEAD,
                f"the slot was confirmed up to LSN {lsn_text(slot.lsn)}, but Oracle"
                f" contains the transactions only up to LSN {lsn_text(known.needed_lsn)}",
                slot=way.slot,
            )
        if known.timeline != system.timeline:
            _log.warning(
                "PostgreSQL was promoted; the slot still exists, and no transaction was lost",
                slot=way.slot, before=known.timeline, timeline=system.timeline,
            )  # fmt: skip
            self._ledger.follow_timeline(known.timeline, system.timeline)
            self._oracle.commit()
        return known._replace(timeline=system.timeline)

    def _start(self) -> None:
        wait_until_free(self._target, self._way.slot)
        self._stream.start(self._way.slot, self._way.publication, self.state.needed_lsn)

    def _rest(self) -> None:
        """Once per `IDLE_SECONDS`, move the ledger's position past WAL that contains no changes, so
        that PostgreSQL can remove this WAL.
        """
        is_new = self._stream.sent_lsn > self.state.lsn and not self._reader.is_within
        if not is_new or time.monotonic() - self._idle_since < IDLE_SECONDS:
            return
        self._commit(self._stream.sent_lsn, 0)
        with _passing():
            self._stream.confirm(self.state.needed_lsn)

    def _apply(self, batch: Sequence[Transaction]) -> None:
        known = self._plans.known()
        try:
            try:
                with _passing():
                    self._apply_together(batch)
            except OlrPgError as error:
                if error.code not in _OF_TABLE and error.code // 10 != _VALUE_CODES:
                    raise
                self._roll_back()
                self._plans.restore(known)
                for one in batch:
                    self._apply_alone(one)
        finally:
            for one in batch:
                one.close()
        with _passing():
            self._stream.confirm(self.state.needed_lsn)

    def _apply_together(self, batch: Sequence[Transaction]) -> None:
        pending = _Pending(self._writer)
        for one in batch:
            for plan, change in self._changes(one, pending.flush):
                if isinstance(change, Truncate):
                    pending.flush()
                    self._writer.empty(plan)
                else:
                    pending.add(plan, change)
                    if pending.changes >= self._way.batch_changes or pending.size >= BATCH_BYTES:
                        pending.flush()
        pending.flush()
        self._commit(batch[-1].end_lsn, len(batch))

    def _apply_alone(self, transaction: Transaction) -> None:
        """Apply one transaction change by change; stop the tables whose changes Oracle refuses."""
        known = self._plans.known()
        while True:
            table = ""
            try:
                with _passing():
                    for plan, change in self._changes(transaction, lambda: None):
                        table = plan.name
                        _write_one(self._writer, plan, change)
                    table = ""
                    self._commit(transaction.end_lsn, 1)
            except OlrPgError as error:
                # An error about a description belongs to the table after `table`.
                failed = str(error.where.get("table") or table) or self._named_in(error)
                is_of_table = error.code in _OF_TABLE or error.code // 10 == _VALUE_CODES
                if not is_of_table or not failed or failed in self._stopped():
                    raise
                self._roll_back()
                # The transaction is read again from its first row, which can be older than its DDL.
                self._plans.restore(known)
                with _passing():
                    self._stop(failed, error, transaction.end_lsn)
            else:
                return

    def _named_in(self, error: OlrPgError) -> str:
        """Return the table of the constraint that an error of COMMIT names: a constraint that is
        DEFERRED is checked then. Return an empty string if it is none of the tables.
        """
        named = CONSTRAINT.search(error.detail)
        owner, _, name = named[1].partition(".") if named else ("", "", "")
        if not name:
            return ""
        with _passing(), self._oracle.cursor() as cursor:
            cursor.execute(_TABLE_OF_CONSTRAINT, (owner, name))
            row = cursor.fetchone()
        tables = {(one.source_owner, one.name): one.full_name for one in self._way.tables}
        return tables.get((owner, row[0]), "") if row else ""

    def _stopped(self) -> set[str]:
        return {name for name, one in self.state.stops.items() if one.is_stopped}

    def _stop(self, table: str, error: OlrPgError, failed_lsn: int) -> None:
        before = self.state.stops.get(table)
        lsn = self.state.lsn if before is None else before.lsn
        place = {name: error.where[name] for name in _PLACES if name in error.where}
        where = f" [{format_place(place)}]" if place else ""
        reason = f"{error.label}: {error.title}: {error.detail}{where}"
        stop = TableStop(lsn, is_stopped=True, reason=reason, failed_lsn=failed_lsn)
        self._ledger.stop_table(table, stop)
        self._oracle.commit()
        stops = {**self.state.stops, table: stop}
        self.state = self.state._replace(stops=stops)
        _log.error("a table of the way back was stopped", table=table, reason=reason)

    def _changes(
        self, transaction: Transaction, before_description: Callable[[], None]
    ) -> Iterator[tuple[RelationPlan, Any]]:
        """Yield the changes of a transaction that Oracle does not have yet."""
        is_own: bool | None = None
        for message in transaction.read():
            if isinstance(message, Relation):
                before_description()
                if self._plans.describe(message) and self._plans.table_name(message.oid):
                    _log.warning(
                        "the columns of a table have changed in PostgreSQL, which does not send the"
                        " values that DDL changes in existing rows",
                        table=self._plans.table_name(message.oid),
                    )
                continue
            if is_own is None:
                is_own = any(map(self._plans.is_own, transaction.changed()))
            relations = message.relations if isinstance(message, Truncate) else (message.relation,)
            for oid in relations:
                name = self._plans.table_name(oid)
                if is_own or name is None or not self._is_wanted(name, transaction.end_lsn):
                    continue
                try:
                    plan = self._plans.plan(oid)
                except OlrPgError as error:
                    error.where.setdefault("table", name)
                    raise
                if plan is not None:
                    self.changes += 1
                    yield plan, message

    def _is_wanted(self, table: str, end_lsn: int) -> bool:
        stop = self.state.stops.get(table)
        if stop is None:
            return end_lsn > self.state.lsn
        return not stop.is_stopped and end_lsn > stop.lsn

    def _commit(self, lsn: int, transactions: int) -> None:
        """Update the ledger, and commit in Oracle."""
        records = self._writer.take_records()
        with _passing():
            self._ledger.record(records)
            state = self.state
            late = {name: one for name, one in state.stops.items() if not one.is_stopped}
            stops = dict(state.stops)
            if lsn > state.lsn:
                self._ledger.advance(state.lsn, lsn, transactions)
                for name in late:
                    self._ledger.forget_table(name)
                    del stops[name]
                total = state.transactions + transactions
                after = state._replace(lsn=lsn, transactions=total, stops=stops)
            else:
                for name, one in late.items():
                    if lsn > one.lsn:
                        self._ledger.catch_up(name, one.lsn, lsn)
                        stops[name] = one._replace(lsn=lsn)
                after = state._replace(stops=stops)
            self._oracle.commit()
        self.state = after
        self.has_progress = True
        self._idle_since = time.monotonic()
        for record, count in records.items():
            what = record._asdict()
            _log.warning(
                "a change was not written to Oracle as it is in PostgreSQL", **what, count=count
            )
        self._progress(after)

    def _roll_back(self) -> None:
        self._writer.take_records()
        with _passing():
            self._oracle.rollback()


def _check_history(known: LedgerState, system: System, stream: SlotStream) -> None:
    """Check that the ledger's position, up to which Oracle has all transactions, is part of
    PostgreSQL's history.

    After a promotion, the old history is valid only up to the switch of timelines. A server that
    was restored from a backup can be on the same timeline, but behind the ledger's position: it
    would use the same LSNs for other transactions.

    Raises:
        OlrPgError: 7309 the position is not part of the history.
    """
    if known.timeline == system.timeline:
        if known.lsn > system.lsn:
            raise OlrPgError(
                Code.FALLBACK_OTHER_CLUSTER,
                "Oracle contains the transactions that were committed up to LSN"
                f" {lsn_text(known.lsn)}, but PostgreSQL has only reached LSN"
                f" {lsn_text(system.lsn)}",
            )
        return
    parted = stream.parted_at(known.timeline, system.timeline)
    of = (
        f"the ledger belongs to timeline {known.timeline}, but PostgreSQL is on timeline"
        f" {system.timeline}"
    )
    if parted is None:
        what = f"{of}, whose history does not contain the timeline of the ledger"
        raise OlrPgError(Code.FALLBACK_OTHER_CLUSTER, what)
    if known.lsn > parted:
        raise OlrPgError(
            Code.FALLBACK_OTHER_CLUSTER,
            f"{of} since LSN {lsn_text(parted)}. Oracle contains transactions up to LSN"
            f" {lsn_text(known.lsn)}, some of which PostgreSQL has lost in the promotion",
        )


_VALUE_CODES: Final = 735
"""The code of an error about a value that Oracle cannot store, divided by 10 (7350 to 7359)."""


class _Pending:
    """Net changes that are not written yet.

    Attributes:
        changes, size: number of changes, and bytes of their values.
    """

    def __init__(self, writer: OracleWriter) -> None:
        self._writer = writer
        self._rows: dict[str, tuple[RelationPlan, NetRows]] = {}
        self.changes = 0
        self.size = 0

    def add(self, plan: RelationPlan, change: Any) -> None:
        """Add a change."""
        if plan.name not in self._rows:
            self._rows[plan.name] = plan, _no_rows(plan)
        rows = self._rows[plan.name][1]
        before = rows.size
        rows.add(change)
        self.changes += 1
        self.size += rows.size - before

    def flush(self) -> None:
        """Write the pending changes to Oracle."""
        for plan, rows in self._rows.values():
            self._writer.write(plan, rows)
        self._rows.clear()
        self.changes = self.size = 0


def _no_rows(plan: RelationPlan) -> NetRows:
    return NetRows(plan.key, len(plan.columns), plan.name, is_key_logged=plan.is_key_logged)


def _write_one(writer: OracleWriter, plan: RelationPlan, change: Any) -> None:
    if isinstance(change, Truncate):
        writer.empty(plan)
        return
    rows = _no_rows(plan)
    rows.add(change)
    writer.write_one(plan, rows)


@contextmanager
def _coded(way: WayBack) -> Iterator[None]:
    """Convert errors of PostgreSQL and Oracle to errors with a code."""
    with _of_container(way):
        try:
            yield
        except oracledb.Error as error:
            raise oracle_error(error, "working in Oracle", of_rows=True) from error
        except psycopg.Error as error:
            raise target_error(error) from error


@contextmanager
def _of_container(way: WayBack) -> Iterator[None]:
    """Add the name of the PDB to errors, if the source has several PDBs."""
    try:
        yield
    except OlrPgError as error:
        if not way.container:
            raise
        raise located(error, container=way.container) from error


@contextmanager
def _passing() -> Iterator[None]:
    """Raise `_PassingError` for temporary errors; convert other errors to errors with a code."""
    try:
        yield
    except oracledb.Error as error:
        coded = oracle_error(error, "writing to Oracle", of_rows=True)
        if coded.code in PASSING or any(one in str(error) for one in _PASSING_NUMBERS):
            raise _PassingError(str(coded)) from error
        raise coded from error
    except psycopg.Error as error:
        if is_transient(error):
            raise _PassingError(str(target_error(error))) from error
        raise target_error(error) from error
    except OlrPgError as error:
        if error.code in PASSING:
            raise _PassingError(str(error)) from error
        raise


def _open_target(
    way: WayBack, stack: ExitStack, watch: StatementWatch | None = None
) -> Connection[Any]:
    seconds = way.settings.answer_seconds
    return stack.enter_context(
        connect(way.connect_string, replica=None, watch=watch, answer_seconds=seconds)
    )


def _open_stream(way: WayBack, stack: ExitStack, watch: StatementWatch | None = None) -> SlotStream:
    seconds = way.settings.answer_seconds
    return stack.enter_context(closing(SlotStream(way.connect_string, watch, seconds)))


def _open_oracle(way: WayBack, stack: ExitStack) -> oracledb.Connection:
    connection = open_account(way.source)

    def close() -> None:
        with suppress(oracledb.Error):
            connection.close()

    stack.callback(close)
    return connection
