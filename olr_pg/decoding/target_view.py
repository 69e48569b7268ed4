"""The view of a target: its share of what is decoded for several, and the form that it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.conditions.typed_conditions import DEFAULT_CHARSETS, Charsets
from olr_pg.decoding.filters import NO_FILTERS, Filters
from olr_pg.decoding.split import View
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
        objects: `Table.object_key` of its tables; None = every table that is decoded.
        filters: which columns, operations and transactions it does not get.
        raw_xml: binary XML as it is stored, not as text. A value is put together once for all views
            of a run, so that they agree in it (`decoder.Decoder`).
        packed: it gets packed transactions in the place of messages (`wire.packed_changes`).
    """

    big_endian: bool = False
    chunk_bytes: int = CHUNK_BYTES
    objects: frozenset[int] | None = None
    filters: Filters = NO_FILTERS
    raw_xml: bool = False
    packed: bool = False

    def of(
        self,
        tables: Sequence[Table],
        charsets: Charsets = DEFAULT_CHARSETS,
        names: Sequence[int] | None = None,
    ) -> View:
        """Return the view of a subscription to `tables`; of each it may hold several versions.

        Args:
            names: for each the `Table.object_key` of the table that its name is known by
                (`container_follower`); None: its own.
        """
        dropped = self.filters.dropped(tables)
        if self.objects is not None:
            keys = names if names is not None else [table.object_key for table in tables]
            others = np.array([key not in self.objects for key in keys], np.bool_)
            if dropped is None:
                dropped = np.zeros((len(tables), 3), np.bool_)
            dropped |= others[:, None]
        return View(
            self.big_endian, self.chunk_bytes, dropped, self.filters.left_columns(tables),
            self.filters.conditions(tables, charsets), self.packed,
        )  # fmt: skip


EVERYTHING: Final = TargetView()
EVERYTHING_PACKED: Final = TargetView(packed=True)
