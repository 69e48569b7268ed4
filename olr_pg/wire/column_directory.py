"""A directory of the tables and columns in a stream. It gives each a number that never changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.wire.elements import ColumnValue


class DescribedColumn(NamedTuple):
    """A column as the protocol describes it, without a value.

    Attributes:
        table: number of its table.
        column: without a value.
    """

    table: int
    column: ColumnValue


class ColumnDirectory:
    """The tables and described columns that a stream contained so far. Entries are only added.

    A column whose description changes gets a new entry with a new number. The description changes
    with DDL, and between a LOB that has chunks and one that is NULL. One thread adds entries; any
    thread may read entries that have a number.
    """

    def __init__(self) -> None:
        self.tables: list[tuple[str, str]] = []
        self.columns: list[DescribedColumn] = []
        self._table_numbers: dict[tuple[str, str], int] = {}
        self._column_numbers: dict[DescribedColumn, int] = {}

    def table(self, owner: str, name: str) -> int:
        """Return the number of a table. A table without a number gets one."""
        number = self._table_numbers.setdefault((owner, name), len(self.tables))
        if number == len(self.tables):
            self.tables.append((owner, name))
        return number

    def column(self, table: int, column: ColumnValue) -> int:
        """Return the number of a described column. A column without a number gets one."""
        described = DescribedColumn(table, replace(column, value=None))
        number = self._column_numbers.setdefault(described, len(self.columns))
        if number == len(self.columns):
            self.columns.append(described)
        return number

    def table_name(self, table: int) -> str:
        """Return ``OWNER.NAME``."""
        return ".".join(self.tables[table])
