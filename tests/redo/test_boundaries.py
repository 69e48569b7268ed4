"""Begin, commit, rollback and the session: each is an event of the transaction that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.batch import EventKind
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.vector_fields import Session, ktudh, session_fields
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import walked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("rollback", [False, True])
def test_a_transaction_begins_and_ends(tmp_path: Path, rollback: bool) -> None:
    redo = LobRedo(segment=9)
    redo.begin()
    redo.end(rollback=rollback)
    events = walked(redo, tmp_path)[0].events
    end = EventKind.ROLLBACK if rollback else EventKind.COMMIT
    assert events.kind.tolist() == [EventKind.BEGIN, end]
    assert set(events.xid.tolist()) == {pack_xid(9, 0, redo.sequence)}
    assert events.scn.tolist() == [1001, 1002]


def test_a_change_of_the_undo_header_begins_nothing(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(redo.vector((5, 2), [ktudh(redo.redo, 0, 0, bytes(8), 0, 0)], cls=17))
    assert walked(redo, tmp_path)[0].events.size == 0


@pytest.mark.parametrize("version", ["11.2", "19", "23"])
@pytest.mark.parametrize("full", [True, False])
def test_the_session_is_that_of_the_records_transaction(
    tmp_path: Path, version: str, full: bool
) -> None:
    form = RedoFormat(COMPATIBLE[version])
    redo = LobRedo(form)
    redo.sequence += 1
    begin = redo.vector((5, 2), [ktudh(form, 0, redo.sequence, bytes(8), 0, 0)], cls=17)
    fields = session_fields(form, Session(341, 77, "APP"), full=full)
    redo.emit(begin, redo.vector((5, 19 if full else 20), fields))
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.SESSION]
    assert (events.session[1], events.serial[1]) == (341, 77)
    assert events.slot_head[1] == full
    assert events.xid[1] == events.xid[0]
