"""Fields of layer 24: DDL, the marker of a transaction's end, the transaction of a direct load.
The table also contains the XID of a 5.23.
"""

from __future__ import annotations

from typing import Final

from olr_pg.redo.format.structure import structure

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
