"""Names in statements with parameters, where psycopg takes any percent sign for a parameter's."""

from __future__ import annotations

from psycopg import sql


def escape_percent_signs(part: sql.Composable) -> sql.SQL:
    """Double the percent signs of a part of a statement with parameters that has none itself."""
    return sql.SQL(part.as_string().replace("%", "%%"))
