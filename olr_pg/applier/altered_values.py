"""Values that PostgreSQL cannot hold as they are, and that a policy has changed on their way."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

import structlog

from olr_pg.datatypes.policies import NOTHING, Counters

_log = structlog.get_logger(__name__)


class AlteredValues:
    """Counts of the values that were changed, by table and column; any thread may use it.

    A batch that has to be converted again counts again. What another process converts, to which
    this is sent with the settings, is its own to count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], Counters] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return AlteredValues, ()

    def add(self, table: str, column: str, lost: Counters) -> None:
        """Count values of a column; the first of each kind are worth a line of the log."""
        if lost == NOTHING:
            return
        with self._lock:
            before = self._sums.get((table, column), NOTHING)
            self._sums[table, column] = before + lost
        known = asdict(before)
        news = {kind: count for kind, count in asdict(lost).items() if count and not known[kind]}
        if news:
            _log.warning(
                "values are changed on their way, as the policies say",
                table=table,
                column=column,
                **news,
            )

    def of(self, table: str) -> int:
        """Return how many values of a table were changed."""
        with self._lock:
            sums = [lost for (name, _), lost in self._sums.items() if name == table]
        return sum(sum(asdict(lost).values()) for lost in sums)
