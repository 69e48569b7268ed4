"""Constraints that are validated later, where this version of PostgreSQL can make them so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from psycopg import Connection

NOT_VALID: Final = " NOT VALID"


def run_statement(connection: Connection[Any], statement: str) -> str:
    """Run a statement; return what was run.

    Before PostgreSQL 18 a foreign key of a partitioned table cannot be ``NOT VALID``: it is added
    without that, and PostgreSQL looks at the rows at once.

    Args:
        connection: in autocommit, or in the transaction that it is to be part of.

    Raises:
        psycopg.Error: PostgreSQL refuses it either way.
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
