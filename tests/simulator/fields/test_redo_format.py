from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    KTUB_BEGIN,
    NO_OBJECT,
    OPC_ROW,
    UNDO_BEGIN,
    CommitMark,
    DatabaseSession,
    Ktub,
    RedoFormat,
    UndoControl,
    VectorBlock,
    change_vector,
    commit_fields,
    ktb_first,
    ktb_unused,
    ktudb,
    ktudh,
    marker_fields,
    padding,
    session_fields,
    undo_size,
)
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    SUPPLEMENTAL_INSERT,
    UNDO_SIDE,
    KdoBase,
    RowPiece,
    Supplemental,
    column_fields,
    delete_kdo,
    insert_kdo,
)
from tests.simulator.reader import ParsedLog, ParsedVector, parse_log, parse_vectors

if TYPE_CHECKING:
    from pathlib import Path


FORMATS = st.builds(RedoFormat, st.sampled_from(sorted(COMPATIBLE.values())), st.booleans())


@pytest.mark.parametrize(("size", "rest"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 3)])
def test_fields_are_padded_to_four_bytes(size: int, rest: int) -> None:
    assert padding(size) == rest


@given(redo=FORMATS, scn=st.integers(0, (1 << 47) - 1), long=st.booleans())
def test_an_scn_is_read_as_it_was_written(redo: RedoFormat, scn: int, *, long: bool) -> None:
    assert redo.read_scn8(b"head" + redo.scn8(scn, long=long), 4) == scn


def test_an_scn_that_fits_no_48_bits_takes_the_form_with_the_bit() -> None:
    redo = RedoFormat(COMPATIBLE["19"], big_endian=True)
    assert redo.scn8(0x0001_8000_00AB_CDEF).hex() == "00abcdef80018000"
    assert redo.scn8(SCN_NONE) == b"\xff" * 8
    assert redo.read_scn8(b"\xff" * 8) == SCN_NONE


@pytest.mark.parametrize(
    ("release", "header", "row_scn", "wide"),
    [("11.2", 24, 6, False), ("12.1", 32, 6, False), ("12.2", 32, 8, False), ("19", 32, 8, True)],
)
def test_what_follows_from_the_version(
    release: str, header: int, row_scn: int, *, wide: bool
) -> None:
    redo = RedoFormat(COMPATIBLE[release])
    assert (redo.vector_header_size, redo.row_scn_size, redo.wide_session) == (
        header,
        row_scn,
        wide,
    )


def test_addresses_and_transaction_ids_are_in_the_byte_order_of_the_log() -> None:
    little, big = RedoFormat(), RedoFormat(big_endian=True)
    assert little.uba(0x01000004, 0x0203, 5).hex() == "0400000103020500"
    assert big.uba(0x01000004, 0x0203, 5).hex() == "0100000402030500"
    assert big.xid(1, 2, 3).hex() == "0001000200000003"


DBA: Final = 0x0600000E
UNDO_DBA: Final = 0xA7
HEADER_DBA: Final = 0xA0
PDB_DBID: Final = 1385559638


@pytest.fixture(scope="module")
def log(shared_dir: Path) -> ParsedLog:
    path = shared_dir / "real" / "oracle-free-23ai" / "arch1_15_1224959854.dbf"
    return parse_log(path.read_bytes())


def real_vectors(log: ParsedLog, block: int, offset: int) -> tuple[ParsedVector, ...]:
    return next(r.vectors for r in log.records if (r.block, r.offset) == (block, offset))


def assert_same(
    log: ParsedLog, ours: bytes, real: tuple[ParsedVector, ...], garbage: dict[tuple[int, int], int]
) -> None:
    """Headers and fields are equal; `garbage`: from which byte on a (vector, field) is not."""
    made = parse_vectors(log.format, ours, 0)
    assert [vector.opcode for vector in made] == [vector.opcode for vector in real]
    for number, (mine, theirs) in enumerate(zip(made, real, strict=True)):
        header = log.format.vector_header_size
        if theirs.typ != 6:  # the object of a vector without a block is garbage
            assert mine.raw[:header] == theirs.raw[:header], mine.opcode
        assert [len(data) for data in mine.fields] == [len(data) for data in theirs.fields]
        for at, (data, expected) in enumerate(zip(mine.fields, theirs.fields, strict=True)):
            end = garbage.get((number, at), len(expected))
            assert data[:end] == expected[:end], f"{mine.opcode} field {at + 1}"


def test_the_real_insert(log: ParsedLog) -> None:
    redo = log.format
    xid, uba = redo.xid(10, 12, 572), redo.uba(UNDO_DBA, 0x8B, 0x23)
    ktub = Ktub(72726, 72726, 6, 0, OPC_ROW, 12, 0, KTUB_BEGIN, 1)
    control = UndoControl(redo.uba(0x172, 0x8A, 0x2A), 2260197, 2260217, 0x172, 136)
    base = KdoBase(DBA, 0x0600000A, 4858, 1)
    piece = RowPiece(FB_ROW, (b"\xc1\x02", b"hello world"))
    supplemental = Supplemental(SUPPLEMENTAL_INSERT, GROUP_FIRST | GROUP_LAST, 0, 1)
    undo = [
        ktub.begin_image(redo, control),
        ktb_unused(redo),
        delete_kdo(redo, base, OP_DRP | UNDO_SIDE, 0),
        *supplemental.fields(redo),
    ]
    size = undo_size([len(data) for data in undo])
    row = [
        ktb_first(redo, xid, uba),
        insert_kdo(redo, base, OP_IRP, piece, 0, 1),
        *column_fields(piece.columns),
    ]
    session = DatabaseSession(56, 52353, "OLR_TEST")
    header = [ktudh(redo, 12, 572, uba, 0x52, size), redo.pack("I", PDB_DBID)]
    vectors = (
        ((5, 2), VectorBlock(35, 23, HEADER_DBA, NO_OBJECT, 2265944, 1), header),
        (
            (5, 1),
            VectorBlock(36, 23, UNDO_DBA, NO_OBJECT, 2265943, 2),
            [ktudb(redo, size, 3206, UNDO_BEGIN, xid, 0x8B, 0x23), *undo],
        ),
        ((11, 2), VectorBlock(1, 24, DBA, 72726, 2267707, 1), row),
        ((5, 20), VectorBlock(typ=6), session_fields(redo, session, full=False)),
    )
    ours = b"".join(
        change_vector(redo, opcode, block, fields, con_id=3) for opcode, block, fields in vectors
    )
    real = real_vectors(log, 580, 360)
    # The links (20..33) and the bytes up to tl are memory in an unchained row, and the last three.
    assert insert_kdo(redo, base, OP_IRP, piece, 0, 1)[40:46] == real[2].fields[1][40:46]
    assert_same(log, ours, real, {(2, 1): 20})


def test_the_real_commit(log: ParsedLog) -> None:
    redo = log.format
    xid, uba = redo.xid(10, 12, 572), redo.uba(UNDO_DBA, 0x8B, 0x24)
    mark = CommitMark(12, 572, False, (uba, 2974), True, 1772847880)
    commit = VectorBlock(35, 23, HEADER_DBA, NO_OBJECT, 2267707, 1)
    ours = change_vector(redo, (5, 4), commit, commit_fields(redo, mark), con_id=3)
    marker = marker_fields(redo, xid, 2267707, 1, 0)
    ours += change_vector(redo, (24, 4), VectorBlock(typ=6), marker, con_id=3)
    assert_same(log, ours, real_vectors(log, 582, 336), {})


def test_the_commit_of_11_2_has_the_fields_of_a_real_record(shared_dir: Path) -> None:
    folder, old = shared_dir / "evidence", RedoFormat(COMPATIBLE["11.2"])
    real = json.loads((folder / "imu-11.2.0.1-record.json").read_text("utf-8"))
    known = [bytes.fromhex(one) for one in real["vectors"]]
    (end,) = [v for v in parse_vectors(old, b"".join(known), 0) if v.opcode == "5.4"]
    slot, sequence = old.unpack("HxxI", end.fields[0])
    mark = CommitMark(slot, sequence, False, (bytes(8), 0), False, 0)
    written = commit_fields(old, mark)
    assert [len(data) for data in written] == [len(data) for data in end.fields] == [20, 16, 4]
    assert written[0] == end.fields[0]
    block = VectorBlock(end.cls, end.afn, end.dba)
    others = sum(len(data) for data in known) - len(end.raw)
    assert 68 + others + len(change_vector(old, (5, 4), block, written)) == real["dump_len"]
    rolled_back = replace(mark, rolled_back=True, undo=None)
    assert [len(data) for data in commit_fields(old, rolled_back)] == [20, 4]
