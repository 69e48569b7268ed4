"""Events: which table an object is at an SCN, and what an event has of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.redo.batch import EventKind
from olr_pg.redo.walk import Objects
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo
from tests.redo.chain import whole_log
from tests.redo.hand_made import log_of, walked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("since", "tables"), [(0, [1]), (1002, [1]), (1003, [0]), (9999, [0])])
def test_an_object_is_the_table_that_it_is_at_the_scn(
    tmp_path: Path, since: int, tables: list[int]
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    objects = Objects(
        key=np.array([TABLE_OBJ, TABLE_OBJ], np.uint64),
        table=np.array([0, 1], np.int32),
        cluster_columns=np.zeros(2, np.int32),
        since=np.array([0, since], np.int64),
    )
    events = whole_log(log_of(redo, tmp_path), objects)[0].events
    assert events.table[events.kind == EventKind.CHANGE].tolist() == tables


def test_an_object_that_is_none_any_more_has_no_event(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.insert_row(b"\xc1\x03")
    objects = Objects(
        key=np.array([TABLE_OBJ, TABLE_OBJ], np.uint64),
        table=np.array([0, -1], np.int32),
        cluster_columns=np.zeros(1, np.int32),
        since=np.array([0, 1003], np.int64),
    )
    events = whole_log(log_of(redo, tmp_path), objects)[0].events
    assert events.scn[events.kind == EventKind.CHANGE].tolist() == [1002]


def test_an_event_has_the_place_of_its_record_and_the_links_of_its_undo(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.insert_row(b"\xc1\x03")
    redo.undo_insert(1, 2)
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [
        EventKind.BEGIN, EventKind.CHANGE, EventKind.CHANGE, EventKind.UNDONE,
    ]  # fmt: skip
    places = list(zip(events.block.tolist(), events.offset.tolist(), strict=True))
    assert places == sorted(set(places))
    assert places[0] == (2, 16)
    assert set(events.sequence.tolist()) == {1}
    assert events.rci.tolist()[1:] == [1, 2, 2]
    assert events.undo_dba.tolist()[1:] == [0x00C00010] * 3
    assert set(events.wrp.tolist()[1:]) == {redo.sequence & 0xFFFF}
