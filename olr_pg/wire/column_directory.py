"""A directory of the tables and columns in a stream. The directory gives each table and column a
number that never changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.wire.elements import ColumnValue


class DescribedColumn(NamedTuple):
    """A column's description in the protocol.

    Attributes:
        table: the number of its table.
        column: the description; its value is None.
    """

    table: int
    column: ColumnValue


class ColumnDirectory:
    """The tables and column descriptions that a stream has contained so far. Entries are never
    removed.

    If a column's description changes, the column gets a new entry with a new number. The
    description changes at DDL, and for a LOB column between a value in chunks and a NULL, which
    have different descriptions. Only one thread may add entries; any thread may read existing
    entries.
    """

    def __init__(self) -> None:
        self.tables: list[tuple[str, str]] = []
        self.columns: list[DescribedColumn] = []
        self._table_numbers: dict[tuple[str, str], int] = {}
        self._column_numbers: dict[DescribedColumn, int] = {}

    def table(self, owner: str, name: str) -> int:
        """Return the number of a table; assign one if it has none."""
        number = self._table_numbers.setdefault((owner, name), len(self.tables))
        if number == len(self.tables):
            self.tables.append((owner, name))
        return number

    def column(self, table: int, column: ColumnValue) -> int:
        """Return the number of a column's description; assign one if it has none."""
        described = DescribedColumn(table, replace(column, value=None))
        number = self._column_numbers.setdefault(described, len(self.columns))
        if number == len(self.columns):
            self.columns.append(described)
        return number

    def table_name(self, table: int) -> str:
        """Return ``OWNER.NAME``."""
        return ".".join(self.tables[table])
