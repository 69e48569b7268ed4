"""A statement that changes a target table, and functions to build it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

from olr_pg.applier.target.percent_signs import escape_percent_signs
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.applier.target.connection import Binary
    from olr_pg.transactions.finished_columns import DmlKind


class BoundStatement(NamedTuple):
    """A statement with its parameters.

    Attributes:
        kind: the kind of change, for the counts.
        query: the SQL in UTF-8, with ``%b`` placeholders. The SQL of a COPY has no placeholders.
        parameters: the values for the placeholders; empty for a COPY.
        copy: the data of a COPY; None for other statements.
        expected: the number of rows that the statement must affect; negative if any number is
            allowed.
        advice: what to check if the statement affects no row.
    """

    kind: DmlKind
    query: bytes
    parameters: tuple[Binary | None, ...]
    copy: memoryview | None
    expected: int
    advice: str = ""


NO_KEY_ACTION: Final = (
    "add supplemental logging of the key in the source (`olr-pg doctor` prints the"
    " statement), so that later changes contain the key. Skip this change with `olr-pg"
    " errors skip`. Then correct its row with `olr-pg verify --differences FILE` and"
    " `olr-pg repair --differences FILE`, or load the table again: `olr-pg initial-load"
    " --anew --table OWNER.NAME`"
)
"""The action to report if the redo does not contain the key of a changed row."""


class UnwritableError(Exception):
    """Raised if a change cannot be applied by any statement.

    Attributes:
        error: the error to report.
    """

    def __init__(self, number: int, error: OlrPgError) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


class KeyMissingError(UnwritableError):
    """Raised if a change lacks values of its key."""

    def __init__(self, number: int) -> None:
        super().__init__(
            number,
            OlrPgError(
                Code.CHANGE_CONFLICTS,
                "the change does not contain the values of the key, so its row cannot be"
                " found. This stops the table, whatever `apply.on-conflict` is set to",
                action=NO_KEY_ACTION,
            ),
        )


def name_of(name: str) -> sql.SQL:
    """Return the quoted name of a column, for a statement with parameters."""
    return escape_percent_signs(sql.Identifier(name))


def type_of(column: TargetColumn) -> sql.SQL:
    """Return the type of a column's values; for a domain, its base type."""
    return escape_percent_signs(sql.SQL(column.base_name))


def table_of(plan: TablePlan) -> sql.SQL:
    """Return the quoted name of the target table, for a statement with parameters."""
    return escape_percent_signs(plan.target.identifier)
