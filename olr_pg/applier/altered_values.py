"""Counts values that a configured policy has changed because PostgreSQL cannot store them
unchanged.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

import structlog

from olr_pg.datatypes.policies import NOTHING, Counters

_log = structlog.get_logger(__name__)


class AlteredValues:
    """Counts of changed values, by table and column; thread-safe.

    If a batch is converted again, its values are counted again. A copy that is sent to another
    process starts with empty counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], Counters] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return AlteredValues, ()

    def add(self, table: str, column: str, lost: Counters) -> None:
        """Count changed values of a column. Log a warning when the first value of each kind is
        changed.
        """
        if lost == NOTHING:
            return
        with self._lock:
            before = self._sums.get((table, column), NOTHING)
            self._sums[table, column] = before + lost
        known = asdict(before)
        news = {kind: count for kind, count in asdict(lost).items() if count and not known[kind]}
        if news:
            _log.warning(
                "values were changed to fit the target, as the configured policies allow",
                table=table,
                column=column,
                **news,
            )

    def of(self, table: str) -> int:
        """Return the number of changed values of a table."""
        with self._lock:
            sums = [lost for (name, _), lost in self._sums.items() if name == table]
        return sum(sum(asdict(lost).values()) for lost in sums)
