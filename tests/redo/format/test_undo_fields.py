"""Fields of layer 5, as the simulator writes them on its own terms.

Fields of layer 24, as the simulator writes them on its own terms.
"""

from __future__ import annotations

from typing import Final

import pytest

from olr_pg.redo.format.opcodes import Opcode
from olr_pg.redo.format.undo_fields import (
    DDL_NAME,
    DDL_OBJN,
    DDL_OWNER,
    DDL_STATEMENT,
    DDL_TEXTS,
    KTUB,
    KTUB_LONG,
    KTUB_NAMES,
    KTUCF,
    KTUCM,
    KTUCM_HAS_KTUCF,
    KTUCM_ROLLED_BACK,
    KTUDB,
    KTUDH,
    KTUXVOFF,
    MARKER,
    MARKER_OUTCOMES,
    MARKER_START,
    SESSION,
    SESSION_NUMBERS,
    SESSION_OLD,
    SESSION_TEXTS,
    UBA,
    XID,
)
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CommitMark,
    DatabaseSession,
    Ktub,
    RedoFormat,
    UndoControl,
    commit_fields,
    ktudb,
    ktudh,
    marker_fields,
    session_fields,
    undo_applied,
)

REDO: Final = RedoFormat()
BIG: Final = RedoFormat(big_endian=True)
OF: Final = Ktub(
    obj=11, dataobj=12, tablespace=13, prev_dba=14, opc=(11, 1), slot=0x105, rci=16, flg=0x102,
    wrp=18,
)  # fmt: skip
BOTH: Final = pytest.mark.parametrize("redo", [REDO, BIG], ids=["little", "big"])


@BOTH
def test_transaction_ids_and_undo_addresses(redo: RedoFormat) -> None:
    xid, uba = redo.xid(10, 12, 572), redo.uba(0x00C000A7, 0x23, 0x52)
    big = redo.big_endian
    assert [XID.number(xid, one.name, big=big) for one in XID.members] == [10, 12, 572]
    assert [UBA.number(uba, one.name, big=big) for one in UBA.members] == [0x00C000A7, 0x23, 0x52]
    assert (len(xid), len(uba)) == (XID.size, UBA.size)


@BOTH
def test_begin(redo: RedoFormat) -> None:
    uba = redo.uba(1, 2, 3)
    data = ktudh(redo, 5, 6, uba, 0x12, 88)
    found = [KTUDH.number(data, name, big=redo.big_endian) for name in ("slt", "sqn", "flg", "siz")]
    assert found == [5, 6, 0x12, 88]
    assert data[KTUDH.at("uba") : KTUDH.end("uba")] == uba
    assert len(data) == KTUDH.size


@BOTH
def test_undo_record(redo: RedoFormat) -> None:
    xid = redo.xid(1, 2, 3)
    data = ktudb(redo, 100, 8000, 0x22, xid, 4, 5)
    big = redo.big_endian
    names = ["siz", "spc", "flg", "seq", "rec"]
    assert [KTUDB.number(data, name, big=big) for name in names] == [100, 8000, 0x22, 4, 5]
    assert data[KTUDB.at("xid") : KTUDB.end("xid")] == xid
    assert len(data) == KTUDB.size
    ktub = OF.image(redo)
    names = ["objn", "objd", "tsn", "prev dba", "slt", "rci", "flg", "wrp"]
    found = [KTUB.number(ktub, name, big=big) for name in names]
    assert found == [11, 12, 13, 14, 5, 16, 0x102, 18]
    assert ktub[KTUB.at("opc") : KTUB.end("opc")] == b"\x0b\x01"
    assert len(ktub) == KTUB.size


@BOTH
def test_the_long_undo_record(redo: RedoFormat) -> None:
    control = UndoControl(redo.uba(1, 2, 3), 0x44, 0x55, 0x66, 136)
    data = OF.begin_image(redo, control)
    assert KTUB_NAMES[len(data)] == "ktubl"
    big = redo.big_endian
    assert KTUB_LONG.number(data, "prev brb", big=big) == 0x66
    assert KTUB_LONG.number(data, "logon user", big=big) == 136
    slots = {"prev ctl max cmt scn": 0x44, "prev tx cmt scn": 0x55}
    for name, scn in slots.items():
        assert data[KTUB_LONG.at(name) : KTUB_LONG.end(name)] == redo.scn8(scn)
    assert data[KTUB_LONG.at("prev ctl uba") : KTUB_LONG.end("prev ctl uba")] == redo.uba(1, 2, 3)
    assert len(data) == KTUB_LONG.size


@BOTH
@pytest.mark.parametrize("rolled_back", [False, True])
def test_end(redo: RedoFormat, rolled_back: bool) -> None:
    mark = CommitMark(
        slot=5, sequence=6, rolled_back=rolled_back, undo=(redo.uba(1, 2, 3), 77),
        long_form=False, unix_time=9,
    )  # fmt: skip
    data, ktucf, _ = commit_fields(redo, mark)
    big = redo.big_endian
    assert [KTUCM.number(data, name, big=big) for name in ("slt", "sqn", "sta")] == [5, 6, 9]
    flags = KTUCM.number(data, "flg", big=big)
    assert flags == KTUCM_HAS_KTUCF | (KTUCM_ROLLED_BACK if rolled_back else 0)
    assert KTUCF.number(ktucf, "spc", big=big) == 77
    assert (len(data), len(ktucf)) == (KTUCM.size, KTUCF.size)


@BOTH
def test_undo_applied(redo: RedoFormat) -> None:
    ktub, offset = undo_applied(redo, OF, 0x1F00)
    assert KTUB_NAMES[len(ktub)] == "ktubx"
    found = [KTUXVOFF.number(offset, one.name, big=redo.big_endian) for one in KTUXVOFF.members]
    assert found == [0x1F00, 2]


@BOTH
@pytest.mark.parametrize(("version", "known"), [("12.2", SESSION_OLD), ("19", SESSION)])
def test_sessions(redo: RedoFormat, version: str, known: object) -> None:
    redo = RedoFormat(COMPATIBLE[version], big_endian=redo.big_endian)
    session = DatabaseSession(
        number=321, serial=45, user="U", os_user="O", machine="M", process="P", program="G"
    )
    for full, opcode in ((True, Opcode.SESSION), (False, Opcode.SESSION_CONTINUED)):
        fields = session_fields(redo, session, full=full, name="N")
        form = SESSION if redo.wide_session else SESSION_OLD
        assert form is known
        assert form.number(fields[0], "session number", big=redo.big_endian) == 321
        assert form.number(fields[0], "serial number", big=redo.big_endian) == 45
        texts = {text: fields[number - 1] for number, text in SESSION_TEXTS[opcode].items()}
        told = {"transaction name": b"N", "login username": b"U"}
        if full:
            told |= {"OS username": b"O", "machine name": b"M", "OS program name": b"G"}
        assert {text: texts[text] for text in told} == told
        flags, _, audit = SESSION_NUMBERS[opcode]
        assert len(fields[flags - 1]) == 6
        assert int.from_bytes(fields[audit - 1], "big" if redo.big_endian else "little") == 30014
        assert not set(SESSION_TEXTS[opcode]) & {1, *SESSION_NUMBERS[opcode]}


@pytest.mark.parametrize("big", [False, True])
def test_the_marker_of_a_transactions_end(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    xid = redo.xid(10, 12, 572)
    first, outcome, _, start = marker_fields(redo, xid, 0x99, 2, 0)
    assert MARKER.number(first, "magic", big=big) == 9000
    assert first[MARKER.at("xid") : MARKER.end("xid")] == xid
    assert MARKER_OUTCOMES[outcome[0]] == "rollback"
    assert start[MARKER_START.at("scn") : MARKER_START.end("scn")] == redo.scn8(0x99)


def test_what_ddl_says_of_its_object_is_text_but_for_its_number() -> None:
    assert {DDL_STATEMENT, DDL_OWNER, DDL_NAME} <= set(DDL_TEXTS)
    assert DDL_OBJN not in DDL_TEXTS
