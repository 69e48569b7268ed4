"""Changes of the dictionary by a committed transaction: rows of SYS tables, and DDL statements."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class SysRowOperation(IntEnum):
    """The kinds of change of a SYS row. They have the same numbers as `transactions.DmlKind`."""

    INSERT = 4
    DELETE = 5
    UPDATE = 6


class SysRowChange(NamedTuple):
    """A changed row of a SYS table.

    Attributes:
        table: the SYS table's name, such as ``COL$``.
        row_id: 18 characters; identifies the row (dictionary §10).
        values: the new stored values by column name: all for an insert, the changed ones for an
            update, none for a delete.
    """

    table: str
    operation: SysRowOperation
    row_id: str
    values: dict[str, bytes | None]


class Statement(NamedTuple):
    """A DDL statement as a 24.1 vector logged it (redo-format §8.1).

    Attributes:
        command: number of V$SQLCOMMAND: 12 DROP TABLE, 15 ALTER TABLE, 85 TRUNCATE TABLE, …
        obj: OBJ# of its object, 0 if not logged.
        owner, name: of the object.
        text: bytes that are not valid UTF-8 are escaped.
        scn: of the record.
    """

    command: int
    obj: int
    owner: str
    name: str
    text: str
    scn: int


class DictionaryTransaction(NamedTuple):
    """A committed transaction that changed followed SYS tables or logged DDL.

    Attributes:
        position: thread, sequence, block and offset of its commit record.
        xid: packed as `scalars.pack_xid`.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: tuple[int, int, int, int]
    changes: tuple[SysRowChange, ...] = ()
    statements: tuple[Statement, ...] = ()

    @property
    def order(self) -> tuple[int, tuple[int, int, int, int]]:
        """The sort key of the commit order."""
        return self.commit_scn, self.position
