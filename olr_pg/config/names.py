"""Oracle table names in the configuration, and the TableList query that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.config.table_patterns import TablePattern, pattern_query
from olr_pg.dictionary import selection
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_SCHEMA: Final = "olr_pg"
"""The schema of a target that holds the appliance's ledger; nothing is replicated into it."""

_UNION_MAX: Final = 200
"""Entries of one compound, of up to two selects; SQLite takes 500."""


class TableName(NamedTuple):
    """Owner and name exactly as the dictionary has them."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


def configured_table_name(text: str) -> TableName:
    """Parse ``OWNER.NAME``; each part may stand in double quotes, which keeps its case.

    Raises:
        ValueError: the text is not two identifiers with a dot between them.
    """
    try:
        return TableName(*selection.parse_table_name(text))
    except OlrPgError as error:
        raise ValueError(error.detail) from error


def table_list_query(tables: Sequence[TableName | TablePattern]) -> str:
    """Make the TableList query that gives exactly these names, in this order.

    It selects literals instead of filtering a view, so that a table which does not exist is named
    to the server, and refused there, instead of silently missing; so is a pattern that finds none.
    It runs against Oracle and against the offline source's SQLite database alike.
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
