"""Statements tried and run against the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.observability.redaction import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Connection

    from olr_pg.schema.statement import Statement

CREATED: Final = "created"
PRESENT: Final = "present"
FAILED: Final = "failed"
LEFT_OUT: Final = "left out"

_LOCK_SECONDS: Final = 3
_STATEMENT_SECONDS: Final = 60
_AGAIN: Final = (
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateColumn,
    psycopg.errors.DuplicateSchema,
)
_NOT_TRIED: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)


class TrialOutcome(NamedTuple):
    """Says what became of a statement.

    Attributes:
        state: `CREATED`, `PRESENT` before, `FAILED` or `LEFT_OUT`.
        reason: of the last two.
    """

    statement: Statement
    state: str
    reason: str = ""


class _UndoneError(Exception):
    """Ends a transaction that is not to last."""


def tried(connection: Connection[Any], statements: Sequence[Statement]) -> list[Statement]:
    """Try all of them in a transaction that is rolled back; return them with what was refused.

    Args:
        connection: in autocommit.
    """
    found: list[Statement] = []
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
            for one in statements:
                reason = (
                    "" if not one.runs or is_present(connection, one) else _try(connection, one)
                )
                found.append(one.refused(reason) if reason else one)
            raise _UndoneError
    except _UndoneError:
        return found


def _try(connection: Connection[Any], one: Statement) -> str:
    try:
        with connection.transaction():
            connection.execute(one.sql.encode())
    except (*_AGAIN, *_NOT_TRIED):
        return ""
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        return f"PostgreSQL: {mask(error.diag.message_primary or str(error).strip())}"
    return ""


def is_present(connection: Connection[Any], one: Statement) -> bool:
    """Tell whether the target has it already."""
    if not one.present:
        return False
    try:
        with connection.transaction():
            row = connection.execute(one.present.encode()).fetchone()
    except psycopg.errors.UndefinedObject:
        return False  # a role that is not there
    except psycopg.errors.UndefinedTable:
        return False
    return row == (True,)


def run_statements(
    connection: Connection[Any], statements: Iterable[Statement]
) -> list[TrialOutcome]:
    """Run what is not there yet, each in a transaction of its own; what fails keeps nothing back.

    Args:
        connection: in autocommit.
    """
    return [_run(connection, one) for one in statements]


def _run(connection: Connection[Any], one: Statement) -> TrialOutcome:
    if not one.runs:
        return TrialOutcome(one, LEFT_OUT, one.reason)
    if is_present(connection, one):
        return TrialOutcome(one, PRESENT)
    try:
        with connection.transaction():
            connection.execute(one.sql.encode())
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        reason = mask(error.diag.message_primary or str(error).strip())
        # Grants are for roles that exist.
        lacks_role = one.kind == "grant" and isinstance(error, psycopg.errors.UndefinedObject)
        return TrialOutcome(one, LEFT_OUT if lacks_role else FAILED, f"PostgreSQL: {reason}")
    return TrialOutcome(one, CREATED)
