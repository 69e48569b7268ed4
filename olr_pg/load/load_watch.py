"""Observes a load over a separate connection: how much is loaded, and how much PostgreSQL is
receiving now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from olr_pg.applier.target.connection import connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

_ANSWER_SECONDS: Final = 5.0
"""Maximum time to wait for an answer. It is short, because a query is quick and the next one
follows soon.
"""

_PARTS = """
SELECT l.source_table, coalesce(sum(p.rows), 0)::int8, coalesce(sum(p.bytes), 0)::int8,
    count(p.part), l.parts
FROM olr_pg.load l LEFT JOIN olr_pg.load_part p USING (subscription, source_table)
WHERE l.subscription = %s GROUP BY l.source_table, l.parts
"""
_UNDER_WAY = """
SELECT n.nspname, c.relname, sum(p.tuples_processed)::int8, sum(p.bytes_processed)::int8
FROM pg_stat_progress_copy p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.datname = current_database() AND p.command = 'COPY FROM' GROUP BY 1, 2
"""


class Amount(NamedTuple):
    """How much of a table is loaded.

    Attributes:
        rows: number of rows, including rows that PostgreSQL is receiving now.
        bytes: number of bytes sent by COPY.
        expected: total number of rows, estimated from the loaded partitions; None if no partition
            is loaded.
        is_done: whether all partitions are loaded.
    """

    rows: int = 0
    bytes: int = 0
    expected: int | None = None
    is_done: bool = False


class LoadWatch:
    """Observes a load over its own connection to the target.

    Args:
        targets: ``OWNER.NAME`` → (schema, table) in the target.
    """

    def __init__(
        self, connect_string: str, subscription: str, targets: Mapping[str, tuple[str, str]]
    ) -> None:
        self._connection = connect(connect_string, replica=None, answer_seconds=_ANSWER_SECONDS)
        self._subscription = subscription
        self._sources = {target: source for source, target in targets.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection to the target."""
        return self._connection

    def read(self) -> dict[str, Amount]:
        """Read how much of each table is loaded, by ``OWNER.NAME``."""
        found = dict[str, Amount]()
        for name, rows, size, done, parts in self._connection.execute(
            _PARTS, (self._subscription,)
        ):
            expected = rows * parts // done if done else None
            found[name] = Amount(rows, size, expected, is_done=done == parts)
        for schema, table, rows, size in self._connection.execute(_UNDER_WAY):
            source = self._sources.get((schema, table))
            if source is not None:
                before = found.get(source, Amount())
                found[source] = before._replace(rows=before.rows + rows, bytes=before.bytes + size)
        return found
