"""Fields of layer 5: begin and end of transactions, undo records, the session. `XID` and `UBA` are
parts of other structures.

The module also has the fields of layer 24: DDL, the marker of a transaction's end, and the
transaction of a direct load.
"""

from __future__ import annotations

from typing import Final

from olr_pg.redo.format.opcodes import Opcode
from olr_pg.redo.format.structure import structure

XID: Final = structure(
    "xid", "0.3", 8,
    """
    0   (u2)   usn          undo segment
    2   (u2)   slot
    4   (u4)   sqn          how often the slot was used
    """,
)  # fmt: skip
XID_SLOT: Final = XID.at("slot")
XID_SQN: Final = XID.at("sqn")
XID_SIZE: Final = XID.size

UBA: Final = structure(
    "uba", "0.3", 8,
    """
    0   (x4)   dba          the undo block
    4   (x2)   seq          its incarnation
    6   (x1)   rec          number of the undo record in it
    """,
)  # fmt: skip
UBA_SEQ: Final = UBA.at("seq")
UBA_REC: Final = UBA.at("rec")
UBA_SIZE: Final = UBA.size

KTUDH: Final = structure(
    "ktudh", "4.1", 32,
    """
    0   x2     slt
    4   x4     sqn          0 where nothing begins
    8   uba    uba          of the undo record beside it
    16  x2     flg
    18  u2     siz          of that undo record
    20  u1     fbi
    24  xid    pxid         of a parent: 0
    """,
)  # fmt: skip
KTUDH_SLT: Final = KTUDH.at("slt")
KTUDH_SQN: Final = KTUDH.at("sqn")
KTUDH_LEAST: Final = KTUDH.end("sqn")

KTEOP: Final = structure(
    "kteop", "4.1", 36,
    """
    4   u4     ext
    12  u4     ext_size
    16  u4     highwater
    24  u4     offset
    """,
)  # fmt: skip

KTUDB: Final = structure(
    "ktudb", "4.2", 20,
    """
    0   u2     siz          bytes in the undo block
    2   u2     spc          room in the undo block before
    4   x2     flg
    8   xid    xid
    16  x2     seq          incarnation of the undo block
    18  x1     rec          number in the undo block
    """,
)  # fmt: skip
KTUDB_XID: Final = KTUDB.at("xid")
KTUDB_SEQ: Final = KTUDB.at("seq")
KTUDB_REC: Final = KTUDB.at("rec")
KTUDB_SIZE: Final = KTUDB.size

KTUB: Final = structure(
    "ktub", "4.2", 24,
    """
    0   u4     objn         OBJ# of the table, index or partition
    4   u4     objd         data object id
    8   u4     tsn          tablespace
    12  x4     prev_dba     undo block of the transaction's record before, if another
    16  op     opc          what the undo is for: `opcodes.UndoOf`
    18  x1     slt          low 8 bits
    19  x1     rci          number of the transaction's record before in this block
    20  x2     flg          KTUB_HEAD …
    22  x2     wrp          sqn, low 16 bits
    """,
)  # fmt: skip
KTUB_OBJN: Final = KTUB.at("objn")
KTUB_OBJD: Final = KTUB.at("objd")
KTUB_PREV_DBA: Final = KTUB.at("prev dba")
KTUB_OPC: Final = KTUB.at("opc")
KTUB_SLT: Final = KTUB.at("slt")
KTUB_RCI: Final = KTUB.at("rci")
KTUB_FLG: Final = KTUB.at("flg")
KTUB_WRP: Final = KTUB.at("wrp")
KTUB_SIZE: Final = KTUB.size
KTUB_BEGINS: Final = 0x0008
"""Bit of flg: this is the first undo record of its transaction."""
KTUB_NAMES: Final = {24: "ktubu", 28: "ktubx", 76: "ktubl"}
"""The name of a ktub, by its size in bytes."""

KTUB_HEAD: Final = 0x0001
KTUB_TAIL: Final = 0x0002
KTUB_CUT: Final = 0x0004
KTUB_MID: Final = 0x0100
"""Bits of flg for undo that is divided into several parts. KTUB_HEAD, KTUB_TAIL and KTUB_MID are
kinds of parts; KTUB_CUT means that the last field continues in the next part.
"""
KTUB_APART: Final = KTUB_TAIL | KTUB_MID
"""The parts that are in other redo records than the row vector."""
KTUB_PART: Final = KTUB_HEAD | KTUB_APART
KTUB_FLAGS_UNKNOWN: Final = 0xF200
"""The bits of flg whose meaning is unknown. They are 0 in all real vectors and dumps."""

KTUB_LONG: Final = structure(
    "ktubl", "4.2", 76,
    """
    24  x2     flg2         in 28 bytes too
    26  i2     buext        in 28 bytes too
    28  uba    prev_ctl_uba
    36  scn    prev_ctl_max_cmt_scn
    44  scn    prev_tx_cmt_scn
    56  scn    txn_start_scn
    64  x4     prev_brb
    68  x4     prev_bcl
    72  u4     logon_user   USER#
    """,
)  # fmt: skip
"""The part after `KTUB` in the larger kinds of ktub; offsets count from the beginning of `KTUB`."""
KTUB_LONG_SIZE: Final = KTUB_LONG.size

KTUCM: Final = structure(
    "ktucm", "4.4", 20,
    """
    0   x2     slt
    4   x4     sqn
    8   u2     srt          KTUCM_CHILD
    12  u4     sta          9: inactive; KTUCM_PARALLEL
    16  x1     flg          KTUCM_ROLLED_BACK, KTUCM_HAS_KTUCF, KTUCM_HAS_SCN
    """,
)  # fmt: skip
KTUCM_SLT: Final = KTUCM.at("slt")
KTUCM_SQN: Final = KTUCM.at("sqn")
KTUCM_FLG: Final = KTUCM.at("flg")
KTUCM_LEAST: Final = KTUCM.end("flg")
KTUCM_STA: Final = KTUCM.at("sta")
KTUCM_SIZE: Final = KTUCM.size
KTUCM_PARALLEL: Final = 12
"""The value of sta in the commit of a transaction whose children of parallel DML have not committed
yet.
"""
KTUCM_SRT: Final = KTUCM.at("srt")
KTUCM_CHILD: Final = 1
"""The value of srt in the commit of a child of parallel DML."""
KTUCM_HAS_SCN: Final = 0x01
"""Bit of flg: a field of KTUCM_SCN_SIZE bytes contains the commit SCN. For a child of parallel DML,
it is the commit SCN of the parent.
"""
KTUCM_SCN_SIZE: Final = 8
KTUCM_HAS_KTUCF: Final = 0x02
KTUCM_ROLLED_BACK: Final = 0x04

KTUCF: Final = structure(
    "ktucf", "4.4", 16,
    """
    0   uba    uba          of the transaction's last undo record
    8   u2     ext
    10  u2     spc
    12  u1     fbi
    """,
)  # fmt: skip

KTUXVOFF: Final = structure(
    "ktuxvoff", "4.5", 8,
    """
    0   x2     undo_offset  in the undo block
    4   x2     flg
    """,
)  # fmt: skip

SESSION_OLD: Final = structure(
    "session", "4.6", 4,
    """
    0   u2     session_number
    2   u2     serial_number
    """,
)  # fmt: skip
"""Layout of 5.19 and 5.20 before 19c."""

SESSION: Final = structure(
    "session", "4.6", 8,
    """
    4   u4     session_number
    2   u2     serial_number
    """,
)  # fmt: skip
SESSION_OLD_NUMBER: Final = SESSION_OLD.at("session number")
SESSION_OLD_SIZE: Final = SESSION_OLD.size
SESSION_NUMBER: Final = SESSION.at("session number")
SESSION_SERIAL: Final = SESSION.at("serial number")
"""The offset is the same in both layouts."""
SESSION_SIZE: Final = SESSION.size

SESSION_TEXTS: Final = {
    Opcode.SESSION: {
        2: "current username", 3: "login username", 4: "client info", 5: "OS username",
        6: "machine name", 7: "OS terminal", 8: "OS process id", 9: "OS program name",
        10: "transaction name", 14: "client id",
    },
    Opcode.SESSION_CONTINUED: {2: "transaction name", 7: "client id", 8: "login username"},
}  # fmt: skip
"""The titles of the fields that contain texts, by opcode and field number."""

SESSION_NUMBERS: Final = {Opcode.SESSION: (11, 12, 13), Opcode.SESSION_CONTINUED: (3, 4, 5)}
"""The numbers of the fields with flags (`TRAN_FLAGS`), version and audit session id."""

TRAN_FLAGS: Final = structure(
    "transaction flags", "4.6", 6,
    """
    0   x2     flags
    4   x2     aux
    """,
)  # fmt: skip
"""In 11.2, the field has only the first two bytes. A 24.4 contains the field too."""


DDL: Final = structure(
    "DDL", "8.1", 24,
    """
    0   u4     magic        DDL_MAGIC
    4   xid    xid
    12  u2     cmd          as V$SQLCOMMAND
    16  u2     kind
    18  u2     seq          number of this record of the statement, from 1
    20  u2     cnt          records of the statement
    """,
)  # fmt: skip
DDL_XID: Final = DDL.at("xid")
DDL_CMD: Final = DDL.at("cmd")
DDL_SEQ: Final = DDL.at("seq")
DDL_SIZE: Final = DDL.size
DDL_MAGIC: Final = 10000

DDL_CONTINUED: Final = 2
"""The number of the field with the statement's next part, in the second and later records."""
DDL_STATEMENT: Final = 8
DDL_OWNER: Final = 9
DDL_NAME: Final = 10
DDL_OBJN: Final = 12
"""Numbers of fields of a 24.1."""
DDL_FIELDS: Final = 12
"""Minimum number of fields of a 24.1 in the first record of a statement."""

DDL_TEXTS: Final = {
    2: "login schema",
    3: "current schema",
    DDL_STATEMENT: "statement",
    DDL_OWNER: "object owner",
    DDL_NAME: "object name",
}
"""The titles of the fields that contain texts, by field number."""

MARKER: Final = structure(
    "transaction marker", "8.3", 16,
    """
    0   u4     magic        9000
    4   xid    xid
    12  x2     m1
    14  x2     m2
    """,
)  # fmt: skip
MARKER_OUTCOMES: Final = {1: "commit", 2: "rollback"}
"""The meaning of the first byte of field 2 of a 24.4."""
MARKER_XID: Final = MARKER.at("xid")
MARKER_SIZE: Final = MARKER.size
MARKER_COMMIT: Final = 1
MARKER_ROLLBACK: Final = 2
MARKER_START: Final = structure("start", "8.3", 8, "0 scn scn")
"""Field 4 of a 24.4."""

DIRECT_XID: Final = structure("direct load", "8.4", 16, "8 xid xid")
DIRECT_XID_AT: Final = DIRECT_XID.at("xid")
DIRECT_XID_SIZE: Final = DIRECT_XID.size

XML_XID: Final = structure("XML", "8.4", 8, "0 (xid) xid")
"""Field 3 of a 24.8."""

NOTE_XID: Final = structure("transaction note", "4.7", 8, "0 (xid) xid")
"""Field 1 of a 5.23."""
