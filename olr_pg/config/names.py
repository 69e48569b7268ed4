"""Parses Oracle table names in the configuration, and builds the TableList query that returns
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.config.table_patterns import TablePattern, pattern_query
from olr_pg.dictionary import selection
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_SCHEMA: Final = "olr_pg"
"""The schema of the appliance's ledger in a target; no tables are replicated into it."""

_UNION_MAX: Final = 200
"""Maximum number of entries in one compound query. An entry has up to two SELECTs, and SQLite
allows 500 SELECTs in a compound query.
"""


class TableName(NamedTuple):
    """Owner and name of a table, exactly as the dictionary contains them."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


def configured_table_name(text: str) -> TableName:
    """Parse ``OWNER.NAME``; a part in double quotes keeps its case.

    Raises:
        ValueError: the text is not two identifiers separated by a dot.
    """
    try:
        return TableName(*selection.parse_table_name(text))
    except OlrPgError as error:
        raise ValueError(error.detail) from error


def table_list_query(tables: Sequence[TableName | TablePattern]) -> str:
    """Return the TableList query that returns exactly these tables, in this order.

    The query selects names as literals, not from a view. So it also returns the name of a table
    that does not exist, and the server rejects that name; a view would silently leave it out. For
    the same reason, a pattern that matches no table returns its own text. The query runs on Oracle
    and on the offline source's SQLite database.
    """
    excluded = [one for one in tables if isinstance(one, TablePattern) and one.excluded]
    wanted = [one for one in tables if one not in excluded]
    parts = [wanted[i : i + _UNION_MAX] for i in range(0, len(wanted), _UNION_MAX)]
    unions = [
        " UNION ALL ".join(
            pattern_query(one, excluded) if isinstance(one, TablePattern) else _select_literals(one)
            for one in part
        )
        for part in parts
    ]
    if len(unions) == 1:
        return unions[0]
    return " UNION ALL ".join(f"SELECT OWNER, TABLE_NAME FROM ({union})" for union in unions)  # noqa: S608 - of quoted literals


def _select_literals(table: TableName) -> str:
    owner, name = (part.replace("'", "''") for part in table)
    return f"SELECT '{owner}' AS OWNER, '{name}' AS TABLE_NAME FROM DUAL"  # noqa: S608 - quoted
