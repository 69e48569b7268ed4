"""Transactions of the model: their undo, and the changes that decoding must deliver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import Cell
from olr_pg.simulator.model.lobs import LobCell, LobRedo, content_text
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from olr_pg.simulator.fields.redo_format import Ktub
    from olr_pg.simulator.model.storage import (
        ItlClaim,
        TransactionalBlock,
        UndoBlock,
        UndoPlace,
        UndoSegment,
    )
    from olr_pg.simulator.model.tables import SimTable

    Image = dict[int, Cell | None]
    """Values by 0-based segment column."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row change that decoding must deliver; `dataobj` is 0 if the row has no ROWID.

    A change that is not `logged` has no redo, so decoding cannot deliver it.
    """

    kind: DmlKind
    table: SimTable
    dataobj: int
    dba: int
    slot: int
    scn: int
    before: Image
    after: Image
    logged: bool = True


ADD_COLUMN: Final = "add column"
TRUNCATE: Final = "truncate"
PARTITION: Final = "partition"
RENAME_COLUMN: Final = "rename column"
RENAME_TABLE: Final = "rename table"
EXCHANGE_NAMES: Final = "exchange names"
DROP_COLUMN: Final = "drop column"
DROP_UNUSED: Final = "drop unused columns"
MODIFY_COLUMN: Final = "modify column"
NOT_NULL: Final = "not null"
DROP_TABLE: Final = "drop table"
CREATE_AGAIN: Final = "create again"
EXCHANGE: Final = "exchange"
BESIDE: Final = "beside the columns"
VIRTUAL_COLUMN: Final = "virtual column"
IDENTITY: Final = "identity column"
"""Operations of `DdlEffect`."""


@dataclass(frozen=True, slots=True)
class DdlEffect:
    """The effect of a DDL statement on a table, in addition to rows of SYS tables.

    Attributes:
        operation: as printed into ``ddl.jsonl``.
        emptied: DATAOBJ# of segments whose rows were removed.
        emptied_keys: keys of the rows that were removed with partitions of an index-organised
            table.
        names: old and new name of an altered column or a renamed table; an empty text for none. If
            the operation is IDENTITY: the old name is empty, and the new name is empty if the
            column is no identity column any more.
        moved: new ROWIDs by old ones.
        column: 0-based number of a column that was added.
        columns: the names of all columns of a table that was dropped or created again.
        removed: 0-based numbers of the columns that were removed from the rows, so that the later
            columns have lower numbers now.
        other: the table whose segment was exchanged for a segment of this table, or which has
            exchanged its name with this table.
        exchanged: DATAOBJ# of the segment that this table received, and of the other table's.
        virtual: the form of a virtual column's expression (`VIRTUAL_FORMS`), and the column in it.
        stops: the target cannot follow the statement, so that replication of the table must stop
            there.
    """

    operation: str
    table: SimTable
    emptied: frozenset[int] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    column: int | None = None
    emptied_keys: frozenset[str] = frozenset()
    names: tuple[str, str] | None = None
    columns: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()
    other: SimTable | None = None
    exchanged: tuple[int, int] = (0, 0)
    virtual: tuple[str, str] | None = None
    stops: bool = False


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """An undo record, and how to undo its change.

    Attributes:
        payload: fields from F3 on.
        redo_code: opcode of the row or index vector that undoes the change; None if only a marker
            is written.
        revert: undoes the change in the model's rows.
        changes: number of changes that the transaction had before this record.
    """

    place: UndoPlace
    ktub: Ktub
    payload: tuple[bytes, ...]
    redo_code: tuple[int, int] | None
    block: TransactionalBlock | None
    cls: int
    claim: ItlClaim | None
    revert: Callable[[], None]
    changes: int


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    """A transaction.

    Attributes:
        commit_scn: valid when `active` is False.
        commit_delay: SCN of its commit record minus `commit_scn`.
        changes: the changes that SQL made.
        ddl: the effects of DDL.
        objects: OBJ# of the tables that it has locked.
        lobs: the LOB pages and lists in its redo.
        delivered: the part of `changes` that decoding delivers, set at the commit.
        parent_xid: in parallel DML, the XID of the coordinator's transaction; for the coordinator,
            its own XID.
    """

    segment: UndoSegment
    slot: int
    sequence: int
    xid_bytes: bytes
    thread: int
    con_id: int
    begin_scn: int = 0
    active: bool = True
    rolled_back: bool = False
    commit_scn: int = 0
    commit_delay: int = 0
    undo_block: UndoBlock | None = None
    undo: list[UndoEntry] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ddl: list[DdlEffect] = field(default_factory=list)
    objects: set[int] = field(default_factory=set)
    lobs: LobRedo = field(default_factory=LobRedo)
    delivered: list[Change] = field(default_factory=list)
    on_end: list[Callable[[bool], None]] = field(default_factory=list)
    last_undo: tuple[bytes, int] | None = None
    parent_xid: bytes = bytes(8)

    @property
    def rci(self) -> int:
        """Record number of the newest undo that still counts, 0 for none."""
        return self.undo[-1].place.rec if self.undo else 0


def delivered_changes(transaction: Transaction, *, unlogged: bool = False) -> list[Change]:
    """Return the changes of an ended transaction, with the LOB values that its redo contains.

    Three kinds of changes are not delivered: changes of SYS tables and of encrypted tables, changes
    without redo, and updates without any delivered new value. Old values of LOBs are not delivered
    either.

    Args:
        unlogged: also return changes without redo and changes of encrypted tables.
    """
    found: list[Change] = []
    for change in transaction.changes:
        is_read = change.logged and not change.table.encrypted
        if not (change.table.is_delivered and (is_read or unlogged)):
            continue
        if not change.table.lobs:
            found.append(change)
            continue
        columns = enumerate(change.table.columns_at(change.scn))
        lobs = {at for at, column in columns if column.type.lob is not None}
        before = {at: cell for at, cell in change.before.items() if at not in lobs}
        after = _delivered_image(transaction.lobs, change)
        if after or change.kind is not DmlKind.UPDATE:
            found.append(replace(change, before=before, after=after))
    return found


def _delivered_image(log: LobRedo, change: Change) -> Image:
    image: Image = {}
    for at, cell in change.after.items():
        if not isinstance(cell, LobCell):
            image[at] = cell
            continue
        content = log.value(cell.stored)
        if content is not None:
            image[at] = Cell(content, content_text(cell.stored.storage, content))
    return image
