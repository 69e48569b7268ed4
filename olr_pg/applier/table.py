"""One table's applying: batches in, target transactions out, exactly once.

A batch goes as a set (`statements.steps`) in one target transaction with the ledger's row. Where
that meets a conflict or an error it is rolled back and done again *carefully*: transaction by
transaction, and the one that fails change by change, so that exactly the offending change is
found, judged by the conflict policy, and recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import psycopg

from olr_pg.applier.changes import (
    ChangeError,
    Selection,
    encode_changes,
    raw_images,
    row_id,
)
from olr_pg.applier.connection import is_transient
from olr_pg.applier.ledger import Counters, ErrorRow, Position, TableLedger
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.applier.statements import KeyMissingError, Step, overwriting, single, steps
from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.changes import Changes
    from olr_pg.applier.plan import TablePlan
    from olr_pg.applier.settings import ApplierSettings


class TableStoppedError(Exception):
    """The table met an error that stays; what came before it is applied and in the ledger.

    Attributes:
        error: what is reported.
        commit_scn: of the first transaction that is not applied.
    """

    def __init__(self, error: OlrPgError, commit_scn: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.commit_scn = commit_scn


class _RefusedError(Exception):
    """A change that does not go in.

    Attributes:
        number: of the change in its selection, −1 where only the set is known.
        error: why.
        sqlstate, statement: PostgreSQL's part in it.
        is_conflict: the policy decides.
    """

    def __init__(
        self,
        number: int,
        error: OlrPgError,
        *,
        sqlstate: str | None = None,
        statement: str | None = None,
        is_conflict: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.number = number
        self.error = error
        self.sqlstate = sqlstate
        self.statement = statement
        self.is_conflict = is_conflict


class _Moved(Exception):  # noqa: N818 - no error: the batch is looked at again
    """The ledger is not where it was thought to be."""


class Prepared(NamedTuple):
    """Changes as statements.

    Attributes:
        plan, selection: what they were made of.
        steps: the statements, or why there are none.
    """

    plan: TablePlan
    selection: Selection
    steps: list[Step] | _RefusedError


class _Outcome(NamedTuple):
    position: Position
    counters: Counters


class TableApplier:
    """Applies the changes of one table, from one thread.

    Attributes:
        plan: the table's plan.
        counters: what was applied since the start.
    """

    def __init__(self, plan: TablePlan, settings: ApplierSettings) -> None:
        self.plan = plan
        self.counters = Counters()
        self._settings = settings
        self._ledger = TableLedger(settings.subscription, plan.name, plan.target.full_name)
        self._position: Position | None = None

    @property
    def commit_scn(self) -> int:
        """Of the last transaction that is durable; 0 where the ledger was not read yet."""
        position = self._position
        return 0 if position is None else position.commit_scn

    def forget(self) -> None:
        """Read the ledger again before the next batch (the connection was lost)."""
        self._position = None

    def prepare(self, selection: Selection) -> Prepared:
        """Make the statements of a selection ahead of `apply`, from any one thread."""
        try:
            return Prepared(self.plan, selection, self._steps(selection))
        except _RefusedError as refused:
            return Prepared(self.plan, selection, refused)

    def apply(
        self, connection: Connection[Any], selection: Selection, prepared: Prepared | None = None
    ) -> None:
        """Bring changes of whole transactions into the table, durably; not what it already has.

        Args:
            prepared: of this selection, where that was made.

        Raises:
            TableStoppedError: an error that stays.
            psycopg.Error: one that may pass (`is_transient`); nothing of the batch is applied.
        """
        if self._position is None:
            with connection.transaction():
                self._position = self._ledger.lock(connection)
        todo = self._todo(selection, self._position)
        if len(todo) == 0:
            return
        if prepared is None or prepared.selection is not todo or prepared.plan is not self.plan:
            prepared = self.prepare(todo)
        try:
            outcome = self._apply_set(connection, prepared, self._position)
        except (_RefusedError, _Moved):
            outcome = self._apply_carefully(connection, todo)
        self._note(outcome)

    def _note(self, outcome: _Outcome) -> None:
        self._position = outcome.position
        self.counters = self.counters.plus(outcome.counters)

    def _todo(self, selection: Selection, position: Position) -> Selection:
        """What of the selection the table does not have."""
        if len(selection) == 0 or int(selection.commit_scn[0]) > position.commit_scn:
            return selection
        scn = np.uint64(position.commit_scn)
        wanted = selection.commit_scn > scn
        tied = np.flatnonzero(selection.commit_scn == scn)
        for xid in np.unique(selection.xid[tied]).tolist():
            if not position.has(position.commit_scn, xid):
                wanted[tied[selection.xid[tied] == np.uint64(xid)]] = True
        return selection.part(wanted)

    # --- as a set ---

    def _apply_set(
        self, connection: Connection[Any], prepared: Prepared, position: Position
    ) -> _Outcome:
        selection, todo = prepared.selection, prepared.steps
        if isinstance(todo, _RefusedError):
            raise todo
        transactions = selection.transactions()
        after = position
        for rows in transactions[-_tied(selection, transactions) :]:
            after = after.after(*_identity(selection, rows))
        counters = _counted(todo)._replace(transactions=len(transactions))
        with connection.transaction():
            if not self.plan.indexed:
                # Without an index the joins that read the table once are the fast ones.
                connection.execute("SET LOCAL enable_hashjoin = on")
            copies = [step.copy is not None for step in todo]
            if not any(copies):
                self._send(connection, todo, position, (after, counters))
            else:
                self._send(connection, [], position, None)
                for step in todo:
                    self._run(connection, step)
                self._ledger.advance(connection, after, counters)
        return _Outcome(after, counters)

    def _steps(self, selection: Selection) -> list[Step]:
        try:
            changes = encode_changes(self.plan, selection)
            return list(steps(self.plan, changes, self._settings.copy_rows))
        except ChangeError as error:
            raise _RefusedError(error.number, error.cause) from error
        except KeyMissingError as error:
            raise _RefusedError(error.number, error.error) from error

    def _send(
        self,
        connection: Connection[Any],
        todo: Sequence[Step],
        position: Position,
        then: tuple[Position, Counters] | None,
    ) -> None:
        """Lock the ledger, run the steps, advance: one round trip."""
        try:
            with connection.pipeline():
                locked = self._ledger.send_lock(connection)
                cursors = [connection.execute(step.query, step.parameters) for step in todo]
                if then is not None:
                    self._ledger.advance(connection, *then)
        except psycopg.Error as error:
            raise _refused(error) from error
        if self._ledger.locked(locked) != position:
            raise _Moved
        for step, cursor in zip(todo, cursors, strict=True):
            _check(step, cursor.rowcount)

    def _run(self, connection: Connection[Any], step: Step) -> None:
        try:
            cursor = connection.cursor()
            if step.copy is None:
                cursor.execute(step.query, step.parameters)
            else:
                with cursor.copy(step.query) as copy:
                    copy.write(step.copy)
        except psycopg.Error as error:
            raise _refused(error, step, connection) from error
        _check(step, cursor.rowcount)

    # --- carefully ---

    def _apply_carefully(self, connection: Connection[Any], selection: Selection) -> _Outcome:
        stopped: tuple[_RefusedError, Selection] | None = None
        with connection.transaction():
            first = position = self._ledger.lock(connection)
            todo = self._todo(selection, position)
            counters = Counters()
            for rows in todo.transactions():
                part = todo.part(rows)
                try:
                    counters = counters.plus(self._apply_transaction(connection, part))
                except _RefusedError as error:
                    stopped = error, part
                    break
                position = position.after(*_identity(todo, rows))
            if position != first:
                self._ledger.advance(connection, position, counters)
            if stopped is not None:
                self._ledger.stop(connection)
                self._record(connection, stopped[1], stopped[0], "stopped")
        outcome = _Outcome(position, counters)
        if stopped is not None:
            self._note(outcome)
            refused, part = stopped
            raise TableStoppedError(
                _located(refused.error, self.plan, part), int(part.commit_scn[0])
            ) from refused
        return outcome

    def _apply_transaction(self, connection: Connection[Any], part: Selection) -> Counters:
        try:
            with connection.transaction():
                todo = self._steps(part)
                for step in todo:
                    self._run(connection, step)
        except _RefusedError:
            with connection.transaction():
                return self._apply_singly(connection, part)
        return _counted(todo)._replace(transactions=1)

    def _apply_singly(self, connection: Connection[Any], part: Selection) -> Counters:
        counters = Counters(transactions=1)
        for number in range(len(part)):
            change = part.part(slice(number, number + 1))
            try:
                with connection.transaction():
                    counters = counters.plus(self._apply_change(connection, change))
            except _RefusedError as refused:
                refused.number = number
                if not refused.is_conflict or self._settings.conflict is ConflictPolicy.ERROR:
                    raise
                counters = counters.plus(self._resolve(connection, part, refused))
        return counters

    def _apply_change(self, connection: Connection[Any], change: Selection) -> Counters:
        try:
            step = single(self.plan, self._encoded(change), 0)
        except KeyMissingError as error:
            raise _RefusedError(0, error.error) from error
        self._run(connection, step)
        return _counted([step])

    def _encoded(self, change: Selection) -> Changes:
        try:
            return encode_changes(self.plan, change, whole=True)
        except ChangeError as error:
            raise _RefusedError(0, error.cause) from error

    def _resolve(
        self, connection: Connection[Any], part: Selection, refused: _RefusedError
    ) -> Counters:
        """Do what the policy says about a conflict, and record it."""
        number = refused.number
        done: list[Step] = []
        if self._settings.conflict is ConflictPolicy.OVERWRITE:
            changes = self._encoded(part.part(slice(number, number + 1)))
            done = overwriting(self.plan, changes, 0)
            try:
                with connection.transaction():
                    for step in done:
                        self._run(connection, step)
            except _RefusedError as worse:
                worse.number = number
                raise
        self._record(connection, part, refused, "overwritten" if done else "skipped")
        return Counters(conflicts=1)

    def _record(
        self,
        connection: Connection[Any],
        part: Selection,
        refused: _RefusedError,
        resolution: str,
    ) -> None:
        row = error_row(part, max(refused.number, 0), refused.error, resolution)
        self._ledger.record(
            connection, row._replace(sqlstate=refused.sqlstate, statement=refused.statement)
        )


def error_row(part: Selection, number: int, error: OlrPgError, resolution: str) -> ErrorRow:
    """The line of the error table for one change of a transaction's changes."""
    chunk = part.chunks[int(part.chunk[number])]
    before, after = raw_images(part, number)
    return ErrorRow(
        commit_scn=int(part.commit_scn[number]),
        xid=format_xid(int(part.xid[number])),
        position=number,
        scn=int(chunk.answers.scn[part.element[number]]),
        row_id=row_id(part, number),
        operation=part.layout(number).kind.name.lower(),
        code=error.code,
        sqlstate=None,
        message=error.detail,
        statement=None,
        before=before,
        after=after,
        resolution=resolution,
    )


def _tied(selection: Selection, transactions: Sequence[slice]) -> int:
    """How many of the last transactions share the last commit SCN."""
    firsts = np.array([rows.start for rows in transactions])
    return int((selection.commit_scn[firsts] == selection.commit_scn[-1]).sum())


def _identity(selection: Selection, rows: slice) -> tuple[int, int]:
    return int(selection.commit_scn[rows.start]), int(selection.xid[rows.start])


def _counted(todo: Sequence[Step]) -> Counters:
    sums = {kind: sum(s.expected for s in todo if s.kind is kind) for kind in DmlKind}
    return Counters(
        inserted=sums[DmlKind.INSERT],
        updated=sums[DmlKind.UPDATE],
        deleted=sums[DmlKind.DELETE],
    )


def _check(step: Step, touched: int) -> None:
    if step.expected < 0 or touched == step.expected:
        return
    what = {
        DmlKind.INSERT: "went in",
        DmlKind.UPDATE: "were there to update",
        DmlKind.DELETE: "were there to delete",
    }[step.kind]
    raise _RefusedError(
        -1,
        OlrPgError(5009, f"{touched} rows {what}, not {step.expected}"),
        statement=step.query.as_string(None),
        is_conflict=True,
    )


def _refused(
    error: psycopg.Error, step: Step | None = None, connection: Connection[Any] | None = None
) -> _RefusedError:
    """The refusal for PostgreSQL's error.

    Raises:
        psycopg.Error: the error itself, where it may pass.
    """
    if is_transient(error):
        raise error
    is_conflict = isinstance(
        error, psycopg.errors.UniqueViolation | psycopg.errors.ExclusionViolation
    )
    message = error.diag.message_primary or str(error)
    if error.diag.message_detail:
        message += f": {error.diag.message_detail}"
    return _RefusedError(
        -1,
        OlrPgError(5009 if is_conflict else 5008, message),
        sqlstate=error.sqlstate,
        statement=None if step is None else step.query.as_string(connection),
        is_conflict=is_conflict,
    )


def _located(error: OlrPgError, plan: TablePlan, part: Selection) -> OlrPgError:
    return OlrPgError(
        error.code,
        error.detail,
        action=error.action,
        **{
            **error.where,
            "table": plan.name,
            "commit_scn": int(part.commit_scn[0]),
            "xid": format_xid(int(part.xid[0])),
        },
    )
