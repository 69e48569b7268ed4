"""The tables and described columns of a stream, by numbers that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.wire.elements import ColumnValue


class DescribedColumn(NamedTuple):
    """A column as the protocol describes it.

    Attributes:
        table: number of its table.
        column: without a value.
    """

    table: int
    column: ColumnValue


class ColumnDirectory:
    """The tables and described columns that were met; both only grow.

    A column whose description changes (DDL; a LOB that is NULL comes without chunks) is another
    one, with a number of its own. One thread adds, any thread may read what has a number.

    Attributes:
        tables: (owner, name) by number.
        columns: by number.
    """

    def __init__(self) -> None:
        self.tables: list[tuple[str, str]] = []
        self.columns: list[DescribedColumn] = []
        self._table_numbers: dict[tuple[str, str], int] = {}
        self._column_numbers: dict[DescribedColumn, int] = {}

    def table(self, owner: str, name: str) -> int:
        """Return the number of a table, a new one where it has none."""
        number = self._table_numbers.setdefault((owner, name), len(self.tables))
        if number == len(self.tables):
            self.tables.append((owner, name))
        return number

    def column(self, table: int, column: ColumnValue) -> int:
        """Return the number of a described column, a new one where it has none."""
        described = DescribedColumn(table, replace(column, value=None))
        number = self._column_numbers.setdefault(described, len(self.columns))
        if number == len(self.columns):
            self.columns.append(described)
        return number

    def table_name(self, table: int) -> str:
        """Return ``OWNER.NAME``."""
        return ".".join(self.tables[table])
