"""The versions of the redo format, and the differences between them.

Facts: redo-format §0.4, checked on real logs of 19c and 23ai.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from olr_pg.redo.format.file_fields import VECTOR, VECTOR_LONG

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
