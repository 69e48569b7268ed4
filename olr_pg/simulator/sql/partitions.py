"""Finds the partition of a row by the bytes of its partition column: the bytes of Oracle's numbers,
dates and texts sort like the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.cells import Cell

NOWHERE = -1


@dataclass(slots=True)
class RangeBounds:
    """Partitions by range.

    Attributes:
        cells: the upper bound of each partition; empty for MAXVALUE, which contains NULL.
    """

    cells: list[list[bytes | None]]

    def __call__(self, cell: Cell | None) -> int:
        """Return the number of the partition of a value; -1 where there is none."""
        for at, bound in enumerate(self.cells):
            if not bound or (cell is not None and cell.raw < (bound[0] or b"")):
                return at
        return NOWHERE

    @property
    def is_sorted(self) -> bool:
        """Return whether the bounds are ascending."""
        values = [bound[0] or b"" for bound in self.cells if bound]
        return values == sorted(set(values))

    def may_follow(self, bound: Sequence[bytes | None]) -> bool:
        """Return whether a bound is above the bound of the last partition."""
        last = self.cells[-1]
        return bool(last) and (not bound or (bound[0] or b"") > (last[0] or b""))


@dataclass(slots=True)
class ListBounds:
    """Partitions by list.

    Attributes:
        cells: the values of each partition, None for NULL; empty for DEFAULT.
    """

    cells: list[list[bytes | None]]

    def __call__(self, cell: Cell | None) -> int:
        """Return the number of the partition of a value; -1 where there is none."""
        value = None if cell is None else cell.raw
        for at, values in enumerate(self.cells):
            if value in values:
                return at
        defaults = [at for at, values in enumerate(self.cells) if not values]
        return defaults[0] if defaults else NOWHERE
