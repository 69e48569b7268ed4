"""Remembers the events of tables that a feed's queue has received, so that each event is queued
only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olr_pg.transactions.schema_event import SchemaEvent


class PublishedEvents:
    """Recognizes events that an earlier run of decoding has put into the same queue.

    Each run finds the same row events in the same commit order. So an event with a lower commit SCN
    than the last one was queued already; only the events at the last SCN are remembered. Each run
    begins with all changes of definitions, so these are all remembered; they are few.
    """

    def __init__(self) -> None:
        self._definitions: set[tuple[str, int, int]] = set()
        self._rows_scn = -1
        self._rows: set[tuple[tuple[str, int, int], bool]] = set()

    def is_new(self, event: SchemaEvent) -> bool:
        """Return whether an event is new, and remember it."""
        if not event.is_of_rows:
            known = event.identity in self._definitions
            self._definitions.add(event.identity)
            return not known
        if event.commit_scn > self._rows_scn:
            self._rows_scn, self._rows = event.commit_scn, set()
        key = event.identity, event.is_fault
        known = event.commit_scn < self._rows_scn or key in self._rows
        self._rows.add(key)
        return not known

    def abandon(self, scn: int) -> None:
        """Forget the events with this commit SCN or a later one: a RESETLOGS has orphaned their
        redo.
        """
        self._definitions = {one for one in self._definitions if one[1] < scn}
        if self._rows_scn >= scn:
            self._rows_scn, self._rows = scn - 1, set()
