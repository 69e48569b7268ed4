"""The interface for reading LOB values from the source that the redo contains only partly.

It is only used where transactions are finished with all their redo, that is, on the driver; a split
leaves such transactions to the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from olr_pg.scalars import format_rowid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Column, Table
    from olr_pg.transactions.finished_columns import DmlColumns
    from olr_pg.transactions.waiting_storage import Allocate

U8 = npt.NDArray[np.uint8]


class FetchedLob(NamedTuple):
    """A value that was read: its bytes in delivered form (`dictionary.lob`), None for NULL."""

    content: U8 | None


class LobSource(Protocol):
    """Reads LOB values from the source's rows."""

    def fetch(
        self, table: Table, column: Column, rowid: str, scn: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read a column of a row as of an SCN, or as of the nearest possible SCN; None if that
        fails.

        Args:
            table, column: as of that SCN.
            rowid: of the row, 18 characters.
            scn: of the commit that set the value.
            allocate: returns a buffer for the bytes.
        """


class LobWanted(NamedTuple):
    """A source of LOB values, and the data about finished transactions that it needs.

    Attributes:
        commit_scn: of each transaction.
    """

    source: LobSource
    tables: Sequence[Table]
    commit_scn: npt.NDArray[np.uint64]

    def value(
        self, dml: DmlColumns, change: int, entry: int, owner: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read the value of an entry of a row change; None if it cannot be read.

        Args:
            change, entry: of these.
            owner: the number of the transaction.
            allocate: returns a buffer for the bytes.
        """
        if dml.dataobj[change] == 0:
            return None  # rows of index-organised tables have no ROWID
        table = self.tables[int(dml.table[change])]
        column = table.delivered[int(dml.values.column[entry])]
        rowid = format_rowid(*(int(part[change]) for part in (dml.dataobj, dml.bdba, dml.slot)))
        return self.source.fetch(table, column, rowid, int(self.commit_scn[owner]), allocate)
