"""Cuts a row that is too large for one piece (redo-format §5.3, values-and-lobs §0.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.row_fields import (
    FB_FROM_PREVIOUS,
    FB_TO_NEXT,
    Value,
    stored_size,
    stored_sizes,
)
from olr_pg.simulator.model.storage import PIECE_COLUMNS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

PIECE_OVERHEAD: Final = 24
"""Maximum bytes of the flags, the links and the row SCN of a piece."""

CUT_MIN: Final = 120
"""Values with fewer bytes are not divided between two pieces."""


@dataclass(frozen=True, slots=True)
class PieceSpan:
    """The columns of one piece, from 0-based column `first` on; `cut` has P and N of its flags."""

    first: int
    columns: tuple[Value, ...]
    cut: int


def lay_out(values: Sequence[Value], room: int) -> list[PieceSpan]:
    """Cut a row into pieces of at most `room` bytes each, from its end; return them head first."""
    if len(values) <= PIECE_COLUMNS_MAX and stored_sizes(values) <= room - PIECE_OVERHEAD:
        return [PieceSpan(0, tuple(values), 0)]
    rest = list(values)
    parts = list[PieceSpan]()
    goes_on = 0
    while rest or not parts:
        current = list[Value]()
        left = room - PIECE_OVERHEAD
        cut = goes_on
        while rest and len(current) < PIECE_COLUMNS_MAX:
            value = rest[-1]
            if stored_size(value) <= left:
                current.insert(0, value)
                left -= stored_size(value)
                rest.pop()
                continue
            spare = left - 3
            if value is not None and len(value) >= CUT_MIN and spare >= CUT_MIN // 3:
                keep = len(value) - spare
                current.insert(0, value[keep:])
                rest[-1] = value[:keep]
                cut |= FB_FROM_PREVIOUS
            break
        continues = bool(cut & FB_FROM_PREVIOUS)
        parts.insert(0, PieceSpan(len(rest) - continues, tuple(current), cut))
        goes_on = FB_TO_NEXT if continues else 0
    return parts
