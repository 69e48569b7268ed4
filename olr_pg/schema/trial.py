"""Statements tried and run against the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.observability.redaction import mask
from olr_pg.postgres.later_constraints import run_statement
from olr_pg.postgres.sqlstates import (
    is_duplicate,
    is_missing,
    is_of_statement,
    is_transient,
    plain_words,
)

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
                is_wanted = one.runs and not is_present(connection, one)
                found.append(_try(connection, one) if is_wanted else one)
            raise _UndoneError
    except _UndoneError:
        return found


def _try(connection: Connection[Any], one: Statement) -> Statement:
    """Return the statement as this server runs it, or as refused."""
    try:
        return one._replace(sql=run_statement(connection, one.sql))
    except psycopg.Error as error:
        if not is_of_statement(error, connection):
            raise
        # What another session keeps from being tried is not refused.
        if is_duplicate(error) or is_transient(error):
            return one
        return one.refused(f"PostgreSQL: {mask(plain_words(error))}")


def is_present(connection: Connection[Any], one: Statement) -> bool:
    """Tell whether the target has it already."""
    if not one.present:
        return False
    try:
        with connection.transaction():
            row = connection.execute(one.present.encode()).fetchone()
    except psycopg.Error as error:
        if not is_missing(error):
            raise
        return False  # of a role or table that is not there
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
        run_statement(connection, one.sql)
    except psycopg.Error as error:
        if not is_of_statement(error, connection):
            raise
        reason = mask(plain_words(error))
        # Grants are for roles that exist.
        lacks_role = one.kind == "grant" and is_missing(error)
        return TrialOutcome(one, LEFT_OUT if lacks_role else FAILED, f"PostgreSQL: {reason}")
    return TrialOutcome(one, CREATED)
