"""The headers in a log: of the file, its blocks, its redo records and their change vectors.

The numbers have the byte order of the file. The layer and the code of a vector are single bytes.

The module also has the versions of the redo format, and the differences between them (`layout_of`).
Facts: redo-format §0.4, checked on real logs of 19c and 23ai.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from olr_pg.redo.format.structure import structure

BLOCK_SIZES: Final = (512, 1024, 4096)
FIRST_DATA_BLOCK: Final = 2

FILE_HEADER: Final = structure(
    "block 0", "1.2", 32,
    """
    0   (u1)   kind         0, where redo blocks have 1
    1   (x1)   type         0x22, or 0x82 for blocks of 4096 bytes
    20  (u4)   block_size
    24  (u4)   blocks       after this one
    28  (x4)   magic        7D 7C 7B 7A little endian, 7A 7B 7C 7D big endian
    """,
)  # fmt: skip
FILE_BLOCK_SIZE: Final = FILE_HEADER.at("block size")
FILE_MAGIC: Final = FILE_HEADER.at("magic")

BLOCK: Final = structure(
    "block header", "1.3", 16,
    """
    0   (u1)   kind         1; 0 here and in the type where nothing was written
    1   (x1)   type         0x22, or 0x82 for blocks of 4096 bytes
    4   (u4)   number
    8   (u4)   sequence     of the log
    12  (x2)   first        bits 0–14: offset of the first record that begins here
    14  (x2)   checksum     the XOR of all 16-bit words is 0
    """,
)  # fmt: skip
BLOCK_HEADER: Final = BLOCK.size
"""Number of bytes of the header of every block."""
BLOCK_LARGE: Final = 4096
BLOCK_TYPE: Final = 0x22
BLOCK_TYPE_LARGE: Final = 0x82
BLOCK_TYPES: Final = {512: BLOCK_TYPE, 1024: BLOCK_TYPE, BLOCK_LARGE: BLOCK_TYPE_LARGE}
"""The type byte of a block, by the block size."""
BLOCK_NUMBER: Final = BLOCK.at("number")
BLOCK_SEQUENCE: Final = BLOCK.at("sequence")
BLOCK_FIRST: Final = BLOCK.at("first")
BLOCK_FIRST_BITS: Final = 0x7FFF

LOG_HEADER: Final = structure(
    "block 1", "1.4", 304,
    """
    20  (x4)   compat       COMPATIBLE; 0 where the header is not written yet
    24  (u4)   dbid
    28  (*)    db_name      DB_NAME_SIZE bytes, NUL padded
    52  (u4)   activation   id, another after RESETLOGS and failover
    156 (u4)   nab          blocks in use, 0 and 1 among them; all FF while current
    160 (u4)   resetlogs_id
    164 (scn)  resetlogs_scn
    176 (u2)   thread
    180 (scn)  first_scn
    188 (u4)   first_time
    192 (scn)  next_scn     exclusive; all FF while current
    200 (u4)   next_time
    """,
)  # fmt: skip

DB_NAME_SIZE: Final = 8
NAB_OPEN: Final = 0xFFFFFFFF
"""The value of the number of used blocks while the log is being written."""

RECORD: Final = structure(
    "redo record", "2.2", 24,
    """
    0   (u4)   length       with this header; 0 where the block has no more
    4   (x1)   vld          VLD_VALID, VLD_LWN
    6   (u2)   scn_wrap     SCN bits 32–47
    8   (u4)   scn_base     SCN bits 0–31
    12  (u2)   subscn
    16  (u4)   con_uid      from 12.1
    """,
)  # fmt: skip
RECORD_HEADER: Final = RECORD.size
RECORD_VLD: Final = RECORD.at("vld")
RECORD_SCN_WRAP: Final = RECORD.at("scn wrap")
RECORD_SCN_BASE: Final = RECORD.at("scn base")
RECORD_SUBSCN: Final = RECORD.at("subscn")
RECORD_CON_UID: Final = RECORD.at("con uid")

VLD_VALID: Final = 0x01
VLD_LWN: Final = 0x04
"""Bits of VLD: VLD_VALID marks a record whose vectors are valid; VLD_LWN marks the first record of
a chunk, which has the long header.
"""

LWN: Final = structure(
    "LWN header", "2.2", 68,
    """
    24  (u2)   chunk        number of the chunk, from 0
    26  (u2)   nst          number of chunks
    28  (u4)   blocks       of this chunk
    32  (u4)   lwn_blocks   of all its chunks
    40  (scn)  scn          at most that of each record
    56  (scn)  next_scn     of the next LWN, mostly
    64  (u4)   time         of each record
    """,
)  # fmt: skip
"""The header of the first record of a chunk, after `RECORD`; offsets count from the record's
beginning.
"""

LWN_RECORD_HEADER: Final = LWN.size
LWN_CHUNK: Final = LWN.at("chunk")
LWN_NST: Final = LWN.at("nst")
LWN_BLOCKS: Final = LWN.at("blocks")
LWN_SCN: Final = LWN.at("scn")
LWN_TIME: Final = LWN.at("time")

VECTOR: Final = structure(
    "change vector", "3.1", 24,
    """
    0   (u1)   layer
    1   (u1)   code
    2   (u2)   cls          class of the block; of undo segments 15 + 2·usn and 16 + 2·usn
    4   (u2)   afn          absolute file number
    6   (u2)   obj_high     data object id, bits 16–31
    8   (x4)   dba          block address
    12  (scn)  scn          of the block before the change
    20  (u1)   seq          of the block before the change
    21  (x1)   typ          VECTOR_ENCRYPTED and what kind of change
    22  (u2)   obj_low      data object id, bits 0–15
    """,
)  # fmt: skip
VECTOR_CODE: Final = VECTOR.at("code")
VECTOR_CLS: Final = VECTOR.at("cls")
VECTOR_AFN: Final = VECTOR.at("afn")
VECTOR_OBJ_HIGH: Final = VECTOR.at("obj high")
VECTOR_DBA: Final = VECTOR.at("dba")
VECTOR_SCN: Final = VECTOR.at("scn")
VECTOR_SEQ: Final = VECTOR.at("seq")
VECTOR_TYP: Final = VECTOR.at("typ")
VECTOR_OBJ_LOW: Final = VECTOR.at("obj low")
VECTOR_ENCRYPTED: Final = 0x80
"""Bit of the type: the fields are encrypted with the tablespace's key."""
VECTOR_KIND: Final = 0x7F
"""The bits of the type that contain the kind of vector."""
VECTOR_TYP_UNKNOWN: Final = 0x70
"""The bits of the type whose meaning is unknown. They are 0 in all real vectors and dumps."""
VECTOR_NO_BLOCK: Final = 6
"""The kind of vectors that change no block. The object number in their header has no meaning."""
UNDO_HEADER_CLS: Final = 15
"""The class of undo segment 0's header block. Undo blocks of segment 0 have class 16; header and
undo blocks of segment 1 have classes 17 and 18, and so on.
"""
NO_OBJECT: Final = 0xFFFFFFFF
"""The value of the data object id in vectors that change undo blocks."""

VECTOR_LONG: Final = structure(
    "change vector, from 12.1", "3.1", 32,
    """
    24  (u2)   con_id       container: 0 none, 1 root, 2 seed, from 3 on PDBs
    28  (x2)   flg
    """,
)  # fmt: skip
"""The part of the header after `VECTOR`, since 12.1; offsets count from the vector's beginning."""

VECTOR_LONG_HEADER: Final = VECTOR_LONG.size
VECTOR_CON_ID: Final = VECTOR_LONG.at("con id")
VECTOR_FLG: Final = VECTOR_LONG.at("flg")
ROOT: Final = 1
"""The root container, which contains all undo if undo is shared (redo-format §3.1)."""


VERSION_12_1: Final = 0x0C100000
VERSION_12_2: Final = 0x0C200000
VERSION_19: Final = 0x13000000

_VERSIONS: Final = (
    (0x0B200000, 0x0B20FFFF),
    (0x0C100000, 0x0C1FFFFF),
    (0x0C200000, 0x0C2FFFFF),
    (0x12000000, 0x12FFFFFF),
    (0x13000000, 0x13FFFFFF),
    (0x15000000, 0x15FFFFFF),
    (0x17000000, 0x17FFFFFF),
)


class RedoLayout(NamedTuple):
    """The properties of a log file that kernels must know to read its vectors; determined once per
    file.

    Attributes:
        big_endian: byte order of the platform that wrote the log.
        vector_header: number of bytes of a change vector's header: 24 in 11.2, otherwise 32.
        row_scn: number of bytes of the row SCN in multi-row vectors: 6 before 12.2, otherwise 8.
        long_session: whether 5.19 and 5.20 have a 32-bit session number at offset 4, as since 19c.
    """

    big_endian: bool
    vector_header: int
    row_scn: int
    long_session: bool


def is_known_version(compat: int) -> bool:
    """Return whether redo of this COMPATIBLE value is supported (redo-format §0.4)."""
    return any(low <= compat <= high for low, high in _VERSIONS)


def layout_of(compat: int, *, big_endian: bool) -> RedoLayout:
    """Return the layout of redo that was written with COMPATIBLE `compat`."""
    return RedoLayout(
        big_endian,
        VECTOR_LONG.size if compat >= VERSION_12_1 else VECTOR.size,
        8 if compat >= VERSION_12_2 else 6,
        compat >= VERSION_19,
    )


def format_version(compat: int) -> str:
    """Return the version as text, such as ``19.0.0.0`` (redo-format §0.4)."""
    if compat >> 24 >= 18:
        parts = (compat >> 24, compat >> 16 & 255, compat >> 8 & 255, compat & 255)
    else:
        parts = (compat >> 24, compat >> 20 & 15, compat >> 16 & 15, compat >> 8 & 255)
    return ".".join(map(str, parts))
