"""Transactions of the model: the undo they hold, the changes they would deliver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.lobs import LobRedo
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from olr_pg.simulator.cells import Cell
    from olr_pg.simulator.storage import (
        Claim,
        TransactionalBlock,
        UndoBlock,
        UndoPlace,
        UndoSegment,
    )
    from olr_pg.simulator.tables import SimTable
    from olr_pg.simulator.vectors import Ktub

    Image = dict[int, Cell | None]
    """Values by 0-based segment column."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row change as it must be delivered; `dataobj` 0 where the row has no ROWID."""

    kind: DmlKind
    table: SimTable
    dataobj: int
    dba: int
    slot: int
    scn: int
    before: Image
    after: Image


ADD_COLUMN: Final = "add column"
TRUNCATE: Final = "truncate"
PARTITION: Final = "partition"
"""Operations of `DdlEffect`."""


@dataclass(frozen=True, slots=True)
class DdlEffect:
    """What a DDL statement does to a table beside the rows of SYS tables.

    Attributes:
        operation: as printed into ``ddl.jsonl``.
        emptied: DATAOBJ# of segments whose rows are gone.
        moved: new ROWIDs by old ones.
        column: 0-based number of a column that was added.
    """

    operation: str
    table: SimTable
    emptied: frozenset[int] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    column: int | None = None


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """One undo record, and how to take its change back.

    Attributes:
        payload: fields from F3 on.
        redo_code: opcode of the row or index vector that undoes it; None where the undo is
            marked without one.
        revert: takes the change back in the model's rows.
        changes: how many changes the transaction had before this record.
    """

    place: UndoPlace
    ktub: Ktub
    payload: tuple[bytes, ...]
    redo_code: tuple[int, int] | None
    block: TransactionalBlock | None
    cls: int
    claim: Claim | None
    revert: Callable[[], None]
    changes: int


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    """A transaction.

    Attributes:
        commit_scn: counts from the end of `active` on.
        changes: what SQL did.
        ddl: what DDL did.
        objects: OBJ# of what it has locked.
        lobs: what its redo tells of LOBs.
        delivered: what decoding gives of `changes`, once it has committed.
    """

    segment: UndoSegment
    slot: int
    sequence: int
    xid_bytes: bytes
    thread: int
    con_id: int
    begin_scn: int = 0
    active: bool = True
    commit_scn: int = 0
    undo_block: UndoBlock | None = None
    undo: list[UndoEntry] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ddl: list[DdlEffect] = field(default_factory=list)
    objects: set[int] = field(default_factory=set)
    lobs: LobRedo = field(default_factory=LobRedo)
    delivered: list[Change] = field(default_factory=list)
    on_end: list[Callable[[bool], None]] = field(default_factory=list)
    last_undo: tuple[bytes, int] | None = None

    @property
    def rci(self) -> int:
        """Record number of the newest undo that still counts, 0 for none."""
        return self.undo[-1].place.rec if self.undo else 0
