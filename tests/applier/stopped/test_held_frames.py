"""Held changes as bytes: they come back as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.statements.table_changes import join, raw_images, row_changes, select
from olr_pg.applier.stopped import hold
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.transactions.finished_columns import TOO_LARGE
from olr_pg.wire.elements import Chunk, ChunkFlags, ColumnValue, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from tests.applier.conftest import delete, insert, update

if TYPE_CHECKING:
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.wire.elements import Element

Replication = Any  # tests/applier/conftest.py
KEY = ("olr_pg", "S.T")


# --- the form of what is held ---


def selection_of(elements: list[Element], order: ByteOrder, limit: int) -> Selection:
    """What the session makes of elements that are received one by one."""
    reader = MessageReader(order, limit)
    parts = []
    for element in elements:
        blob = np.frombuffer(encode_answer(Data(encode_element(element, order)), order), np.uint8)
        parts += [select(chunk, row_changes(chunk)) for chunk in reader.feed(blob.copy())]
    return join(parts)


def described(selection: Selection, number: int) -> list[ColumnValue]:
    chunk = selection.chunks[int(selection.chunk[number])]
    first, end = chunk.changes.entry_first[selection.element[number] :][:2].tolist()
    columns = chunk.changes.value_column[first:end].tolist()
    return [chunk.directory.columns[column].column for column in columns]


def _chunk(scn: int, data: bytes, flags: int) -> Chunk:
    return Chunk(1, scn, scn, 0, "C", 112, ChunkFlags(flags), data)


@pytest.mark.parametrize("order", list(ByteOrder))
def test_held_changes_come_back_as_they_were(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, order: ByteOrder
) -> None:
    monkeypatch.setattr(hold, "PIECE_BYTES", 100)
    lob = ColumnValue("C", 112, chunked=True)
    elements: list[Element] = []
    for scn in (1, 1, 2, 3):
        elements += [
            insert({"ID": scn, "C": lob}), _chunk(scn, b"abc", 0), _chunk(scn, b"de", 3),
            update({"ID": scn}, {"V": "é" * 50}), delete({"ID": scn, "V": None}),
            insert({"ID": -scn, "C": lob}), _chunk(scn, b"x" * 300, 0), _chunk(scn, b"y", 3),
        ]  # fmt: skip
    for number, element in enumerate(elements):
        object.__setattr__(element, "commit_scn", (1, 1, 2, 3)[number // 8])
        object.__setattr__(element, "xid", (1, 2, 1, 1)[number // 8])
    selection = selection_of(elements, order, 500)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        hold.hold_changes(connection, KEY, selection, order)
        assert hold.first_held(connection, ("olr_pg", "S.X"), changes_max=1, bytes_max=1) is None
        found = []
        while (
            one := hold.first_held(connection, KEY, changes_max=5, bytes_max=1 << 20)
        ) is not None:
            assert isinstance(one, hold.HeldChanges)
            assert len(one.last_id) == len(one.selection.transactions()) == 1
            found.append(one.selection)
            hold.delete_held(connection, KEY, one.last_id[-1])
        hold.hold_changes(connection, KEY, selection, order)
        whole = hold.first_held(connection, KEY, changes_max=1000, bytes_max=1 << 20)
        assert isinstance(whole, hold.HeldChanges)
    for back in (join(found), whole.selection):
        assert back.commit_scn.tolist() == selection.commit_scn.tolist()
        assert back.xid.tolist() == selection.xid.tolist()
        for number in range(len(selection)):
            assert described(back, number) == described(selection, number)
            assert raw_images(back, number) == raw_images(selection, number)


def test_a_value_that_was_too_large_stays_refused(replication: Replication) -> None:
    lob = ColumnValue("C", 112, chunked=True)
    elements: list[Element] = [
        insert({"ID": 1}), insert({"ID": 2, "C": lob}), _chunk(1, b"x" * 600, 0),
        _chunk(1, b"y" * 600, 3), insert({"ID": 3, "C": lob}), _chunk(1, b"z", 3),
    ]  # fmt: skip
    selection = selection_of(elements, ByteOrder.LITTLE, 500)
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        hold.hold_changes(connection, KEY, selection, ByteOrder.LITTLE)
        found = hold.first_held(connection, KEY, changes_max=10, bytes_max=1 << 20)
    assert isinstance(found, hold.HeldChanges)
    lengths = [
        chunk.changes.value_length[chunk.changes.entry_first[element + 1] - 1]
        for chunk, element in zip(
            (found.selection.chunks[i] for i in found.selection.chunk), found.selection.element,
            strict=True,
        )
    ]  # fmt: skip
    assert lengths == [2, TOO_LARGE, 1]
