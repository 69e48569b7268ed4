"""Replays a stopped table: applies its held changes in order, and then resumes the table.

Each step is one target transaction under the lock of the table's ledger row. Each step reads the
first held changes, applies them and deletes them from the hold. So changes are neither lost nor
applied twice if the process is killed, and a running applier can add changes to the hold meanwhile.
The step that finds the hold empty marks the table as resumed, which the applier notices at the
table's next batch. So any process can replay a table, with or without a running applier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import structlog

from olr_pg.applier.batches.slices import SliceRefusedError, read_slices, write_slices
from olr_pg.applier.batches.table_writer import KeptWriter, Skipped, Written
from olr_pg.applier.statements.target_plan import named_target, table_ledger
from olr_pg.applier.stopped.column_check import with_current_plan
from olr_pg.applier.stopped.ddl import carry_out, event_error_row, note_partitions
from olr_pg.applier.stopped.error_table import RefusedError, refused
from olr_pg.applier.stopped.hold import (
    HeldChanges,
    HeldEvent,
    HeldSlices,
    delete_held,
    first_held,
    read_source,
    source_document,
)
from olr_pg.applier.stopped.left_out import unfit_reason
from olr_pg.applier.stopped.pausing import paused_tables
from olr_pg.applier.target.ledger import ChangeCounts
from olr_pg.applier.target.set_aside import set_aside
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_transient
from olr_pg.scalars import parse_xid

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)

_STOPPED = """
SELECT source_table FROM olr_pg.ledger
WHERE subscription = %s AND stopped AND NOT paused ORDER BY source_table
"""
_IS_STOPPED = """
SELECT FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s AND stopped
"""
_HELD_SOURCE = """
SELECT held_source FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s
"""
_REDEFINE = """
UPDATE olr_pg.ledger SET held_source = %s WHERE subscription = %s AND source_table = %s
"""
_SKIPPED = """
SELECT commit_scn, xid, position FROM olr_pg.error
WHERE subscription = %s AND source_table = %s AND resolution = 'skipped'
"""
_APPLIED = """
UPDATE olr_pg.error SET resolution = 'applied', last_seen = now()
WHERE subscription = %s AND source_table = %s AND resolution = 'stopped' AND commit_scn <= %s
    AND (commit_scn, xid) IS DISTINCT FROM (%s, %s)
"""


class Replayed(NamedTuple):
    """The result of a replay.

    Attributes:
        counters: the held changes that were applied.
        events: number of DDL events applied or skipped.
        error: why the table stopped again; None if it has resumed.
    """

    table: str
    counters: ChangeCounts
    events: int
    error: OlrPgError | None


class Step(NamedTuple):
    """The result of one step of a replay, which is one target transaction. `ended` is true if no
    step remains.
    """

    counters: ChangeCounts = ChangeCounts()
    events: int = 0
    error: OlrPgError | None = None
    ended: bool = False


def stopped_tables(connection: Connection[Any], subscription: str) -> list[str]:
    """Return the stopped source tables of a subscription, without the paused tables."""
    return [row[0] for row in connection.execute(_STOPPED, (subscription,)).fetchall()]


def replay(connection: Connection[Any], settings: ApplierSettings, table: str) -> Replayed:
    """Apply the held changes of a table until the hold is empty or a change fails.

    Args:
        connection: opened by `connection.connect`.
        table: ``OWNER.NAME``. If the table is not stopped, the function does nothing. A table that
            is not in the ledger gets no row in the ledger.

    Raises:
        OlrPgError: 5141, the hold cannot be read.
        psycopg.Error: a transient error. Changes that were applied before the error stay applied.
    """
    counters, events = ChangeCounts(), 0
    if connection.execute(_IS_STOPPED, (settings.subscription, table)).rowcount == 0:
        return Replayed(table, counters, events, None)
    one = Replay(connection, settings, table)
    while True:
        step = one.step()
        counters, events = counters.plus(step.counters), events + step.events
        if step.ended or step.error is not None:
            if step.error is None:
                _log.info("held changes applied", table=table, **counters._asdict())
            return Replayed(table, counters, events, step.error)


class Replay:
    """The steps of a table's replay; arguments as in `replay`. A step of a paused table fails."""

    def __init__(self, connection: Connection[Any], settings: ApplierSettings, table: str) -> None:
        self._connection = connection
        self._settings = settings
        self._table = table
        self._ledger = table_ledger(settings, table)
        self._source: Table | None = None
        self._writer = KeptWriter()
        self._is_single = False
        self._is_begun = False

    def step(self) -> Step:
        """Apply the first held changes, and commit.

        Raises:
            OlrPgError: 5141, the hold cannot be read.
            psycopg.Error: a transient error.
        """
        if not self._is_begun:
            unfit = unfit_reason(self._connection, self._settings, self._table)
            if unfit is not None:
                self._ledger.note_reason(self._connection, unfit)
                return Step(error=unfit)
            set_aside(self._connection, self._settings, [named_target(self._settings, self._table)])
            self._is_begun = True

        def attempt() -> Step:
            with self._connection.transaction():
                return self._step()

        try:
            return with_current_plan(attempt, self._writer.drop)
        except RefusedError as error:
            return self._stopped_at_commit(error)
        except psycopg.Error as error:
            if is_transient(error):
                raise
            self._writer.drop()
            if not self._is_single:
                # PostgreSQL reported the error at COMMIT, without the change. Apply the
                # transactions one by one to find the one that fails.
                self._is_single = True
                return Step()
            return self._stopped_at_commit(refused(error))

    def _step(self) -> Step:
        state = self._ledger.lock(self._connection)
        if not state.stopped:
            return Step(ended=True)
        if self._table in paused_tables(self._connection, self._settings.subscription):
            # An operator has paused the table before this replay, or during it.
            paused = "no held change is applied until the table is resumed"
            return Step(error=OlrPgError(Code.TABLE_PAUSED, paused, table=self._table))
        found = self._first()
        if found is None:
            # This also resolves the row of the error table if the table stopped without a failed
            # change (`left_out`).
            self._connection.execute(
                _APPLIED, (*self._ledger.key, state.position.commit_scn, None, None)
            )
            self._ledger.resume(self._connection)
            return Step(ended=True)
        self._read_source()
        if isinstance(found, HeldEvent):
            return self._event(found)
        if isinstance(found, HeldSlices):
            return self._slices(found)
        return self._changes(found)

    def _first(self) -> HeldChanges | HeldSlices | HeldEvent | None:
        return first_held(
            self._connection,
            self._ledger.key,
            changes_max=1 if self._is_single else self._settings.batch_changes,
            bytes_max=1 if self._is_single else self._settings.batch_bytes,
        )

    def _read_source(self) -> None:
        """Read the table's definition as of the first held changes. If the definition differs from
        the current definition, discard the plan.
        """
        row = self._connection.execute(_HELD_SOURCE, self._ledger.key).fetchone()
        if row is None or row[0] is None:
            raise OlrPgError(
                Code.HOLD_UNREADABLE, "the table's definition is missing", table=self._table
            )
        source, facts = read_source(row[0])
        if source != self._source or facts != self._settings.facts:
            self._source = source
            self._writer.drop()
            self._settings = replace(self._settings, facts=facts)

    def _skipped(self) -> Skipped:
        rows = self._connection.execute(_SKIPPED, self._ledger.key).fetchall()
        return frozenset((scn, parse_xid(xid), position) for scn, xid, position in rows)

    # --- changes ---

    def _changes(self, found: HeldChanges) -> Step:
        selection = found.selection
        try:
            writer = self._writer.planned(
                self._connection, self._settings, self._ledger, selection, self._source
            )
            written = writer.write(self._connection, selection, self._skipped())
            writer.shape.check(self._connection)
        except RefusedError as error:
            written = Written(0, ChangeCounts(), error)
        if written.changes:
            self._done(found, written)
        if written.refused is None:
            return Step(written.counters)
        rest = selection.part(slice(written.changes, None))
        first = rest.part(rest.transactions()[0])
        self._ledger.record(self._connection, written.refused.row(first, "stopped"))
        return Step(written.counters, error=written.refused.located(self._table, first))

    def _slices(self, found: HeldSlices) -> Step:
        first = next(read_slices(found, self._settings))
        try:
            writer = self._writer.planned(
                self._connection, self._settings, self._ledger, first, self._source
            )
            done = write_slices(self._connection, writer, found, self._settings, self._skipped())
        except (RefusedError, SliceRefusedError) as error:
            if isinstance(error, RefusedError):
                error = SliceRefusedError(error, first, 0)
            else:
                self._writer.check_shape(self._connection)
            self._ledger.record(self._connection, error.row())
            return Step(error=error.located(self._table))
        self._writer.check_shape(self._connection)
        delete_held(self._connection, self._ledger.key, found.last_id)
        self._ledger.count(self._connection, done)
        self._connection.execute(_APPLIED, (*self._ledger.key, found.commit_scn, None, None))
        return Step(done)

    def _done(self, found: HeldChanges, written: Written) -> None:
        """Delete from the hold the changes that are now in the table."""
        ends = [rows.stop for rows in found.selection.transactions()]
        last = ends.index(written.changes)
        delete_held(self._connection, self._ledger.key, found.last_id[last])
        self._ledger.count(self._connection, written.counters)
        self._resolve(int(found.selection.commit_scn[written.changes - 1]), found, written)

    def _resolve(self, scn: int, found: HeldChanges, written: Written) -> None:
        """Mark the rows of the error table that belong to the applied transactions as resolved."""
        refusal: tuple[int | None, str | None] = (None, None)
        if written.refused is not None:
            rest = found.selection.part(slice(written.changes, None))
            row = written.refused.row(rest.part(rest.transactions()[0]), "stopped")
            refusal = row.commit_scn, row.xid
        self._connection.execute(_APPLIED, (*self._ledger.key, scn, *refusal))

    def _stopped_at_commit(self, error: RefusedError) -> Step:
        """Record that the first held transaction fails at its COMMIT."""
        with self._connection.transaction():
            self._ledger.lock(self._connection)
            found = self._first()
            if isinstance(found, HeldChanges):
                first = found.selection
            elif isinstance(found, HeldSlices):
                first = next(read_slices(found, self._settings))
            else:
                raise OlrPgError(Code.HOLD_UNREADABLE, error.error.detail, table=self._table)
            self._ledger.record(self._connection, error.row(first, "stopped"))
        return Step(error=error.located(self._table, first))

    # --- events ---

    def _event(self, found: HeldEvent) -> Step:
        event = found.event
        identity = event.commit_scn, event.xid, 0
        decided, counters = identity in self._skipped(), ChangeCounts()
        if event.lobs or not decided:
            error = carry_out(
                self._connection, self._settings, event, self._source, decided=decided
            )
            if error is not None:
                self._ledger.record(self._connection, event_error_row(event, error))
                return Step(error=error)
        else:
            # As for a skipped change: source and target differ from here on.
            note_partitions(self._connection, self._settings, event)
            counters = ChangeCounts(conflicts=1)
            self._ledger.count(self._connection, counters)
        delete_held(self._connection, self._ledger.key, found.last_id)
        self._connection.execute(_APPLIED, (*self._ledger.key, event.commit_scn, None, None))
        if event.definition is not None:
            facts = self._settings.facts
            document = source_document(event.definition, facts, event.commit_scn)
            self._connection.execute(_REDEFINE, (document, *self._ledger.key))
        # The event may have changed the columns of the target table.
        self._writer.drop()
        return Step(counters, events=1)
