"""Fields of space-management vectors (layers 13, 14 and 22) and of the markers that accompany them.

Sizes, block classes and types are those of the real 23ai logs. The meaning of the numbers in the
fields is mostly unknown (redo-format §12), so they are random, or zero as in real redo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.fields.vector_fields import TYP_NEW, TYP_NORMAL
from olr_pg.simulator.model.storage import CLASS_DATA

if TYPE_CHECKING:
    from random import Random

    from olr_pg.simulator.fields.redo_format import RedoFormat

CLASS_SEGMENT_HEADER: Final = 4
CLASS_BITMAP_1: Final = 8
CLASS_BITMAP_2: Final = 9
CLASS_FILE_BITMAP: Final = 11
CLASS_FILE_HEADER: Final = 12
CLASS_FILE_MAP: Final = 13
"""Block classes (redo-format §3.1)."""

SPACE_DBA: Final = 0x4C80
"""The first bitmap block of the file that grows."""

BLOCKS_PER_MAP: Final = 64224


class SpaceKind(NamedTuple):
    """A kind of vector: opcode, class and type of its block, sizes of its fields."""

    opcode: tuple[int, int]
    cls: int
    sizes: tuple[int, ...]
    typ: int = TYP_NORMAL

    def fields(self, rng: Random) -> list[bytes]:
        """Return fields of these sizes with small numbers and zeros, like most real ones."""
        return [bytes(rng.choice((0, 0, 0, 1, 8)) for _ in range(size)) for size in self.sizes]


FILE_MAPS: Final = (
    SpaceKind((13, 59), CLASS_FILE_BITMAP, (140, 4), TYP_NEW),
    SpaceKind((13, 61), CLASS_BITMAP_1, (28,), TYP_NEW),
    SpaceKind((13, 63), CLASS_BITMAP_2, (28,), TYP_NEW),
    SpaceKind((22, 15), CLASS_FILE_BITMAP, (84,), TYP_NEW),
)
"""Bitmap blocks of a growing file; each is in a separate record and LWN."""

FILE_MAP_HEAD: Final = SpaceKind((13, 57), CLASS_SEGMENT_HEADER, (76, 84), TYP_NEW)
FILE_MAP_ENTRY: Final = SpaceKind((13, 60), CLASS_FILE_BITMAP, (20,))
FILE_MAP_FREED: Final = SpaceKind((13, 60), CLASS_FILE_BITMAP, (12,))
FILE_BITMAP_1: Final = SpaceKind((13, 62), CLASS_BITMAP_1, (32,))
FILE_BITMAP_2: Final = SpaceKind((13, 64), CLASS_BITMAP_2, (32,))
FILE_MAP_USED: Final = SpaceKind((22, 16), CLASS_FILE_BITMAP, (16,))

EXTENT_TAKEN: Final = SpaceKind((22, 2), CLASS_FILE_MAP, (12,))
EXTENT_RELOGGED: Final = SpaceKind((22, 2), CLASS_FILE_MAP, (2,))
FILE_HEADER: Final = SpaceKind((22, 5), CLASS_FILE_HEADER, (12,))
UNDO_EXTENT: Final = SpaceKind((22, 13), CLASS_FILE_BITMAP, (20, 8))

SEGMENT_HEADER: Final = SpaceKind((13, 17), CLASS_SEGMENT_HEADER, (68, 16, 4, 4), TYP_NEW)
SEGMENT_BITMAP_2: Final = SpaceKind((13, 19), CLASS_BITMAP_2, (16, 4, 4, 4), TYP_NEW)
SEGMENT_BITMAP_1: Final = SpaceKind((13, 18), CLASS_BITMAP_1, (56, 4, 4, 4, 8, 4), TYP_NEW)
HIGH_WATER_MARK: Final = SpaceKind((13, 28), CLASS_SEGMENT_HEADER, (80,))
BITMAP_1_EXTENDED: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (36,))
BITMAP_1_FORMATTED: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (16, 8))
BITMAP_1_FULLNESS: Final = SpaceKind((13, 22), CLASS_BITMAP_1, (40,))
BITMAP_2_UPDATED: Final = SpaceKind((13, 24), CLASS_BITMAP_2, (16, 12))
BLOCK_FORMATTED: Final = SpaceKind((13, 21), CLASS_DATA, (20, 16), TYP_NEW)
LEAF_FORMATTED: Final = SpaceKind((10, 31), CLASS_DATA, (48, 4, 38, 9))
FREE_LIST_HEAD: Final = SpaceKind((13, 7), CLASS_SEGMENT_HEADER, (32,))
FREE_LIST_LINK: Final = SpaceKind((13, 6), CLASS_DATA, (12,))
FREE_LIST_UNLINK: Final = SpaceKind((13, 6), CLASS_DATA, (12, 16))
EXTENTS_LOCKED: Final = SpaceKind((14, 2), CLASS_SEGMENT_HEADER, (8,))
EXTENTS_FREED: Final = SpaceKind((14, 1), CLASS_SEGMENT_HEADER, ())

OPC_UNDO_EXTENT: Final = (22, 14)
OPC_FREE_LIST: Final = (13, 9)
OPC_EXTENT: Final = (22, 3)
"""Opcodes in the undo of 22.13, of 13.6 with 13.7, and of 22.2."""

COMMIT_NOTE: Final = (17, 28)
SESSION_MARKER: Final = (24, 10)


def commit_note_fields(redo: RedoFormat, value: int) -> list[bytes]:
    """Encode the fields of the 17.28 that may be between 5.4 and 24.4."""
    return [redo.pack("IHH", value, 2, 0), b""]


def session_marker_fields(redo: RedoFormat, session: int, audit: int) -> list[bytes]:
    """Encode the fields of a 24.10."""
    return [
        redo.pack("H", 1),
        redo.pack("I", session),
        redo.pack("H", session & 0xFFFF),
        redo.pack("Q", audit),
    ]


def file_map_fields(redo: RedoFormat, kind: SpaceKind) -> list[bytes]:
    """Encode the fields of a new bitmap block of a file, in which all space is unused."""
    if kind.opcode == (13, 59):
        head = b"\xff" * 4 + bytes(8) + redo.pack("II", BLOCKS_PER_MAP, 8)
        return [head + bytes(kind.sizes[0] - len(head)), bytes(4)]
    if kind.opcode[0] == 13:
        return [redo.pack("III", 0, 0xFFFFFFFF, 1) + bytes(kind.sizes[0] - 12)]
    return [bytes(kind.sizes[0])]


def written_block(redo: RedoFormat, afn: int, dba: int, scn: int, seq: int) -> bytes:
    """Encode an entry of 23.1: a block that the database writer has written (redo-format §12)."""
    return redo.pack("IIIHBBI", afn, dba, scn & 0xFFFFFFFF, scn >> 32 & 0xFFFF, seq, 4, 0)
