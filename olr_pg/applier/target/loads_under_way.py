"""Reads the progress of a subscription's initial loads, for status displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

# Select the age, not the time, because the clock of the target can differ from ours.
_READ: Final = """
SELECT l.source_table, l.scn, l.parts, p.parts, p.rows, p.bytes,
    extract(epoch FROM clock_timestamp() - l.started_at)::float8
FROM olr_pg.load AS l CROSS JOIN LATERAL (
    SELECT count(*) AS parts, coalesce(sum(rows), 0)::int8 AS rows,
        coalesce(sum(bytes), 0)::int8 AS bytes
    FROM olr_pg.load_part AS p
    WHERE p.subscription = l.subscription AND p.source_table = l.source_table
) AS p
WHERE l.subscription = %s AND l.finished_at IS NULL ORDER BY l.source_table
"""


class TableLoad(NamedTuple):
    """The progress of one table's load.

    Attributes:
        scn: the SCN as of which the table's rows are read.
        parts, parts_done: into how many parts the load is divided, and how many of them are loaded.
        rows, bytes: the numbers of rows and bytes that were loaded so far.
        began: when the load began, as Unix time in seconds.
    """

    table: str
    scn: int
    parts: int
    parts_done: int
    rows: int
    bytes: int
    began: float


class LoadsUnderWay:
    """The loads of a subscription that were in progress at the last `look`; thread-safe."""

    def __init__(self, subscription: str) -> None:
        self._subscription = subscription
        self.loads: Sequence[TableLoad] = ()

    def look(self, connection: Connection[Any]) -> None:
        """Read the loads from the target."""
        found = connection.execute(_READ, (self._subscription,)).fetchall()
        now = steady_time()
        self.loads = tuple(
            TableLoad(name, scn, parts, done, rows, size, now - max(age, 0.0))
            for name, scn, parts, done, rows, size, age in found
        )
