"""Undo that takes several records: the place where it is cut (redo-format §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.vector_fields import undo_size

if TYPE_CHECKING:
    from collections.abc import Sequence


def cut_undo(
    fields: Sequence[bytes], head: int, room: int, *, aligned: bool = True
) -> tuple[list[bytes], list[bytes], bool]:
    """Return the last fields that fit in `room` bytes, those before, and whether a field was cut.

    The first two, KTB redo and KDO, stay with the head.

    `head` is the size of the ktub. If a field is cut and `aligned`, its first part is a multiple of
    four bytes long, so that the joined parts have no gap.
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
