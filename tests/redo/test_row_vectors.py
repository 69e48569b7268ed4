"""Row vectors that Oracle writes rarely, as redo-format describes them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.redo.format.opcodes import CMP
from olr_pg.simulator.fields.lob_layout import BLOB, basic_outside, index_data, index_key
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    OP_DRP,
    OP_IRP,
    OP_URP,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    Address,
    ColumnChange,
    KdoBase,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.fields.vector_fields import (
    KTUB_DONE,
    Ktub,
    kdilk,
    ktb_continue,
    ktb_unused,
    ktudb,
)
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, LOB_INDEX, TABLE_OBJ, LobRedo, snapshot

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
    header = Supplemental(SUPPLEMENTAL_UPDATE, flags, 0, 0, (), Address(0, 0))
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


def test_an_encrypted_change_that_was_undone_does_no_harm(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    undo_of_parts(redo, delete_with_split_undo(redo, ENCRYPTED, ENCRYPTED))
    redo.insert_row(b"\xc1\x03", None, None)
    redo.end()
    assert outcome(redo, tmp_path) == (None, 1)


@pytest.mark.parametrize(("head", "code"), [(ENCRYPTED, 2011), (NOT_ENCRYPTED, 2060)])
def test_an_encrypted_change_is_a_fault(tmp_path: Path, head: int, code: int) -> None:
    redo = LobRedo()
    redo.begin()
    delete_with_split_undo(redo, ENCRYPTED, head)
    redo.end()
    assert outcome(redo, tmp_path) == (code, 0)
