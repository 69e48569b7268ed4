"""Adds to the target a partition that was added in the source.

Oracle adds a partition of ranges only above all others, so its range begins in the target where the
highest range of the target ends. The partition is created as a table of its own and then attached,
because that does not block other sessions (PostgreSQL, ALTER TABLE … ATTACH PARTITION: SHARE UPDATE
EXCLUSIVE on the partitioned table).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg import sql

from olr_pg.postgres.sqlstates import is_transient, plain_words

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetTable

_PARTITIONED: Final = """
SELECT p.partstrat, p.partnatts = 1 AND a.attname IS NOT NULL,
    format_type(a.atttypid, a.atttypmod) || coalesce((
        SELECT format(' COLLATE %%I.%%I', n.nspname, c.collname) FROM pg_collation c
            JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = p.partcollation[0]), ''),
    p.partdefid <> 0,
    to_regclass(format('%%I.%%I', %(schema)s::text, %(name)s::text)) IS NOT NULL
FROM pg_partitioned_table p
    LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        AND a.attnum > 0
WHERE p.partrelid = %(table)s
"""
_UPPER: Final = """
SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM '\\) TO \\((.*)\\)$'), c.relname
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = %s AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
"""
_COPY: Final = (
    "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED"
    " INCLUDING STORAGE)"
)
_LAST: Final = (
    "SELECT quote_literal(v::text), name FROM (VALUES {}) AS e (v, name) ORDER BY v DESC LIMIT 1"
)
_UNBOUNDED: Final = "MAXVALUE"


class Added(NamedTuple):
    """The result of adding a partition to the target.

    Attributes:
        reason: why rows for it will have no partition; empty if they have one.
        is_range: whether a range was added.
        after: the name of the partition after which the range begins; empty if it has no lower
            bound.
    """

    reason: str = ""
    is_range: bool = False
    after: str = ""


def add_partition(
    connection: Connection[Any], target: TargetTable, name: str, values: str, *, by_list: bool
) -> Added:
    """Add a partition in a subtransaction, unless the target has it or needs none.

    Args:
        name: the target's name for the partition, without the table's name.
        values: the end of its range, or the values of its list, as SQL.

    Raises:
        psycopg.Error: an error after which another attempt can succeed.
    """
    partition = f"{target.name}_{name}"
    named = {"table": target.oid, "schema": target.schema, "name": partition}
    row = connection.execute(_PARTITIONED, named).fetchone()
    if row is None:
        return Added()
    strategy, is_plain, kind, has_default, is_there = row
    if is_there or has_default or strategy == "h":
        return Added()
    if strategy != ("l" if by_list else "r") or not is_plain:
        return Added("the target is partitioned by other columns or in another way")
    after = ""
    bounds = values if values == "DEFAULT" else f"FOR VALUES IN ({values})"
    if not by_list:
        lower, after = _highest(connection, target, kind)
        if lower == _UNBOUNDED:
            return Added()
        bounds = f"FOR VALUES FROM ({lower}) TO ({values})"
    new = sql.Identifier(target.schema, partition)
    try:
        with connection.transaction():
            connection.execute(sql.SQL(_COPY).format(new, target.identifier))
            words = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} ")
            attach = words.format(target.identifier, new) + sql.SQL(bounds)
            connection.execute(attach)
    except psycopg.Error as error:
        if is_transient(error):
            raise
        return Added(f"PostgreSQL: {plain_words(error)}")
    return Added(is_range=not by_list, after=after)


def _highest(connection: Connection[Any], target: TargetTable, kind: str) -> tuple[str, str]:
    """Return where the highest range ends, as SQL, and its partition; MINVALUE without ranges."""
    ends = [one for one in connection.execute(_UPPER, (target.oid,)).fetchall() if one[0]]
    if any(end == _UNBOUNDED for end, _ in ends):
        return _UNBOUNDED, ""
    if not ends:
        return "MINVALUE", ""
    typed = sql.SQL(", ").join(
        sql.SQL("({}::{}, {})").format(sql.SQL(end), sql.SQL(kind), sql.Literal(name))
        for end, name in ends
    )
    row = connection.execute(sql.SQL(_LAST).format(typed)).fetchone()
    assert row is not None
    return str(row[0]), str(row[1])
