"""Row vectors that Oracle writes rarely, as redo-format describes them."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import CutFlag, Role, empty_entries
from olr_pg.redo.format.opcodes import CFA, CMP, DRP, IRP, LKR, LMN, ORP, URP
from olr_pg.redo.row_vectors import (
    ENTRIES,
    FULL,
    PACKED,
    SHIFT,
    STATE_SIZE,
    push,
    push_redo_columns,
    push_row,
    push_supplemental,
    push_undo_columns,
    push_updated_columns,
    push_whole_piece,
    supplemental_header,
    supplemental_role,
)
from olr_pg.simulator.fields.cells import BLOB, basic_outside, index_data, index_key
from olr_pg.simulator.fields.redo_format import (
    KTUB_DONE,
    Ktub,
    kdilk,
    ktb_continue,
    ktb_unused,
    ktudb,
)
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    OP_DRP,
    OP_IRP,
    OP_URP,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    ColumnChange,
    KdoBase,
    RowAddress,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
    update_fields,
    update_kdo,
)
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, LOB_INDEX, TABLE_OBJ, LobRedo, snapshot
from tests.redo.chain import clear

if TYPE_CHECKING:
    from pathlib import Path

KEY: Final = b"\xc1\x02"
BASE: Final = KdoBase(BLOCK, BLOCK, 100, 1)
LISTED: Final = 20
"""Columns of an UPDATE, more than a bitmap of two bytes tells of."""
SHORT_KDO: Final = 28
"""Bytes of a URP's KDO with such a bitmap."""

NOT_ENCRYPTED: Final = 0
ENCRYPTED: Final = 0x80
"""Bit of a vector's typ."""
UNDO_HEAD: Final = 0x0001
UNDO_TAIL: Final = 0x0002
"""Bits of ktub.flg."""


# --- 11.5: a NULL bitmap that is too short (redo-format §5.7) ---


def wide_table() -> Table:
    """``APP.DOCS`` with 22 columns: ID and RAWs."""
    columns = [Column("ID", 1, 1, 1, 2, 22, nullable=False)]
    columns += [Column(f"C{at}", at, at, at, 23, 100) for at in range(2, 3 + LISTED)]
    return Table(
        "APP", "DOCS", TABLE_OBJ, TABLE_OBJ, tuple(columns), key_kind=KeyKind.PRIMARY, key=(1,)
    )


def side(redo: LobRedo, op: int, nulls: tuple[int, ...], *, is_short: bool) -> list[bytes]:
    """One side of an UPDATE of C2 to C21; those of `nulls` are NULL, an empty field."""
    numbers = tuple(range(1, 1 + LISTED))
    values = tuple(None if at + 1 in nulls else bytes([op, at]) for at in numbers)
    change = ColumnChange(FB_ROW, 2 + LISTED, numbers, values, 0)
    kdo = update_kdo(redo.redo, BASE, op, change, 0, 1)
    kdo = kdo[:SHORT_KDO] if is_short else kdo
    return [kdo, *update_fields(redo.redo, change)]


@pytest.mark.parametrize("nulls", [(19,), (17,), (16, 17, 18), (3, 16), (21,), (18, 19, 20, 21)])
@pytest.mark.parametrize("short", ["before", "after"])
def test_beyond_a_short_bitmap_an_empty_field_is_null(
    tmp_path: Path, nulls: tuple[int, ...], short: str
) -> None:
    redo = LobRedo()
    redo.begin()
    before, after = (nulls, ()) if short == "before" else ((), nulls)
    undo = side(redo, OP_URP | UNDO_SIDE, before, is_short=short == "before")
    new = side(redo, OP_URP, after, is_short=short == "after")
    logged = redo.supplemental(SUPPLEMENTAL_UPDATE, 0, 2, 2, ((1, KEY),))
    redo.pair([*undo, *logged], new, OP_URP)
    redo.end()
    (change,) = decode(redo, tmp_path, snapshot(wide_table())).changes
    for image, op, absent in (("before", OP_URP | UNDO_SIDE, before), ("after", OP_URP, after)):
        expected: dict[str, str | None] = {
            f"C{at + 1}": bytes([op, at]).hex() for at in range(1, 1 + LISTED)
        }
        expected |= dict.fromkeys((f"C{at}" for at in absent), None)
        assert {name: change[image].get(name, "absent") for name in expected} == expected


# --- 11.22 without a row (redo-format §5.12) ---


def cmp_vector(redo: LobRedo, flags: int) -> None:
    """5.1 with 11.22, whose supplemental header names no block."""
    header = Supplemental(SUPPLEMENTAL_UPDATE, flags, 0, 0, (), RowAddress(0, 0))
    kdo = [BASE.image(redo.redo, CMP | side_of) + bytes(4) for side_of in (UNDO_SIDE, 0)]
    redo.pair([kdo[0], *header.fields(redo.redo)], [kdo[1]], CMP)


@pytest.mark.parametrize("flags", [0, GROUP_FIRST])
def test_a_compression_vector_of_no_row_is_ignored(tmp_path: Path, flags: int) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(KEY, None, None)
    cmp_vector(redo, flags)
    redo.insert_row(b"\xc1\x03", None, None)
    redo.end()
    assert [row["ID"] for row in decode(redo, tmp_path).after] == [1, 2]


# --- the undo of a change in an encrypted tablespace (redo-format §4.2) ---


def part_of_undo(redo: LobRedo, flags: int, typ: int, *payload: bytes) -> tuple[bytes, Ktub]:
    """One 5.1, with its ktub."""
    redo.undo += 1
    ktub = Ktub(TABLE_OBJ, TABLE_OBJ, 4, 0, (11, 1), 0, redo.undo, flags, redo.sequence & 0xFFFF)
    first = ktudb(redo.redo, 100, 100, 0x22, redo.xid, 1, redo.undo)
    fields = [first, ktub.image(redo.redo), *payload]
    return redo.vector((5, 1), fields, cls=18, dba=0x00C00010, typ=typ), ktub


def delete_with_split_undo(redo: LobRedo, tail: int, head: int) -> list[Ktub]:
    """A DELETE whose undo takes two vectors, of these typs."""
    row: tuple[Value, ...] = (KEY, None, None)
    piece = RowPiece(FB_ROW, row)
    kdo = insert_kdo(redo.redo, BASE, OP_IRP | UNDO_SIDE, piece, 0, 1)
    rest, tail_ktub = part_of_undo(redo, UNDO_TAIL, tail, kdo, *column_fields(row))
    redo.emit(rest)
    begin, head_ktub = part_of_undo(redo, UNDO_HEAD, head, ktb_unused(redo.redo))
    deleted = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_DRP, 0)]
    redo.emit(begin, redo.vector((11, OP_DRP), deleted, TABLE_OBJ, dba=BLOCK, typ=head))
    return [head_ktub, tail_ktub]


def test_a_lob_index_row_whose_key_is_in_another_part_of_its_undo_is_a_fault(
    tmp_path: Path,
) -> None:
    index, content = LOB_INDEX[3], bytes(range(200))
    data = index_data(0, len(content), [0x900])
    redo = LobRedo()
    redo.begin()
    redo.long_fields(3, 7, content, [0x900])
    redo.index_insert(3, index_key(7, 0), bytes(32))
    redo.undo += 1
    ktub = Ktub(index, index, 4, 0, (10, 22), 0, redo.undo, UNDO_HEAD, redo.sequence & 0xFFFF)
    undo = [
        *(ktudb(redo.redo, 100, 100, 0x22, redo.xid, 1, redo.undo), ktub.image(redo.redo)),
        *(ktb_unused(redo.redo), kdilk(redo.redo, 0x12, 1, BLOCK, BLOCK)),
    ]
    change = [ktb_continue(redo.redo, bytes(8)), bytes(6), data]
    redo.emit(
        redo.vector((5, 1), undo, cls=18, dba=0x00C00010),
        redo.vector((10, 18), change, index, dba=BLOCK + 9),
    )
    redo.insert(Decimal(1), None, basic_outside(BLOB, 7))
    redo.end()
    assert outcome(redo, tmp_path) == (2060, 0)


def undo_of_parts(redo: LobRedo, ktubs: list[Ktub]) -> None:
    """A 5.6 of each."""
    for ktub in ktubs:
        marker = ktub.image(redo.redo, KTUB_DONE) + bytes(4)
        fields = [marker, redo.redo.pack("HHHH", 0, 0, 2, 0)]
        redo.emit(redo.vector((5, 6), fields, cls=18, dba=0x00C00010))


def test_an_encrypted_change_stops_its_table_even_where_it_was_undone(tmp_path: Path) -> None:
    """Nothing of its undo is in clear, so nothing tells which change a 5.6 undoes."""
    redo = LobRedo()
    redo.begin()
    undo_of_parts(redo, delete_with_split_undo(redo, ENCRYPTED, ENCRYPTED))
    redo.insert_row(b"\xc1\x03", None, None)
    redo.end()
    assert outcome(redo, tmp_path) == (Code.TABLESPACE_ENCRYPTED, 1)


@pytest.mark.parametrize(("head", "code"), [(ENCRYPTED, 2017), (NOT_ENCRYPTED, 2060)])
def test_an_encrypted_change_is_a_fault(tmp_path: Path, head: int, code: int) -> None:
    redo = LobRedo()
    redo.begin()
    delete_with_split_undo(redo, ENCRYPTED, head)
    redo.end()
    assert outcome(redo, tmp_path) == (code, 0)


# --- single kernels, on fields laid out as redo-format §4.3, §5.2, §5.4 and §5.7 say ---

FB_N, FB_P = 0x01, 0x02
"""Row flags: N, the last value goes on in the next piece; P, the first came from the one before."""
Pushed = tuple[int, list[tuple[int, int, int, bytes | None]], int, int]


def pushed(
    kernel: Any, at: int, fields: list[bytes], *arguments: Any, room: int = 20, hidden: int = 0,
    shift: int = 0,
) -> Pushed:  # fmt: skip
    """(what it returns, (role, part, segcol, bytes) of each value, SHIFT, PACKED).

    The fields are those of a vector from `at` on; those before are of no use, and the last
    `hidden` ones another vector's. `shift` is another one's, too.
    """
    starts = np.cumsum([7, *map(len, fields)])
    payload = np.frombuffer(b"\xee" * 7 + b"".join(fields), np.uint8)
    offset = np.array([0] * at + starts[:-1].tolist())
    length = np.array([99] * at + [len(one) for one in fields])
    entries, state = empty_entries(room), np.zeros(STATE_SIZE, np.int64)
    state[SHIFT] = shift
    clear(entries)
    found = interpreted(kernel)(
        payload, offset, length, at + len(fields) - 1 - hidden, *arguments, entries, state
    )
    assert state[FULL] == 0
    assert (entries.length >= -1).all()
    values = []
    for one in entries[: state[ENTRIES]]:
        raw = None if one.length < 0 else payload[one.offset :][: one.length].tobytes()
        values.append((int(one.role), int(one.part), int(one.segcol), raw))
    return found, values, int(state[SHIFT]), int(state[PACKED])


def piece_kdo(
    order: str, count: int, nulls: bytes, *, fb: int = 0x2C, row: int = 99, op: int = 2,
    table_number: int = 0,
) -> bytes:  # fmt: skip
    """KDO of an IRP or ORP (redo-format §5.4): fb @16, cc @18, length of the row @40, table @44,
    NULLs @45.
    """
    kdo = bytearray(45) + nulls + bytes(3)
    kdo[10], kdo[16], kdo[18], kdo[44] = op, fb, count, table_number
    struct.pack_into(order + "H", kdo, 40, row)
    return bytes(kdo)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_columns_of_a_piece(order: str) -> None:
    def of(*fields: bytes, at: int = 4) -> Pushed:
        return pushed(push_whole_piece, at, list(fields), at, order == ">", Role.BEFORE)

    ten = [b"%d" % at for at in range(10)]
    nulls = b"\x04\x02"  # the third and the tenth; each may have an empty field or none
    kdo = piece_kdo(order, 10, nulls, fb=FB_N | FB_P)
    values: list[bytes | None] = [*ten]
    values[2] = values[9] = None
    expected = [
        (Role.BEFORE, {0: CutFlag.FROM_PREVIOUS, 9: CutFlag.TO_NEXT}.get(at, 0), at, value)
        for at, value in enumerate(values)
    ]
    assert of(kdo, *ten[:2], b"", *ten[3:9], b"") == (14, expected, 0, 0)
    assert of(kdo, *ten[:2], *ten[3:9], at=2) == (11, expected, 0, 0)
    assert of(kdo, *ten[:2], *ten[3:8])[0] == -1
    assert of(kdo[:44], *ten)[0] == -1
    one = piece_kdo(order, 1, b"\0", fb=FB_N | FB_P)
    assert of(one, b"x")[1] == [(Role.BEFORE, CutFlag.FROM_PREVIOUS | CutFlag.TO_NEXT, 0, b"x")]
    assert of(piece_kdo(order, 2, b"\0"), b"x", b"y")[1] == [
        (Role.BEFORE, 0, 0, b"x"), (Role.BEFORE, 0, 1, b"y"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "table_number", "packed"), [(3, 0, 1), (0, 0, 1), (1, 0, 0), (1, 1, 1)]
)
def test_a_field_as_long_as_the_row_is_a_compressed_one(
    count: int, table_number: int, packed: int
) -> None:
    """redo-format §5.4; of one column it may be its value, where the block's first table holds
    rows.
    """
    kdo = piece_kdo("<", count, b"\0", row=300, table_number=table_number)
    fields = [kdo, b"", b"r" * 300, b"supplemental"]
    found = pushed(push_whole_piece, 2, fields, 2, False, Role.AFTER)
    assert found[0] == 5
    assert found[3] == packed
    assert len(found[1]) == 1 - packed
    assert pushed(push_whole_piece, 2, fields, 2, False, Role.AFTER, hidden=1) == found
    assert pushed(push_whole_piece, 2, [*fields[:2], b"r" * 299], 2, False, Role.AFTER)[3] == 0


def update(
    order: str, width: int, count: int, nulls: bytes, fb: int = 0x2C, kind: int = 1
) -> bytes:
    """KDO of a URP (redo-format §5.7): fb @16, ncol @22, nnew @23, NULLs @26."""
    kdo = bytearray(26) + nulls + bytes(2)
    kdo[10], kdo[11], kdo[16], kdo[22], kdo[23] = 5, kind, fb, width, count
    return bytes(kdo)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_columns_of_an_update(order: str) -> None:
    def of(kdo: bytes, numbers: list[int], *values: bytes) -> Pushed:
        listed = struct.pack(order + f"{len(numbers)}H", *numbers)
        return pushed(push_updated_columns, 2, [kdo, listed, *values], 2, order == ">", Role.AFTER)

    both, role = FB_N | FB_P, Role.AFTER
    assert of(update(order, 300 & 0xFF, 2, b"\0"), [45, 0x102], b"a", b"b") == (
        6, [(role, 0, 0, b"a"), (role, 0, 0x102 - 45, b"b")], 45, 0,
    )  # fmt: skip
    # Descending, with a NULL that has a field of its own, and the ends of a row that is cut.
    assert of(update(order, 5, 3, b"\2", both), [4, 2, 0], b"a", b"", b"c") == (
        7, [(role, CutFlag.TO_NEXT, 0, b"a"), (role, 0, -2, None),
            (role, CutFlag.FROM_PREVIOUS, -4, b"c")], 4, 0,
    )  # fmt: skip
    assert of(update(order, 5, 3, b"\2", both), [4, 2, 0], b"a", b"cc") == (
        6, [(role, CutFlag.TO_NEXT, 0, b"a"), (role, 0, -2, None),
            (role, CutFlag.FROM_PREVIOUS, -4, b"cc")], 4, 0,
    )  # fmt: skip
    # What is listed beyond nnew became NULL with the end of the piece.
    assert of(update(order, 2, 1, b"\0"), [1, 2, 3], b"a")[1] == [
        (role, 0, 0, b"a"), (role, 0, 1, None), (role, 0, 2, None),
    ]  # fmt: skip
    assert of(update(order, 2, 0, b""), [7], b"") == (5, [(role, 0, 0, None)], 7, 0)
    assert of(update(order, 2, 0, b""), [7]) == (4, [(role, 0, 0, None)], 7, 0)
    assert of(update(order, 5, 3, b"\0"), [1, 2], b"a", b"b")[0] == -1
    assert of(update(order, 5, 2, b"\0"), [1, 2], b"a")[0] == -1
    assert of(update(order, 5, 2, b"\0")[:25], [1, 2], b"a", b"b")[0] == -1
    # A column vector: the first number, then all values with their lengths in one field.
    long = b"\xfe" + struct.pack(order + "H", 300) + b"l" * 300
    assert of(update(order, 9, 3, b"\0", kind=0x81), [6], b"\2ab\xff" + long) == (
        5, [(role, 0, 0, b"ab"), (role, 0, 1, None), (role, 0, 2, b"l" * 300)], 6, 0,
    )  # fmt: skip
    for cut in (b"\2ab\xff" + long[:-1], b"\2ab\xff", b"\2ab\xff" + long[:2]):
        assert of(update(order, 9, 3, b"\0", kind=0x81), [6], cut)[0] == -1
    assert of(update(order, 9, 3, b"\0", kind=0x81), [6])[0] == -1


def test_an_update_of_no_column_has_no_list() -> None:
    found = pushed(push_updated_columns, 2, [update("<", 5, 0, b"")], 2, False, Role.AFTER)
    assert found == (3, [], 0, 0)
    assert (
        pushed(push_updated_columns, 2, [update("<", 5, 1, b"\0")], 2, False, Role.AFTER)[0] == -1
    )


@pytest.mark.parametrize("size", [6, 8, 7])
def test_the_scn_of_a_row_is_behind_its_old_columns(size: int) -> None:
    """redo-format §5.4: with 0x40 in the KDO's op, in the 5.1 only; 6 bytes before 12.2, then 8."""
    scn = bytes([1] * size)
    kdo = piece_kdo("<", 1, b"\0", op=0x22 | 0x40)
    behind = 6 if size == 7 else 7
    assert pushed(push_undo_columns, 4, [kdo, b"x", scn], False)[0] == behind
    assert pushed(push_undo_columns, 4, [kdo, b"x", b"", scn], False)[0] == behind + 1
    assert pushed(push_undo_columns, 4, [kdo, b"x"], False)[0] == 6
    assert pushed(push_undo_columns, 4, [piece_kdo("<", 1, b"\0"), b"x", scn], False)[0] == 6
    assert pushed(push_undo_columns, 4, [bytes(10) + b"\x50" + bytes(5), scn], False)[0] == 5
    assert pushed(push_undo_columns, 4, [bytes(10)], False)[0] == -1


def test_columns_of_a_whole_piece_are_not_shifted_by_the_update_before_it() -> None:
    kdo = piece_kdo("<", 1, b"\0", op=0x22)
    assert pushed(push_undo_columns, 4, [kdo, b"x"], False, shift=9)[2] == 0
    for op in (IRP, ORP, DRP):
        assert pushed(push_redo_columns, 2, [kdo, b"x"], op, False, shift=9)[2] == 0


@pytest.mark.parametrize(
    ("lengths", "field"),
    [([0, 0, 20], 7), ([26], 5), ([28], 5), ([0, 24, 28], 0), ([0], 0), ([], 0), ([27], 0)],
)
def test_the_supplemental_header_is_the_next_field_that_is_not_empty(
    lengths: list[int], field: int
) -> None:
    """redo-format §4.3: 20, 26 or 28 bytes; what lies behind the vector's fields is none of it."""
    length = np.array([28] * 5 + lengths + [28])
    assert interpreted(supplemental_header)(length, 5, 4 + len(lengths)) == field


def test_what_supplemental_values_are_beside() -> None:
    """redo-format §7.6."""
    before, after = Role.BEFORE_SUPPLEMENTAL, Role.AFTER_SUPPLEMENTAL
    expected = {IRP: after, LKR: after, DRP: before, CFA: before}
    expected |= dict.fromkeys((URP, ORP, LMN, CMP), before | after)
    assert {op: interpreted(supplemental_role)(op) for op in expected} == expected


@pytest.mark.parametrize("order", ["<", ">"])
def test_supplemental_values(order: str) -> None:
    """redo-format §4.3: cc @2 of the header; then numbers, lengths with 0xFFFF for NULL, and the
    values.
    """

    def of(
        fb: int, numbers: list[int], sizes: list[int], *values: bytes, hidden: int = 0
    ) -> Pushed:
        header = struct.pack(order + "BBH16x", 4, fb, len(numbers))
        lists = [struct.pack(order + f"{len(one)}H", *one) for one in (numbers, sizes)]
        fields = [header, *lists, *values] if numbers else [header]
        return pushed(push_supplemental, 6, fields, 6, DRP, order == ">", hidden=hidden)

    role = Role.BEFORE_SUPPLEMENTAL
    assert of(FB_N | FB_P, [3, 300, 5], [2, 0xFFFF, 1], b"ab", b"", b"c") == (
        12, [(role, CutFlag.FROM_PREVIOUS, 3, b"ab"), (role, 0, 300, None),
             (role, CutFlag.TO_NEXT, 5, b"c")], 0, 0,
    )  # fmt: skip
    assert of(0x0C, [3, 4], [0, 1], b"", b"c")[1] == [(role, 0, 3, None), (role, 0, 4, b"c")]
    assert of(0x0C, [], []) == (7, [], 0, 0)
    assert of(0x0C, [3, 4], [1], b"a", b"b")[0] == -1
    assert of(0x0C, [3, 4], [1, 1], b"a")[0] == -1
    assert of(0x0C, [3], [2], b"a")[0] == -1
    for hidden in (1, 2, 3):
        assert of(0x0C, [3], [1], b"a", hidden=hidden)[0] == -1
        assert of(0x0C, [3], [0xFFFF], b"", hidden=hidden)[0] == (-1 if hidden > 1 else 10)


def test_values_without_room_are_told() -> None:
    entries, state = empty_entries(1), np.zeros(STATE_SIZE, np.int64)
    data = np.frombuffer(b"\1a\1b\1c", np.uint8)
    assert interpreted(push_row)(data, 0, 4, 2, False, Role.AFTER, 1, entries, state) == 4
    assert (state[FULL], state[ENTRIES]) == (1, 0)
    state[FULL] = 0
    assert interpreted(push_row)(data, 2, 6, 1, False, Role.AFTER, 5, entries, state) == 4
    assert (state[FULL], state[ENTRIES]) == (0, 1)
    assert (entries.segcol[0], entries.offset[0], entries.length[0]) == (5, 3, 1)
    interpreted(push)(entries, state, Role.AFTER, 0, 1, 0, 1)
    assert (state[FULL], state[ENTRIES]) == (1, 1)
