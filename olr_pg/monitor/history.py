"""The history of throughput, lag and queue: stored on disk, limited in size, in three resolutions.

A reading is written every five seconds. After each minute, and each ten minutes, the readings of
the finer level are combined into one of the coarser level: rates by their mean, lag and queue by
their maximum, so that peaks stay visible. The readings are stored in a table of SQLite, which is
part of the standard library, with a write-ahead log. Commits do not wait for the disk, so a power
failure can lose the readings of the last few seconds.

Replication does not wait for the history, and does not fail because of it. If a reading cannot be
written (for example, because the disk is full), the failure is logged once, and the next reading is
tried. A damaged file, or a file of another release, is replaced by a new file.

`HistoryRecorder` takes the readings of each target.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.owned import check_plain, remove_plain
from olr_pg.observability.periodic import Periodic, steady_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from olr_pg.monitor.status_values import Status

FILE_NAME: Final = "history.sqlite"
"""Name of the history's file in `context.data`; SQLite creates two more files beside it."""

TABLES_MAX: Final = 100
"""Maximum number of tables in a reading. The tables with the highest lag are stored, then those
with the most changes. With three levels this limits the file to about 40 MB per target.
"""

WHOLE: Final = ""
"""The name for the readings of all tables together."""

VERSION: Final = 1
_BUSY_SECONDS: Final = 1.0
_STEADY_WRITES: Final = 12
"""Number of successful writes in a row before the history is reported as working again.

Several are required because a disk that is nearly full accepts one write and refuses the next.
"""
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_PRIMARY: Final = 0xFF
"""Mask that extracts the primary code from SQLite's extended error code."""

_CREATE: Final = """
CREATE TABLE reading (
    level INTEGER, target TEXT, slot INTEGER, name TEXT, redo_bytes REAL, rows REAL, changes REAL,
    reading REAL, decoding REAL, queue REAL, apply REAL, waiting REAL, queued_bytes REAL,
    PRIMARY KEY (level, target, slot, name)
) WITHOUT ROWID
"""
_ADD: Final = "INSERT OR REPLACE INTO reading VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Selects the newest reading up to now: if the clock was set back, there can be readings of the
# future.
_LAST: Final = "SELECT max(slot) FROM reading WHERE level = ? AND target = ? AND slot <= ?"
_BETWEEN: Final = """
SELECT name, redo_bytes, rows, changes, reading, decoding, queue, apply, waiting, queued_bytes,
    slot
FROM reading WHERE level = ? AND target = ? AND slot >= ? AND slot < ?
"""
_OF_NAMES: Final = f"{_BETWEEN} AND name IN (?, ?)"
_FORGET: Final = "DELETE FROM reading WHERE level = ? AND target = ? AND slot < ?"

_log = structlog.get_logger(__name__)

_Found = TypeVar("_Found")


class Level(NamedTuple):
    """A resolution.

    Attributes:
        name: name of the time range for which this resolution is used.
        step: seconds between readings.
        span: seconds after which a reading is deleted.
    """

    name: str
    step: int
    span: int


LEVELS: Final = (Level("1h", 5, 3_600), Level("24h", 60, 86_400), Level("7d", 600, 604_800))
"""The resolutions from fine to coarse. The readings of each resolution are combined from those of
the previous one.
"""


class Reading(NamedTuple):
    """The measurements of a table, or of all tables together, in a time slot.

    Attributes:
        redo_bytes, rows, changes: decoded bytes of redo, decoded row changes, and applied changes,
            each per second. The first two are known only for all tables together.
        reading, decoding, queue, apply: the lag in seconds by stage (see `lag.Lag`). For all tables
            together, these values are the lag of the table with the largest lag.
        waiting: number of changes that the applier has received but not applied.
        queued_bytes: bytes in the ready queue.
    """

    redo_bytes: float = 0.0
    rows: float = 0.0
    changes: float = 0.0
    reading: float = 0.0
    decoding: float = 0.0
    queue: float = 0.0
    apply: float = 0.0
    waiting: float = 0.0
    queued_bytes: float = 0.0

    @property
    def lag(self) -> float:
        """The total lag in seconds."""
        return self.reading + self.decoding + self.queue + self.apply


SERIES: Final = {
    "throughput": ("redo_bytes", "rows", "changes"),
    "lag": ("reading", "decoding", "queue", "apply"),
    "queue": ("waiting", "queued_bytes"),
}
"""The fields of a reading that each series contains, by the name of the series."""


class Series(NamedTuple):
    """The readings of a time range, at regular intervals.

    Attributes:
        start, end: limits of the range in Unix time; `end` is exclusive.
        step: seconds between readings.
        readings: one for each step; None if no reading was stored for it.
    """

    start: int
    end: int
    step: int
    readings: Sequence[Reading | None]


def level_of(name: str) -> int | None:
    """Return the index of a range's level; None for an unknown range."""
    return next((number for number, level in enumerate(LEVELS) if level.name == name), None)


class HistoryStore:
    """Stores readings in a file; thread-safe.

    Args:
        path: path of the file, which is created if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_failing = False
        self._written = 0

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._disconnect()

    def add(self, at: float, target: str, readings: Mapping[str, Reading]) -> None:
        """Store current measurements.

        Args:
            at: Unix time in seconds.
            target: the name of the target; empty if there is only one.
            readings: the reading of each table, and of all tables under the name `WHOLE`; a table
                without a reading is idle.
        """
        with self._lock:
            self._use(lambda connection: _add(connection, at, target, readings))
            if self._connection is None:
                self._written = 0
            elif self._is_failing:
                self._written += 1
                if self._written >= _STEADY_WRITES:
                    self._is_failing = False
                    _log.info(
                        "the history of the status page can be written again", path=str(self._path)
                    )

    def read(self, at: float, target: str, table: str, level: int) -> Series:
        """Return the readings of a table, or of the whole target (`WHOLE`), in the range of a level
        that ends at the Unix time `at`.
        """
        step, span = LEVELS[level].step, LEVELS[level].span
        end = int(at) // step * step + step
        start = end - span
        names = (WHOLE, table)
        with self._lock:
            rows = self._use(
                lambda connection: connection.execute(
                    _OF_NAMES, (level, target, start, end, *names)
                ).fetchall()
            )
        found: list[Reading | None] = [None] * (span // step)
        # The reading of the whole target shows that this time slot was recorded. The reading of the
        # table comes later in the sorted rows, so it replaces this reading.
        for name, *values, slot in rows or ():
            is_wanted = name == table
            found[(slot - start) // step] = Reading(*values) if is_wanted else Reading()
        return Series(start, end, step, found)

    def _use(self, work: Callable[[sqlite3.Connection], _Found]) -> _Found | None:
        """Call `work` with the open file; after a failure, close it and return None."""
        try:
            return work(self._connected())
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            return None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._opened()
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                # The file belongs to another release, or is new.
                self._remove()
                self._connection = self._opened()
                with self._connection:
                    self._connection.execute(_CREATE)
                    self._connection.execute(f"PRAGMA user_version = {VERSION:d}")
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        for path in self._files():
            check_plain(path)
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 1048576")
        except BaseException:
            connection.close()
            raise
        return connection

    def _fail(self, error: sqlite3.Error | OSError) -> None:
        self._disconnect()
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & _PRIMARY in _DAMAGED:
            with suppress(OSError):
                self._remove()
        if not self._is_failing:
            self._is_failing = True
            failure = OlrPgError(Code.HISTORY_UNUSABLE, str(error), path=str(self._path))
            _log.warning("could not write the history of the status page", error=failure)

    def _remove(self) -> None:
        self._disconnect()
        for path in self._files():
            remove_plain(path)

    def _files(self) -> list[Path]:
        """Return the files that SQLite creates."""
        return [self._path.with_name(self._path.name + one) for one in ("", "-wal", "-shm")]

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _add(
    connection: sqlite3.Connection, at: float, target: str, readings: Mapping[str, Reading]
) -> None:
    slot = int(at) // LEVELS[0].step * LEVELS[0].step
    with connection:
        before = connection.execute(_LAST, (0, target, slot)).fetchone()[0]
        if before is not None:
            for number in range(1, len(LEVELS)):
                step = LEVELS[number].step
                if before // step != slot // step:
                    _sum_up(connection, number, target, before // step * step)
                    _forget(connection, target, slot)
        _put(connection, 0, target, slot, readings)


def _put(
    connection: sqlite3.Connection,
    level: int,
    target: str,
    slot: int,
    readings: Mapping[str, Reading],
) -> None:
    tables = [name for name in readings if name != WHOLE and any(readings[name])]
    tables.sort(key=lambda name: (readings[name].lag, readings[name].changes), reverse=True)
    connection.executemany(
        _ADD,
        [
            (level, target, slot, name, *readings[name])
            for name in (WHOLE, *tables[:TABLES_MAX])
            if name in readings
        ],
    )


def _sum_up(connection: sqlite3.Connection, level: int, target: str, slot: int) -> None:
    """Combine readings of the finer level into one reading."""
    end = slot + LEVELS[level].step
    parts: dict[str, list[Reading]] = {}
    for name, *values, _slot in connection.execute(_BETWEEN, (level - 1, target, slot, end)):
        parts.setdefault(name, []).append(Reading(*values))
    count = len(parts.get(WHOLE, ()))
    if count:
        summed = {name: summed_up(readings, count) for name, readings in parts.items()}
        _put(connection, level, target, slot, summed)


def summed_up(readings: Sequence[Reading], count: int) -> Reading:
    """Combine readings into one for a longer time.

    Args:
        count: the number of readings that a table has if it was never idle during this time.
    """
    worst = max(readings, key=lambda one: one.lag)
    return Reading(
        sum(one.redo_bytes for one in readings) / count,
        sum(one.rows for one in readings) / count,
        sum(one.changes for one in readings) / count,
        worst.reading,
        worst.decoding,
        worst.queue,
        worst.apply,
        max(one.waiting for one in readings),
        max(one.queued_bytes for one in readings),
    )


def _forget(connection: sqlite3.Connection, target: str, now: int) -> None:
    for number, level in enumerate(LEVELS):
        connection.execute(_FORGET, (number, target, now - level.span))


def series_document(series: Series, what: Sequence[str]) -> dict[str, Any]:
    """Return a series as JSON: each field is a list of numbers, with null where no reading was
    stored.

    Args:
        what: keys of `SERIES`.
    """
    fields = [field for key in what for field in SERIES[key]]
    return {
        "from": series.start,
        "to": series.end,
        "step": series.step,
        "series": {
            field: [
                None if reading is None else round(getattr(reading, field), 3)
                for reading in series.readings
            ]
            for field in fields
        },
    }


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
