"""Members of fields as text; one that does not fit is left out."""

from __future__ import annotations

import pytest

from olr_pg.redo.dump.members import row_flags, write_members
from olr_pg.redo.format.structure import Member
from olr_pg.redo.format.undo_fields import KTUCM, KTUDB


def test_members_are_written_in_the_order_of_the_file() -> None:
    data = bytes.fromhex("1c00 0000 3c02 0000 0000 0000 0900 0000 04000000".replace(" ", ""))
    assert write_members(data, KTUCM.shown, big=False) == (
        "slt: 0x001c  sqn: 0x0000023c  srt: 0  sta: 9  flg: 0x04"
    )


def test_a_member_beyond_the_field_is_left_out() -> None:
    assert write_members(b"\0\x40\0", KTUDB.shown, big=True) == "siz: 64"


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("i2", "ffff", "-1"),
        ("i4", "7ffeffff", "2147418111"),
        ("xid", "000a000c0000023c", "0x000a.00c.0000023c"),
        ("uba", "00c00123004507ff", "0x00c00123.0045.07"),
        ("rid", "01800083000a", "0x01800083.a"),
        ("op", "0b01", "11.1"),
        ("fb", "2c", "--H-FL-- (0x2c)"),
        ("scn", "ffffffffffffffff", "none"),
    ],
)
def test_each_kind_is_written_in_its_way(kind: str, raw: str, text: str) -> None:
    assert write_members(bytes.fromhex(raw), (Member("m", 0, kind),), big=True) == f"m: {text}"


def test_row_flags_are_letters() -> None:
    assert row_flags(0) == "--------"
    assert row_flags(0xFF) == "KCHDFLPN"
