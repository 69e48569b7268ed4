"""Fields of LOB storage and of whole blocks: layer 26, 11.17, 19.1, and rows of LOB indexes."""

from __future__ import annotations

from typing import Final

from olr_pg.redo.format.structure import structure

LOB_ID_SIZE: Final = 10

KDLI: Final = structure(
    "KDLI common", "6.3", 12,
    """
    0   u1     op
    1   x1     type
    2   x1     flg0
    3   x1     flg1
    4   u2     psiz         payload of the block
    6   u2     poff
    8   x4     dba
    """,
)  # fmt: skip
KDLI_DBA: Final = KDLI.at("dba")
KDLI_SIZE: Final = KDLI.size

KDLI_INFO: Final = 0x01
KDLI_LOAD: Final = 0x04
KDLI_ZERO: Final = 0x05
KDLI_FILL: Final = 0x06
KDLI_LMAP: Final = 0x07
KDLI_LMAPX: Final = 0x08
KDLI_SUPLOG: Final = 0x09
KDLI_FPLOAD: Final = 0x0B
KDLI_LHB: Final = 0x0C
KDLI_ALMAP: Final = 0x0D
KDLI_ALMAPX: Final = 0x0E
KDLI_ITREE: Final = 0x0F
KDLI_IMAP: Final = 0x10
KDLI_IMAPX: Final = 0x11
"""The codes of items. The code is the first byte of an item."""

KDLI_ITEMS: Final = {
    KDLI_INFO: structure("info", "6.3", 17, "1 lob lobid\n11 b4 block\n15 b2 slot"),
    KDLI_LOAD: structure(
        "load data", "6.3", 56,
        """
        4   x4     scn_base
        8   x2     scn_wrap
        10  x1     flg0
        11  x1     flg1
        12  lob    lobid
        22  x2     rid
        28  x1     flg2
        29  x1     flg3
        30  u1     pskip
        31  u1     sskip
        52  u2     hwm          bytes of the page, which is the next field
        54  u2     spr
        """,
    ),
    KDLI_ZERO: structure("zero", "6.3", 6, "2 u2 offset\n4 u2 size"),
    KDLI_FILL: structure("fill", "6.3", 8, "2 u2 offset\n4 u2 fsiz\n6 u2 size\n8 (*) bytes"),
    KDLI_LMAP: structure("lmap", "6.3", 8, "4 u4 count\n8 (*) entries"),
    KDLI_LMAPX: structure("lmapx", "6.3", 8, "4 u4 count\n8 (*) entries"),
    KDLI_SUPLOG: structure(
        "suplog", "6.3", 24,
        """
        4   xid    xid
        12  u4     objn         OBJ# of the table
        16  u2     objv
        18  u2     col
        20  x4     flags
        """,
    ),
    KDLI_FPLOAD: structure(
        "fpload", "6.3", 28,
        """
        4   u4     bsz
        8   scn    scn
        16  xid    xid
        24  u4     objd         data object id of the LOB
        """,
    ),
    KDLI_LHB: structure(
        "load lhb", "6.3", 112,
        """
        12  lob    lobid
        64  x4     dba0         KDLI_LHB_BYTES: this to ldba, addresses of the list blocks
        68  x4     dba1
        72  x4     dba2
        76  x4     dba3
        80  x4     ldba
        84  u4     nblk
        """,
    ),
    KDLI_ALMAP: structure("almap", "6.3", 12, "4 u4 nent\n8 u4 sidx\n12 (*) entries"),
    KDLI_ALMAPX: structure("almapx", "6.3", 12, "4 u4 nent\n8 u4 sidx\n12 (*) entries"),
    KDLI_ITREE: structure(
        "load itree", "6.3", 40,
        """
        12  lob    lobid
        30  u2     level
        32  u2     size
        34  u2     hwm
        36  x4     parent
        """,
    ),
    KDLI_IMAP: structure("imap", "6.3", 8, "4 u4 count"),
    KDLI_IMAPX: structure("imapx", "6.3", 8, "4 u4 count"),
}  # fmt: skip
"""The items of 26.x by code, with their minimum sizes."""

KDLI_INFO_LOB: Final = KDLI_ITEMS[KDLI_INFO].at("lobid")
KDLI_INFO_LOB_END: Final = KDLI_ITEMS[KDLI_INFO].end("lobid")
KDLI_LOAD_LOB: Final = KDLI_ITEMS[KDLI_LOAD].at("lobid")
KDLI_LOAD_LOB_END: Final = KDLI_ITEMS[KDLI_LOAD].end("lobid")
"""The offset is the same in the items lhb and itree."""
KDLI_LOAD_HWM: Final = KDLI_ITEMS[KDLI_LOAD].at("hwm")
KDLI_LOAD_SPR: Final = KDLI_ITEMS[KDLI_LOAD].at("spr")
KDLI_LOAD_LEAST: Final = KDLI_ITEMS[KDLI_LOAD].end("hwm")
KDLI_ZERO_OFFSET: Final = KDLI_ITEMS[KDLI_ZERO].at("offset")
KDLI_ZERO_COUNT: Final = KDLI_ITEMS[KDLI_ZERO].at("size")
KDLI_ZERO_SIZE: Final = KDLI_ITEMS[KDLI_ZERO].size
KDLI_FILL_OFFSET: Final = KDLI_ITEMS[KDLI_FILL].at("offset")
KDLI_FILL_COUNT: Final = KDLI_ITEMS[KDLI_FILL].at("size")
KDLI_FILL_BYTES: Final = KDLI_ITEMS[KDLI_FILL].at("bytes")
KDLI_LIST_COUNT: Final = KDLI_ITEMS[KDLI_LMAP].at("count")
"""The offset is the same in the items lmapx, almap and almapx."""
KDLI_LIST_ENTRIES: Final = KDLI_ITEMS[KDLI_LMAP].at("entries")
KDLI_PART_FIRST: Final = KDLI_ITEMS[KDLI_ALMAP].at("sidx")
KDLI_PART_ENTRIES: Final = KDLI_ITEMS[KDLI_ALMAP].at("entries")
KDLI_ENTRY: Final = 8
KDLI_ENTRY_WIDE: Final = 16
"""Bytes of an entry in a list; the lists lmapx and almapx have wide entries."""
KDLI_SUPLOG_XID: Final = KDLI_ITEMS[KDLI_SUPLOG].at("xid")
KDLI_SUPLOG_OBJN: Final = KDLI_ITEMS[KDLI_SUPLOG].at("objn")
KDLI_SUPLOG_SIZE: Final = KDLI_ITEMS[KDLI_SUPLOG].size
KDLI_FPLOAD_XID: Final = KDLI_ITEMS[KDLI_FPLOAD].at("xid")
KDLI_FPLOAD_OBJD: Final = KDLI_ITEMS[KDLI_FPLOAD].at("objd")
KDLI_FPLOAD_SIZE: Final = KDLI_ITEMS[KDLI_FPLOAD].size
KDLI_LHB_LIST: Final = KDLI_ITEMS[KDLI_LHB].at("dba0")
KDLI_LHB_BYTES: Final = KDLI_ITEMS[KDLI_LHB].end("ldba") - KDLI_LHB_LIST
KDLI_LHB_SIZE: Final = KDLI_ITEMS[KDLI_LHB].size

LLB_BEGIN: Final = 1
LLB_END: Final = 3
LLB_ROW: Final = 4
"""The kinds of 11.17. The kind is the first byte of field 2."""
LLB_KINDS: Final = (LLB_BEGIN, LLB_END, LLB_ROW)

LLB: Final = {
    LLB_BEGIN: structure(
        "LLB", "6.4", 40,
        """
        0   x1     op           1, 2 write; 0x66, 0x67 trim; 0x68 erase
        4   xid    xid
        12  lob    lobid
        22  u2     col
        24  u4     offset       of an erasure
        28  u4     csz          page size
        32  u4     size
        36  u4     objn
        """,
    ),
    LLB_END: structure("LLB", "6.4", 36, "0 xid xid\n8 u4 objn\n12 u4 size\n34 u2 col"),
    LLB_ROW: structure("LLB", "6.4", 40, "0 u4 objn\n8 xid xid"),
}  # fmt: skip
"""Field 3 of an 11.17, by kind."""

LLB_BEGIN_XID: Final = LLB[LLB_BEGIN].at("xid")
LLB_BEGIN_LOB: Final = LLB[LLB_BEGIN].at("lobid")
LLB_BEGIN_COL: Final = LLB[LLB_BEGIN].at("col")
LLB_BEGIN_BYTES: Final = LLB[LLB_BEGIN].at("size")
LLB_BEGIN_OBJN: Final = LLB[LLB_BEGIN].at("objn")
LLB_BEGIN_SIZE: Final = LLB[LLB_BEGIN].size
LLB_END_XID: Final = LLB[LLB_END].at("xid")
LLB_END_OBJN: Final = LLB[LLB_END].at("objn")
LLB_END_BYTES: Final = LLB[LLB_END].at("size")
LLB_END_COL: Final = LLB[LLB_END].at("col")
LLB_END_SIZE: Final = LLB[LLB_END].size

LOB_KEY: Final = structure(
    "LOB index key", "6.1", 16,
    """
    0   (x1)   lob_length   LOB_ID_SIZE
    1   (lob)  lobid        begins 00 00 00 01
    11  (x1)   page_length  LOB_KEY_PAGE_BYTES
    12  (b4)   page
    """,
)  # fmt: skip
LOB_KEY_ID: Final = LOB_KEY.at("lobid")
LOB_KEY_PAGE_LENGTH: Final = LOB_KEY.at("page length")
LOB_KEY_PAGE_BYTES: Final = 4
LOB_KEY_PAGE: Final = LOB_KEY.at("page")
LOB_KEY_SIZE: Final = LOB_KEY.size
LOB_ID_BEGIN: Final = 1
"""The first four bytes of every LOB id, as a big-endian number."""
LOB_ROW_SIZE: Final = 32
"""Size of the data after the key in a row of a LOB index."""
LOB_LEAF: Final = structure("LOB index leaf of one row", "6.1", 50, "2 (*) data\n34 (*) key")
"""Field 4 of a 10.8."""
LOB_LEAF_DATA: Final = LOB_LEAF.at("data")
LOB_LEAF_KEY: Final = LOB_LEAF.at("key")
LOB_LEAF_SIZE: Final = LOB_LEAF.size

BLOCK_IMAGE: Final = structure(
    "block image", "6.2", 24,
    """
    0   u1     typ          BLOCK_TABLE, BLOCK_INDEX
    4   u4     objd
    8   scn    csc
    16  u2     itc          ITL entries, in the low byte
    18  x1     flg          BLOCK_ASSM
    20  x4     bdba
    24  (*)    itl
    """,
)  # fmt: skip
"""Field 1 of a 19.1 whose field 2 is BLOCK_DATA: the bytes of a block from its byte 20 on."""
BLOCK_IMAGE_SIZE: Final = BLOCK_IMAGE.size
BLOCK_OBJD: Final = BLOCK_IMAGE.at("objd")
BLOCK_ITC: Final = BLOCK_IMAGE.at("itc")
BLOCK_FLG: Final = BLOCK_IMAGE.at("flg")
BLOCK_ITL: Final = BLOCK_IMAGE.at("itl")
BLOCK_ITL_ENTRY: Final = 24
BLOCK_TABLE: Final = 1
BLOCK_INDEX: Final = 2
BLOCK_ASSM: Final = 0x20
BLOCK_ASSM_BYTES: Final = 8
"""Additional bytes before the data header in blocks with the flag BLOCK_ASSM."""
BLOCK_DATA: Final = 6
"""The type of blocks with transactional data; it is field 2 of a 19.1."""

KDBH: Final = structure(
    "data header", "6.2", 18,
    """
    0   (x1)   flag         KDBH_COMPRESSED
    1   (u1)   ntab         tables; 2 where the block is compressed
    2   (u2)   nrow
    4   (i2)   frre
    6   (u2)   fsbo         end of the row directory
    8   (u2)   fseo
    10  (u2)   avsp
    12  (u2)   tosp
    14  (*)    tables       offset and rows of each
    18  (*)    rows         offsets from here, 16 bits each, behind one table
    """,
)  # fmt: skip
KDBH_COMPRESSED: Final = 0x40
"""Flag of compressed blocks. In such a block, the row directory is in another place."""
KDBH_NTAB: Final = KDBH.at("ntab")
KDBH_NROW: Final = KDBH.at("nrow")
KDBH_FSBO: Final = KDBH.at("fsbo")
KDBH_ROWS: Final = KDBH.at("rows")

LOB_IMAGE: Final = structure(
    "LOB page", "6.2", 36,
    """
    0   u4     objd
    4   lob    lobid
    24  u4     page
    28  x4     pdba
    36  (*)    bytes
    """,
)  # fmt: skip
"""Field 1 of a 19.1 that contains a page of a BASICFILE LOB."""
LOB_IMAGE_ID: Final = LOB_IMAGE.at("lobid")
LOB_IMAGE_PAGE: Final = LOB_IMAGE.at("page")
LOB_IMAGE_BYTES: Final = LOB_IMAGE.at("bytes")
