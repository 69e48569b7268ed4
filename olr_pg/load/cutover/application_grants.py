"""Lists the GRANT statements that applications need to use the target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetTable

APPLICATION: Final = "application"
"""The placeholder in the statements for the role that applications use."""

_KINDS: Final = (
    ("SELECT, INSERT, UPDATE, DELETE ON TABLE", 0),
    ("USAGE, SELECT ON SEQUENCE", 1),
)


def application_grants(
    connection: Connection[Any],
    tables: Iterable[TargetTable],
    sequences: Iterable[tuple[str, str]],
) -> list[str]:
    """Return the statements, one per line: for each schema, then for its tables and sequences.

    Args:
        sequences: schema and name of each.
    """
    found = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    named = [((table.schema, table.name), 0) for table in tables]
    named += [(name, 1) for name in sequences]
    for (schema, name), kind in named:
        quoted = sql.Identifier(schema, name).as_string(connection)
        found[schema][kind].append(quoted)
    statements = []
    for schema, parts in sorted(found.items()):
        quoted = sql.Identifier(schema).as_string(connection)
        statements.append(f"GRANT USAGE ON SCHEMA {quoted} TO {APPLICATION};")
        statements += [
            f"GRANT {rights} {', '.join(parts[kind])} TO {APPLICATION};"
            for rights, kind in _KINDS
            if parts[kind]
        ]
    return statements
