"""What a target gets of what is decoded for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.replicator.filters import NO_FILTERS, Filters
from olr_pg.replicator.split import View
from olr_pg.wire.chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table


@dataclass(frozen=True, slots=True)
class TargetView:
    """The form in which a target gets its row changes, and which of them.

    Attributes:
        big_endian: byte order of its messages.
        chunk_bytes: bytes of a LOB value in one Chunk element.
        objects: OBJ# of its tables; None = every table that is decoded.
        filters: which columns, operations and transactions it does not get.
    """

    big_endian: bool = False
    chunk_bytes: int = CHUNK_BYTES
    objects: frozenset[int] | None = None
    filters: Filters = NO_FILTERS

    def of(self, tables: Sequence[Table]) -> View:
        """The view of a subscription to `tables`, which may hold several versions of each."""
        dropped = self.filters.dropped(tables)
        if self.objects is not None:
            others = np.array([table.obj not in self.objects for table in tables], np.bool_)
            if dropped is None:
                dropped = np.zeros((len(tables), 3), np.bool_)
            dropped |= others[:, None]
        return View(self.big_endian, self.chunk_bytes, dropped, self.filters.left_columns(tables))


EVERYTHING: Final = TargetView()
