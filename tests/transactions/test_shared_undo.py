"""Whose undo an event is of: what an XID alone names, and a container that one vector misnames."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.errors import Code
from olr_pg.redo.batch import EVENT, ChangeBatch, EventKind, empty_batch
from olr_pg.redo.column_tables import ColumnTable, take
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.redo_format import CommitMark, commit_fields, marker_fields
from olr_pg.transactions.delimit import delimit
from olr_pg.transactions.shared_undo import (
    changed_containers,
    names_its_transaction,
    strays,
    with_known_undo,
)
from olr_pg.transactions.waiting_storage import OpenTransaction
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
OWN = (CHANGE, 3, 3, XID, 50)


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
        ([(BEGIN, 3, 1, XID, 0)], {}, OWN, 1),
        ([], opened(1, XID), OWN, 1),
        ([(BEGIN, 4, 1, XID, 0)], {}, OWN, 3),
        ([(BEGIN, 1, 1, XID, 0)], {}, OWN, 3),
        ([(BEGIN, 3, 1, OTHER, 0), MISNAMED], opened(3, XID), OWN, 3),
        ([(BEGIN, 3, 1, XID, 0), (BEGIN, 3, 3, XID, 0)], {}, OWN, 3),
        ([(BEGIN, 3, 1, XID, 0)], {}, (UNDONE, 3, 3, pack_xid(1, 2, 0), 50), 1),
        ([(BEGIN, 3, 1, XID, 0)], {}, (UNDONE, 3, 3, pack_xid(1, 3, 0), 50), 3),
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


def test_an_event_without_an_xid_names_no_transaction() -> None:
    assert not names_its_transaction(batch_of((EventKind.LOB, 3, 3, 0, 0)).events)


def test_a_transaction_of_the_root_s_undo_changes_what_its_first_change_tells() -> None:
    events = batch_of(
        (BEGIN, 1, 1, XID, 0), (CHANGE, 1, 1, XID, 50), (CHANGE, 3, 1, XID, 50),
        (CHANGE, 4, 1, XID, 50), (COMMIT, 1, 1, XID, 0),
        (BEGIN, 5, 1, OTHER, 0), (CHANGE, 6, 1, OTHER, 50), (COMMIT, 1, 1, OTHER, 0),
    ).events  # fmt: skip
    instances = delimit(events)
    assert changed_containers(events, instances, np.arange(2)).tolist() == [3, 5]
    assert changed_containers(events, instances, np.array([1])).tolist() == [5]
    only = take(events, slice(0, 2))
    assert changed_containers(only, delimit(only), np.zeros(1, np.int64)).tolist() == [1]


@pytest.mark.parametrize(
    ("changes", "tables"),
    [
        ([(CHANGE, 3), (CHANGE, 3)], 0),
        ([(CHANGE, 3), (EventKind.STRAY, 4)], 2),
        ([(EventKind.STRAY, 4), (CHANGE, 3)], 2),
        ([(EventKind.STRAY, 4), (EventKind.STRAY, 4)], 0),
        ([(CHANGE, 3), (EventKind.STRAY, 1)], 2),
        ([(CHANGE, 3), (CHANGE, 1)], 0),
        ([(CHANGE, 0), (CHANGE, 3)], 2),
    ],
)
@pytest.mark.parametrize("undo", [1, 3])
def test_a_transaction_of_several_containers_is_told_for_each_of_its_tables(
    changes: list[tuple[EventKind, int]], tables: int, undo: int
) -> None:
    events = batch_of(
        (BEGIN, 1, 1, OTHER, 0), (CHANGE, 3, 1, OTHER, 50), (COMMIT, 3, 1, OTHER, 0),
        (BEGIN, 1, undo, XID, 0), *((kind, con_id, undo, XID, 50) for kind, con_id in changes),
        (COMMIT, 1, undo, XID, 0),
    ).events  # fmt: skip
    events.table[events.kind == CHANGE], events.table[events.kind == EventKind.STRAY] = 0, 1
    events.table[np.isin(events.kind, (BEGIN, COMMIT))] = -1
    if tables and {kind for kind, _ in changes} == {CHANGE}:
        tables = 1
    instances = delimit(events)
    told_of = strays(events, instances, np.arange(instances.begin.size), np.ones(2, np.bool_))
    found = [sorted(batch.events.table[1:-1].tolist()) for batch in told_of]
    assert found == ([list(range(tables))] if tables and undo == 1 else [])


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


ROW, UNDO = 11, 5
NEIGHBOUR, UID = 4, 777
ANYWHERE = pytest.mark.parametrize("split_blocks", [1, 1 << 20])


class SharedUndo(LobRedo):
    """Redo of container 3 whose undo is in the root's; single vectors name another container."""

    misnamed: int | None = None

    def vector(self, op: tuple[int, int], fields: Any, obj: int = 0, **block: int) -> bytes:
        own = self.con_id
        self.con_id = own if op[0] != UNDO else 1
        if self.misnamed is not None and op[0] == self.wrong_layer:
            self.con_id = self.misnamed
        found = super().vector(op, fields, obj, **block)
        self.con_id = own
        return found

    wrong_layer: int = ROW

    def emit(self, *vectors: bytes) -> None:
        super().emit(*vectors)
        self.records[-1] = replace(self.records[-1], con_uid=UID)

    def misname(self, con_id: int, layer: int = ROW) -> None:
        """The next vectors of a layer have this container."""
        self.misnamed, self.wrong_layer = con_id, layer

    def end_with_marker(self) -> None:
        """5.4 with 24.4."""
        mark = CommitMark(0, self.sequence, False, None, False, 0)
        fields = marker_fields(self.redo, self.xid, 1, 1, 0)
        self.emit(
            self.vector((5, 4), commit_fields(self.redo, mark), cls=15 + 2 * self.segment),
            self.vector((24, 4), fields, typ=6),
        )


@ANYWHERE
@pytest.mark.parametrize("con_id", [0, 1, 2, NEIGHBOUR, 0x103])
@pytest.mark.parametrize("first", [True, False])
def test_a_row_vector_of_another_container_than_its_transaction_stops_the_table(
    tmp_path: Path, split_blocks: int, con_id: int, first: bool
) -> None:
    redo = SharedUndo(con_id=3)
    redo.begin()
    for number in (1, 2):
        if first == (number == 1):
            redo.misname(con_id)
        redo.insert(Decimal(number), None, None)
        redo.misnamed = None
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (Code.CHANGE_UNDECODABLE, [])
    assert "another container" in found.text


@ANYWHERE
@pytest.mark.parametrize("con_id", [1, NEIGHBOUR])
def test_a_change_taken_back_in_another_container_stops_the_table(
    tmp_path: Path, split_blocks: int, con_id: int
) -> None:
    redo = SharedUndo(con_id=3)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.misname(con_id)
    redo.undo_insert(0, redo.undo)
    redo.misnamed = None
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (Code.CHANGE_UNDECODABLE, [])


@pytest.mark.parametrize("con_id", [1, NEIGHBOUR])
def test_the_end_tells_the_container_of_an_only_change(tmp_path: Path, con_id: int) -> None:
    redo = SharedUndo(con_id=3)
    redo.begin()
    redo.misname(con_id)
    redo.insert(Decimal(1), None, None)
    redo.misnamed = None
    redo.end_with_marker()
    assert told(redo, tmp_path).code == Code.CHANGE_UNDECODABLE


@ANYWHERE
@pytest.mark.parametrize("marked", [True, False])
def test_another_container_with_the_same_numbers_is_none_of_ours(
    tmp_path: Path, split_blocks: int, marked: bool
) -> None:
    redo = SharedUndo(con_id=3)
    for con_id in (NEIGHBOUR, 3, NEIGHBOUR):
        redo.con_id = con_id
        redo.begin()
        redo.insert(Decimal(con_id), None, None)
        slot = redo.insert(Decimal(10 + con_id), None, None)
        redo.undo_insert(slot, redo.undo)
        redo.end_with_marker() if marked else redo.end()
    redo.con_id = 3
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [3])


def test_what_a_pdb_changes_in_the_root_is_none_of_ours(tmp_path: Path) -> None:
    """Both vectors have the root's container, and the record CON_UID of the root."""
    redo = SharedUndo(con_id=3)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.misname(1)
    redo.insert(Decimal(2), None, None)
    redo.misnamed = None
    redo.records[-1] = replace(redo.records[-1], con_uid=1)
    redo.end()
    found = told(redo, tmp_path)
    assert (found.code, found.ids) == (None, [1])


@ANYWHERE
def test_one_undo_vector_of_shared_undo_that_names_its_own_container_loses_nothing(
    tmp_path: Path, split_blocks: int
) -> None:
    redo = SharedUndo(con_id=3)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.misname(3, UNDO)
    redo.insert(Decimal(2), None, None)
    redo.undo_insert(1, redo.undo)
    redo.insert(Decimal(3), None, None)
    redo.misnamed = None
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [1, 3])


@pytest.mark.parametrize("opcode", [(4, 1), (11, 17), (17, 2), (13, 22)])
def test_an_undo_record_in_the_root_stops_its_table_where_its_row_vector_is_misread(
    tmp_path: Path, opcode: tuple[int, int]
) -> None:
    """Such vectors are nothing to look at by themselves."""
    redo = SharedUndo(con_id=3)
    redo.begin()
    redo.insert(Decimal(1), None, None)
    undo = redo.undo_vector(TABLE_OBJ, (11, 1), [bytes(20)])
    redo.emit(undo, redo.vector(opcode, [bytes(24), bytes(20)], TABLE_OBJ, dba=0x01800083))
    redo.end()
    found = told(redo, tmp_path)
    assert found.code == Code.CHANGE_UNDECODABLE
    assert "contradict" in found.text


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
