"""Sessions: the attributes that a 5.19 has, and which session an event means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.redo.sessions import (
    SessionAttributes,
    SessionDirectory,
    SessionKey,
    names_of,
    sessions_of,
)
from olr_pg.simulator.fields.redo_format import DatabaseSession, ktudh, session_fields
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of, walked

if TYPE_CHECKING:
    from pathlib import Path


def announced() -> LobRedo:
    """A transaction named PAYROLL of session 341, 77."""
    redo = LobRedo()
    begin(redo, DatabaseSession(341, 77, "APP", machine="till-4", program="pay@till-4"), "PAYROLL")
    return redo


def begin(redo: LobRedo, session: DatabaseSession, name: str, *, full: bool = True) -> None:
    """A transaction of that name begins, and says whose it is."""
    redo.sequence += 1
    first = redo.vector((5, 2), [ktudh(redo.redo, 0, redo.sequence, bytes(8), 0, 0)], cls=17)
    fields = session_fields(redo.redo, session, full=full, name=name)
    redo.emit(first, redo.vector((5, 19 if full else 20), fields))


def test_the_attributes_and_the_name_are_those_of_the_vector(tmp_path: Path) -> None:
    redo = announced()
    header, batch = log_of(redo, tmp_path).header, walked(redo, tmp_path)[0]
    ((key, found),) = sessions_of(header, 2, batch).items()
    assert key == SessionKey(1, 341, 77)
    assert (found.login_user, found.machine, found.program) == ("APP", "till-4", "pay@till-4")
    assert (found.client_info, found.client_id) == ("", "")
    assert names_of(header, 2, batch) == {int(batch.events.xid[0]): "PAYROLL"}


def test_each_session_is_as_its_last_announcement_says(tmp_path: Path) -> None:
    redo = LobRedo()
    begin(redo, DatabaseSession(341, 77, "APP", program="pay"), "")
    begin(redo, DatabaseSession(342, 1, "OPS", machine="ops-é"), "NIGHT")
    begin(redo, DatabaseSession(341, 77, "APP", program="bill"), "")
    begin(redo, DatabaseSession(342, 1, "OPS"), "SECOND", full=False)
    header, batch = log_of(redo, tmp_path).header, walked(redo, tmp_path)[0]
    found = sessions_of(header, 2, batch)
    assert [key.session for key in found] == [341, 342]
    assert found[SessionKey(1, 341, 77)].program == "bill"
    assert found[SessionKey(1, 342, 1)].machine == "ops-é"
    names = names_of(header, 2, batch)
    assert sorted(names.values()) == ["NIGHT", "SECOND"]
    assert names[int(batch.events.xid[-1])] == "SECOND"


def test_a_later_announcement_wins_and_threads_are_kept_apart() -> None:
    directory = SessionDirectory()
    directory.add({SessionKey(1, 5, 6): SessionAttributes("A")})
    directory.add({SessionKey(1, 5, 6): SessionAttributes("B")})
    directory.add({SessionKey(2, 5, 6): SessionAttributes("C")})
    assert directory.find(SessionKey(1, 5, 6)) == SessionAttributes("B")
    assert directory.find(SessionKey(3, 5, 6)) is None
    assert directory.find_in_any_thread(5, 6) == SessionAttributes("C")
    directory.delivering([99], [2])
    assert (directory.thread_of(99), directory.thread_of(98)) == (2, None)


def test_the_sessions_of_batches_are_those_that_they_name(tmp_path: Path) -> None:
    batch = walked(announced(), tmp_path)[0]
    directory = SessionDirectory()
    directory.add({SessionKey(1, 341, 77): SessionAttributes("A")})
    directory.add({SessionKey(1, 341, 78): SessionAttributes("B")})
    assert directory.of_batches([batch]) == {SessionKey(1, 341, 77): SessionAttributes("A")}
