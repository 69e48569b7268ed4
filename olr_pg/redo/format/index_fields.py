"""Fields of layer 10 and of its undo (10.22): leaves of indexes and index-organised tables."""

from __future__ import annotations

from typing import Final

from olr_pg.redo.format.structure import structure

LEAF: Final = structure(
    "index redo", "6.1", 6,
    """
    0   u1     itl
    1   x1     code         LEAF_ARRAY; 0x10 with data after the key
    2   u2     sno          slot
    4   u2     row_size
    """,
)  # fmt: skip
LEAF_CODE: Final = LEAF.at("code")
LEAF_SLOT: Final = LEAF.at("sno")
LEAF_LEAST: Final = LEAF.end("sno")
LEAF_ARRAY: Final = 0x20
LEAF_CODE_UNKNOWN: Final = 0xFF & ~(LEAF_ARRAY | 0x10)
"""The bits of code whose meaning is unknown. They are 0 in all real vectors."""

LEAF_ARRAY_REDO: Final = structure("index redo", "6.1", 10, "8 u2 count")
"""The part after `LEAF` if the vector has an array of rows; offsets count from the beginning of
`LEAF`.
"""

LEAF_COLUMNS_REDO: Final = structure(
    "index redo, columns", "6.1", 13,
    """
    0   u1     itl
    1   x1     code
    2   u2     sno
    4   u2     row_size
    6   x1     flag
    7   u1     ncol         columns after the key in the changed row
    8   u1     nnew         columns given here
    10  i2     size
    12  x1     nulls
    """,
)  # fmt: skip
"""Field 2 of a 10.35."""

KDXLN: Final = structure(
    "kdxln", "6.1", 16,
    """
    0   u1     itl
    1   u1     nco
    2   u1     dsz
    3   u1     col
    4   x1     flg
    8   x4     nxt
    12  x4     prv
    """,
)  # fmt: skip

LEAF_OFFSET: Final = 2
"""Bytes of one of the offsets of rows in a 10.8, of which there is one more than rows."""

KDXLE: Final = structure(
    "kdxle", "6.1", 38,
    """
    0   u1     level        0: a leaf
    2   x1     opc
    3   u1     nco
    4   u4     sdc
    8   u2     nro          rows in the block
    10  u2     fbo
    12  u2     feo
    14  u2     avs
    """,
)  # fmt: skip
"""Field 3 of a 10.31, the header of the index block."""
KDXLE_LEVEL: Final = KDXLE.at("level")
KDXLE_ROWS: Final = KDXLE.at("nro")
KDXLE_LEAST: Final = KDXLE.end("nro")

KDILK: Final = structure(
    "kdilk", "6.1", 20,
    """
    0   x1     code         KDILK_PURGE …
    1   u1     itl
    2   x1     flags        KDILK_SUPPLEMENTAL
    4   x4     indexid      the segment's header
    8   x4     block
    12  i4     sdc
    """,
)  # fmt: skip
KDILK_FLAGS: Final = KDILK.at("flags")
KDILK_BLOCK: Final = KDILK.at("block")
KDILK_SIZE: Final = KDILK.size
KDILK_PURGE: Final = 0x02
KDILK_PURGE_TOO: Final = 0x03
KDILK_RESTORE: Final = 0x05
KDILK_DATA: Final = 0x12
KDILK_ROW: Final = 0x1E
KDILK_COLUMNS: Final = 0x23
"""The operation of the undo record: KDILK_PURGE and KDILK_PURGE_TOO undo an insert, KDILK_RESTORE a
delete. The others restore data of an index entry: KDILK_DATA the columns after the key, KDILK_ROW a
whole row of an index-organised table, KDILK_COLUMNS some of its columns.
"""
KDILK_SUPPLEMENTAL: Final = 0x80
"""Bit of flags: supplemental data follows."""

KDILK_OF_COLUMNS: Final = structure(
    "kdilk, columns", "6.1", 26, "20 x1 flag\n21 u1 ncol\n22 u1 nnew"
)
"""The part after `KDILK` if the operation is KDILK_COLUMNS; offsets count from the beginning of
`KDILK`.
"""
KDILK_NCOL: Final = KDILK_OF_COLUMNS.at("ncol")
KDILK_COLUMNS_LEAST: Final = KDILK_OF_COLUMNS.end("ncol")
