"""Cuts undo that needs several records (redo-format §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.vector_fields import undo_size

if TYPE_CHECKING:
    from collections.abc import Sequence


def cut_undo(
    fields: Sequence[bytes], head: int, room: int, *, aligned: bool = True
) -> tuple[list[bytes], list[bytes], bool]:
    """Cut off the last fields, which fit into `room` bytes.

    The first two fields, KTB redo and KDO, are never cut off.

    Args:
        head: size of the ktub.
        aligned: if a field is cut, its first part has a multiple of 4 bytes, so that the joined
            parts have no gap.

    Returns:
        The fields that were cut off, the remaining fields, and whether a field was cut.
    """
    rest, part = list(fields), list[bytes]()
    while len(rest) > 2:
        last = rest[-1]
        if undo_size([head, len(last), *map(len, part)]) <= room:
            part.insert(0, rest.pop())
            continue
        spare = (room - undo_size([head, 0, *map(len, part)])) & ~3
        kept = len(last) - spare
        if aligned:
            kept = kept + 3 & ~3
        if spare > 0 and 0 < kept < len(last):
            part.insert(0, last[kept:])
            rest[-1] = last[:kept]
            return part, rest, True
        break
    return part, rest, False
