"""Prints the members of structures as text, each according to its kind.

A member that extends past the end of its field is not printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.format.row_fields import FB_LETTERS, SUPPLEMENTAL_FB_LETTERS
from olr_pg.redo.header import read_scn
from olr_pg.redo.record_view import scn_text
from olr_pg.scalars import pack_xid, unpack_xid

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.redo.format.structure import Member


def row_flags(value: int, letters: str = FB_LETTERS) -> str:
    """Return a row flag byte as text: ``--H-FL--``."""
    return "".join(letter if value & 0x80 >> bit else "-" for bit, letter in enumerate(letters))


def xid_text(xid: int) -> str:
    """Return an XID as text, as in Oracle's dumps: ``0x000a.00c.0000023c``."""
    return "0x{:04x}.{:03x}.{:08x}".format(*unpack_xid(xid))


def write_members(data: bytes, members: tuple[Member, ...], *, big: bool) -> str:
    """Return the members of a field as ``name: value``, one after the other. Members that extend
    past the end of the field are left out.
    """
    parts = []
    for member in members:
        if member.end <= len(data):
            text = _WRITERS[member.kind](data[member.at : member.end], big)
            parts.append(f"{member.name}: {text}")
    return "  ".join(parts)


def _int(data: bytes, big: bool, *, signed: bool = False) -> int:
    return int.from_bytes(data, "big" if big else "little", signed=signed)


def _xid(data: bytes, big: bool) -> str:
    return xid_text(pack_xid(_int(data[:2], big), _int(data[2:4], big), _int(data[4:8], big)))


def _uba(data: bytes, big: bool) -> str:
    return f"0x{_int(data[:4], big):08x}.{_int(data[4:6], big):04x}.{data[6]:02x}"


def _rid(data: bytes, big: bool) -> str:
    return f"0x{_int(data[:4], big):08x}.{_int(data[4:6], big):x}"


def _hex(width: int) -> Callable[[bytes, bool], str]:
    return lambda data, big: f"0x{_int(data, big):0{2 * width}x}"


_WRITERS: Final[dict[str, Callable[[bytes, bool], str]]] = {
    "u1": lambda data, _: str(data[0]),
    "u2": lambda data, big: str(_int(data, big)),
    "u4": lambda data, big: str(_int(data, big)),
    "i2": lambda data, big: str(_int(data, big, signed=True)),
    "i4": lambda data, big: str(_int(data, big, signed=True)),
    "x1": _hex(1),
    "x2": _hex(2),
    "x4": _hex(4),
    "b2": lambda data, _: str(_int(data, big=True)),
    "b4": lambda data, _: f"0x{_int(data, big=True):08x}",
    "xid": _xid,
    "uba": _uba,
    "scn": lambda data, big: scn_text(read_scn(data, 0, big_endian=big)),
    "rid": _rid,
    "op": lambda data, _: f"{data[0]}.{data[1]}",
    "fb": lambda data, _: f"{row_flags(data[0])} (0x{data[0]:02x})",
    "sfb": lambda data, _: f"{row_flags(data[0], SUPPLEMENTAL_FB_LETTERS)} (0x{data[0]:02x})",
    "lob": lambda data, _: data.hex(),
}
