"""Applies the changes of one table exactly once.

A batch is applied as a set, in one target transaction that also updates the table's row in the
ledger. If a conflict or an error occurs, the batch is rolled back and applied again transaction by
transaction (`table_writer`). A permanent error *stops* the table: the transactions before the
failed one are applied, and the failed one and all later ones are written to the hold (`hold`). The
table's position in the ledger advances nevertheless, so that the other tables continue and the
confirmation advances. A replay (`replay`) resumes the table while it has locked the ledger's row,
and each batch locks the row too. So the table cannot be resumed in the middle of a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg
import structlog

from olr_pg.applier.batches.batch_applier import CommitDurability, TableProgress
from olr_pg.applier.batches.slices import SliceRefusedError, Slices, read_slices, write_slices
from olr_pg.applier.batches.table_writer import (
    KeptWriter,
    Prepared,
    TableWriter,
    check_touched,
    statement_counts,
)
from olr_pg.applier.statements.target_plan import table_ledger
from olr_pg.applier.stopped.column_check import with_current_plan
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.error_table import RefusedError, refused, stopped_reason
from olr_pg.applier.stopped.hold import check_room, hold_changes, source_document
from olr_pg.applier.target.ledger import ChangeCounts, LedgerState, Reach, TablePosition
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.bound_statement import BoundStatement
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.schema_event import SchemaEvent

_log = structlog.get_logger(__name__)


class _Moved(Exception):  # noqa: N818 - no error: the batch is looked at again
    """Raised if the ledger's row of the table differs from the expected state."""


class _Outcome(NamedTuple):
    state: LedgerState
    counters: ChangeCounts


class TableApplier:
    """Applies the changes of one table, in one thread.

    Args:
        name: ``OWNER.NAME``.
        source: the definition of the source table, if known.

    Attributes:
        counters: counts of what was applied since the start.
        error: why the table is stopped; None if it is not.
    """

    def __init__(self, name: str, settings: ApplierSettings, source: Table | None) -> None:
        self.name = name
        self.source = source
        self.counters = ChangeCounts()
        self.error: OlrPgError | None = None
        self._settings = settings
        self._ledger = table_ledger(settings, name)
        self._writer = KeptWriter()
        self._state: LedgerState | None = None
        self._known = Reach()
        self._defined_scn = 0

    @property
    def commit_scn(self) -> int:
        """The commit SCN of the last applied transaction or event; 0 before the ledger was read."""
        return self._reach.commit_scn

    @property
    def _reach(self) -> Reach:
        state = self._state
        return self._known if state is None else max(self._known, state.position.reach)

    def reached(self) -> Mapping[str, Reach]:
        """Return the table's name with its position."""
        return {self.name: self._reach}

    def progress(
        self, waiting: Sequence[Selection], changes: int, pending: int | None
    ) -> Callable[[], list[TableProgress]]:
        """Return a function that reports the table's current progress."""
        only = TableProgress(
            name=self.name,
            commit_scn=self.commit_scn,
            waiting=changes,
            pending=pending,
            counters=self.counters,
            error=self.error,
        )
        return lambda: [only]

    def forget(self) -> None:
        """Discard the plan and the known state of the ledger after a lost connection. The next
        batch reads both again.

        A crash of PostgreSQL may have emptied an UNLOGGED table; this is detected when a new plan
        is made (`target.crash_watch`).
        """
        self._state, self._known = None, Reach()
        self._writer.drop()

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Apply an event of the table to the target, or add it to the hold. Use the table's new
        definition from now on.

        If the event stops the table, `error` contains the reason.

        Raises:
            psycopg.Error: a transient error.
        """
        if not event.past:
            error = apply_event(connection, self._settings, event, self.source)
            if error is not None:
                self.error = error
                _log.error(
                    "table stopped: its changes are held",
                    table=self.name,
                    error=str(error),
                    action=error.action,
                )
            self._known = max(self._known, Reach(event.commit_scn))
            # This also logs the error if the event stopped the table in an earlier attempt.
            self._known = self._read(connection).position.reach
        if event.lobs:
            return  # missing LOB values do not change the definition
        if event.commit_scn >= self._defined_scn:  # an event that is delivered again can be older
            self._defined_scn = event.commit_scn
            self.source = event.definition or self.source
        self._writer.drop()

    def prepare(self, selection: Selection) -> Prepared | None:
        """Make the statements for a selection of changes before `apply` is called. Another thread
        can call this method.
        """
        writer = self._writer.writer
        return None if writer is None else writer.prepare(selection)

    def settle(self, connection: Connection[Any]) -> None:
        """Make PostgreSQL flush all commits to disk."""
        self._ledger.touch(connection)

    def apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None = None,
        durability: CommitDurability | None = None,
    ) -> None:
        """Apply changes of whole transactions to the table, or write them to the hold, and commit.

        Transactions that are already applied are skipped. If the table stops, `error` contains the
        reason.

        Args:
            prepared: the prepared statements of this selection, if any.
            durability: whether the commit waits for the disk; None to wait.

        Raises:
            OlrPgError: 5024, somebody has set the table's position back.
            psycopg.Error: a transient error (`is_transient`); nothing of the batch is applied.
        """
        try:
            self._apply(connection, selection, prepared, durability or CommitDurability())
        except psycopg.Error as error:
            self.forget()
            if is_transient(error):
                raise
            # PostgreSQL reported the error at COMMIT, without the change. Apply the transactions
            # one by one to find the one that fails.
            transactions = selection.transactions()
            if len(transactions) > 1:
                for rows in transactions:
                    self.apply(connection, selection.part(rows))
            else:
                self.stop_with(connection, selection, refused(error))

    def apply_slices(self, connection: Connection[Any], slices: Slices) -> None:
        """Apply one transaction that does not fit in memory. In all other respects, the method
        works like `apply`.

        Raises:
            OlrPgError: 5022, the spool is damaged; 5023, the hold is full.
            psycopg.Error: a transient error; nothing is applied.
        """

        def attempt() -> tuple[_Outcome, SliceRefusedError | None]:
            with connection.transaction():
                return self._apply_slices(connection, slices)

        try:
            outcome, refused_slice = with_current_plan(attempt, self._writer.drop)
        except (psycopg.Error, RefusedError) as error:
            self.forget()
            # PostgreSQL reported a deferred error at COMMIT, without the change that caused it.
            why = error if isinstance(error, RefusedError) else refused(error)
            first = next(read_slices(slices, self._settings))
            refused_slice = SliceRefusedError(why, first, 0)
            with connection.transaction():
                state = self._ledger.lock(connection)
                outcome = self._stop_with_slices(connection, slices, state, refused_slice)
        self._state = outcome.state
        self.counters = self.counters.plus(outcome.counters)
        if refused_slice is not None:
            self._report(refused_slice.located(self.name))

    def _apply_slices(
        self, connection: Connection[Any], slices: Slices
    ) -> tuple[_Outcome, SliceRefusedError | None]:
        state = self._looked_at(connection, self._ledger.lock(connection))
        if state.position.has(slices.commit_scn, slices.xid):
            return _Outcome(state, ChangeCounts()), None
        position = state.position.after(slices.commit_scn, slices.xid)
        if state.stopped:
            self._hold_slices(connection, slices)
            self._ledger.move(connection, position)
            return _Outcome(LedgerState(position, stopped=True), ChangeCounts()), None
        try:
            counters = self._write_slices(connection, slices)
        except SliceRefusedError as error:
            self._writer.check_shape(connection)
            return self._stop_with_slices(connection, slices, state, error), error
        self._writer.check_shape(connection)
        self._ledger.advance(connection, position, counters)
        return _Outcome(LedgerState(position, stopped=False), counters), None

    def _write_slices(self, connection: Connection[Any], slices: Slices) -> ChangeCounts:
        first = next(read_slices(slices, self._settings))
        try:
            writer = self._writer.planned(
                connection, self._settings, self._ledger, first, self.source
            )
        except RefusedError as error:
            raise SliceRefusedError(error, first, 0) from error
        return write_slices(connection, writer, slices, self._settings)

    def _stop_with_slices(
        self,
        connection: Connection[Any],
        slices: Slices,
        state: LedgerState,
        error: SliceRefusedError,
    ) -> _Outcome:
        position = state.position.after(slices.commit_scn, slices.xid)
        if not state.stopped:
            self._ledger.stop(connection, self._definition(slices.commit_scn))
            self._ledger.record(connection, error.row())
        self._hold_slices(connection, slices)
        self._ledger.move(connection, position)
        return _Outcome(LedgerState(position, stopped=True), ChangeCounts())

    def _hold_slices(self, connection: Connection[Any], slices: Slices) -> None:
        for part in read_slices(slices, self._settings):
            self._add_to_hold(connection, part)

    def _add_to_hold(self, connection: Connection[Any], changes: Selection) -> None:
        """Write changes to the hold. If they are the first ones of a table that an operator has
        paused, store the table's definition too, without which nobody could replay them.

        Raises:
            OlrPgError: 5023, the hold of the table is full.
        """
        if not len(changes):
            return
        limit = self._settings.held_max
        if limit is not None:
            check_room(connection, self._ledger.key, changes.value_bytes(), limit)
        self._ledger.keep_source(connection, self._definition(int(changes.commit_scn[0])))
        hold_changes(connection, self._ledger.key, changes, self._settings.byte_order)

    def _apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None,
        durability: CommitDurability,
    ) -> None:
        while True:
            state = self._state or self._read(connection)
            todo = missing(selection, state.position)
            if len(todo) == 0:
                return
            try:
                if state.stopped:
                    outcome = self._hold(connection, todo)
                else:
                    outcome = self._apply_now(connection, todo, state, prepared, durability)
            except _Moved:
                self._known = self._reach
                self._state, prepared = None, None
                continue
            self._state = outcome.state
            self.counters = self.counters.plus(outcome.counters)
            return

    def _read(self, connection: Connection[Any]) -> LedgerState:
        with connection.transaction():
            state = self._looked_at(connection, self._ledger.lock(connection))
            check_not_set_back(self.name, state.position, self._known)
        self._state = state
        return state

    def _looked_at(self, connection: Connection[Any], state: LedgerState) -> LedgerState:
        """Return the ledger's state. If an operator has resumed the table, clear the error. If the
        table is stopped for an unknown reason, read the reason.
        """
        if state.stopped and self.error is None:
            # The answer to the COMMIT that stopped the table was lost, or another process has
            # stopped the table.
            self.error = stopped_reason(connection, *self._ledger.key)
            if self.error is not None:
                _log.error("table is stopped: its changes are held", error=str(self.error))
        if not state.stopped and self.error is not None:
            # An operator resumed the table, and may have repaired the target table.
            _log.info("the stopped table was resumed", table=self.name)
            self.error = None
            self._writer.drop()
        return state

    # --- as a set ---

    def _apply_now(
        self,
        connection: Connection[Any],
        todo: Selection,
        state: LedgerState,
        prepared: Prepared | None,
        durability: CommitDurability,
    ) -> _Outcome:
        try:
            return with_current_plan(
                lambda: self._apply_planned(connection, todo, state, prepared, durability),
                self._writer.drop,
            )
        except RefusedError as error:
            return self.stop_with(connection, todo, error)

    def _apply_planned(
        self,
        connection: Connection[Any],
        todo: Selection,
        state: LedgerState,
        prepared: Prepared | None,
        durability: CommitDurability,
    ) -> _Outcome:
        """Apply changes with the current plan; make one if there is none.

        Raises:
            RefusedError: no plan is possible.
            TargetAlteredError: the target has changed since the plan was made.
            psycopg.Error: a transient error.
        """
        writer = self._writer.planned(connection, self._settings, self._ledger, todo, self.source)
        if prepared is None or prepared.selection is not todo or prepared.plan is not writer.plan:
            prepared = writer.prepare(todo)
        try:
            return self._apply_set(connection, writer, prepared, state, durability)
        except RefusedError:
            return self._apply_carefully(connection, writer, todo)

    def _apply_set(
        self,
        connection: Connection[Any],
        writer: TableWriter,
        prepared: Prepared,
        state: LedgerState,
        durability: CommitDurability,
    ) -> _Outcome:
        selection, todo = prepared.selection, prepared.steps
        if isinstance(todo, RefusedError):
            raise todo
        after = advanced(state.position, selection)
        counters = statement_counts(todo)._replace(transactions=len(selection.firsts()))
        together = next((i for i, step in enumerate(todo) if step.copy is not None), len(todo))
        try:
            self._begin(connection, writer, todo[:together], state)
            for step in todo[together:]:
                writer.run(connection, step)
            writer.follow(connection, selection)
            with connection.pipeline():
                self._ledger.advance(connection, after, counters)
                durability.commit(connection)
        except BaseException:
            connection.rollback()
            raise
        return _Outcome(LedgerState(after, stopped=False), counters)

    def _begin(
        self,
        connection: Connection[Any],
        writer: TableWriter,
        todo: Sequence[BoundStatement],
        state: LedgerState,
    ) -> None:
        """Begin a target transaction, lock the ledger's row, run the first statements, and compare
        the columns with the plan, in one round trip.
        """
        try:
            with connection.pipeline():
                connection.execute("BEGIN")
                writer.tune(connection)
                locked = self._ledger.send_lock(connection)
                if not todo:  # a COPY follows, and the columns must not change before it
                    writer.shape.lock(connection)
                cursors = [connection.execute(step.query, step.parameters) for step in todo]
                shape = writer.shape.send(connection)
        except psycopg.Error as error:
            raise refused(error) from error
        if self._ledger.locked(locked) != state:
            raise _Moved
        writer.shape.compare(shape)
        for step, cursor in zip(todo, cursors, strict=True):
            check_touched(step, cursor.rowcount)

    # --- carefully ---

    def _apply_carefully(
        self, connection: Connection[Any], writer: TableWriter, selection: Selection
    ) -> _Outcome:
        with connection.transaction():
            state = self._ledger.lock(connection)
            if state.stopped:
                raise _Moved
            todo = missing(selection, state.position)
            written = writer.write_one_by_one(connection, todo)
            position = advanced(state.position, todo)
            self._ledger.advance(connection, position, written.counters)
            if written.refused is not None:
                rest = todo.part(slice(written.changes, None))
                self._stop(connection, rest, written.refused)
        if written.refused is not None:
            self._report(written.refused.located(self.name, rest))
        stopped = written.refused is not None
        return _Outcome(LedgerState(position, stopped=stopped), written.counters)

    # --- stopped ---

    def stop_in_place(self, connection: Connection[Any], reason: OlrPgError) -> None:
        """Stop the table before its next change, for a reason that is not a failed change.

        Raises:
            psycopg.Error: a transient error.
        """
        self.forget()
        self._ledger.stop_in_place(connection, self._definition, reason)

    def stop_ended(self, error: OlrPgError | None) -> None:
        """Use the result of a replay: `error` is the reason why the table stopped again, or None.
        The next batch reads the ledger again.
        """
        self.forget()
        if error is not None:
            self._report(error)

    def _hold(self, connection: Connection[Any], selection: Selection) -> _Outcome:
        with connection.transaction():
            state = self._ledger.lock(connection)
            if not state.stopped:
                raise _Moved
            todo = missing(selection, state.position)
            position = advanced(state.position, todo)
            self._add_to_hold(connection, todo)
            self._ledger.move(connection, position)
        return _Outcome(LedgerState(position, stopped=True), ChangeCounts())

    def _definition(self, commit_scn: int) -> str:
        return source_document(self.source, self._settings.facts, commit_scn)

    def stop_with(
        self, connection: Connection[Any], selection: Selection, error: RefusedError
    ) -> _Outcome:
        """Stop the table before the first transaction of the selection, and hold the selection."""
        with connection.transaction():
            state = self._ledger.lock(connection)
            todo = missing(selection, state.position)
            if len(todo) == 0:
                return _Outcome(state, ChangeCounts())
            position = advanced(state.position, todo)
            if not state.stopped:
                self._stop(connection, todo, error)
            else:
                self._add_to_hold(connection, todo)
            self._ledger.move(connection, position)
        self._report(error.located(self.name, todo))
        self._state = LedgerState(position, stopped=True)
        return _Outcome(self._state, ChangeCounts())

    def _stop(self, connection: Connection[Any], rest: Selection, error: RefusedError) -> None:
        """Stop the table at the first transaction of `rest`, and hold all of `rest`."""
        first = rest.part(rest.transactions()[0])
        self._ledger.stop(connection, self._definition(int(first.commit_scn[0])))
        self._ledger.record(connection, error.row(first, "stopped"))
        self._add_to_hold(connection, rest)

    def _report(self, error: OlrPgError) -> None:
        self.error = error
        self._writer.drop()
        _log.error("table stopped: its changes are held", table=self.name, error=str(self.error))


def check_not_set_back(table: str, position: TablePosition, known: Reach) -> None:
    """Check that the ledger's position of a table is not lower than it was over the same
    connection.

    Another process may have loaded the table as of an earlier SCN, or deleted the position. The
    server does not deliver the changes in between again.

    Raises:
        OlrPgError: 5024, the position is lower.
    """
    if position.reach < known:
        raise OlrPgError(
            Code.TARGET_PUT_BACK,
            f"another process has set the ledger back to SCN {position.commit_scn} during the run,"
            f" but more changes up to SCN {known.commit_scn} were applied",
            action="start the appliance again. If the other process has loaded the table,"
            " replication continues from this load. Otherwise the start ends with this error,"
            " and says how to continue",
            table=table,
        )


def missing(selection: Selection, position: TablePosition) -> Selection:
    """Return the part of a selection that is not in the table yet, if the table is at
    `position`.
    """
    if len(selection) == 0 or int(selection.commit_scn[0]) > position.commit_scn:
        return selection
    scn = np.uint64(position.commit_scn)
    wanted = selection.commit_scn > scn
    tied = np.flatnonzero(selection.commit_scn == scn)
    for xid in np.unique(selection.xid[tied]).tolist():
        if not position.has(position.commit_scn, xid):
            wanted[tied[selection.xid[tied] == np.uint64(xid)]] = True
    return selection.part(wanted)


def advanced(position: TablePosition, selection: Selection) -> TablePosition:
    """Return the position of a table at `position` after the whole selection is applied."""
    firsts = selection.firsts()
    tied = int((selection.commit_scn[firsts] == selection.commit_scn[-1:]).sum())
    for first in firsts[len(firsts) - tied :].tolist():
        position = position.after(int(selection.commit_scn[first]), int(selection.xid[first]))
    return position
