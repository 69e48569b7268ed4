"""Creates constraints as NOT VALID, if this version of PostgreSQL supports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from psycopg import Connection

NOT_VALID: Final = " NOT VALID"


def run_statement(connection: Connection[Any], statement: str) -> str:
    """Run a statement. Return the statement that was run, which can differ from the given one.

    Before PostgreSQL 18 a foreign key of a partitioned table cannot be ``NOT VALID``. Such a key is
    added without NOT VALID, and PostgreSQL checks the rows at once.

    Args:
        connection: a connection in autocommit mode, or within a transaction of the caller.

    Raises:
        psycopg.Error: PostgreSQL refuses both forms.
    """
    try:
        with connection.transaction():
            connection.execute(statement.encode())
    except (psycopg.errors.WrongObjectType, psycopg.errors.FeatureNotSupported):
        at_once = statement.removesuffix(NOT_VALID)
        if at_once == statement:
            raise
        with connection.transaction():
            connection.execute(at_once.encode())
        return at_once
    return statement
