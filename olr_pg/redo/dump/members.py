"""Members of known fields, for printing: name, offset, how to write it.

Facts: redo-format §4–§8. A member that does not fit its field is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.redo.header import read_scn
from olr_pg.redo.record_view import scn_text
from olr_pg.scalars import pack_xid, unpack_xid

if TYPE_CHECKING:
    from collections.abc import Callable


class Member(NamedTuple):
    """A member of a field: its name, where it begins, how it is written."""

    name: str
    at: int
    kind: str


def _members(text: str) -> tuple[Member, ...]:
    parts = (part.rsplit(":", 2) for part in text.split())
    return tuple(Member(name.replace("_", " "), int(at), kind) for name, at, kind in parts)


KTUDB: Final = _members("siz:0:u2 spc:2:u2 flg:4:x2 xid:8:xid seq:16:x2 rec:18:x1")
KTUB: Final = _members(
    "objn:0:u4 objd:4:u4 tsn:8:u4 prev_dba:12:x4 opc:16:op slt:18:x1 rci:19:x1 flg:20:x2 wrp:22:x2"
)
KTUB_LONG: Final = _members(
    "flg2:24:x2 buext:26:i2 prev_ctl_uba:28:uba prev_ctl_max_cmt_scn:36:scn"
    " prev_tx_cmt_scn:44:scn txn_start_scn:56:scn prev_brb:64:x4 prev_bcl:68:x4 logon_user:72:u4"
)
KTUDH: Final = _members("slt:0:x2 sqn:4:x4 uba:8:uba flg:16:x2 siz:18:u2 fbi:20:u1 pxid:24:xid")
KTEOP: Final = _members("ext:4:u4 ext_size:12:u4 highwater:16:u4 offset:24:u4")
KTUCM: Final = _members("slt:0:x2 sqn:4:x4 srt:8:u2 sta:12:u4 flg:16:x1")
KTUCF: Final = _members("uba:0:uba ext:8:u2 spc:10:u2 fbi:12:u1")
KTUXVOFF: Final = _members("undo_offset:0:x2 flg:4:x2")
KDO: Final = _members("bdba:0:x4 hdba:4:x4 maxfr:8:u2 itli:12:u1 ispac:13:u1")
KDO_PIECE: Final = _members(
    "fb:16:fb lb:17:x1 cc:18:u1 cki:19:u1 hrid:20:rid nrid:28:rid size/delt:40:u2 slot:42:x2"
    " tabn:44:u1"
)
KDO_DELETE: Final = _members("slot:16:x2 tabn:18:u1")
KDO_LOCK: Final = _members("slot:16:x2 tabn:18:u1 to:19:x1")
KDO_UPDATE: Final = _members(
    "fb:16:fb lock:17:x1 ckix:18:u1 tabn:19:u1 slot:20:x2 ncol:22:u1 nnew:23:u1 size:24:i2"
)
KDO_FORWARD: Final = _members("nrid:16:rid slot:24:x2 flag:26:x1 tabn:27:u1 lock:28:x1")
KDO_KEY_LINKS: Final = _members("flag:28:x1 lock:29:x1 slot:30:x1")
KDO_MULTI: Final = _members("tabn:16:u1 lock:17:x1 nrow:18:u1")
KDO_COLUMN: Final = _members("slot:16:x2 tabn:18:u1 rel:19:u1")
SUPPLEMENTAL: Final = _members(
    "type:0:x1 fb:1:sfb cc:2:u2 objv:4:u2 before:6:u2 after:8:u2 flags:13:x1 opt:17:x1 bdba:20:x4"
    " slot:24:x2 tabn:26:x1"
)
INDEX: Final = _members("itl:0:u1 code:1:x1 sno:2:u2 row_size:4:u2 count:8:u2")
INDEX_COLUMNS: Final = _members(
    "itl:0:u1 code:1:x1 sno:2:u2 row_size:4:u2 flag:6:x1 ncol:7:u1 nnew:8:u1 size:10:i2 nulls:12:x1"
)
KDXLN: Final = _members("itl:0:u1 nco:1:u1 dsz:2:u1 col:3:u1 flg:4:x1 nxt:8:x4 prv:12:x4")
KDILK: Final = _members("code:0:x1 itl:1:u1 flags:2:x1 indexid:4:x4 block:8:x4 sdc:12:i4")
KDLI: Final = _members("op:0:u1 type:1:x1 flg0:2:x1 flg1:3:x1 psiz:4:u2 poff:6:u2 dba:8:x4")
KDLI_PARTS: Final = {
    0x01: ("info", _members("lobid:1:lob block:11:b4 slot:15:b2")),
    0x04: (
        "load data",
        _members(
            "scn_base:4:x4 scn_wrap:8:x2 flg0:10:x1 flg1:11:x1 lobid:12:lob rid:22:x2 flg2:28:x1"
            " flg3:29:x1 pskip:30:u1 sskip:31:u1 hwm:52:u2 spr:54:u2"
        ),
    ),
    0x05: ("zero", _members("offset:2:u2 size:4:u2")),
    0x06: ("fill", _members("offset:2:u2 fsiz:4:u2 size:6:u2")),
    0x07: ("lmap", _members("count:4:u4")),
    0x08: ("lmapx", _members("count:4:u4")),
    0x09: ("suplog", _members("xid:4:xid objn:12:u4 objv:16:u2 col:18:u2 flags:20:x4")),
    0x0B: ("fpload", _members("bsz:4:u4 scn:8:scn xid:16:xid objd:24:u4")),
    0x0C: (
        "load lhb",
        _members("lobid:12:lob dba0:64:x4 dba1:68:x4 dba2:72:x4 dba3:76:x4 ldba:80:x4 nblk:84:u4"),
    ),
    0x0D: ("almap", _members("nent:4:u4 sidx:8:u4")),
    0x0E: ("almapx", _members("nent:4:u4 sidx:8:u4")),
    0x0F: ("load itree", _members("lobid:12:lob level:30:u2 size:32:u2 hwm:34:u2 parent:36:x4")),
    0x10: ("imap", _members("count:4:u4")),
    0x11: ("imapx", _members("count:4:u4")),
}
LLB: Final = {
    1: _members("op:0:x1 xid:4:xid lobid:12:lob col:22:u2 offset:24:u4 csz:28:u4 size:32:u4"
                " objn:36:u4"),
    3: _members("xid:0:xid objn:8:u4 size:12:u4 col:34:u2"),
    4: _members("objn:0:u4 xid:8:xid"),
}  # fmt: skip
DDL: Final = _members("magic:0:u4 xid:4:xid cmd:12:u2 kind:16:u2 seq:18:u2 cnt:20:u2")
MARKER: Final = _members("magic:0:u4 xid:4:xid m1:12:x2 m2:14:x2")
DIRECT_XID: Final = _members("xid:8:xid")
BLOCK_IMAGE: Final = _members("typ:0:u1 objd:4:u4 csc:8:scn itc:16:u1 flg:18:x1 bdba:20:x4")
LOB_IMAGE: Final = _members("objd:0:u4 lobid:4:lob page:24:u4 pdba:28:x4")
SESSION_OLD: Final = _members("session_number:0:u2 serial_number:2:u2")
SESSION: Final = _members("session_number:4:u4 serial_number:2:u2")
TRAN_FLAGS: Final = _members("flags:0:x2 aux:4:x2")

_ROW_FLAGS: Final = "KCHDFLPN"


def row_flags(value: int, letters: str = _ROW_FLAGS) -> str:
    """Write a row flag byte as ``--H-FL--``."""
    return "".join(letter if value & 0x80 >> bit else "-" for bit, letter in enumerate(letters))


def xid_text(xid: int) -> str:
    """``0x000a.00c.0000023c``."""
    return "0x{:04x}.{:03x}.{:08x}".format(*unpack_xid(xid))


def write_members(data: bytes, members: tuple[Member, ...], *, big: bool) -> str:
    """Write the members of a field that fit into it, as ``name: value`` one behind the other."""
    parts = []
    for name, at, kind in members:
        width = _WIDTHS[kind]
        if at + width <= len(data):
            parts.append(f"{name}: {_WRITERS[kind](data[at : at + width], big)}")
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


_WIDTHS: Final = {
    "u1": 1, "u2": 2, "u4": 4, "i2": 2, "i4": 4, "x1": 1, "x2": 2, "x4": 4, "b2": 2, "b4": 4,
    "xid": 8, "uba": 8, "scn": 8, "rid": 6, "op": 2, "fb": 1, "sfb": 1, "lob": 10,
}  # fmt: skip
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
    "sfb": lambda data, _: f"{row_flags(data[0], 'KCxDFLPN')} (0x{data[0]:02x})",
    "lob": lambda data, _: data.hex(),
}
