"""The initial loads of a subscription that are under way, for whoever watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

# The age, not the time: the target has a clock of its own.
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
    """The load of one table.

    Attributes:
        scn: as of which its rows are.
        parts, parts_done: partitions in all, and those that are in.
        rows, bytes: that are in.
        began: seconds of Unix time.
    """

    table: str
    scn: int
    parts: int
    parts_done: int
    rows: int
    bytes: int
    began: float


class LoadsUnderWay:
    """The loads of a subscription at the last look; for any thread."""

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
