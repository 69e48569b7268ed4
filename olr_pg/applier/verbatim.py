"""Names in statements with parameters, where psycopg takes any percent sign for a parameter's."""

from __future__ import annotations

from psycopg import sql


def verbatim(part: sql.Composable) -> sql.SQL:
    """A part of a statement with parameters that has none itself: PostgreSQL gets it as it is."""
    return sql.SQL(part.as_string().replace("%", "%%"))
