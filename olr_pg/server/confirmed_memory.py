"""The release of the memory of messages that nobody will ask for again."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final

from olr_pg.files.mapped import release_pages

if TYPE_CHECKING:
    from olr_pg.ordering.ready_transactions import ReadyBatch, ReadyRun

_PIECE_BYTES: Final = 1 << 20
"""What is let go of at once, at least: each time costs a call of the system."""


class ConfirmedMessages:
    """Messages of transactions as they are confirmed, one run after the other.

    A batch is kept until its last transaction is confirmed. Where its messages lie in a mapped
    file, those before are not: many times a log's size would be in memory at once.
    """

    def __init__(self) -> None:
        self._batch: weakref.ref[ReadyBatch] | None = None
        self._first = 0
        self._end = 0

    def add(self, run: ReadyRun) -> None:
        """Add the next ones."""
        batch = None if self._batch is None else self._batch()
        if run.batch is not batch or run.start != self._end:
            self._batch, self._first = weakref.ref(run.batch), run.start
        self._end = run.start + run.size
        if self._end - self._first >= _PIECE_BYTES:
            release_pages(run.batch.blob[self._first : self._end])
            self._first = self._end
