"""Looks at a load from outside: what is in, and what PostgreSQL is taking in just now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import psycopg

from olr_pg.postgres.keepalive import vigilant

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARTS = """
SELECT source_table, sum(rows)::int8, sum(bytes)::int8 FROM olr_pg.load_part
WHERE subscription = %s GROUP BY source_table
"""
_UNDER_WAY = """
SELECT n.nspname, c.relname, sum(p.tuples_processed)::int8, sum(p.bytes_processed)::int8
FROM pg_stat_progress_copy p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.datname = current_database() AND p.command = 'COPY FROM' GROUP BY 1, 2
"""


class Amount(NamedTuple):
    """Rows, and bytes of COPY."""

    rows: int = 0
    bytes: int = 0


class LoadWatch:
    """A look at a load, over a connection of its own.

    Args:
        targets: ``OWNER.NAME`` → (schema, table) in the target.
    """

    def __init__(
        self, connect_string: str, subscription: str, targets: Mapping[str, tuple[str, str]]
    ) -> None:
        self._connection = psycopg.connect(
            vigilant(connect_string), autocommit=True, application_name="olr_pg load progress"
        )
        self._subscription = subscription
        self._sources = {target: source for source, target in targets.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection that it looks over."""
        return self._connection

    def read(self) -> dict[str, Amount]:
        """Read what each table has, by ``OWNER.NAME``."""
        found = {
            name: Amount(rows, size)
            for name, rows, size in self._connection.execute(_PARTS, (self._subscription,))
        }
        for schema, table, rows, size in self._connection.execute(_UNDER_WAY):
            source = self._sources.get((schema, table))
            if source is not None:
                done = found.get(source, Amount())
                found[source] = Amount(done.rows + rows, done.bytes + size)
        return found
