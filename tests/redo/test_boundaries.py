"""Begin, commit, rollback and the session: each is an event of the transaction that it names."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from olr_pg.decoding.split import subscribe
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.batch import EventKind
from olr_pg.redo.log_extraction import read_changes
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CommitMark,
    DatabaseSession,
    RedoFormat,
    commit_fields,
    ktudh,
    marker_fields,
    parent_commit_fields,
    session_fields,
    state_fields,
)
from tests.lobs.lob_redo import LobRedo, table
from tests.redo.hand_made import log_of, values_of, walked

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
    fields = session_fields(form, DatabaseSession(341, 77, "APP"), full=full)
    redo.emit(begin, redo.vector((5, 19 if full else 20), fields))
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.SESSION]
    assert (events.session[1], events.serial[1]) == (341, 77)
    assert events.slot_head[1] == full
    assert events.xid[1] == events.xid[0]


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_slot_is_in_the_field_and_the_segment_in_the_class(tmp_path: Path, order: str) -> None:
    """5.2 and 5.4 laid out as redo-format §4.1 and §4.4 say; cls = 15 + 2 · segment (§3.1)."""
    redo = LobRedo(RedoFormat(big_endian=order == ">"))
    begin = struct.pack(order + "HHI8sHHBB2xI4x", 7, 0xEEEE, 572, bytes(8), 0x12, 100, 0, 0, 0)
    assert len(begin) == 32
    redo.emit(redo.vector((5, 2), [begin], cls=15 + 2 * 9))
    for flags in (0x02, 0x06):
        end = struct.pack(order + "HHIHHIB3x", 7, 0xEEEE, 572, 0xEEEE, 0, 9, flags)
        redo.emit(redo.vector((5, 4), [end], cls=15 + 2 * 9))
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.COMMIT, EventKind.ROLLBACK]
    assert set(events.xid.tolist()) == {pack_xid(9, 7, 572)}


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_ddl_statement_in_two_records(tmp_path: Path, order: str) -> None:
    """24.1 as redo-format §8.1 says: texts in F8 (statement), F9, F10, object in F12; then F2."""
    redo = LobRedo(RedoFormat(big_endian=order == ">"))

    def header(magic: int, part: int) -> bytes:
        xid = redo.redo.xid(10, 12, 572)
        return struct.pack(order + "I8sHHHHHH", magic, xid, 15, 0xEE, 1, part, 2, 0)

    texts = [b"SYS\0", b"APP\0", b"", b"", b"", b"", b"alter table docs\0", b"APP\0", b"DOCS\0"]
    objn = struct.pack(order + "I", 72_726)
    for fields in (
        [header(10_000, 1), *texts, bytes(20), objn],
        [header(10_000, 1), *texts, bytes(20), b""],
        [header(10_000, 2), b" add x number\0"],
        [header(10_000, 1), *texts, bytes(20)],  # eleven fields: of another form
        [header(10_000, 2)],
        [header(9_999, 1), *texts, bytes(20), objn],
        [header(10_000, 1)[:20], *texts, bytes(20), objn],
    ):
        redo.emit(redo.vector((24, 1), fields, typ=6))
    batch = walked(redo, tmp_path)[0]
    events = batch.events
    assert events.kind.tolist() == [EventKind.DDL] * 3
    assert set(events.xid.tolist()) == {pack_xid(10, 12, 572)}
    assert (events.serial.tolist(), events.wrp.tolist()) == ([15] * 3, [1, 1, 2])
    assert events.session.tolist() == [72_726, 0, 0]
    assert events.piece_count.tolist() == [1] * 3
    assert batch.pieces.entry_count.tolist() == [3, 3, 1]
    told = [(1, texts[6]), (2, texts[7]), (3, texts[8])]
    assert [(number, text) for _, number, text in values_of(batch)] == [
        *told, *told, (1, b" add x number\0"),
    ]  # fmt: skip


def test_the_least_of_a_begin_and_of_an_end(tmp_path: Path) -> None:
    """Up to sqn in 5.2, all of 5.4 and no more (redo-format §4.1, §4.4); else it is an error."""
    begin, end = struct.pack("<HHI", 7, 0, 572), struct.pack("<HHIHHIB3x", 7, 0, 572, 0, 0, 9, 4)
    redo = LobRedo(con_id=3)
    redo.emit(redo.vector((5, 2), [begin], cls=15), redo.vector((5, 4), [end], cls=15))
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [EventKind.BEGIN, EventKind.ROLLBACK]
    assert events.con_id.tolist() == [3, 3]
    for code, fields in (
        (2, [begin[:7]]),
        (2, []),
        (4, [end[:19]]),
        (4, [end + bytes(12)]),
        (4, [begin]),
        (4, []),
        # The vectors behind it, taken in: no one has so much (redo-format §4.1, §4.4).
        (2, [begin + bytes(24), bytes(92)]),
        (4, [end, bytes(16), bytes(24), bytes(8), bytes(52)]),
    ):
        redo = LobRedo()
        redo.emit(redo.vector((5, code), fields, cls=15))
        with pytest.raises(OlrPgError) as caught:
            walked(redo, tmp_path)
        assert caught.value.code == Code.RECORD_MALFORMED


@pytest.mark.parametrize(("version", "least"), [("11.2", 4), ("18", 4), ("19", 8)])
def test_a_session_of_no_transaction_or_too_short_is_none(
    tmp_path: Path, version: str, least: int
) -> None:
    """redo-format §4.6: 4 bytes before 19, then 8; it is the transaction's of its record."""
    form = RedoFormat(COMPATIBLE[version])
    redo = LobRedo(form, con_id=3 if version != "11.2" else 0)
    begin = redo.vector((5, 2), [struct.pack("<HHI", 7, 0, 572)], cls=17)
    field = struct.pack("<HHI", 341, 77, 0x54321)
    for size in (least, least - 1):
        redo.emit(begin, redo.vector((5, 19), [field[:size]]))
    redo.emit(redo.vector((5, 19), [field]))
    redo.emit(begin, redo.vector((5, 20), [field, b"name"]))
    events = walked(redo, tmp_path)[0].events
    begun, told = EventKind.BEGIN, EventKind.SESSION
    assert events.kind.tolist() == [begun, told, begun, begun, told]
    number = 341 if least == 4 else 0x54321
    sessions = [(events.session[at], events.serial[at], events.slot_head[at]) for at in (1, 4)]
    assert sessions == [(number, 77, 1), (number, 77, 0)]
    assert set(events.con_id.tolist()) == {redo.con_id}


def of_header(redo: LobRedo, code: int, fields: list[bytes], cls: int = 17) -> bytes:
    """A vector on the header of undo segment 1, which is in the root's undo."""
    own, redo.con_id = redo.con_id, 1
    found = redo.vector((5, code), fields, cls=cls)
    redo.con_id = own
    return found


def marker(redo: LobRedo, outcome: int, sequence: int = 572) -> bytes:
    fields = marker_fields(redo.redo, redo.redo.xid(1, 7, sequence), 1, outcome, 0)
    return redo.vector((24, 4), fields, typ=6)


def commit(redo: LobRedo, *, rolled_back: bool = False) -> bytes:
    mark = CommitMark(7, 572, rolled_back, None, False, 9)
    return of_header(redo, 4, commit_fields(redo.redo, mark))


def refused(redo: LobRedo, folder: Path) -> bool:
    with pytest.raises(OlrPgError) as caught:
        walked(redo, folder)
    return caught.value.code == Code.RECORD_MALFORMED


@pytest.mark.parametrize("rolled_back", [False, True])
def test_the_marker_of_an_end_tells_its_container(tmp_path: Path, rolled_back: bool) -> None:
    """With shared undo the 5.4 has the root's; another vector may stand between them."""
    between = LobRedo().vector((17, 28), [bytes(8)], typ=6)
    for more in ([], [between]):
        redo = LobRedo(con_id=3)
        end = commit(redo, rolled_back=rolled_back)
        redo.emit(end, *more, marker(redo, 2 if rolled_back else 1))
        (event,) = walked(redo, tmp_path)[0].events
        assert event.kind == (EventKind.ROLLBACK if rolled_back else EventKind.COMMIT)
        assert (event.con_id, event.undo_con_id) == (3, 1)
    redo = LobRedo(con_id=3)
    redo.emit(commit(redo), between)
    (event,) = walked(redo, tmp_path)[0].events
    assert (event.con_id, event.undo_con_id) == (1, 1)


def test_a_marker_of_another_end_is_an_error(tmp_path: Path) -> None:
    for rolled_back, outcome, sequence in ((0, 2, 572), (1, 1, 572), (0, 1, 573), (1, 2, 573)):
        redo = LobRedo(con_id=3)
        redo.emit(commit(redo, rolled_back=bool(rolled_back)), marker(redo, outcome, sequence))
        assert refused(redo, tmp_path)
    for outcome in (0, 3):  # unknown
        redo = LobRedo(con_id=3)
        redo.emit(commit(redo), marker(redo, outcome))
        assert len(walked(redo, tmp_path)[0].events) == 1


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize(("srt", "flag"), [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_a_child_of_parallel_dml_commits_at_the_scn_of_its_parent(
    tmp_path: Path, srt: int, flag: int, place: int
) -> None:
    """srt and the flag both tell a child: one of them is enough (redo-format §4.4)."""
    redo = LobRedo(con_id=3, scn=2001)
    first = struct.pack("<HHIHHIB3x", 7, 0, 572, srt, 0, 9, flag)
    fields = [struct.pack("<I", 9)]
    fields.insert(place, redo.redo.scn8(2000))
    redo.emit(of_header(redo, 4, [first, *fields]))
    (event,) = walked(redo, tmp_path)[0].events
    is_child = srt or flag
    assert (event.scn, event.session) == ((2000, 2) if is_child else (2002, 0))


@pytest.mark.parametrize(("srt", "flag"), [(1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize("scn", [None, 0, 2003])
def test_a_child_of_parallel_dml_without_a_commit_scn_is_an_error(
    tmp_path: Path, srt: int, flag: int, scn: int | None
) -> None:
    redo = LobRedo(con_id=3, scn=2001)
    first = struct.pack("<HHIHHIB3x", 7, 0, 572, srt, 0, 9, flag)
    redo.emit(of_header(redo, 4, [first, *([] if scn is None else [redo.redo.scn8(scn)])]))
    if scn is None and srt + flag == 1:  # the other one tells that it is none
        (event,) = walked(redo, tmp_path)[0].events
        assert (event.scn, event.session) == (2002, 0)
    else:
        assert refused(redo, tmp_path)


def test_the_begin_and_end_of_a_parallel_commit(tmp_path: Path) -> None:
    redo = LobRedo(con_id=3, scn=2001)
    redo.emit(of_header(redo, 4, parent_commit_fields(redo.redo, 7, 572)))
    redo.emit(of_header(redo, 12, state_fields(redo.redo, 7, 572, 9)))
    redo.emit(of_header(redo, 12, state_fields(redo.redo, 7, 572, 9)[:0]))
    redo.emit(of_header(redo, 12, state_fields(redo.redo, 8, 572, 9), cls=13))
    (extract,) = read_changes(log_of(redo, tmp_path), subscribe((table(),), 3).objects)
    assert [tuple(one) for one in extract.parallel] == [
        ((1, 1), 7, 2002, True), ((1, 1), 7, 2003, False), ((1, 1), 0, 2004, False),
    ]  # fmt: skip
    assert extract.batch.events.kind.tolist() == [EventKind.COMMIT]


@pytest.mark.parametrize(
    ("code", "sizes"),
    [(2, (32, 36, 4)), (4, (20, 16, 4)), (4, (20, 16, 24, 8, 4)), (4, (20, 24, 4))],
)
def test_the_longest_of_begins_and_ends_are_read(
    tmp_path: Path, code: int, sizes: tuple[int, ...]
) -> None:
    redo = LobRedo(con_id=3)
    first = struct.pack("<HHI", 7, 0, 572)
    redo.emit(redo.vector((5, code), [first + bytes(sizes[0] - 8), *map(bytes, sizes[1:])], cls=15))
    assert walked(redo, tmp_path)[0].events.kind.size == 1
