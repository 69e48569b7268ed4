"""The interface for reading LOB values from the source database if the redo contains only a part of
them.

Only the driver uses this interface, because only the driver has all redo of a transaction. A split
leaves transactions with such values to the driver.
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
    """A value that was read from the source: its bytes in the form for delivery (`lob_delivery`),
    None for NULL.
    """

    content: U8 | None


class LobSource(Protocol):
    """Reads LOB values from rows of the source database."""

    def fetch(
        self, table: Table, column: Column, rowid: str, scn: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read a column of a row as of an SCN, or as of the nearest SCN that is possible. Return
        None if the source cannot return the value.

        Args:
            table, column: their definitions as of the SCN.
            rowid: ROWID of the row, 18 characters.
            scn: commit SCN of the transaction that set the value.
            allocate: returns a buffer for the bytes.
        """


class LobWanted(NamedTuple):
    """A source of LOB values, with the tables and commit SCNs that it needs.

    Attributes:
        commit_scn: commit SCN of each transaction.
    """

    source: LobSource
    tables: Sequence[Table]
    commit_scn: npt.NDArray[np.uint64]

    def value(
        self, dml: DmlColumns, change: int, entry: int, owner: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read the value of an entry of a row change; None if it cannot be read.

        Args:
            change, entry: numbers of the change and of the entry in `dml`.
            owner: the number of the transaction.
            allocate: returns a buffer for the bytes.
        """
        if dml.dataobj[change] == 0:
            return None  # a row of an index-organised table has no ROWID, so it cannot be read
        table = self.tables[int(dml.table[change])]
        column = table.delivered[int(dml.values.column[entry])]
        rowid = format_rowid(*(int(part[change]) for part in (dml.dataobj, dml.bdba, dml.slot)))
        return self.source.fetch(table, column, rowid, int(self.commit_scn[owner]), allocate)
