"""Fields of layer 11 and of its undo: KTB redo, KDO by operation, rows, supplemental data.

The module also has the fields of layer 10 and of its undo (10.22): leaves of indexes and
index-organised tables.
"""

from __future__ import annotations

from typing import Final

from olr_pg.redo.format.opcodes import RowOperation
from olr_pg.redo.format.structure import structure

KTB: Final = structure(
    "ktbRedo", "5.1", 4,
    """
    0   (x1)   op           low 4 bits: KTB_F …; KTB_CLEANOUT
    1   (x1)   ver          KTB_LONG and the version
    """,
)  # fmt: skip
KTB_VER: Final = KTB.at("ver")
KTB_LEAST: Final = KTB.end("ver")
KTB_OPERATION: Final = 0x0F
KTB_CLEANOUT: Final = 0x10
"""Bit of op: a block cleanout follows."""
KTB_LONG: Final = 0x08
"""Bit of ver: the data begins at KTB_DATA_LONG, otherwise at KTB_DATA."""
KTB_DATA: Final = 4
KTB_DATA_LONG: Final = 8

KTB_F: Final = 1
KTB_C: Final = 2
KTB_OPERATIONS: Final = {
    KTB_F: structure("F", "5.1", 16, "0 xid xid\n8 uba uba"),
    KTB_C: structure("C", "5.1", 8, "0 uba uba"),
    3: structure("Z", "5.1", 0, ""),
    4: structure("L", "5.1", 24, "0 xid xid\n8 uba uba\n16 u1 lkc\n17 x1 flg"),
    5: structure("R", "5.1", 12, "0 i2 itc"),
    6: structure("N", "5.1", 0, ""),
}
"""The data of each operation. F claims an entry of the block's ITL for the transaction; C updates
the uba of this entry.
"""
KTB_F_XID: Final = KTB_OPERATIONS[KTB_F].at("xid")
KTB_F_UBA: Final = KTB_OPERATIONS[KTB_F].at("uba")
KTB_C_UBA: Final = KTB_OPERATIONS[KTB_C].at("uba")

KTB_CLEANOUT_DATA: Final = structure(
    "block cleanout", "5.1", 48,
    """
    36  u1     opt
    37  u1     entries      how many follow
    38  x1     ver
    40  scn    scn
    """,
)  # fmt: skip
"""The cleanout in the data of KTB; offsets count from the beginning of the data. Entries of
KTB_CLEANOUT_ENTRY bytes each follow.
"""
KTB_CLEANOUT_ENTRY: Final = 8

KDO: Final = structure(
    "KDO", "5.2", 16,
    """
    0   x4     bdba         the block
    4   x4     hdba         the segment's header
    8   u2     maxfr
    10  (x1)   op           KDO_OPERATION, KDO_UNDO, KDO_ROW_SCN
    11  (x1)   xtype        KDO_XTYPE, KDO_COLUMN_VECTOR
    12  u1     itli         entry of the block's ITL
    13  u1     ispac
    """,
)  # fmt: skip
KDO_BDBA: Final = KDO.at("bdba")
KDO_OP: Final = KDO.at("op")
KDO_TYPE: Final = KDO.at("xtype")
KDO_SIZE: Final = KDO.size
KDO_OPERATION: Final = 0x1F
"""The bits of op that contain the `opcodes.RowOperation`."""
KDO_UNDO: Final = 0x20
"""Bit of op that is set in undo records, and in vectors that undo a change."""
KDO_ROW_SCN: Final = 0x40
"""Bit of op: the table has ROWDEPENDENCIES, so its rows contain an SCN."""
KDO_OP_UNKNOWN: Final = 0xFF & ~(KDO_OPERATION | KDO_UNDO | KDO_ROW_SCN)
"""The bits of op whose meaning is unknown. They are 0 in all real vectors."""
KDO_XTYPE: Final = 0x03
KDO_XTYPES: Final = {1: "XA", 2: "XR", 3: "CR"}
KDO_PACKED: Final = 0x08
"""Bit of xtype: the row is in a compressed block and is compressed in the vector too."""
KDO_COLUMN_VECTOR: Final = 0x80
"""Bit of xtype (KDOM2): one field contains all values of a URP."""
KDO_TYPE_UNKNOWN: Final = 0xFF & ~(KDO_XTYPE | KDO_PACKED | KDO_COLUMN_VECTOR)
"""The bits of xtype whose meaning is unknown. They are 0 in all real vectors and dumps."""

KDO_PIECE: Final = structure(
    "KDO IRP, ORP", "5.4", 45,
    """
    16  fb     fb           FB_HEAD …
    17  x1     lb           ITL entry that locks the row
    18  u1     cc           columns of the piece
    19  u1     cki          index into a cluster's keys
    20  rid    hrid         the row's head; only with FB_FIRST and without FB_HEAD
    28  rid    nrid         the next piece; only without FB_LAST
    40  u2     size/delt    bytes of the piece in the block
    42  x2     slot
    44  u1     tabn         table of the block
    45  (*)    nulls        a bit per column
    """,
)  # fmt: skip
KDO_PIECE_FB: Final = KDO_PIECE.at("fb")
KDO_PIECE_CC: Final = KDO_PIECE.at("cc")
KDO_PIECE_HRID: Final = KDO_PIECE.at("hrid")
KDO_PIECE_NRID: Final = KDO_PIECE.at("nrid")
KDO_PIECE_BYTES: Final = KDO_PIECE.at("size/delt")
KDO_PIECE_SLOT: Final = KDO_PIECE.at("slot")
KDO_PIECE_TABN: Final = KDO_PIECE.at("tabn")
KDO_PIECE_NULLS: Final = KDO_PIECE.at("nulls")

RID: Final = structure("rid", "5.4", 6, "0 (x4) block\n4 (x2) slot")
RID_SLOT: Final = RID.at("slot")

KDO_DELETE: Final = structure("KDO DRP", "5.5", 20, "16 x2 slot\n18 u1 tabn")
KDO_LOCK: Final = structure("KDO LKR", "5.6", 20, "16 x2 slot\n18 u1 tabn\n19 x1 to")
KDO_DELETE_SLOT: Final = KDO_DELETE.at("slot")
KDO_DELETE_LEAST: Final = KDO_DELETE.end("slot")
"""Minimum size of a KDO DRP and of a KDO LKR."""

KDO_UPDATE: Final = structure(
    "KDO URP", "5.7", 26,
    """
    16  fb     fb
    17  x1     lock
    18  u1     ckix
    19  u1     tabn
    20  x2     slot
    22  u1     ncol         columns of the piece after the change
    23  u1     nnew         columns given here
    24  i2     size         by how much the row gets longer
    26  (*)    nulls        a bit per column given
    """,
)  # fmt: skip
KDO_UPDATE_FB: Final = KDO_UPDATE.at("fb")
KDO_UPDATE_TABN: Final = KDO_UPDATE.at("tabn")
KDO_UPDATE_SLOT: Final = KDO_UPDATE.at("slot")
KDO_UPDATE_NCOL: Final = KDO_UPDATE.at("ncol")
KDO_UPDATE_NNEW: Final = KDO_UPDATE.at("nnew")
KDO_UPDATE_NULLS: Final = KDO_UPDATE.at("nulls")

KDO_FORWARD: Final = structure(
    "KDO CFA", "5.8", 29,
    """
    16  rid    nrid         the next piece
    24  x2     slot
    26  x1     flag
    27  u1     tabn
    28  x1     lock
    """,
)  # fmt: skip
KDO_FORWARD_NRID: Final = KDO_FORWARD.at("nrid")
KDO_FORWARD_SLOT: Final = KDO_FORWARD.at("slot")
KDO_FORWARD_LEAST: Final = KDO_FORWARD.end("slot")

KDO_KEY_LINKS: Final = structure("KDO SKL", "5.12", 31, "28 x1 flag\n29 x1 lock\n30 x1 slot")

KDO_MULTI: Final = structure(
    "KDO QMI, QMD", "5.9", 20,
    """
    16  u1     tabn
    17  x1     lock
    18  u1     nrow
    20  (*)    slots        16 bits per row
    """,
)  # fmt: skip
KDO_MULTI_TABN: Final = KDO_MULTI.at("tabn")
KDO_MULTI_NROW: Final = KDO_MULTI.at("nrow")
KDO_MULTI_SLOTS: Final = KDO_MULTI.at("slots")

KDO_COLUMN: Final = structure("KDO DSC", "5.12", 20, "16 x2 slot\n18 u1 tabn\n19 u1 rel")

KDO_OPERATIONS: Final = {
    RowOperation.IRP: KDO_PIECE,
    RowOperation.DRP: KDO_DELETE,
    RowOperation.LKR: KDO_LOCK,
    RowOperation.URP: KDO_UPDATE,
    RowOperation.ORP: KDO_PIECE,
    RowOperation.CFA: KDO_FORWARD,
    RowOperation.SKL: KDO_KEY_LINKS,
    RowOperation.QMI: KDO_MULTI,
    RowOperation.QMD: KDO_MULTI,
    RowOperation.DSC: KDO_COLUMN,
}
"""The part of KDO from byte 16 on, by operation."""

ROW: Final = structure("row", "5.9", 3, "0 (fb) fb\n1 (x1) lb\n2 (u1) cc")
"""The header of a row. In a QMI, in a block, and after the key in a leaf of an index-organised
table, a row consists of this header and the columns, each after its length.
"""
ROW_CC: Final = ROW.at("cc")
ROW_SIZE: Final = ROW.size
LENGTH_NULL: Final = 0xFF
LENGTH_LONG: Final = 0xFE
"""Two values of the length byte before a column: LENGTH_NULL means NULL, LENGTH_LONG that a 16-bit
length follows.
"""

FB_CLUSTER_KEY: Final = 0x80
FB_CLUSTERED: Final = 0x40
FB_HEAD: Final = 0x20
FB_DELETED: Final = 0x10
FB_FIRST: Final = 0x08
FB_LAST: Final = 0x04
FB_PREVIOUS: Final = 0x02
FB_NEXT: Final = 0x01
"""Bits of the flag byte of a row piece (redo-format §5.3), in this order: the piece is the key of a
cluster; it is in a cluster; it is the row's head; it is deleted; it is the row's first piece; it is
the row's last piece; its first column began in the previous piece; its last column continues in the
next piece.
"""
FB_WHOLE: Final = FB_HEAD | FB_FIRST | FB_LAST
"""The flags of a row that consists of one piece."""
FB_LETTERS: Final = "KCHDFLPN"
"""The letters of the bits, from 0x80 down to 0x01, as in Oracle's dumps."""

SUPPLEMENTAL: Final = structure(
    "supplemental header", "4.3", 20,
    """
    0   x1     type         SUPPLEMENTAL_TYPES
    1   sfb    fb           of the logical row change
    2   u2     cc           how many columns were logged
    4   u2     objv         version of the table's definition
    6   u2     before       SEGCOL# of the first column in the undo, 0 for none
    8   u2     after        the same of the redo
    10  (*)    zero         SUPPLEMENTAL_ZEROS bytes
    13  x1     flags
    16  (x1)   opt_high     of opt, where it is one big-endian number with this
    17  x1     opt          SUPPLEMENTAL_CHANGED
    """,
)  # fmt: skip
SUPPLEMENTAL_FB: Final = SUPPLEMENTAL.at("fb")
SUPPLEMENTAL_CC: Final = SUPPLEMENTAL.at("cc")
SUPPLEMENTAL_BEFORE: Final = SUPPLEMENTAL.at("before")
SUPPLEMENTAL_AFTER: Final = SUPPLEMENTAL.at("after")
SUPPLEMENTAL_ZERO: Final = SUPPLEMENTAL.at("zero")
SUPPLEMENTAL_ZEROS: Final = 3
SUPPLEMENTAL_OPT_HIGH: Final = SUPPLEMENTAL.at("opt high")
SUPPLEMENTAL_OPT: Final = SUPPLEMENTAL.at("opt")
SUPPLEMENTAL_CHANGED: Final = 0x20
"""Bit of opt: a bitmap of the columns that really changed follows."""
SUPPLEMENTAL_MOVES: Final = 0x80
"""Bit of fb: the row moves. It is deleted in one place and inserted in another."""
SUPPLEMENTAL_FB_LETTERS: Final = "KCxDFLPN"

SUPPLEMENTAL_ADDRESS: Final = structure(
    "supplemental header", "4.3", 28, "20 x4 bdba\n24 x2 slot\n26 x1 tabn"
)
"""The part after `SUPPLEMENTAL` in the longer headers: the address of the row's head. Offsets count
from the beginning of `SUPPLEMENTAL`.
"""
SUPPLEMENTAL_BDBA: Final = SUPPLEMENTAL_ADDRESS.at("bdba")
SUPPLEMENTAL_SLOT: Final = SUPPLEMENTAL_ADDRESS.at("slot")
SUPPLEMENTAL_LONG: Final = SUPPLEMENTAL_ADDRESS.end("slot")
SUPPLEMENTAL_SIZES: Final = (20, 26, 28)
"""The possible sizes of a supplemental header. They distinguish it from a column."""
SUPPLEMENTAL_NULL: Final = 0xFFFF
"""The length that means NULL."""

SUPPLEMENTAL_UPDATE: Final = 1
SUPPLEMENTAL_INSERT: Final = 2
SUPPLEMENTAL_DELETE: Final = 4
SUPPLEMENTAL_INTERNAL: Final = 8
SUPPLEMENTAL_LOCK: Final = 0x10
SUPPLEMENTAL_TYPES: Final = (
    SUPPLEMENTAL_UPDATE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INTERNAL,
    SUPPLEMENTAL_LOCK,
)
"""The types of SQL operations. SUPPLEMENTAL_INTERNAL (the key of a cluster) and SUPPLEMENTAL_LOCK
(SELECT … FOR UPDATE) change no row.
"""


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
