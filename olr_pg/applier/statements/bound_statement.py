"""One statement that changes a target table, and what it is put together from."""

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
        kind: what it does, for the counters.
        query: with ``%b`` placeholders; of a COPY, whole. UTF-8.
        parameters: its parameters, none for a COPY.
        copy: the COPY's stream.
        expected: rows it must touch.
        advice: what to look at where it touches none.
    """

    kind: DmlKind
    query: bytes
    parameters: tuple[Binary | None, ...]
    copy: memoryview | None
    expected: int
    advice: str = ""


NO_KEY_ACTION: Final = (
    "turn supplemental logging of the key on in the source (`olr-pg doctor` has the statement):"
    " later changes have it then. Leave this one out with `olr-pg errors skip`, and mend its row"
    " with `olr-pg verify --differences FILE` and `olr-pg repair --differences FILE`, or load the"
    " table anew: `olr-pg initial-load --anew --table OWNER.NAME`"
)
"""What to do where redo does not tell which row a change is of."""


class UnwritableError(Exception):
    """No statement can bring a change in.

    Attributes:
        error: as it is reported.
    """

    def __init__(self, number: int, error: OlrPgError) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


class KeyMissingError(UnwritableError):
    """A change does not have its key's values."""

    def __init__(self, number: int) -> None:
        super().__init__(
            number,
            OlrPgError(
                Code.CHANGE_CONFLICTS,
                "the change does not have the values of the key, whatever `apply.on-conflict` is",
                action=NO_KEY_ACTION,
            ),
        )


def name_of(name: str) -> sql.SQL:
    """Return a column's name in a statement with parameters."""
    return escape_percent_signs(sql.Identifier(name))


def type_of(column: TargetColumn) -> sql.SQL:
    """Return the type of a column's values, below a domain."""
    return escape_percent_signs(sql.SQL(column.base_name))


def table_of(plan: TablePlan) -> sql.SQL:
    """Return the target table."""
    return escape_percent_signs(plan.target.identifier)
