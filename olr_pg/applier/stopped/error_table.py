"""The error table: changes that the target refused, which stopped a table or were skipped, with the
reason. The list of incomplete rows is beside the error table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg.rows import class_row

from olr_pg.applier.statements.table_changes import raw_images, row_id
from olr_pg.applier.stopped.hold import accept_loss, delete_transaction
from olr_pg.applier.stopped.left_out import forget_left_out
from olr_pg.applier.target.ledger import LOCK_ROW, ErrorRow
from olr_pg.dictionary.evolution import ENDING
from olr_pg.errors import Code, OlrPgError, format_place
from olr_pg.postgres.sqlstates import full_text, is_conflict, is_transient, target_error
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from psycopg import Connection

    from olr_pg.applier.statements.bound_statement import BoundStatement
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.lobs.lost_values import LostLob


_COLUMNS = """
SELECT id, source_table, target_table, commit_scn, xid, position, scn, row_id, operation, code,
    sqlstate, message, statement, before, after, resolution, first_seen, last_seen, attempts,
    action AS own_action
FROM olr_pg.error
"""
_LIST = f"{_COLUMNS} WHERE subscription = %s AND (%s OR resolution = 'stopped') ORDER BY id"
_ONE = f"{_COLUMNS} WHERE subscription = %s AND id = %s"
_SKIP = """
UPDATE olr_pg.error SET resolution = 'skipped', last_seen = now()
WHERE subscription = %s AND id = %s AND resolution = 'stopped'
"""
_IS_KNOWN = "SELECT FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s"
_STOPPED = """
SELECT l.source_table, l.target_table, l.commit_scn AS received_scn,
    h.transactions, h.changes, h.bytes, h.first_scn
FROM olr_pg.ledger AS l LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE changes > 0 OR kind = 'ddl') AS transactions,
        coalesce(sum(changes), 0)::bigint AS changes,
        coalesce(sum(octet_length(data)), 0)::bigint AS bytes, min(commit_scn) AS first_scn
    FROM olr_pg.held AS h
    WHERE h.subscription = l.subscription AND h.source_table = l.source_table
) AS h ON true
WHERE l.subscription = %s AND l.stopped AND NOT l.paused ORDER BY l.source_table
"""
_INCOMPLETE = """
SELECT id, source_table, target_table, key, row_id, column_name, target_column, operation,
    commit_scn, xid, reason, noted_at, fetched_at, failure
FROM olr_pg.incomplete WHERE subscription = %s ORDER BY source_table, id LIMIT %s
"""
_INCOMPLETE_COUNTS = """
SELECT source_table, incomplete FROM olr_pg.ledger
WHERE subscription = %s AND incomplete > 0 ORDER BY source_table
"""
_REASONS = """
SELECT DISTINCT ON (l.source_table) l.source_table, e.code, e.id
FROM olr_pg.ledger AS l LEFT JOIN olr_pg.error AS e ON e.subscription = l.subscription
    AND e.source_table = l.source_table AND e.resolution = 'stopped'
WHERE l.subscription = %(subscription)s AND l.stopped AND NOT l.paused
    AND (%(table)s::text IS NULL OR l.source_table = %(table)s)
ORDER BY l.source_table, e.id DESC
"""


class ErrorLine(NamedTuple):
    """A row of the error table; ledger.sql documents the columns."""

    id: int
    source_table: str
    target_table: str
    commit_scn: int
    xid: str
    position: int
    scn: int
    row_id: str | None
    operation: str
    code: int
    sqlstate: str | None
    message: str
    statement: str | None
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None
    resolution: str
    first_seen: datetime
    last_seen: datetime
    attempts: int
    own_action: str | None

    @property
    def action(self) -> str:
        """The action for this error: its own one, or the one from the catalogue; empty if a later
        release has added the code.
        """
        if self.own_action is not None:
            return self.own_action
        known = self.code in Code.__members__.values()
        return Code(self.code).action if known else ""


class StoppedTable(NamedTuple):
    """A table whose changes are held.

    Attributes:
        received_scn: the commit SCN up to which its changes are in the hold.
        first_scn: the commit SCN of the first held transaction.
    """

    source_table: str
    target_table: str
    received_scn: int
    transactions: int
    changes: int
    bytes: int
    first_scn: int | None


def read_errors(
    connection: Connection[Any], subscription: str, *, resolved: bool
) -> list[ErrorLine]:
    """Read the error table's rows of a subscription, oldest first.

    Args:
        resolved: whether to also read rows that do not stop a table.
    """
    with connection.cursor(row_factory=class_row(ErrorLine)) as cursor:
        return cursor.execute(_LIST, (subscription, resolved)).fetchall()


def read_error(connection: Connection[Any], subscription: str, number: int) -> ErrorLine:
    """Read one row of the error table.

    Raises:
        OlrPgError: 5142, the row does not exist.
    """
    with connection.cursor(row_factory=class_row(ErrorLine)) as cursor:
        line = cursor.execute(_ONE, (subscription, number)).fetchone()
    if line is None:
        raise OlrPgError(
            Code.NO_SUCH_ERROR_LINE, f"there is no error {number}", subscription=subscription
        )
    return line


def skip_error(connection: Connection[Any], subscription: str, number: int) -> ErrorLine:
    """Mark the change of an error table's row as skipped. The table stays stopped until it is
    resumed.

    If the change is already skipped, do nothing: an earlier command may have lost its connection
    before it resumed the table, and the operator repeats the command. In particular, a repeated
    command must not skip a later gap in the table's changes, because the operator has decided only
    about one gap.

    Raises:
        OlrPgError: 5142, the row does not exist; 5143, the row does not stop a table, the server
            delivers no changes of the table after this error, or the table is not replicated any
            more.
    """
    line = read_error(connection, subscription, number)
    if line.code in ENDING and line.resolution == "stopped":
        # A table that is not stopped would look as if it were replicated.
        raise OlrPgError(
            Code.ERROR_NOT_SKIPPABLE,
            f"changes of the table after error {number} are not delivered",
            action=line.action,
            table=line.source_table,
        )
    is_marked = connection.execute(_SKIP, (subscription, number)).rowcount == 1
    key = subscription, line.source_table
    is_known = connection.execute(_IS_KNOWN, key).rowcount == 1
    if not (is_marked or (line.resolution == "skipped" and is_known)):
        raise OlrPgError(
            Code.ERROR_NOT_SKIPPABLE,
            f"error {number} is {line.resolution}",
            table=line.source_table,
        )
    if is_marked and line.code == Code.TABLE_WAS_LEFT_OUT:
        forget_left_out(connection, subscription, line.source_table)
    if is_marked and line.code == Code.HOLD_LOST:
        accept_loss(connection, subscription, line.source_table)
    return line


def skip_transaction(connection: Connection[Any], subscription: str, number: int) -> ErrorLine:
    """Mark the change of an error table's row as skipped, and delete all held changes of the same
    transaction to the same table.

    Raises:
        OlrPgError: 5142, 5143, see `skip_error`.
    """
    with connection.transaction():
        table = read_error(connection, subscription, number).source_table
        # The lock makes a replay of the table, and an applier that adds to its hold, wait.
        connection.execute(LOCK_ROW, (subscription, table))
        line = skip_error(connection, subscription, number)
        delete_transaction(connection, (subscription, table), line.commit_scn, line.xid)
    return line


class IncompleteLine(NamedTuple):
    """A row of the list of incomplete rows; ledger.sql documents the columns."""

    id: int
    source_table: str
    target_table: str
    key: dict[str, str] | None
    row_id: str | None
    column_name: str
    target_column: str
    operation: str
    commit_scn: int
    xid: str
    reason: int
    noted_at: datetime
    fetched_at: datetime | None
    failure: str | None


def read_incomplete(
    connection: Connection[Any], subscription: str, limit: int | None = None
) -> list[IncompleteLine]:
    """Read the missing LOB values of a subscription's tables, oldest first for each table.

    Args:
        limit: maximum number of rows to read; None for all.
    """
    with connection.cursor(row_factory=class_row(IncompleteLine)) as cursor:
        return cursor.execute(_INCOMPLETE, (subscription, limit)).fetchall()


def count_incomplete(connection: Connection[Any], subscription: str) -> dict[str, int]:
    """Return the number of missing LOB values of each table that has any."""
    return dict(connection.execute(_INCOMPLETE_COUNTS, (subscription,)).fetchall())


def read_stopped(connection: Connection[Any], subscription: str) -> list[StoppedTable]:
    """Read the stopped tables of a subscription, with counts of their held changes."""
    with connection.cursor(row_factory=class_row(StoppedTable)) as cursor:
        return cursor.execute(_STOPPED, (subscription,)).fetchall()


def stopped_error(reasons: Sequence[tuple[str, int | None, int | None]]) -> OlrPgError:
    """Return the error of a run that ends with stopped tables.

    Args:
        reasons: for each stopped table its name, the code of its error, and the number of the row
            in the error table.
    """
    table, code, number = reasons[0]
    others = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    if code is None or code not in frozenset(Code):
        return OlrPgError(Code.TABLES_STOPPED, f"{table}{others}")
    # Do not use the message of the error table's row: it contains data of the table, and this error
    # is logged.
    reason = f"{table}{others}, because of OLR-{code:05d}: {Code(code).title}"
    return OlrPgError(Code.TABLES_STOPPED, reason, error=number)


def check_stopped(connection: Connection[Any], subscription: str) -> None:
    """Check that no table of the subscription is stopped.

    Raises:
        OlrPgError: 5010, tables are stopped.
    """
    reasons = _reasons(connection, subscription)
    if reasons:
        raise stopped_error(reasons)


def stopped_reason(connection: Connection[Any], subscription: str, table: str) -> OlrPgError | None:
    """Return why a table is stopped according to the target, as error 5010.

    Returns:
        None if the table is not stopped, if an operator has paused it, or if its changes are only
        held until another session releases a lock.
    """
    reasons = _reasons(connection, subscription, table)
    if not reasons or reasons[0][1] == Code.STATEMENT_BLOCKED:
        return None
    return stopped_error(reasons)


def _reasons(
    connection: Connection[Any], subscription: str, table: str | None = None
) -> list[tuple[str, int | None, int | None]]:
    values = {"subscription": subscription, "table": table}
    return connection.execute(_REASONS, values).fetchall()


BESIDE: Final = 1 << 29
"""If the change of a missing value is not delivered, the position in the error table is this number
plus the index of the change that the value is reported with.
"""


_BESIDE: Final = frozenset({"row", "table", "commit_scn", "xid"})
"""Parts of an error's place that the error table stores in other columns, or does not need."""


class RefusedError(Exception):
    """Raised if the target refuses a change.

    Attributes:
        number: the index of the change in its selection; −1 if it is not known which change of a
            set was refused.
        error: the reason, without values of the row.
        answer: PostgreSQL's error, if there is one. The full text of the error can contain values
            of the row, so the text is only for the error table.
        statement: the statement that failed.
        is_conflict: whether the conflict policy decides what to do.
    """

    def __init__(
        self,
        number: int,
        error: OlrPgError,
        answer: psycopg.Error | None = None,
        *,
        statement: str | None = None,
        is_conflict: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.number = number
        self.error = error
        self.answer = answer
        self.statement = statement
        self.is_conflict = is_conflict

    def row(self, transaction: Selection, resolution: str) -> ErrorRow:
        """Return the row of the error table for the refused change of a transaction."""
        number = max(self.number, 0)
        chunk = transaction.chunks[int(transaction.chunk[number])]
        before, after = raw_images(transaction, number)
        return ErrorRow(
            commit_scn=int(transaction.commit_scn[number]),
            xid=format_xid(int(transaction.xid[number])),
            position=number,
            scn=int(chunk.changes.scn[transaction.element[number]]),
            row_id=row_id(transaction, number),
            operation=transaction.kind(number).name.lower(),
            code=self.error.code,
            sqlstate=None if self.answer is None else self.answer.sqlstate,
            message=self._reason() if self.answer is None else full_text(self.answer),
            statement=self.statement,
            before=before,
            after=after,
            resolution=resolution,
            action=self.error.own_action,
        )

    def _reason(self) -> str:
        """Return the detail of the error with its place within the row, such as the column."""
        # The index is that of a batch; the error table has the table and the change.
        within = {key: place for key, place in self.error.where.items() if key not in _BESIDE}
        return f"{self.error.detail} [{format_place(within)}]" if within else self.error.detail

    def located(self, table: str, transaction: Selection) -> OlrPgError:
        """Return the error with the table, and with the commit SCN and the XID of the
        transaction.
        """
        return OlrPgError(
            self.error.code,
            self.error.detail,
            action=self.error.action,
            **{
                **self.error.where,
                "table": table,
                "commit_scn": int(transaction.commit_scn[0]),
                "xid": format_xid(int(transaction.xid[0])),
            },
        )


class LostLobRefusedError(RefusedError):
    """Raised if a missing LOB value stops the table.

    Attributes:
        lost: the missing value. The missing value can belong to a change that is not delivered.
    """

    def __init__(self, number: int, error: OlrPgError, lost: LostLob) -> None:
        super().__init__(number, error)
        self.lost = lost

    def row(self, transaction: Selection, resolution: str) -> ErrorRow:
        """See `RefusedError.row`."""
        row = super().row(transaction, resolution)
        if self.lost.delivered:
            return row
        # The value belongs to a change that is not delivered, and is only reported with this
        # change. If an operator skips the row, this change must not be skipped.
        return row._replace(
            position=BESIDE + row.position,
            row_id=self.lost.row_id or None,
            operation=self.lost.kind.name.lower(),
            before=None,
            after=None,
        )


def refused(error: psycopg.Error, step: BoundStatement | None = None) -> RefusedError:
    """Return the `RefusedError` for an error of PostgreSQL.

    Raises:
        psycopg.Error: the error itself, if it is transient.
    """
    if is_transient(error):
        raise error
    return refusal(error, step)


def refusal(error: psycopg.Error, step: BoundStatement | None = None) -> RefusedError:
    """Return the `RefusedError` for an error of PostgreSQL that is not transient, or has persisted
    too long.
    """
    conflicts = is_conflict(error)
    code = Code.CHANGE_CONFLICTS if conflicts else Code.CHANGE_REFUSED
    return RefusedError(
        -1,
        target_error(error, code=code),
        error,
        statement=None if step is None else step.query.decode(),
        is_conflict=conflicts,
    )
