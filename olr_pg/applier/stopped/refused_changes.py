"""Changes that the target refuses, with the reason and the row for the error table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from olr_pg.applier.statements.table_changes import raw_images, row_id
from olr_pg.applier.target.ledger import ErrorRow
from olr_pg.errors import Code, OlrPgError, format_place
from olr_pg.postgres.sqlstates import full_text, is_conflict, is_transient, target_error
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from olr_pg.applier.statements.bound_statement import BoundStatement
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.lobs.lost_values import LostLob


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
