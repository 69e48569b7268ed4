"""Sizes and offsets of the redo format that depend on the version or never change.

Facts: redo-format §0.4, §1 and §2, checked on real logs of 19c and 23ai.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BLOCK_HEADER: Final = 16
"""Bytes of the header of every block."""

RECORD_HEADER: Final = 24
LWN_RECORD_HEADER: Final = 68
VLD_VALID: Final = 0x01
VLD_LWN: Final = 0x04

BLOCK_SIZES: Final = (512, 1024, 4096)
FIRST_DATA_BLOCK: Final = 2
NAB_OPEN: Final = 0xFFFFFFFF

VERSION_11_2: Final = 0x0B200000
VERSION_12_1: Final = 0x0C100000
VERSION_12_2: Final = 0x0C200000
VERSION_19: Final = 0x13000000
VERSION_END: Final = 0x18000000
"""The first version that is not known (23ai is 0x17…)."""

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
    """The differences between files that kernels must know to read vectors; chosen once per file.

    Attributes:
        big_endian: byte order of the platform that wrote the log.
        vector_header: bytes of a change vector's header, 24 (11.2) or 32.
        row_scn: bytes of the row SCN inside multi-row vectors, 6 before 12.2, else 8.
        long_session: 5.19/5.20 have a 32-bit session number at offset 4 (19c on).
    """

    big_endian: bool
    vector_header: int
    row_scn: int
    long_session: bool


def is_known_version(compat: int) -> bool:
    """Tell whether redo of this COMPATIBLE value is understood (redo-format §0.4)."""
    return any(low <= compat <= high for low, high in _VERSIONS)


def layout_of(compat: int, *, big_endian: bool) -> RedoLayout:
    """Choose the layout of redo written with COMPATIBLE `compat`."""
    return RedoLayout(
        big_endian,
        32 if compat >= VERSION_12_1 else 24,
        8 if compat >= VERSION_12_2 else 6,
        compat >= VERSION_19,
    )


def format_version(compat: int) -> str:
    """``19.0.0.0`` and the like (redo-format §0.4)."""
    if compat >> 24 >= 18:
        parts = (compat >> 24, compat >> 16 & 255, compat >> 8 & 255, compat & 255)
    else:
        parts = (compat >> 24, compat >> 20 & 15, compat >> 16 & 15, compat >> 8 & 255)
    return ".".join(map(str, parts))
