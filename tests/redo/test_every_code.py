"""Nothing that a vector can say is ignored by accident: every operation code and every flag bit.

Each code is interpreted, or known to change no row, or reported. Each bit of a flag byte that is
set, or not set, either changes nothing for a reason that is written down here, or is reported. So a
code or bit that a later version of Oracle begins to use cannot lose or change a row silently.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column
from olr_pg.redo.batch import EventKind
from olr_pg.redo.format.opcodes import (
    CLUSTER_STRUCTURE,
    HARMLESS,
    INDEX_STRUCTURE_UNDO,
    LEAF_STRUCTURE,
    UNEXPLAINED,
    Opcode,
)
from olr_pg.redo.format.row_fields import KDILK_COLUMNS, KDILK_PURGE, KDILK_RESTORE, KDILK_ROW
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.walk import Objects
from olr_pg.simulator.fields.redo_format import TYP_MARKER, index_row, kdilk, ktb_continue
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    OP_ORP,
    OP_QMD,
    OP_QMI,
    OP_URP,
    UNDO_SIDE,
    ColumnChange,
    KdoBase,
    RowPiece,
    column_fields,
    insert_kdo,
    multi_kdo,
    multi_rows,
    update_fields,
    update_kdo,
)
from olr_pg.transactions.assembler import Assembler
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, table
from tests.redo.chain import transactions_of
from tests.redo.hand_made import log_of, walked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.dictionary.model import Table
    from olr_pg.redo.uninterpreted import Passed
    from olr_pg.redo.window import Log

# --- operation codes ---

INTERPRETED: Final = {
    *(0x0501, 0x0502, 0x0504, 0x0506, 0x050B, 0x050C, 0x0513, 0x0514),
    *(0x0A1F, 0x1301, 0x1302, 0x1304, 0x1801, 0x1806),
    *(0x0B00 | code for code in range(256)),
}
"""What `redo.vector_changes` reads without an undo record before it."""

CODES: Final = sorted(
    {layer << 8 | code for layer in range(40) for code in range(256)}
    | {layer << 8 | code for layer in range(256) for code in (0, 1, 2, 255)}
)


def harmless() -> set[int]:
    return {layer << 8 | code for layer, codes in HARMLESS.items() for code in codes}


def passed(redo: LobRedo, folder: Path) -> Passed:
    plan = build_row_plan((table(),), 0)
    objects = Objects(
        key=plan.object_key,
        table=plan.object_table,
        cluster_columns=plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    extracts = list(read_changes(log_of(redo, folder), objects))
    found = extracts[0].passed
    for extract in extracts[1:]:
        found = found.plus(extract.passed)
    return found


def test_each_code_of_a_subscribed_object_is_interpreted_or_known_or_reported(
    tmp_path: Path,
) -> None:
    redo = LobRedo()
    for op in CODES:
        if op not in INTERPRETED:
            redo.emit(redo.vector((op >> 8, op & 255), [bytes(8)], TABLE_OBJ, dba=BLOCK))
    noted = {one.opcode for one in passed(redo, tmp_path).noted}
    assert noted == set(CODES) - harmless() - INTERPRETED


def test_each_code_without_a_block_is_interpreted_or_known_or_reported(tmp_path: Path) -> None:
    """Also of layer 11: of its vectors without a block, only 11.17 is interpreted."""
    redo = LobRedo()
    rows = {op for op in CODES if op >> 8 == 11 and op != Opcode.LOB_OPERATION}
    for op in CODES:
        if op not in INTERPRETED or op in rows:
            redo.emit(redo.vector((op >> 8, op & 255), [bytes(8)], typ=TYP_MARKER))
    noted = passed(redo, tmp_path).noted
    assert {one.opcode for one in noted} == set(CODES) - harmless() - INTERPRETED | rows
    assert {one.table for one in noted} == {-1}


class Outcome(NamedTuple):
    """What a pair became: the kind of its event or None, the reason of an undecoded one, and
    whether it was reported."""

    kind: EventKind | None
    status: int
    noted: bool


def outcome(redo: LobRedo, folder: Path, *, clustered: int = 0) -> Outcome:
    own = replace(table(), cluster_columns=clustered)
    batch, _ = walked(redo, folder, own)
    events = batch.events
    found = [
        (EventKind(int(kind)), int(status))
        for kind, status in zip(events.kind, events.session, strict=True)
        if kind not in (EventKind.BEGIN, EventKind.COMMIT)
    ]
    kind, status = found[0] if found else (None, 0)
    return Outcome(kind, status, bool(passed(redo, folder).noted))


BASE: Final = KdoBase(BLOCK, BLOCK, 100, 1)
SILENT: Final = Outcome(None, 0, noted=False)


@pytest.mark.parametrize("clustered", [0, 1])
@pytest.mark.parametrize("code", range(1, 32))
def test_each_row_operation_is_decoded_or_refused_or_reported(
    tmp_path: Path, code: int, clustered: int
) -> None:
    """Only a KDO without columns: no operation with a row is complete with it."""
    redo = LobRedo()
    redo.begin()
    redo.pair([BASE.image(redo.redo, code | UNDO_SIDE)], [BASE.image(redo.redo, code)], code)
    found = outcome(redo, tmp_path, clustered=clustered)
    if code in UNEXPLAINED:
        assert found == Outcome(None, 0, noted=True)
    elif code in CLUSTER_STRUCTURE and clustered:
        assert found == SILENT
    elif code in (16, 22):  # 11.16 and 11.22 have no row of their own
        assert found.kind is EventKind.CHANGE
    else:
        assert found.kind is EventKind.UNDECODED


@pytest.mark.parametrize("code", [32, 63, 128, 255])
def test_a_row_operation_that_kdo_cannot_name_is_refused(tmp_path: Path, code: int) -> None:
    redo = LobRedo()
    redo.begin()
    redo.pair([BASE.image(redo.redo, 1)], [BASE.image(redo.redo, 1)], code)
    assert outcome(redo, tmp_path)[:2] == (EventKind.UNDECODED, ChangeStatus.OPERATION)


def index_pair(
    redo: LobRedo, opc: int, code: int, *fields: bytes, ktb: bytes | None = None
) -> None:
    """5.1 with general undo of an index block, and a vector of the block."""
    undo = redo.undo_vector(TABLE_OBJ, (opc >> 8, opc & 255), [bytes(12), b"\0"])
    first = ktb_continue(redo.redo, bytes(8)) if ktb is None else ktb
    redo.emit(undo, redo.vector((10, code), [first, *fields], TABLE_OBJ, dba=BLOCK))


@pytest.mark.parametrize("opc", INDEX_STRUCTURE_UNDO)
@pytest.mark.parametrize("code", range(1, 64))
def test_a_leaf_that_is_split_changes_no_row_and_stops_no_table(
    tmp_path: Path, opc: int, code: int
) -> None:
    """A real 10.6 has undo with opc 10.21 (redo-format §4.2)."""
    redo = LobRedo()
    redo.begin()
    empty = bytes(10)  # of 10.31: level 0, no rows
    index_pair(redo, opc, code, b"\0\0", empty)
    found = outcome(redo, tmp_path)
    if code in LEAF_STRUCTURE:
        assert found == SILENT
    else:
        assert found[:2] == (EventKind.UNDECODED, ChangeStatus.CONTRADICTION)


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
@pytest.mark.parametrize("has_undo", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_new_leaf_with_one_row_is_reported(
    tmp_path: Path, rows: int, has_undo: bool, is_new: bool
) -> None:
    """10.8 of a leaf that is split has no KTB redo; that of a new leaf has (redo-format §6.1)."""
    redo = LobRedo()
    redo.begin()
    fields = [bytes(16 if is_new else 4), bytes(2 + 2 * rows), bytes(9 * rows)]
    ktb = ktb_continue(redo.redo, bytes(8)) if is_new else b""
    if has_undo:
        index_pair(redo, 0x0A15, 8, *fields, ktb=ktb)
    else:
        redo.emit(redo.vector((10, 8), [ktb, *fields], TABLE_OBJ, dba=BLOCK))
    assert outcome(redo, tmp_path) == Outcome(None, 0, noted=is_new and rows == 1)


ROOT: Final = bytes.fromhex(
    "000080010000000000002400601f3c1f0000000000000000000000000006000000601f0000571f"
)
"""Field 3 of a real 10.31, the root of an empty index (redo-format §6.1), without a byte."""


@pytest.mark.parametrize("has_undo", [True, False])
@pytest.mark.parametrize(
    ("level", "rows", "stops"), [(0, 0, False), (0, 1, True), (0, 300, True), (1, 3, False)]
)
def test_the_root_of_a_direct_load_stops_its_table_if_it_has_rows(
    tmp_path: Path, level: int, rows: int, stops: bool, has_undo: bool
) -> None:
    redo = LobRedo()
    redo.begin()
    header = bytes([level]) + ROOT[1:8] + redo.redo.pack("H", rows) + ROOT[10:38]
    fields = [bytes(2 + 2 * rows), header, bytes(9 * rows)]
    if has_undo:
        index_pair(redo, 0x0A15, 31, *fields)
    else:
        redo.emit(redo.vector((10, 31), [bytes(48), *fields], TABLE_OBJ, dba=BLOCK))
    expected = (EventKind.UNDECODED, ChangeStatus.LEAF_BLOCK) if stops else (None, 0)
    assert outcome(redo, tmp_path)[:2] == expected


def test_a_root_block_whose_header_is_cut_stops_its_table(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.emit(redo.vector((10, 31), [bytes(48), bytes(4), bytes(9)], TABLE_OBJ, dba=BLOCK))
    assert outcome(redo, tmp_path)[:2] == (EventKind.UNDECODED, ChangeStatus.LEAF_BLOCK)


def test_a_real_root_of_an_empty_index_stops_no_table(real_logs: tuple[Log, Log]) -> None:
    """L23a has a 10.31 of index 72727; the 10.2 after it inserts an entry (redo-format §9.2)."""
    plan = build_row_plan((replace(table(), obj=72727, dataobj=72727),), 3)
    objects = Objects(
        key=plan.object_key,
        table=plan.object_table,
        cluster_columns=plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    (extract,) = read_changes(real_logs[0], objects)
    kinds = extract.batch.events.kind
    assert extract.passed.counts[int(Opcode.LEAF_ROOT)] == 1
    assert not (kinds == EventKind.UNDECODED).any()
    assert (kinds == EventKind.CHANGE).sum() == 1


# --- flag bits ---

ALL: Final = 0xFF
FORM: Final = 0x03 | 0x08 | 0x80
"""xtype of a KDO without values: which of XA, XR, CR it is, compression, KDOM2."""

IGNORED: Final = {
    # How the block is changed: new, after a cleanout (redo-format §3.1).
    "5.1 TYP": 0x0F,
    "row TYP": 0x0F,
    # Which place the undo record has in its block and its transaction; the transaction, its begin
    # and the parts of divided undo are told by other fields (redo-format §4.2).
    "ktudb flg": ALL,
    "ktudb flg, high": ALL,
    "ktub flg": 0x08 | 0x10 | 0x20 | 0x40 | 0x80,
    "ktub flg, high": 0x04 | 0x08,
    # The ITL of the block (redo-format §5.1).
    "5.1 KTB op": ALL,
    "5.1 KTB version": ALL,
    "row KTB op": ALL,
    "row KTB version": ALL,
    # On which side the KDO is; that the table has ROWDEPENDENCIES (redo-format §5.2): the size of
    # the field shows whether the SCN is there.
    "5.1 KDO op": 0x20 | 0x40,
    "row KDO op": 0x20 | 0x40,
    # XA, XR or CR (redo-format §5.2).
    "5.1 xtype": 0x03,
    "row xtype": 0x03,
    # The table of the block: outside a cluster, that of compressed blocks (redo-format §5.4).
    "5.1 tabn": ALL,
    "row tabn": ALL,
    # The supplemental header: P and N of a value without parts, no address, and what is unknown.
    # C closes a change of several records. The sizes of all values are in the list that follows.
    "supplemental fb": 0x01 | 0x02 | 0x10 | 0x20 | 0x40,
    "supplemental 13": ALL,
    "supplemental 16": ALL,
    "supplemental 17": ALL,
    # Which piece of the row it is (redo-format §5.3): the supplemental header says this too.
    "5.1 fb": 0x04 | 0x08 | 0x20,
    "row fb": 0x04 | 0x08 | 0x20,
    # Of kdilk, only 0x80 is known (redo-format §6.1).
    "kdilk flags": 0x7F,
    # Data follows the key.
    "leaf code": 0x10,
}
"""Bits that change nothing, by the name of their byte."""

IGNORED_IN: Final = {
    # A KDO without values has no form.
    ("insert", "5.1 xtype"): FORM,
    ("delete", "row xtype"): FORM,
    # The piece is the whole row.
    ("insert", "row fb"): 0,
    # P is of the first column, which is not among those that the update sets.
    ("update", "5.1 fb"): IGNORED["5.1 fb"] | 0x02,
    ("update", "row fb"): IGNORED["row fb"] | 0x02,
    # In a header with K, an insert or delete of a whole row is as one without a header
    # (redo-format §4.3).
    ("insert", "supplemental fb"): IGNORED["supplemental fb"] | 0x80,
    ("delete", "supplemental fb"): IGNORED["supplemental fb"] | 0x80,
    # 2 and 3 undo an insert.
    ("leaf insert", "kdilk code"): 0x01,
    # A multi-row vector has the row's SCN behind the flags, and its rows are of table 0.
    ("array insert", "row KDO op"): 0x20,
    ("array delete", "5.1 KDO op"): 0x20,
    ("array insert", "row tabn"): 0,
    ("array delete", "5.1 tabn"): 0,
    # Only the other side has rows, which could be compressed.
    ("array insert", "5.1 xtype"): 0x03 | 0x08,
    ("array delete", "row xtype"): 0x03 | 0x08,
}
"""The same where a statement differs."""

COLUMNS: Final = tuple(
    Column(name, n, n, n, 1, 4000, charset_id=873, charset_form=1)
    for n, name in enumerate(("A", "B", "C"), 1)
)
OLD: Final = (b"one", b"two", b"three")
NEW: Final = (b"one", b"2", b"3")
KEY: Final = b"\x03one"
LEAF_OLD: Final = b"\x2c\x00\x02\x03two\x05three"
LEAF_NEW: Final = b"\x2c\x00\x02\x012\x013"


def insert(redo: LobRedo) -> None:
    redo.slot = 0
    redo.insert_row(*OLD)


def delete(redo: LobRedo) -> None:
    redo.delete_row(0, *OLD)


def update(redo: LobRedo) -> None:
    supplemental = redo.supplemental(1, 0, 2, 2)
    old = ColumnChange(FB_ROW, 3, (1, 2), OLD[1:], 0)
    new = ColumnChange(FB_ROW, 3, (1, 2), NEW[1:], 0)
    undo = update_kdo(redo.redo, BASE, OP_URP | UNDO_SIDE, old, 0, 0)
    kdo = update_kdo(redo.redo, BASE, OP_URP, new, 0, 1)
    redo.pair(
        [undo, *update_fields(redo.redo, old), *supplemental],
        [kdo, *update_fields(redo.redo, new)],
        OP_URP,
    )


def overwrite(redo: LobRedo) -> None:
    sides = []
    for op, values in ((OP_ORP | UNDO_SIDE, OLD), (OP_ORP, NEW)):
        piece = RowPiece(FB_ROW, values)
        sides.append([insert_kdo(redo.redo, BASE, op, piece, 0, 1), *column_fields(values)])
    redo.pair([*sides[0], *redo.supplemental(1, 0, 1, 1)], sides[1], OP_ORP)


def array(redo: LobRedo, code: int) -> None:
    full = multi_rows(redo.redo, [RowPiece(FB_ROW, OLD), RowPiece(FB_ROW, NEW)], 1)
    undo = [multi_kdo(redo.redo, BASE, OP_QMI + OP_QMD - code | UNDO_SIDE, [3, 5], 1)]
    new = [multi_kdo(redo.redo, BASE, code, [3, 5], 1)]
    redo.pair(*((undo, new + full) if code == OP_QMI else (undo + full, new)), code)


def leaf(redo: LobRedo, code: int, what: int, undo: list[bytes], new: list[bytes]) -> None:
    image = kdilk(redo.redo, what, 1, BLOCK, BLOCK)
    if what == KDILK_COLUMNS:
        image += bytes((0, 2, 1, 0, 0, 0))
    info = index_row(redo.redo, 1, 0, 20, others=True)
    redo.emit(
        redo.undo_vector(TABLE_OBJ, (10, 22), [image, *undo]),
        redo.vector(
            (10, code), [ktb_continue(redo.redo, bytes(8)), info, *new], TABLE_OBJ, dba=BLOCK
        ),
    )


STATEMENTS: Final[dict[str, Callable[[LobRedo], None]]] = {
    "insert": insert,
    "delete": delete,
    "update": update,
    "overwrite": overwrite,
    "array insert": lambda redo: array(redo, OP_QMI),
    "array delete": lambda redo: array(redo, OP_QMD),
    "leaf insert": lambda redo: leaf(redo, 2, KDILK_PURGE, [KEY], [KEY, LEAF_OLD]),
    "leaf delete": lambda redo: leaf(redo, 4, KDILK_RESTORE, [KEY, LEAF_OLD], []),
    "leaf update": lambda redo: leaf(redo, 30, KDILK_ROW, [KEY, LEAF_OLD], [LEAF_NEW]),
    "leaf columns": lambda redo: leaf(
        redo, 35, KDILK_COLUMNS, [KEY, b"\1\0", b"three"], [b"\1\0", b"3"]
    ),
}


class FlagByte(NamedTuple):
    name: str
    at: int


def fields_of(body: bytes) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """(position, (position and size of each field from the header on)) of each vector."""
    at = 0
    while at < len(body):
        listed = int.from_bytes(body[at + 32 : at + 34], "little")
        data = at + 32 + (listed + 2 & ~3)
        fields = [(at, 32)]
        for number in range(1, (listed - 2) // 2 + 1):
            size = int.from_bytes(body[at + 32 + 2 * number :][:2], "little")
            fields.append((data, size))
            data += size + 3 & ~3
        yield at, fields
        at = data


KDO_BYTES: Final = {2: {"fb": 16, "tabn": 44}, 6: {"fb": 16, "tabn": 44}, 3: {"tabn": 18},
                    5: {"fb": 16, "tabn": 19}, 11: {"tabn": 16}, 12: {"tabn": 16}}  # fmt: skip
"""Where the KDO of an operation has flags, besides op and xtype (redo-format §5.4 to §5.9)."""


def flag_bytes(body: bytes) -> Iterator[FlagByte]:
    """Every byte with flags in the record of a pair (redo-format §3.1, §4.2, §4.3, §5, §6.1)."""
    for at, fields in fields_of(body):
        is_undo = (body[at], body[at + 1]) == (5, 1)
        side, ktb, kdo = ("5.1", 3, 4) if is_undo else ("row", 1, 2)
        yield FlagByte(f"{side} TYP", at + 21)
        if is_undo:
            yield FlagByte("ktudb flg", fields[1][0] + 4)
            yield FlagByte("ktudb flg, high", fields[1][0] + 5)
            yield FlagByte("ktub flg", fields[2][0] + 20)
            yield FlagByte("ktub flg, high", fields[2][0] + 21)
        yield FlagByte(f"{side} KTB op", fields[ktb][0])
        yield FlagByte(f"{side} KTB version", fields[ktb][0] + 1)
        place, size = fields[kdo]
        if body[fields[2][0] + 16] == 10 if is_undo else body[at] == 10:
            yield FlagByte("kdilk code", place) if is_undo else FlagByte("leaf code", place + 1)
            if is_undo:
                yield FlagByte("kdilk flags", place + 2)
            continue
        yield FlagByte(f"{side} KDO op", place + 10)
        yield FlagByte(f"{side} xtype", place + 11)
        for name, offset in KDO_BYTES[body[place + 10] & 0x1F].items():
            yield FlagByte(f"{side} {name}", place + offset)
        operation = body[place + 10] & 0x1F
        for place, size in fields[kdo + 1 :] if is_undo else []:
            if size in (20, 26, 28) and operation not in (OP_QMI, OP_QMD):
                yield FlagByte("supplemental type", place)
                yield FlagByte("supplemental fb", place + 1)
                yield from (FlagByte(f"supplemental {n}", place + n) for n in (13, 16, 17))


def written(redo: LobRedo, statement: str) -> bytes:
    """The record of the statement, in a transaction of its own."""
    redo.begin()
    STATEMENTS[statement](redo)
    body = redo.records[-1].body
    redo.end()
    return body


def test_every_flag_byte_is_looked_at() -> None:
    names = {
        byte.name for statement in STATEMENTS for byte in flag_bytes(written(LobRedo(), statement))
    }
    assert names == {*IGNORED, "kdilk code", "supplemental type"}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_bit_changes_nothing_for_a_known_reason_or_is_reported(
    tmp_path: Path, statement: str
) -> None:
    redo = LobRedo()
    plain = written(redo, statement)
    flips = [(byte, bit) for byte in flag_bytes(plain) for bit in range(8)]
    scns = [redo.records[-2].scn]
    for byte, bit in flips:
        written(redo, statement)
        record = redo.records[-2]
        body = bytearray(record.body)
        body[byte.at] ^= 1 << bit
        redo.records[-2] = replace(record, body=bytes(body))
        scns.append(record.scn)
    own = replace(table(), columns=COLUMNS, key=(1,))
    found = changes_by_scn(redo, tmp_path, own)
    ignored: dict[str, int] = defaultdict(int)
    for (byte, bit), scn in zip(flips, scns[1:], strict=True):
        if found[scn] is None:
            continue
        assert found[scn] == found[scns[0]], f"{byte.name} with bit {1 << bit:#x} is another change"
        ignored[byte.name] |= 1 << bit
    expected = {
        byte.name: IGNORED_IN.get((statement, byte.name), IGNORED.get(byte.name, 0))
        for byte in flag_bytes(plain)
    }
    assert ignored == {name: bits for name, bits in expected.items() if bits}


def changes_by_scn(redo: LobRedo, folder: Path, own: Table) -> dict[int, object]:
    """The changes of each record by its SCN; None if it is reported."""
    plan = build_row_plan((own,), 0)
    batch, _ = walked(redo, folder, own)
    assembler = Assembler(plan, (own,), is_split=False)
    finished = assembler.feed(batch)
    assert finished is not None
    changes: dict[int, object] = dict.fromkeys({record.scn for record in redo.records})
    for one in transactions_of(finished, plan):
        for dml in one.dml:
            known = changes[dml.scn] or ()
            assert isinstance(known, tuple)
            changes[dml.scn] = (*known, (dml.kind, dml.rowid, dml.images))
    for event in batch.events:
        if event.kind == EventKind.UNDECODED:
            assert changes[int(event.scn)] is None
    return changes
