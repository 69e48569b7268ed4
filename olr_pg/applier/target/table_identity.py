"""Detects that a target table was restored, dropped, emptied, or created again without the ledger,
or the ledger without the table.

`pg_restore --clean --schema` and DROP TABLE with CREATE TABLE put another table in the place of a
target table. After such an exchange, the ledger records changes as applied that the new table may
lack. Most later changes would still succeed, and inserts always do. So the ledger stores the OID of
each target table, which identifies the table as long as it exists: TRUNCATE, VACUUM FULL, CLUSTER,
REINDEX and ALTER TABLE keep it (PostgreSQL's pages System Catalogs, pg_class, and CREATE TABLE).

A restore or copy of the whole database must not look like this. So the ledger also stores in which
database the OID is valid, and the OID of the ledger itself:

| the ledger | the table | meaning |
| --- | --- | --- |
| same | same | nothing happened, or PostgreSQL copied its files (standby, base backup, template) |
| another | another | both were restored: the ledger describes the rows |
| same | another | the table was restored or created again without the ledger |
| another | same | the ledger was restored without the table |

In another database or server, OIDs prove nothing, and they are recorded again, with a warning. But
an empty table that must have rows was restored without its rows. A load records the OID of a table
together with its position, and the applier records the unknown OIDs at each start and when it plans
a table. Before the applier records OIDs, it compares the known OIDs.
`column_check` makes a new plan necessary when another table takes the name.

TRUNCATE gives a table another file, like VACUUM FULL, CLUSTER and some forms of ALTER TABLE. So the
ledger also stores the number of the file. If the file is another one and the table is empty,
somebody has emptied the table, unless the changes of the source have deleted all rows: the ledger
knows at which number of inserted and deleted rows the table is empty (`empty_at`). If the table has
rows, a restore after TRUNCATE looks like VACUUM FULL: a warning advises to compare the table.
The applier looks at each start and, unless the table is partitioned, before each commit
(`column_check`). Otherwise the applier's own rows could hide that the table was emptied.

Of a partitioned table, the ledger stores the files of all partitions. At the next start, a warning
names the partitions that are missing, or are empty and have another file. The table does not stop,
because these partitions may have had no rows.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from psycopg import sql

from olr_pg.applier.target.catalogue import find_tables, has_rows, relation_exists
from olr_pg.applier.target.ledger import LOCK_ROW
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psycopg import Connection

_NAMED_MAX: Final = 20
"""Maximum number of tables that one warning names."""

_log = structlog.get_logger(__name__)

COPIED: Final = "copied by another tool"
"""The identity of the data of a load whose rows another tool copies (`load.copied_rows`).
`ledger.sql` repeats it, because operators run that file as it is.
"""

# Providers of managed services can revoke this right. Then the OIDs are not recorded.
_MAY_READ: Final = "SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
_DATABASE: Final = """
SELECT system_identifier::text || '/' || oid::text FROM pg_control_system(), pg_database
WHERE datname = current_database()
"""
HAS_HAD_ROWS: Final = """(
    EXISTS (SELECT FROM olr_pg.ledger AS t
        WHERE (t.subscription, t.source_table) = (l.subscription, l.source_table)
        AND t.transactions > 0)
    OR EXISTS (SELECT FROM olr_pg.load_part AS p
        WHERE (p.subscription, p.source_table) = (l.subscription, l.source_table) AND p.rows > 0))
"""
"""The condition that the table `l` has had rows: applied, loaded, or brought by a rename."""

_HAD_ROWS: Final = f"""
SELECT l.source_table
FROM (SELECT %s AS subscription, unnest(%s::text[]) AS source_table) AS l WHERE {HAS_HAD_ROWS}
"""  # noqa: S608 - no values
_KNOWN: Final = f"""
SELECT l.source_table, l.target_oid::int8, coalesce(l.target_place, ''), l.tableoid::int8,
    {HAS_HAD_ROWS}, coalesce(l.inserted - l.deleted = l.empty_at, false),
    l.target_file IS NOT NULL
FROM olr_pg.ledger AS l WHERE subscription = %s AND source_table = ANY(%s)
"""  # noqa: S608 - no values
_RECORD: Final = """
UPDATE olr_pg.ledger AS l SET target_oid = %(oid)s, target_file = NULL,
    target_place = %(place)s || '/' || l.tableoid::text
WHERE subscription = %(subscription)s AND source_table = %(source)s
"""
_RECORD_IF_NAMED: Final = f"""
{_RECORD} AND EXISTS (
    SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = %(oid)s AND n.nspname || '.' || c.relname = l.target_table)
"""
_UNKNOWN: Final = """
SELECT source_table, target_table, CASE WHEN target_place LIKE %(place)s || '/%%'
    THEN target_oid::int8 END, coalesce(target_place NOT LIKE %(place)s || '/%%', false)
FROM olr_pg.ledger AS l WHERE subscription = %(subscription)s
    AND (target_oid IS NULL
        OR target_place <> %(place)s || '/' || l.tableoid::text AND NOT stopped)
"""
_LOCKED: Final = f"{_UNKNOWN} FOR UPDATE SKIP LOCKED"
_RECORD_ALL: Final = """
UPDATE olr_pg.ledger AS l
SET target_oid = found.oid, target_place = %(place)s || '/' || l.tableoid::text, target_file = NULL
FROM unnest(%(names)s::text[], %(oids)s::oid[]) AS found (name, oid)
WHERE l.subscription = %(subscription)s AND l.source_table = found.name
"""
_FORGET: Final = """
UPDATE olr_pg.ledger SET target_oid = NULL, target_place = NULL
WHERE subscription = %s AND source_table = ANY(%s)
"""
_PARTITIONS: Final = """
    WITH RECURSIVE part AS (
        SELECT oid FROM pg_class WHERE oid = l.target_oid AND relkind = 'p'
      UNION ALL
        SELECT i.inhrelid FROM pg_inherits AS i JOIN part ON i.inhparent = part.oid
        WHERE NOT i.inhdetachpending
    )
    SELECT {} FROM part JOIN pg_class AS c ON c.oid = part.oid AND c.relkind <> 'p'"""
"""Selects the partitions, of partitions too, that store the rows of the target table `l`. Unlike
pg_partition_tree, this locks no partition: the locks of some thousand partitions would need more
memory than PostgreSQL has for locks.
"""
_FILE: Final = f"""coalesce(pg_relation_filenode(l.target_oid)::int8,
    ({_PARTITIONS.format("sum(pg_relation_filenode(c.oid)::int8)")}), 0)::int8"""
_PARTS: Final = f"""({
    _PARTITIONS.format(
        "jsonb_object_agg(c.oid::text,"
        " jsonb_build_array(pg_relation_filenode(c.oid)::int8, c.oid::regclass::text))"
    )
})"""
"""The partitions of a partitioned table that store rows, with the numbers of their files."""

_LOST_PARTS: Final = """ARRAY(
    SELECT was.value ->> 1 FROM jsonb_each(l.target_parts) AS was
    WHERE NOT EXISTS (SELECT FROM pg_partition_ancestors(was.key::oid) AS above
            WHERE above.relid = l.target_oid)
        OR pg_relation_filenode(was.key::oid)::int8 <> (was.value ->> 0)::int8
            AND pg_relation_size(was.key::oid) = 0
    ORDER BY 1)"""
"""The recorded partitions that are no partitions any more, or are empty and have another file."""

_RECORD_FILES: Final = f"""
UPDATE olr_pg.ledger AS l SET target_file = {_FILE}, target_parts = {_PARTS}
FROM (SELECT source_table FROM olr_pg.ledger AS l
    WHERE subscription = %(subscription)s AND target_oid IS NOT NULL AND target_file IS NULL
        AND (%(source)s::text IS NULL OR source_table = %(source)s)
    FOR UPDATE SKIP LOCKED) AS found
WHERE l.subscription = %(subscription)s AND l.source_table = found.source_table
"""  # noqa: S608 - constants alone
# A server that is read-only for a while, as during a switchover, does not end a start.
_HAS_UNKNOWN_FILES: Final = """
SELECT FROM olr_pg.ledger
WHERE subscription = %(subscription)s AND target_oid IS NOT NULL AND target_file IS NULL
    AND current_setting('transaction_read_only') = 'off' LIMIT 1
"""
_FORGET_FILE: Final = """
UPDATE olr_pg.ledger SET target_file = NULL WHERE subscription = %s AND source_table = %s
    AND target_file IS NOT NULL
"""
_FORGET_NUMBER: Final = """
UPDATE olr_pg.ledger SET empty_at = NULL WHERE subscription = %s AND source_table = %s
"""
_IS_EMPTY: Final = """
UPDATE olr_pg.ledger SET empty_at = inserted - deleted WHERE subscription = %s AND source_table = %s
"""
_NAMES: Final = """
SELECT source_table, oid::regclass::text FROM unnest(%s::text[], %s::oid[]) AS a (source_table, oid)
"""
_EXPECT_EMPTY: Final = sql.SQL(
    "UPDATE olr_pg.ledger SET empty_at = inserted - deleted"
    " WHERE subscription = {} AND source_table = {}"
)
_REWRITTEN: Final = f"""
SELECT l.source_table, c.oid::regclass::text, c.relkind = 'p', {_LOST_PARTS}
FROM unnest(%s::text[], %s::oid[]) AS asked (source_table, oid)
JOIN olr_pg.ledger AS l ON (l.source_table, l.target_oid) = (asked.source_table, asked.oid)
JOIN pg_class AS c ON c.oid = l.target_oid
WHERE l.subscription = %s AND l.target_file <> {_FILE}
"""  # noqa: S608 - constants alone
_MOVED: Final = f"""
SELECT source_table FROM olr_pg.ledger AS l
WHERE subscription = %s AND target_oid IS NOT NULL AND (target_file <> {_FILE} OR
    target_place NOT LIKE coalesce(%s, '%%') || '/' || l.tableoid::text OR NOT EXISTS (
        SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = l.target_oid AND n.nspname || '.' || c.relname = l.target_table))
"""  # noqa: S608 - constants alone


class _Recorded(NamedTuple):
    """What the ledger records about a table: its OID, the place in which the OID is valid, and
    whether rows were applied, and whether all of them were deleted again by changes of the source;
    also the OID of the ledger itself, and whether it records the number of the table's file.
    """

    oid: int | None
    place: str
    ledger_oid: int
    had_rows: bool
    all_deleted: bool
    has_file: bool


class _Rewritten(NamedTuple):
    """A target table with another file than the recorded one: its quoted name, whether it is
    partitioned, and the names of the partitions that were detached, dropped or emptied.
    """

    name: str
    is_partitioned: bool
    lost_partitions: list[str]


def replaced_reasons(
    connection: Connection[Any], subscription: str, oids: Mapping[str, int]
) -> dict[str, OlrPgError]:
    """Return the errors of tables whose rows and ledger do not belong together any more.

    Tables are left out if rows and ledger belong together, if it is unknown whether they do, or if
    no rows were applied.

    Args:
        oids: by ``OWNER.NAME`` of the source's table, the OID of the table that has the target
            table's name.
    """
    known = _known(connection, subscription, list(oids))
    return _reasons(connection, subscription, known, oids)


def _reasons(
    connection: Connection[Any],
    subscription: str,
    known: Mapping[str, _Recorded],
    oids: Mapping[str, int],
) -> dict[str, OlrPgError]:
    found = _differences(connection, known, oids)
    others = {source: row for source, row in known.items() if source not in found}
    return found | _emptied(connection, subscription, others, oids)


def check_identity(connection: Connection[Any], subscription: str, source: str, oid: int) -> None:
    """Check that a target table and the ledger belong together. If it is unknown whether table and
    ledger belong together, record the OID and the file of the table, if the table has a row in the
    ledger.

    Args:
        source: ``OWNER.NAME`` of the source's table.
        oid: the OID of the table that has the target table's name.

    Raises:
        OlrPgError: 5046, the table and the ledger do not belong together.
    """
    known = _known(connection, subscription, [source])
    if source not in known:
        return
    for error in _reasons(connection, subscription, known, {source: oid}).values():
        raise error
    row = known[source]
    if row.oid != oid or row.place.rpartition("/")[2] != str(row.ledger_oid):
        with connection.transaction():
            # An operator who exchanges a table has locked the row until the other table has the
            # name.
            connection.execute(LOCK_ROW, (subscription, source))
            _record(connection, _RECORD_IF_NAMED, subscription, source, oid)
            _record_file(connection, subscription, source)
    elif not row.has_file:
        _record_file(connection, subscription, source)
    else:
        accept_file(connection, subscription, source)


def record_loaded(connection: Connection[Any], subscription: str, source: str, oid: int) -> None:
    """Record the OID of the table that contains the rows of a load, even if another table has its
    name by now. The transaction must have locked the ledger's row.
    """
    _record(connection, _RECORD, subscription, source, oid)


def record_tables(connection: Connection[Any], subscription: str) -> None:
    """Record the OIDs of all target tables for which nothing is known in this database.

    Tables that another session exchanges at the moment are left out: their next plan records them.
    """
    place = _this_database(connection)
    if place is None:
        return
    values: dict[str, Any] = {"place": place, "subscription": subscription, "source": None}
    # Most starts find nothing. They update nothing, and need no lock and no right to update.
    if connection.execute(_UNKNOWN, values).fetchone() is not None:
        _record_unknown(connection, values)
    if connection.execute(_HAS_UNKNOWN_FILES, values).fetchone() is not None:
        connection.execute(_RECORD_FILES, values)


def _record_unknown(connection: Connection[Any], values: dict[str, Any]) -> None:
    with connection.transaction():
        unknown = connection.execute(_LOCKED, values).fetchall()
        oids = _oids(connection, [target for _, target, *_ in unknown])
        # If both OIDs differ, both were restored.
        found = {
            source: oids[target]
            for source, target, known, _ in unknown
            if target in oids and oids[target] != known
        }
        moved = sorted(source for source, *_, is_elsewhere in unknown if is_elsewhere)
        if moved:
            _log.warning(
                "the ledger comes from another database: if its tables were not restored together"
                " with it, compare them with `olr-pg verify`",
                tables=moved[:_NAMED_MAX],
                number=len(moved),
            )
        if found:
            both = {"names": list(found), "oids": list(found.values())}
            connection.execute(_RECORD_ALL, values | both)


def forget_tables(connection: Connection[Any], subscription: str, sources: Iterable[str]) -> None:
    """Delete the recorded OIDs, because the DDL of the source gives the names to other tables."""
    connection.execute(_FORGET, (subscription, list(sources)))


def forget_file(connection: Connection[Any], subscription: str, source: str) -> None:
    """Delete the recorded number of a table's file, because a DDL of the source is applied."""
    connection.execute(_FORGET_FILE, (subscription, source))


def record_emptied(connection: Connection[Any], subscription: str, source: str) -> None:
    """Record that the table has no rows now, because a DDL of the source has emptied it."""
    connection.execute(_IS_EMPTY, (subscription, source))


def forget_number(connection: Connection[Any], subscription: str, source: str) -> None:
    """Record that the number of the table's rows does not follow from the ledger any more."""
    connection.execute(_FORGET_NUMBER, (subscription, source))


def accept_file(connection: Connection[Any], subscription: str, source: str) -> None:
    """Log a warning if the table was rewritten since the last start, and record its new file."""
    oids = {
        name: row.oid
        for name, row in _known(connection, subscription, [source]).items()
        if row.oid is not None
    }
    found = _rewritten(connection, subscription, oids).get(source)
    if found is None:
        return
    if found.lost_partitions:
        _log.warning(
            "somebody has detached, dropped or emptied partitions of the target table: if they had"
            " rows, compare the table with `olr-pg verify`",
            table=source,
            target=found.name,
            partitions=", ".join(found.lost_partitions),
        )
    elif not found.is_partitioned:  # a partition may have been added
        _log.warning(
            "the target table has another file: if nobody ran VACUUM FULL, CLUSTER or ALTER TABLE,"
            " somebody emptied it and restored rows: compare it with `olr-pg verify`",
            table=source,
            target=found.name,
        )
    with connection.transaction():
        forget_file(connection, subscription, source)
        _record_file(connection, subscription, source)


def _record_file(connection: Connection[Any], subscription: str, source: str) -> None:
    """Record the number of the table's file, if it is unknown and the table's OID is known."""
    connection.execute(_RECORD_FILES, {"subscription": subscription, "source": source})


def vanished_tables(
    connection: Connection[Any], subscription: str, missing: Mapping[str, tuple[str, str]]
) -> dict[str, OlrPgError]:
    """Return the errors of missing tables that had rows, because new, empty tables would silently
    lack them.

    Args:
        missing: by ``OWNER.NAME`` of the source's table, schema and name of the missing table.
    """
    if not missing or not relation_exists(connection, "olr_pg.load_part"):
        return {}
    rows = connection.execute(_HAD_ROWS, (subscription, list(missing))).fetchall()
    return {source: _vanished(source, *missing[source]) for (source,) in rows}


def _vanished(source: str, schema: str, name: str) -> OlrPgError:
    return OlrPgError(
        Code.TARGET_TABLE_MISSING,
        f"{schema}.{name} does not exist any more, although olr_pg has applied rows to it",
        action="rename the table back if it was renamed, or restore a backup that contains both"
        " the table and the schema olr_pg. Or stop the appliance and load the table"
        f" again: `olr-pg initial-load --anew --table {shlex.quote(source)}`",
        table=source,
    )


def moved_tables(connection: Connection[Any], subscription: str) -> set[str]:
    """Return the tables for which `replaced_reasons` may find an error."""
    asked = subscription, _this_database(connection)
    return {name for (name,) in connection.execute(_MOVED, asked)}


def _oids(connection: Connection[Any], targets: Iterable[str]) -> dict[str, int]:
    """Return the OIDs of tables by ``schema.name``.

    A name with dots can be the name of two tables. Such a name is left out, because only the plan
    of the table knows which table it is.
    """
    readings = {
        target: [(target[:at], target[at + 1 :]) for at, one in enumerate(target) if one == "."]
        for target in targets
    }
    tables = find_tables(connection, [name for names in readings.values() for name in names])
    found = {
        target: [tables[name][0] for name in names if name in tables]
        for target, names in readings.items()
    }
    return {target: oids[0] for target, oids in found.items() if len(oids) == 1}


def _differences(
    connection: Connection[Any], known: Mapping[str, _Recorded], oids: Mapping[str, int]
) -> dict[str, OlrPgError]:
    """Return the errors of tables of which only the table, or only the ledger, is another one."""
    differing = {
        source: is_same_ledger
        for source, row in known.items()
        if row.oid is not None and row.had_rows
        if (is_same_ledger := row.place.rpartition("/")[2] == str(row.ledger_oid))
        != (row.oid == oids[source])
    }
    this = _this_database(connection) if differing else None
    return {
        source: _replaced(source, is_same_ledger=is_same_ledger)
        for source, is_same_ledger in differing.items()
        if known[source].place.rpartition("/")[0] == this
    }


def _replaced(source: str, *, is_same_ledger: bool) -> OlrPgError:
    what = (
        "another table now has the name of the target table: a table was restored, or created"
        " again, without the schema olr_pg"
        if is_same_ledger
        else "the schema olr_pg was restored without the table"
    )
    return OlrPgError(Code.TARGET_TABLE_REPLACED, what, table=source)


def _emptied(
    connection: Connection[Any],
    subscription: str,
    known: Mapping[str, _Recorded],
    oids: Mapping[str, int],
) -> dict[str, OlrPgError]:
    """Return the errors of tables that somebody has emptied, for example with TRUNCATE, or has
    restored without their rows in another database.
    """
    had_rows = {
        source: row for source, row in known.items() if row.had_rows and not row.all_deleted
    }
    here = _this_database(connection) if had_rows else None
    if here is None:
        return {}
    asked = {
        source: oids[source]
        for source, row in had_rows.items()
        if row.place == f"{here}/{row.ledger_oid}"
    }
    restored = {
        source: oids[source]
        for source, row in had_rows.items()
        if row.oid is not None and row.place.rpartition("/")[0] != here
    }
    names = {
        source: one.name for source, one in _rewritten(connection, subscription, asked).items()
    }
    if restored:
        asked_names = list(restored), list(restored.values())
        names |= dict(connection.execute(_NAMES, asked_names).fetchall())
    return {
        source: _emptied_error(subscription, source, is_restored=source in restored)
        for source, name in names.items()
        # The name is quoted by PostgreSQL.
        if not has_rows(connection, sql.SQL(name))
    }


def _rewritten(
    connection: Connection[Any], subscription: str, oids: Mapping[str, int]
) -> dict[str, _Rewritten]:
    """Return the tables with another file than the recorded one, by ``OWNER.NAME``."""
    if not oids:
        return {}
    asked = list(oids), list(oids.values()), subscription
    rows = connection.execute(_REWRITTEN, asked).fetchall()
    return {source: _Rewritten(*row) for source, *row in rows}


def _emptied_error(subscription: str, source: str, *, is_restored: bool) -> OlrPgError:
    what = (
        "restored the target table without its rows" if is_restored else "emptied the target table"
    )
    word = shlex.quote(source)
    expect_empty = _EXPECT_EMPTY.format(*map(sql.Literal, (subscription, source))).as_string()
    return OlrPgError(
        Code.TARGET_TABLE_REPLACED,
        f"somebody has {what}, although olr_pg has applied rows to it",
        action="stop the appliance and load the table again: `olr-pg initial-load --anew --table"
        f" {word}`. If the source's table is empty too, run in the target"
        f" `{expect_empty}`, and then `olr-pg errors retry {word}`."
        f" If you have copied all rows, run only `olr-pg errors retry {word}`",
        table=source,
    )


def _record(
    connection: Connection[Any], statement: str, subscription: str, source: str, oid: int
) -> None:
    place = _this_database(connection)
    if place is not None:
        values = {"oid": oid, "place": place, "subscription": subscription, "source": source}
        connection.execute(statement, values)


def _known(
    connection: Connection[Any], subscription: str, sources: Sequence[str]
) -> dict[str, _Recorded]:
    """Return what the ledger records about tables. Tables without a row in the ledger are left out;
    without a ledger, all are.
    """
    if not relation_exists(connection, "olr_pg.load_part"):
        return {}
    rows = connection.execute(_KNOWN, (subscription, sources)).fetchall()
    return {source: _Recorded(*row) for source, *row in rows}


def _this_database(connection: Connection[Any]) -> str | None:
    """Return an identification of the server's data directory and the database; None if the role is
    not allowed to read it.
    """
    if connection.execute(_MAY_READ).fetchone() != (True,):
        return None
    row = connection.execute(_DATABASE).fetchone()
    return None if row is None else str(row[0])
