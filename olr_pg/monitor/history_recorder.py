"""Records a reading of each target every few seconds, for the history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.monitor.history import LEVELS, WHOLE, Reading
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from olr_pg.monitor.history import HistoryStore
    from olr_pg.monitor.status_values import Status

_LOOK_SECONDS: Final = 0.5
"""Interval at which the clock is checked, so that each time slot gets its reading."""


class _Counts(NamedTuple):
    """The counters at one time; `changes` contains a counter for each table."""

    at: float
    redo_bytes: int
    rows: int
    changes: Mapping[str, int]


class HistoryRecorder:
    """Writes readings in a thread, while the context is active.

    Args:
        statuses: the status of each target, by its name.
        clock: returns Unix time in seconds.
        steady: returns the monotonic time in seconds; used for rates.
    """

    def __init__(
        self,
        store: HistoryStore,
        statuses: Mapping[str, Callable[[], Status]],
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_time,
    ) -> None:
        self._store = store
        self._statuses = statuses
        self._clock = clock
        self._steady = steady
        self._before: dict[str, _Counts] = {}
        self._slot = 0
        self._looking = Periodic("olr-history", _LOOK_SECONDS, self.look)

    def __enter__(self) -> HistoryRecorder:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._looking.stop()
        self._store.close()

    def look(self) -> None:
        """Record a reading, if the current time slot has none yet."""
        slot = int(self._clock()) // LEVELS[0].step
        if slot == self._slot:
            return
        self._slot = slot
        for name, status in self._statuses.items():
            now = status()
            counts = _counted(now, self._steady())
            before = self._before.get(name)
            if before is not None:
                self._store.add(now.at, name, readings_of(now, before, counts))
            self._before[name] = counts


def _counted(status: Status, at: float) -> _Counts:
    changes = {t.name: t.inserted + t.updated + t.deleted for t in status.tables}
    return _Counts(at, status.source.redo_bytes, status.source.rows, changes)


def readings_of(status: Status, before: _Counts, now: _Counts) -> dict[str, Reading]:
    """Return the readings of a status, with rates since the earlier counters `before`."""
    seconds = max(now.at - before.at, _LOOK_SECONDS)

    def rate(new: int, old: int) -> float:
        # After a restart the counters begin at 0 again, so the difference can be negative.
        return max(0, new - old) / seconds

    found = {
        table.name: Reading(
            changes=rate(now.changes[table.name], before.changes.get(table.name, 0)),
            reading=table.lag.reading,
            decoding=table.lag.decoding,
            queue=table.lag.queue,
            apply=table.lag.apply,
            waiting=table.waiting,
        )
        for table in status.tables
    }
    worst = max(found.values(), key=lambda one: one.lag, default=Reading())
    found[WHOLE] = Reading(
        rate(now.redo_bytes, before.redo_bytes),
        rate(now.rows, before.rows),
        sum(one.changes for one in found.values()),
        worst.reading,
        worst.decoding,
        worst.queue,
        worst.apply,
        sum(one.waiting for one in found.values()),
        status.port.queued_bytes,
    )
    return found
