"""The operation codes: their numbers and names, and a list of those that are known to change no
row.

An opcode is ``layer << 8 | code``; both are in the header of a vector. Facts: redo-format §4.7,
§5.2, §5.12, §6, §8, §12. A code counts as harmless for one of two reasons. Either it occurs in real
logs of 19c and 23ai, and decoding these logs without it gives all changes that LogMiner shows; or
Oracle's public name of the code shows that it changes no row.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self


class _Titled(IntEnum):
    """A number with a title."""

    title: str

    def __new__(cls, value: int, title: str = "") -> Self:
        """Create a member from a number and a title."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.title = title
        return member


class Opcode(_Titled):
    """The operation codes whose names are known."""

    CLEANOUT = 0x0401, "block cleanout"
    COMMIT_CLEANOUT = 0x0406, "block cleanout at commit"
    UNDO = 0x0501, "undo record"
    BEGIN = 0x0502, "transaction begin"
    END = 0x0504, "transaction end"
    UNDO_APPLIED = 0x0506, "undo applied"
    BEGIN_IN_UNDO = 0x0507, "transaction begin in undo"
    DEAD_TRANSACTION = 0x0508, "dead transaction"
    UNDO_APPLIED_HEADER = 0x050B, "undo applied, header"
    TRANSACTION_STATE = 0x050C, "transaction state"
    SESSION = 0x0513, "session attributes"
    SESSION_CONTINUED = 0x0514, "session attributes, continued"
    TRANSACTION_NOTE = 0x0517, "transaction note"
    UNDO_AGAIN = 0x0518, "local undo logged again"
    LEAF_INSERT = 0x0A02, "insert leaf row"
    LEAF_DELETE = 0x0A04, "delete leaf row"
    LEAF_RESTORE = 0x0A05, "restore leaf row"
    LEAF_INITIALIZE = 0x0A08, "initialize leaf block"
    LEAF_DATA = 0x0A12, "update leaf data"
    LEAF_ROW = 0x0A1E, "update leaf row"
    LEAF_ROOT = 0x0A1F, "direct load root"
    LEAF_COLUMNS = 0x0A23, "update leaf columns"
    ROW_INSERT = 0x0B02, "insert row piece"
    ROW_DELETE = 0x0B03, "delete row piece"
    ROW_LOCK = 0x0B04, "lock row piece"
    ROW_UPDATE = 0x0B05, "update row piece"
    ROW_OVERWRITE = 0x0B06, "overwrite row piece"
    ROW_FORWARD = 0x0B08, "change forwarding address"
    CLUSTER_LINKS = 0x0B0A, "cluster key links"
    ROWS_INSERT = 0x0B0B, "insert rows"
    ROWS_DELETE = 0x0B0C, "delete rows"
    LOG_MINIMAL = 0x0B10, "log minimal"
    LOB_OPERATION = 0x0B11, "LOB operation"
    ROWS_UPDATE = 0x0B13, "update rows"
    COMPRESSED = 0x0B16, "compressed block"
    BLOCK_IMAGE = 0x1301, "block image"
    BLOCKS_UNLOGGED = 0x1302, "invalidated block range"
    BLOCKS_UNLOGGED_AGAIN = 0x1304, "invalidated block range logged again"
    DDL = 0x1801, "DDL"
    TRANSACTION_MARKER = 0x1804, "transaction marker"
    DIRECT_LOAD = 0x1806, "direct load transaction"
    XML = 0x1808, "XML"
    SESSION_MARKER = 0x180A, "session marker"
    LOB_REDO = 0x1A02, "LOB redo"
    LOB_WRITE = 0x1A06, "LOB direct write"


class Layer(_Titled):
    """The layers of operation codes. A layer groups the codes with the same subject."""

    CLEANOUT = 4, "block cleanout"
    TRANSACTION = 5, "transaction"
    CONTROL_FILE = 6, "control file"
    INDEX = 10, "index"
    ROW = 11, "row"
    SEGMENT = 13, "segment space"
    EXTENT = 14, "extents"
    ROW_CACHE = 16, "row cache"
    RECOVERY = 17, "recovery"
    BACKUP = 18, "hot backup"
    DIRECT = 19, "direct load"
    COMPATIBILITY = 20, "compatibility and cursors"
    LOB_DATA = 21, "LOB data"
    TABLESPACE = 22, "tablespace bitmap"
    WRITTEN = 23, "written blocks"
    LOGMINER = 24, "LogMiner"
    QUEUE = 25, "queue"
    LOB = 26, "LOB"
    CHANGE_TRACKING = 27, "block change tracking"


class RowOperation(IntEnum):
    """The codes of layer 11, named by Oracle's abbreviations. The KDO field of a vector contains
    the code too (redo-format §5.2).

    UPA, and UPR in its KDO, are names of this project for the array update of Oracle 11.2. Oracle's
    dumps print it as "Array Update of n rows". Its layout is unknown.
    """

    IUR = 1
    IRP = 2
    DRP = 3
    LKR = 4
    URP = 5
    ORP = 6
    MFC = 7
    CFA = 8
    CKI = 9
    SKL = 10
    QMI = 11
    QMD = 12
    DSC = 14
    LMN = 16
    LLB = 17
    UPA = 19
    SHK = 20
    UPR = 21
    CMP = 22
    DCU = 23
    MRK = 24


class UndoOf(IntEnum):
    """The kinds of changes that undo records undo. The kind is opc in the ktub of an undo record
    (redo-format §4.2).
    """

    INDEX_BLOCK = 0x0A15
    LEAF = 0x0A16
    INDEX_ROOT = 0x0A1A
    INDEX_BLOCK_MOVED = 0x0A1C
    ROW = 0x0B01
    TRUNCATE = 0x0E08
    LOB = 0x1A01


# Kernels need module variables of the type int: Numba compiles these into constants, but not the
# members of an enumeration.
OP_UNDO: Final = int(Opcode.UNDO)
OP_BEGIN: Final = int(Opcode.BEGIN)
OP_END: Final = int(Opcode.END)
OP_UNDO_APPLIED: Final = int(Opcode.UNDO_APPLIED)
OP_UNDO_APPLIED_HEADER: Final = int(Opcode.UNDO_APPLIED_HEADER)
OP_SESSION: Final = int(Opcode.SESSION)
OP_SESSION_CONTINUED: Final = int(Opcode.SESSION_CONTINUED)
OP_LEAF_INSERT: Final = int(Opcode.LEAF_INSERT)
OP_LEAF_INITIALIZE: Final = int(Opcode.LEAF_INITIALIZE)
OP_LEAF_DATA: Final = int(Opcode.LEAF_DATA)
OP_LEAF_ROOT: Final = int(Opcode.LEAF_ROOT)
OP_LOB_OPERATION: Final = int(Opcode.LOB_OPERATION)
OP_BLOCK_IMAGE: Final = int(Opcode.BLOCK_IMAGE)
OP_BLOCKS_UNLOGGED: Final = int(Opcode.BLOCKS_UNLOGGED)
OP_BLOCKS_UNLOGGED_AGAIN: Final = int(Opcode.BLOCKS_UNLOGGED_AGAIN)
OP_DDL: Final = int(Opcode.DDL)
OP_MARKER: Final = int(Opcode.TRANSACTION_MARKER)
OP_STATE: Final = int(Opcode.TRANSACTION_STATE)
OP_DIRECT_LOAD: Final = int(Opcode.DIRECT_LOAD)
OP_LOB_REDO: Final = int(Opcode.LOB_REDO)
OP_LOB_WRITE: Final = int(Opcode.LOB_WRITE)

LAYER_INDEX: Final = int(Layer.INDEX)
LAYER_ROW: Final = int(Layer.ROW)
LAYER_LOB: Final = int(Layer.LOB)

LEAF_INSERT: Final = Opcode.LEAF_INSERT & 0xFF
LEAF_DELETE: Final = Opcode.LEAF_DELETE & 0xFF
LEAF_INITIALIZE: Final = Opcode.LEAF_INITIALIZE & 0xFF
LEAF_DATA: Final = Opcode.LEAF_DATA & 0xFF
LEAF_ROOT: Final = Opcode.LEAF_ROOT & 0xFF
LEAF_ROW: Final = Opcode.LEAF_ROW & 0xFF
LEAF_COLUMNS: Final = Opcode.LEAF_COLUMNS & 0xFF
"""Codes of layer 10."""

LEAF_STRUCTURE: Final = (*range(6, 18), 19, 20, 23, 24, 25, 27, 29, 31, 34, 39, 40)
"""Codes of layer 10 that change blocks of an index, but no row. Their undo has a kind of
`INDEX_STRUCTURE_UNDO`.

Two of them can contain rows that no other vector contains: 31 is the root block of a direct load
(`redo.direct.leaf_root`), and 8 a new leaf (`redo.uninterpreted.note_new_leaf`).
"""

IRP: Final = int(RowOperation.IRP)
DRP: Final = int(RowOperation.DRP)
LKR: Final = int(RowOperation.LKR)
URP: Final = int(RowOperation.URP)
ORP: Final = int(RowOperation.ORP)
CFA: Final = int(RowOperation.CFA)
QMI: Final = int(RowOperation.QMI)
QMD: Final = int(RowOperation.QMD)
LMN: Final = int(RowOperation.LMN)
CMP: Final = int(RowOperation.CMP)
"""Codes of layer 11."""

CLUSTER_STRUCTURE: Final = (int(RowOperation.CKI), int(RowOperation.SKL))
"""Codes of layer 11 that change how a block of a cluster finds its rows, but no row."""

UNEXPLAINED: Final = tuple(
    int(code) for code in (RowOperation.DSC, RowOperation.SHK, RowOperation.DCU, RowOperation.MRK)
)
"""Codes of layer 11 of which only the name is known. They may change a row: they are reported with
a warning.
"""

UNDO_OF_LEAF: Final = int(UndoOf.LEAF)
UNDO_OF_ROW: Final = int(UndoOf.ROW)

INDEX_STRUCTURE_UNDO: Final = tuple(
    int(kind) for kind in (UndoOf.INDEX_BLOCK, UndoOf.INDEX_ROOT, UndoOf.INDEX_BLOCK_MOVED)
)
"""The kinds of undo records that restore a block of an index, but no row."""

UNDONE: Final = (OP_UNDO_APPLIED, OP_UNDO_APPLIED_HEADER)
"""Operations that record that an undo record was applied."""

_ALL: Final = range(256)

HARMLESS: Final = {
    # Block cleanout: row locks, and the SCN at which the locking transaction ended; never the
    # contents of a row.
    4: _ALL,
    # The state of transactions and undo blocks: the codes whose names are public. The codes that
    # concern rows are interpreted elsewhere.
    5: range(1, 36),
    # Data files are added to the control file, and removed from it.
    6: _ALL,
    # Blocks of an index are split, merged, linked and emptied; the rows in them stay unchanged. The
    # operations on rows (10.2, 10.4, 10.5, 10.18, 10.30, 10.35) are not among them. 10.21, 10.22,
    # 10.26 and 10.28 are kinds of undo.
    10: (*LEAF_STRUCTURE, 21, 22, 26, 28),
    # High-water marks, free space and extents of segments.
    13: _ALL,
    14: _ALL,
    # The row cache, and markers of checkpoints and of the backup of files.
    16: _ALL,
    17: _ALL,
    # Images of blocks before they change during a backup; earlier redo already contains their
    # contents.
    18: _ALL,
    # The COMPATIBLE setting, and cursors that become invalid.
    20: _ALL,
    # Space of locally managed tablespaces.
    22: _ALL,
    # Notes that blocks were written to disk.
    23: _ALL,
    # Notes for LogMiner about other vectors: the codes whose names are public. DDL and direct loads
    # are interpreted elsewhere.
    24: range(1, 13),
    # The file that tracks changed blocks for backups.
    27: _ALL,
}
"""The harmless codes by layer; the comment above each line is the reason. A vector of any other
code that is not interpreted is reported with a warning if it names a subscribed object, or if it
has no block, so that nobody can know which object it concerns: for example 12 (old clusters), 19.3,
21.1 (LOBs), 25 (queues), and any new code.
"""


def opcode_name(opcode: int) -> str:
    """Return an opcode with its title: ``4.1 block cleanout``.

    Args:
        opcode: ``layer << 8 | code``.
    """
    return f"{opcode >> 8}.{opcode & 0xFF} {_title(opcode)}"


def _title(opcode: int) -> str:
    """Return the title of an opcode; if it has none, the title of its layer."""
    try:
        return Opcode(opcode).title
    except ValueError:
        pass
    try:
        return Layer(opcode >> 8).title
    except ValueError:
        return "unknown"
