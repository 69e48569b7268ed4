"""Finds the privileges that the applier's role lacks in the target, with the GRANT statements to
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

from olr_pg.observability.findings import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

_WRITING: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_TABLE: Final = (*_WRITING, "TRUNCATE")
LEDGER_PRIVILEGES: Final = {
    "version": ("SELECT",),
    **dict.fromkeys(("ledger", "error", "subscription", "incarnation", "way_back"), _WRITING[:3]),
    **dict.fromkeys(("held", "load", "load_part", "cutover", "set_aside", "paused"), _WRITING),
    **dict.fromkeys(("crash_mark", "crash_watch", "unlogged"), _WRITING),
    **dict.fromkeys(("incomplete", "structure", "partition"), _WRITING),
}
"""The privileges on the ledger's tables that role.sql grants."""

_LACKING: Final = """
SELECT array_agg(privilege ORDER BY place)
FROM pg_class c, unnest(%(privileges)s::text[]) WITH ORDINALITY AS wanted (privilege, place)
WHERE c.relname = %(table)s AND c.relnamespace = to_regnamespace(quote_ident(%(schema)s))
AND NOT has_table_privilege(c.oid, privilege)
"""
_MAY_ENTER: Final = """
SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s
"""
_MAY_CREATE: Final = """
SELECT to_regnamespace(quote_ident(%(schema)s)) IS NOT NULL, CASE
    WHEN to_regnamespace(quote_ident(%(schema)s)) IS NULL
    THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege(to_regnamespace(quote_ident(%(schema)s)), 'CREATE') END,
    current_database()
"""


def check_ledger(connection: Connection[Any], user: str) -> Iterator[Finding]:
    """Yield the missing privileges on those tables of the ledger that exist."""
    for name, privileges in LEDGER_PRIVILEGES.items():
        yield from check_grants(connection, user, "olr_pg", name, privileges)


def check_grants(
    connection: Connection[Any],
    user: str,
    schema: str,
    name: str,
    privileges: Sequence[str] = _TABLE,
) -> Iterator[Finding]:
    """Yield the missing privileges to use a schema, and to write a table in it if the table
    exists.
    """
    row = connection.execute(_MAY_ENTER, (schema,)).fetchone()
    if row == (False,):
        yield error(
            "postgres.privileges",
            f"{user} may not use the schema {schema}",
            _grant(connection, "USAGE", "SCHEMA {}", sql.Identifier(schema), user),
        )
    values = {"privileges": list(privileges), "schema": schema, "table": name}
    found = connection.execute(_LACKING, values).fetchone()
    if found is not None and found[0]:
        lacking = ", ".join(found[0])
        yield error(
            "postgres.privileges",
            f"{user} lacks {lacking} on {schema}.{name}",
            _grant(connection, lacking, "TABLE {}", sql.Identifier(schema, name), user),
        )


def check_creation(
    connection: Connection[Any], user: str, schema: str, what: str
) -> Iterator[Finding]:
    """Yield the missing privileges to create tables in a schema, or to create the schema."""
    row = connection.execute(_MAY_CREATE, {"schema": schema}).fetchone()
    assert row is not None
    is_there, allowed, database = row
    if allowed:
        return
    kind, name = ("SCHEMA {}", schema) if is_there else ("DATABASE {}", database)
    yield error(
        "postgres.privileges",
        what,
        _grant(connection, "CREATE", kind, sql.Identifier(name), user),
        "or run sql/postgres/ledger.sql and role.sql, and create the tables yourself",
    )


def _grant(
    connection: Connection[Any], privileges: str, kind: str, name: sql.Identifier, user: str
) -> str:
    """Return the GRANT statement, which a superuser or the owner must run."""
    query = sql.SQL("GRANT " + privileges + " ON " + kind + " TO {};")
    return query.format(name, sql.Identifier(user)).as_string(connection)
