"""Oracle table names as people write them: ``OWNER.NAME``, folded to upper case unless quoted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART: Final = r'(?:"([^"\x00]{1,128})"|([^\W\d][\w$#]{0,127}))'
_TABLE_NAME: Final = re.compile(rf"\s*{_PART}\s*\.\s*{_PART}\s*")


class TableName(NamedTuple):
    """Owner and name exactly as the dictionary has them."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


def parse_table_name(text: str) -> TableName:
    """The table of ``OWNER.NAME``; each part may stand in double quotes, which keeps its case.

    Raises:
        ValueError: the text is not two identifiers with a dot between them.
    """
    match = _TABLE_NAME.fullmatch(text)
    if match is None:
        raise ValueError('not a table name of the form OWNER.NAME or "Owner"."Name"')
    owner_quoted, owner, name_quoted, name = match.groups()
    return TableName(owner_quoted or owner.upper(), name_quoted or name.upper())


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def table_list_query(tables: Iterable[TableName]) -> str:
    """The TableList query that names exactly these tables.

    It runs against Oracle and against the offline source's SQLite database alike.
    """
    conditions = [
        f"(OWNER = {_literal(table.owner)} AND TABLE_NAME = {_literal(table.name)})"
        for table in tables
    ]
    return f"SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE {' OR '.join(conditions)}"  # noqa: S608 - literals are quoted
