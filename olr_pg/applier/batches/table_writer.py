"""Writes the changes of one table, within the caller's target transaction.

All changes are applied together as a set (`table_statements.steps`). If a conflict or an error
occurs, they are applied *carefully*: transaction by transaction, and the failing transaction change
by change. So the applier finds the change that conflicts, and handles it by the conflict policy.
Before the conflict policy applies, the change is retried together with later changes that share its
keys (`shared_keys`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from olr_pg.applier.settings import ConflictPolicy
from olr_pg.applier.statements.bound_statement import (
    NO_KEY_ACTION,
    BoundStatement,
    UnwritableError,
    identities,
)
from olr_pg.applier.statements.copying import copy_stream
from olr_pg.applier.statements.one_change import one_change_step
from olr_pg.applier.statements.shared_keys import SharedKeys
from olr_pg.applier.statements.table_changes import ChangeError, encode_changes, received_table
from olr_pg.applier.statements.table_statements import copying, overwriting, rewritten, steps
from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.stopped.column_check import TargetShape
from olr_pg.applier.stopped.error_table import RefusedError, refused
from olr_pg.applier.stopped.incomplete_values import Incomplete, check_lost
from olr_pg.applier.target.ledger import ChangeCounts
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.table_changes import Selection, TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.ledger import TableLedger
    from olr_pg.dictionary.model import Table

_COPY_BYTES: Final = 1 << 18
"""Bytes of a COPY that are sent at once, so that PostgreSQL processes them while the next bytes are
sent.
"""

CELLS_MAX: Final = 1 << 20
"""Maximum number of cells (rows times columns) that are converted to statements at once. Each cell
takes 56 bytes, even if its change lacks the column. In a table with a thousand columns, a batch can
have forty times as many cells.
"""

Skipped = frozenset[tuple[int, int, int]]
"""Changes that an operator chose to skip: (commit SCN, XID, index within the transaction)."""


class Prepared(NamedTuple):
    """Statements that were made from changes in advance.

    Attributes:
        plan, selection: the plan and the changes from which the statements were made.
        steps: the statements, or the reason why they cannot be made.
    """

    plan: TablePlan
    selection: Selection
    steps: list[BoundStatement] | RefusedError


class Written(NamedTuple):
    """The result of writing a selection.

    Attributes:
        changes: the number of changes that were written; they are whole transactions.
        refused: why the next transaction was refused; None if all changes are written.
    """

    changes: int
    counters: ChangeCounts
    refused: RefusedError | None


class TableWriter:
    """Writes changes of one table.

    Args:
        ledger: contains the error table, which records conflicts that the policy resolves.

    Attributes:
        shape: the columns that the table should have. Compare these columns with the target once in
            each target transaction, after writing.
    """

    def __init__(self, plan: TablePlan, settings: ApplierSettings, ledger: TableLedger) -> None:
        self.plan = plan
        self.shape = TargetShape(plan.target, is_quiet=not settings.is_replica)
        self._settings = settings
        self._ledger = ledger

    def prepare(self, selection: Selection) -> Prepared:
        """Make the statements for a selection of changes. Another thread can call this method."""
        try:
            check_lost(self._settings, selection)
            return Prepared(self.plan, selection, self._steps(selection))
        except RefusedError as error:
            return Prepared(self.plan, selection, error)

    def write(
        self, connection: Connection[Any], selection: Selection, skipped: Skipped = frozenset()
    ) -> Written:
        """Write whole transactions, and stop before the first one that the target refuses. The
        caller must compare the columns afterwards.

        Args:
            connection: in a transaction.
            skipped: changes to skip.

        Raises:
            TargetAlteredError: the target has changed since the plan was made.
            psycopg.Error: a transient error.
        """
        transactions = selection.transactions()
        if not _concerns(selection, transactions, skipped):
            try:
                with connection.transaction():
                    self.tune(connection)
                    done = self.write_set(connection, selection)
            except RefusedError:
                pass
            else:
                counters = done._replace(transactions=len(transactions))
                return Written(len(selection), counters, None)
        return self.write_one_by_one(connection, selection, skipped)

    def write_set(self, connection: Connection[Any], selection: Selection) -> ChangeCounts:
        """Write a selection of changes as a set. Return the counts of changes, but not of
        transactions.

        Raises:
            RefusedError: the target refuses a change of the selection; the caller must roll back.
            psycopg.Error: a transient error.
        """
        check_lost(self._settings, selection)
        done = self._run_all(connection, self._steps(selection))
        self.follow(connection, selection)
        return done

    def follow(
        self,
        connection: Connection[Any],
        selection: Selection,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Update the list of incomplete rows after changes were written (`incomplete_values`).

        Args:
            kept: which of the changes were written; None for all.
        """
        Incomplete(connection, self._ledger, self.plan).follow(selection, kept)

    def write_one_by_one(
        self, connection: Connection[Any], selection: Selection, skipped: Skipped = frozenset()
    ) -> Written:
        """Write one transaction after the other. The writer also compares the table's columns."""
        # Perhaps PostgreSQL refused the set only because somebody has altered the target.
        self.shape.check(connection)
        written = self._write_transactions(connection, selection, skipped)
        self.shape.check(connection)
        return written

    def tune(self, connection: Connection[Any]) -> None:
        """Change planner settings for the current transaction, if the table has no index on its
        key.
        """
        if not self.plan.indexed:
            # A hash join reads the table once; without an index, other joins would read it for each
            # row.
            connection.execute("SET LOCAL enable_hashjoin = on")

    def run(self, connection: Connection[Any], step: BoundStatement) -> None:
        """Execute one statement.

        Raises:
            RefusedError: PostgreSQL refuses it, or it affects an unexpected number of rows.
            psycopg.Error: a transient error.
        """
        try:
            cursor = connection.cursor()
            if step.copy is None:
                cursor.execute(step.query, step.parameters)
            else:
                with cursor.copy(step.query) as copy:
                    for at in range(0, len(step.copy), _COPY_BYTES):
                        copy.write(step.copy[at : at + _COPY_BYTES])
        except psycopg.Error as error:
            raise refused(error, step) from error
        check_touched(step, cursor.rowcount)

    def _steps(self, selection: Selection) -> list[BoundStatement]:
        if len(selection) >= self._settings.copy_rows:
            stream = copy_stream(self.plan, selection)
            if stream is not None:
                return [copying(self.plan, stream, len(selection))]
        rows_max = max(1, CELLS_MAX // len(self.plan.target.columns))
        return [
            step
            for rows in _bounded(selection, rows_max)
            for step in self._steps_of(selection, rows)
        ]

    def _steps_of(self, selection: Selection, rows: slice) -> list[BoundStatement]:
        part = selection.part(rows)
        # The whole before image is needed to see whether an update changes an identity column.
        whole = bool(identities(self.plan))
        try:
            changes = encode_changes(self.plan, part, whole=whole)
            return list(steps(self.plan, changes, self._settings.copy_rows))
        except ChangeError as error:
            raise RefusedError(rows.start + error.number, error.cause) from error
        except UnwritableError as error:
            raise RefusedError(rows.start + error.number, error.error) from error

    def _run_all(self, connection: Connection[Any], todo: Sequence[BoundStatement]) -> ChangeCounts:
        for step in todo:
            self.run(connection, step)
        return statement_counts(todo)

    def _write_transactions(
        self, connection: Connection[Any], selection: Selection, skipped: Skipped
    ) -> Written:
        counters = ChangeCounts()
        for rows in selection.transactions():
            part = selection.part(rows)
            try:
                done = self._write_transaction(connection, part, skipped)
            except RefusedError as error:
                return Written(rows.start, counters, error)
            counters = counters.plus(done)
        return Written(len(selection), counters, None)

    def _write_transaction(
        self, connection: Connection[Any], part: Selection, skipped: Skipped
    ) -> ChangeCounts:
        kept = _kept(part, skipped)
        check_lost(self._settings, part, kept, skipped)
        done = ChangeCounts(transactions=1, conflicts=len(part) - int(kept.sum()))
        if kept.any():
            done = done.plus(self._write_kept(connection, part, kept))
        self.follow(connection, part, kept)
        return done

    def _write_kept(
        self, connection: Connection[Any], part: Selection, kept: npt.NDArray[np.bool_]
    ) -> ChangeCounts:
        try:
            # Without the skipped changes, the others may succeed as a set.
            return self._write_together(connection, part.part(kept))
        except RefusedError:
            pass
        with connection.transaction():
            return self._write_singly(connection, part, kept)

    def _write_together(self, connection: Connection[Any], part: Selection) -> ChangeCounts:
        """Write changes of one transaction as a set, even if rows exchange values of a unique key.

        Raises:
            RefusedError: the target refuses it; nothing is written.
        """
        try:
            with connection.transaction():
                return self._run_all(connection, self._steps(part))
        except RefusedError as error:
            if error.answer is None or not error.is_conflict:
                raise
            again = rewritten(self.plan, self._encoded(part), self._settings.copy_rows)
            if not again:
                raise
        with connection.transaction():
            return self._run_all(connection, again)

    def _write_singly(
        self, connection: Connection[Any], part: Selection, kept: npt.NDArray[np.bool_]
    ) -> ChangeCounts:
        counters = ChangeCounts()
        shared = SharedKeys(self.plan, part, kept)
        for number in range(len(part)):
            if not shared.left[number]:
                continue
            try:
                with connection.transaction():
                    done = self._write_change(connection, shared, number)
            except RefusedError as error:
                error.number = number
                done = self._settle(connection, shared, error)
            counters = counters.plus(done)
        return counters

    def _settle(
        self, connection: Connection[Any], shared: SharedKeys, conflict: RefusedError
    ) -> ChangeCounts:
        """Write a conflicting change together with changes that share its keys, or apply the
        conflict policy.

        Raises:
            RefusedError: the change is not a conflict, or cannot be written in any of these ways.
        """
        if not conflict.is_conflict:
            raise conflict
        done = self._write_sharing_keys(connection, shared, conflict.number)
        if done is not None:
            return done
        if self._settings.conflict is ConflictPolicy.ERROR:
            raise conflict
        return self._resolve(connection, shared, conflict)

    def _write_sharing_keys(
        self, connection: Connection[Any], shared: SharedKeys, number: int
    ) -> ChangeCounts | None:
        """Write a conflicting change together with later changes that share its keys. Return None
        if there are no such changes, if they cannot be written together, or if the target also
        refuses them together.
        """
        if shared.is_alone(number):
            return None
        rows = shared.rest(number)
        if int(rows.sum()) < 2:
            return None
        try:
            together = shared.part.part(rows)
            changes = self._encoded(together)
            numbers = range(len(together))
            if any(shared.placed.displaces(changes, one) for one in numbers):
                return None
            done = self._write_together(connection, together)
        except RefusedError:
            shared.attempts += 1
            return None
        shared.left &= ~rows
        for one in numbers:
            shared.placed.note(changes, one)
        return done

    def _write_change(
        self, connection: Connection[Any], shared: SharedKeys, number: int
    ) -> ChangeCounts:
        changes = self._encoded(shared.change(number))
        if shared.placed.displaces(changes, 0):
            raise RefusedError(
                0,
                OlrPgError(
                    Code.CHANGE_CONFLICTS,
                    "the row does not exist any more, and another row now has its key",
                ),
                is_conflict=True,
            )
        try:
            step = one_change_step(self.plan, changes, 0)
        except UnwritableError as error:
            raise RefusedError(0, error.error) from error
        done = self._run_all(connection, [step])
        shared.placed.note(changes, 0)
        return done

    def _encoded(self, change: Selection) -> TargetChanges:
        try:
            return encode_changes(self.plan, change, whole=True)
        except ChangeError as error:
            raise RefusedError(0, error.cause) from error

    def _resolve(
        self, connection: Connection[Any], shared: SharedKeys, conflict: RefusedError
    ) -> ChangeCounts:
        """Apply the conflict policy to a change, and record the conflict."""
        number = conflict.number
        done: list[BoundStatement] = []
        if self._settings.conflict is ConflictPolicy.OVERWRITE:
            changes = self._encoded(shared.change(number))
            displaced = shared.placed.displaces(changes, 0)
            done = overwriting(self.plan, changes, 0, displaced=displaced)
            try:
                with connection.transaction():
                    self._run_all(connection, done)
            except RefusedError as worse:
                worse.number = number
                raise
            if done:
                shared.placed.note(changes, 0)
        row = conflict.row(shared.part, "overwritten" if done else "skipped")
        self._ledger.record(connection, row)
        return ChangeCounts(conflicts=1)


class KeptWriter:
    """Keeps the writer of a table for the next batches, until its plan becomes invalid.

    Attributes:
        writer: None before the first plan or after `drop`.
    """

    def __init__(self) -> None:
        self.writer: TableWriter | None = None

    def planned(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        ledger: TableLedger,
        selection: Selection,
        source: Table | None,
    ) -> TableWriter:
        """Return the kept writer; if there is none, make one with `planned_writer`."""
        if self.writer is None:
            self.writer = planned_writer(connection, settings, ledger, selection, source)
        return self.writer

    def drop(self) -> None:
        """Discard the writer, so that the next batch makes a new plan."""
        self.writer = None

    def check_shape(self, connection: Connection[Any]) -> None:
        """Check that the target still has the columns of the plan, if there is a plan.

        Raises:
            TargetAlteredError: the columns have changed.
        """
        if self.writer is not None:
            self.writer.shape.check(connection)


def planned_writer(
    connection: Connection[Any],
    settings: ApplierSettings,
    ledger: TableLedger,
    selection: Selection,
    source: Table | None,
) -> TableWriter:
    """Return the writer for a selection's table; create the table if needed.

    Raises:
        RefusedError: no plan is possible.
        psycopg.Error: a transient error.
    """
    try:
        with connection.transaction():
            plan = plan_table(connection, settings, received_table(selection), source)
    except OlrPgError as error:
        raise RefusedError(0, error) from error
    except psycopg.Error as error:
        raise refused(error) from error
    return TableWriter(plan, settings, ledger)


def _bounded(selection: Selection, rows_max: int) -> Iterator[slice]:
    """Divide changes into slices of at most `rows_max` rows, between transactions if possible.

    The slices are applied one after the other, like batches.
    """
    firsts, start, count = selection.firsts(), 0, len(selection)
    while start < count:
        end = min(start + rows_max, count)
        if end < count:
            begun = int(firsts[firsts.searchsorted(end, side="right") - 1])
            end = begun if begun > start else end
        yield slice(start, end)
        start = end


def _concerns(
    selection: Selection, transactions: Sequence[slice], skipped: Collection[tuple[int, int, int]]
) -> bool:
    """Return whether some of the transactions contain changes to skip."""
    if not skipped:
        return False
    known = {(scn, xid) for scn, xid, _ in skipped}
    return any(
        (int(selection.commit_scn[rows.start]), int(selection.xid[rows.start])) in known
        for rows in transactions
    )


def _kept(part: Selection, skipped: Skipped) -> npt.NDArray[np.bool_]:
    """Return which changes of one transaction must not be skipped."""
    kept = np.ones(len(part), np.bool_)
    identity = int(part.commit_scn[0]), int(part.xid[0])
    for scn, xid, number in skipped:
        if (scn, xid) == identity and 0 <= number < len(part):
            kept[number] = False
    return kept


def statement_counts(todo: Sequence[BoundStatement]) -> ChangeCounts:
    """Return how many rows the statements insert, update and delete, without a count of
    transactions.
    """
    sums = {kind: sum(s.expected for s in todo if s.kind is kind) for kind in DmlKind}
    return ChangeCounts(
        inserted=sums[DmlKind.INSERT],
        updated=sums[DmlKind.UPDATE],
        deleted=sums[DmlKind.DELETE],
    )


def check_touched(step: BoundStatement, touched: int) -> None:
    """Check that a statement affected the expected number of rows.

    Raises:
        RefusedError: the statement affected another number of rows.
    """
    if step.expected < 0 or touched == step.expected:
        return
    what = {
        DmlKind.INSERT: "inserted",
        DmlKind.UPDATE: "found to update",
        DmlKind.DELETE: "found to delete",
    }[step.kind]
    advice = f"; {step.advice}" if step.advice and touched == 0 else ""
    rows = counted(touched, "row was", "rows were")
    detail = f"{rows} {what}, instead of {step.expected:,}{advice}"
    action = NO_KEY_ACTION if advice else None
    raise RefusedError(
        -1,
        OlrPgError(Code.CHANGE_CONFLICTS, detail, action=action),
        statement=step.query.decode(),
        is_conflict=True,
    )
