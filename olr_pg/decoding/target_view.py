"""The view of a target: the selection of decoded changes that it receives, and their form."""

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
    """The selection of row changes that a target receives, and their form.

    Attributes:
        big_endian: byte order of the messages.
        chunk_bytes: maximum bytes of a LOB value in one Chunk element.
        objects: `Table.object_key` of the tables that the target receives; None for all decoded
            tables.
        filters: the filters for columns, operations and transactions that the target does not
            receive.
        raw_xml: True to deliver binary XML as it is stored, not as text. A value is assembled once
            for all views, so all views must have the same setting (`decoder.Decoder`).
        packed: True to deliver packed transactions instead of messages (`wire.packed_changes`).
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
        """Return the view of a subscription to `tables`, which can contain several versions of a
        table.

        Args:
            names: for each table, the number of its name as a `Table.object_key`
                (`container_follower.ContainerFollower`). None if it is the table's own.
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
