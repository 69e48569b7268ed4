"""LOB values that redo does not hold whole, read from the source itself by whoever can.

Asked only where transactions are finished with all their redo at hand, that is on the driver: a
split leaves such transactions to it.
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
    """A value that was read: its bytes as they are delivered (`dictionary.lob`), None for NULL."""

    content: U8 | None


class LobSource(Protocol):
    """Reads LOB values where the rows are."""

    def fetch(
        self, table: Table, column: Column, rowid: str, scn: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read a column of a row as of an SCN, or as near to it as can be; None without any.

        Args:
            table, column: as they were at that SCN.
            rowid: of the row, 18 characters.
            scn: of the commit that set the value.
            allocate: gives the room for the bytes.
        """


class LobWanted(NamedTuple):
    """A source of LOB values, and what it must be asked with about finished transactions.

    Attributes:
        commit_scn: of each transaction.
    """

    source: LobSource
    tables: Sequence[Table]
    commit_scn: npt.NDArray[np.uint64]

    def value(
        self, dml: DmlColumns, change: int, entry: int, owner: int, allocate: Allocate
    ) -> FetchedLob | None:
        """Read the value of an entry of a row change; None where it cannot be had.

        Args:
            change, entry: of these.
            owner: the number of the transaction.
            allocate: gives the room for the bytes.
        """
        if dml.dataobj[change] == 0:
            return None  # rows of index-organised tables have no ROWID
        table = self.tables[int(dml.table[change])]
        column = table.delivered[int(dml.values.column[entry])]
        rowid = format_rowid(*(int(part[change]) for part in (dml.dataobj, dml.bdba, dml.slot)))
        return self.source.fetch(table, column, rowid, int(self.commit_scn[owner]), allocate)
