"""Escapes percent signs in names. In statements with parameters, psycopg would take them for
placeholders.
"""

from __future__ import annotations

from psycopg import sql


def escape_percent_signs(part: sql.Composable) -> sql.SQL:
    """Double the percent signs in a part of a statement that contains no placeholders."""
    return sql.SQL(part.as_string().replace("%", "%%"))
