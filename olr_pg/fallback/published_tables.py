"""Checks that PostgreSQL sends every change of the fallback's tables.

PostgreSQL sends no DDL, and it sends nothing that would show that changes are missing:

- A publication contains tables by their OID. A table that was dropped and created again, or removed
  from the publication, is not in it any more, and a renamed table has another name in the stream.
  Such a table must stop, because its changes would be lost.
- The tables are published as a whole (``publish_via_partition_root``). Then PostgreSQL does not
  send the TRUNCATE of one partition (CREATE PUBLICATION), and it never sends DROP and DETACH. The
  rows stay in Oracle. Partitions are often removed on purpose, so this is only reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.fallback.relation_plans import OWN_TABLES, target_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.fallback.way_back import WayBack

_PUBLISHED: Final = """
SELECT w.schema, w.name, c.oid IS NOT NULL,
    p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate
    AND (p.pubviaroot OR c.relkind = 'r')
    AND (p.puballtables
        OR EXISTS (SELECT FROM pg_publication_namespace s
            WHERE s.pnpubid = p.oid AND s.pnnspid = n.oid)
        OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid
            AND r.prqual IS NULL AND r.prattrs IS NULL)) IS TRUE
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
LEFT JOIN pg_namespace n ON n.nspname = w.schema
LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind IN ('r', 'p')
LEFT JOIN pg_publication p ON p.pubname = %s
"""
_PARTITIONS: Final = """
WITH RECURSIVE part AS (
    SELECT w.schema, w.name, c.oid
    FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
    JOIN pg_namespace n ON n.nspname = w.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind = 'p'
  UNION ALL
    SELECT part.schema, part.name, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT c.oid::int8, part.schema, part.name, c.relname, c.relfilenode::int8, c.reltuples < 0
FROM part JOIN pg_class c ON c.oid = part.oid WHERE c.relkind = 'r'
"""
"""Only the catalogue is read: the functions for partitions and sizes would wait for locks."""


def unpublished(way: WayBack, connection: Connection[Any]) -> dict[tuple[str, str], str]:
    """Return the tables whose changes the publication does not contain, with the reason.

    A publication contains tables by their OID. So it does not contain a table that was dropped and
    created again, and PostgreSQL then sends nothing of the new table, without an error.

    Returns:
        (schema, name) in PostgreSQL → the reason; also for `OWN_TABLES`.
    """
    wanted = [*target_tables(way), *OWN_TABLES]
    schemas, names = ([one[place] for one in wanted] for place in (0, 1))
    rows = connection.execute(_PUBLISHED, (schemas, names, way.publication)).fetchall()
    return {
        (schema, name): f"the publication {way.publication} does not contain all changes of"
        f" {schema}.{name}: the table was created again, or the publication was changed"
        if exists
        else f"PostgreSQL has no table {schema}.{name}: it was renamed or dropped"
        for schema, name, exists, is_published in rows
        if not is_published
    }


class EmptiedPartition(NamedTuple):
    """A partition of PostgreSQL whose rows have gone without a message to Oracle.

    Attributes:
        table: ``OWNER.NAME`` of its table in Oracle.
        partition: its name in PostgreSQL.
        reason: what happened to it.
    """

    table: str
    partition: str
    reason: str


class _Leaf(NamedTuple):
    table: tuple[str, str]
    name: str
    file: int
    is_new: bool


class PartitionWatch:
    """Notices partitions that are emptied or removed between two calls of `emptied`.

    Args:
        connection: a connection to PostgreSQL in autocommit mode.
    """

    def __init__(self, way: WayBack, connection: Connection[Any]) -> None:
        self._tables = target_tables(way)
        self._connection = connection
        self._leaves = self._read()

    def _read(self) -> dict[int, _Leaf]:
        schemas, names = ([one[place] for one in self._tables] for place in (0, 1))
        rows = self._connection.execute(_PARTITIONS, (schemas, names)).fetchall()
        return {
            oid: _Leaf((schema, name), partition, file, is_new)
            for oid, schema, name, partition, file, is_new in rows
        }

    def emptied(self) -> Iterator[EmptiedPartition]:
        """Yield the partitions that were emptied or removed since the last call.

        TRUNCATE gives the partition a new file whose number of rows is unknown to PostgreSQL.
        VACUUM FULL and CLUSTER also give it a new file, but count its rows.

        Raises:
            psycopg.Error: the catalogue cannot be read.
        """
        before, self._leaves = self._leaves, self._read()
        for oid, leaf in before.items():
            now = self._leaves.get(oid)
            if now is None:
                reason = "it was dropped or detached"
            elif now.file != leaf.file and now.is_new:
                reason = "it was truncated or rewritten"
            else:
                continue
            yield EmptiedPartition(self._tables[leaf.table].full_name, leaf.name, reason)
