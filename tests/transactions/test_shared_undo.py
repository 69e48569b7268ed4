"""Whose undo an event is of: what an XID alone names, and a container that one vector misnames."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.redo.batch import EVENT, ChangeBatch, EventKind, empty_batch
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.scalars import pack_xid
from olr_pg.transactions.open_transaction import OpenTransaction
from olr_pg.transactions.shared_undo import names_its_transaction, with_known_undo
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo
from tests.lobs.told import told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

XID, OTHER = pack_xid(1, 2, 3), pack_xid(1, 3, 3)
BEGIN, CHANGE, COMMIT, UNDONE = (
    EventKind.BEGIN, EventKind.CHANGE, EventKind.COMMIT, EventKind.UNDONE,
)  # fmt: skip


def batch_of(*events: tuple[EventKind, int, int, int, int]) -> ChangeBatch:
    """Events of (kind, container, container of the undo, XID, undo block)."""
    rows = np.zeros(len(events), EVENT).view(ColumnTable)
    for name, column in zip(
        ("kind", "con_id", "undo_con_id", "xid", "undo_dba"), zip(*events, strict=True), strict=True
    ):
        getattr(rows, name)[:] = column
    return empty_batch()._replace(events=rows)


def opened(container: int, xid: int) -> Mapping[int, Any]:
    key = container << 32 | xid >> 48 << 16 | xid >> 32 & 0xFF
    return {key: OpenTransaction(3, xid, 1)}


MISNAMED = (CHANGE, 3, 1, XID, 50)
NAMED_ALONE = (CHANGE, 3, 3, XID, 0)


@pytest.mark.parametrize(
    ("others", "waiting", "event", "undo_con_id"),
    [
        ([(BEGIN, 3, 3, XID, 0)], {}, MISNAMED, 3),
        ([(CHANGE, 3, 3, XID, 50)], {}, MISNAMED, 3),
        ([], opened(3, XID), MISNAMED, 3),
        ([(BEGIN, 3, 3, OTHER, 0)], {}, MISNAMED, 1),
        ([(BEGIN, 3, 3, XID, 0), (BEGIN, 1, 1, XID, 0)], {}, MISNAMED, 1),
        ([(BEGIN, 3, 3, XID, 0)], opened(1, XID), MISNAMED, 1),
        ([(BEGIN, 4, 4, XID, 0)], {}, MISNAMED, 1),
        ([(BEGIN, 3, 1, XID, 0)], {}, MISNAMED, 1),
        ([(BEGIN, 0, 0, XID, 0)], {}, (CHANGE, 0, 1, XID, 50), 0),
        ([], {0x10002: OpenTransaction(0, XID, 1)}, (CHANGE, 0, 1, XID, 50), 0),
        ([(BEGIN, 3, 3, XID, 0)], {}, (UNDONE, 3, 1, pack_xid(1, 2, 0), 50), 3),
        ([(BEGIN, 3, 3, XID, 0)], {}, (UNDONE, 3, 1, pack_xid(1, 3, 0), 50), 1),
        ([(BEGIN, 3, 1, XID, 0)], {}, NAMED_ALONE, 1),
        ([], opened(1, XID), NAMED_ALONE, 1),
        ([(BEGIN, 3, 3, XID, 0), (BEGIN, 1, 1, XID, 0)], {}, NAMED_ALONE, 3),
        ([(BEGIN, 3, 1, OTHER, 0)], {}, NAMED_ALONE, 3),
    ],
)
def test_an_event_goes_to_the_undo_that_has_its_transaction(
    others: list[Any], waiting: Mapping[int, Any], event: Any, undo_con_id: int
) -> None:
    for events in ([*others, event], [event, *others]):
        found = with_known_undo(batch_of(*events), waiting)
        assert found.events.undo_con_id[events.index(event)] == undo_con_id


def test_only_what_has_no_undo_is_named_by_an_xid_alone() -> None:
    assert names_its_transaction(batch_of(NAMED_ALONE).events)
    assert not names_its_transaction(batch_of(NAMED_ALONE, MISNAMED).events)


class Misnamed(LobRedo):
    """Redo of container 3, where some vectors have the root's."""

    wrong: Callable[[tuple[int, int]], bool] = staticmethod(lambda _: False)

    def vector(self, op: tuple[int, int], fields: Any, obj: int = 0, **block: int) -> bytes:
        own = self.con_id
        self.con_id = 1 if self.wrong(op) else own
        found = super().vector(op, fields, obj, **block)
        self.con_id = own
        return found


@pytest.mark.parametrize("split_blocks", [1, 1 << 20])
@pytest.mark.parametrize("con_id", [0, 3])
@pytest.mark.parametrize("opcode", [(5, 1), (5, 6)])
def test_one_undo_vector_that_names_the_root_loses_nothing(
    tmp_path: Path, opcode: tuple[int, int], con_id: int, split_blocks: int
) -> None:
    redo = Misnamed(con_id=con_id)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.wrong = opcode.__eq__
    redo.insert(Decimal(2), None, None)
    redo.undo_insert(1, redo.undo)
    redo.insert(Decimal(3), None, None)
    redo.wrong = (0, 0).__eq__
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [1, 3])


def test_an_undo_marker_of_another_container_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo(con_id=3)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    fields = redo.undone(TABLE_OBJ, (11, 1), redo.undo)
    redo.con_id = 4
    marker = redo.undone(TABLE_OBJ, (11, 1), redo.undo)
    assert marker != fields
    redo.con_id = 3
    row = redo.vector((11, 3), [bytes(24), bytes(20)], TABLE_OBJ, dba=0x01800083)
    redo.emit(row, marker)
    redo.end()
    found = told(redo, tmp_path)
    assert found.code is not None
    assert "contradict" in found.text
