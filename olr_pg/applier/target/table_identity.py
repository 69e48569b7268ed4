"""Detects that a target table was restored, dropped, or created again without the ledger, or the
ledger without the table.

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

In another database or server, OIDs prove nothing, and they are recorded again. A load records the
OID of a table together with its position, and the applier records the unknown OIDs at each start
and when it plans a table. Before the applier records OIDs, it compares the known OIDs.
`column_check` makes a new plan necessary when another table takes the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.applier.target.catalogue import find_tables
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg import Connection

# Providers of managed services can revoke this right. Then the OIDs are not recorded.
_MAY_READ: Final = "SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
_DATABASE: Final = """
SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database
WHERE datname = current_database()
"""
_EXISTS: Final = "SELECT to_regclass('olr_pg.load_part') IS NOT NULL"
HAS_HAD_ROWS: Final = """(
    EXISTS (SELECT FROM olr_pg.ledger AS t
        WHERE (t.subscription, t.source_table) = (l.subscription, l.source_table)
        AND t.transactions > 0)
    OR EXISTS (SELECT FROM olr_pg.load_part AS p
        WHERE (p.subscription, p.source_table) = (l.subscription, l.source_table) AND p.rows > 0))
"""
"""The condition that the table `l` has had rows: applied, loaded, or brought by a rename."""

_HAD_ROWS: Final = f"""
SELECT {HAS_HAD_ROWS} FROM (VALUES (%s, %s)) AS l (subscription, source_table)
"""  # noqa: S608 - no values
_KNOWN: Final = f"""
SELECT l.target_oid::int8, coalesce(l.target_place, ''), l.tableoid::int8, {HAS_HAD_ROWS}
FROM olr_pg.ledger AS l WHERE subscription = %s AND source_table = %s
"""  # noqa: S608 - no values
# An operator who exchanges a table has locked the row until the other table has the name.
_LOCK: Final = """
SELECT FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s FOR UPDATE
"""
_RECORD: Final = """
UPDATE olr_pg.ledger AS l SET target_oid = %(oid)s, target_place = %(place)s || '/' || l.tableoid
WHERE subscription = %(subscription)s AND source_table = %(source)s
"""
_RECORD_IF_NAMED: Final = f"""
{_RECORD} AND EXISTS (
    SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = %(oid)s AND n.nspname || '.' || c.relname = l.target_table)
"""
_UNKNOWN: Final = """
SELECT source_table, target_table, CASE WHEN target_place LIKE %(place)s || '/%%'
    THEN target_oid::int8 END
FROM olr_pg.ledger AS l WHERE subscription = %(subscription)s
    AND (target_oid IS NULL OR target_place <> %(place)s || '/' || l.tableoid)
"""
_LOCKED: Final = f"{_UNKNOWN} FOR UPDATE SKIP LOCKED"
_RECORD_ALL: Final = """
UPDATE olr_pg.ledger AS l
SET target_oid = found.oid, target_place = %(place)s || '/' || l.tableoid
FROM unnest(%(names)s::text[], %(oids)s::oid[]) AS found (name, oid)
WHERE l.subscription = %(subscription)s AND l.source_table = found.name
"""
_FORGET: Final = """
UPDATE olr_pg.ledger SET target_oid = NULL, target_place = NULL
WHERE subscription = %s AND source_table = ANY(%s)
"""
_MOVED: Final = """
SELECT source_table FROM olr_pg.ledger AS l
WHERE subscription = %s AND target_oid IS NOT NULL AND (
    target_place NOT LIKE '%%/' || l.tableoid OR NOT EXISTS (
        SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = l.target_oid AND n.nspname || '.' || c.relname = l.target_table))
"""


def replaced_reason(
    connection: Connection[Any], subscription: str, source: str, oid: int
) -> OlrPgError | None:
    """Return the error of a table whose rows and ledger do not belong together any more. Return
    None if rows and ledger belong together, if it is unknown whether they do, or if no rows were
    applied.

    Args:
        source: ``OWNER.NAME`` of the source's table.
        oid: the OID of the table that has the target table's name.
    """
    row = _known(connection, subscription, source)
    return None if row is None else _difference(connection, row, source, oid)


def check_identity(connection: Connection[Any], subscription: str, source: str, oid: int) -> None:
    """Check that a target table and the ledger belong together. If it is unknown whether table and
    ledger belong together, record the OID of the table, if the table has a row in the ledger.

    Args:
        source, oid: as for `replaced_reason`.

    Raises:
        OlrPgError: 5046, the table and the ledger do not belong together.
    """
    row = _known(connection, subscription, source)
    if row is None:
        return
    if replaced := _difference(connection, row, source, oid):
        raise replaced
    known_oid, place, ledger_oid, _ = row
    if known_oid != oid or place.rpartition("/")[2] != str(ledger_oid):
        with connection.transaction():
            connection.execute(_LOCK, (subscription, source))
            _record(connection, _RECORD_IF_NAMED, subscription, source, oid)


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
    values: dict[str, Any] = {"place": place, "subscription": subscription}
    with connection.transaction():
        # Most starts find nothing. They update nothing, and need no lock and no right to update.
        if connection.execute(_UNKNOWN, values).fetchone() is None:
            return
        unknown = connection.execute(_LOCKED, values).fetchall()
        oids = _oids(connection, [target for _, target, _ in unknown])
        # If both OIDs differ, both were restored.
        found = {
            source: oids[target]
            for source, target, known in unknown
            if target in oids and oids[target] != known
        }
        if found:
            both = {"names": list(found), "oids": list(found.values())}
            connection.execute(_RECORD_ALL, values | both)


def forget_tables(connection: Connection[Any], subscription: str, sources: Iterable[str]) -> None:
    """Delete the recorded OIDs, because the DDL of the source gives the names to other tables."""
    connection.execute(_FORGET, (subscription, list(sources)))


def lost_table(
    connection: Connection[Any], schema: str, name: str, subscription: str, source: str
) -> OlrPgError | None:
    """Return an error if a missing table had rows, because a new, empty table would silently lack
    them. Else return None.

    Args:
        source: ``OWNER.NAME`` of the source's table.
    """
    if connection.execute(_EXISTS).fetchone() != (True,):
        return None
    if connection.execute(_HAD_ROWS, (subscription, source)).fetchone() != (True,):
        return None
    return OlrPgError(
        Code.TARGET_TABLE_MISSING,
        f"{schema}.{name} does not exist any more, although olr_pg has applied rows to it",
        action="rename the table back if it was renamed, or restore a backup that contains both"
        " the table and the schema olr_pg. Or stop the appliance and load the table"
        f" again: `olr-pg initial-load --anew --table {source}`",
        table=source,
    )


def moved_tables(connection: Connection[Any], subscription: str) -> set[str]:
    """Return the tables for which `replaced_reason` may find an error."""
    return {name for (name,) in connection.execute(_MOVED, (subscription,))}


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


def _difference(
    connection: Connection[Any], row: tuple[int | None, str, int, bool], source: str, oid: int
) -> OlrPgError | None:
    known_oid, place, ledger_oid, had_rows = row
    if known_oid is None or not had_rows:
        return None
    database, _, known_ledger = place.rpartition("/")
    is_same_table, is_same_ledger = known_oid == oid, known_ledger == str(ledger_oid)
    if is_same_table == is_same_ledger or database != _this_database(connection):
        return None
    what = (
        "another table now has the name of the target table: a table was restored, or created"
        " again, without the schema olr_pg"
        if is_same_ledger
        else "the schema olr_pg was restored without the table"
    )
    return OlrPgError(Code.TARGET_TABLE_REPLACED, what, table=source)


def _record(
    connection: Connection[Any], statement: str, subscription: str, source: str, oid: int
) -> None:
    place = _this_database(connection)
    if place is not None:
        values = {"oid": oid, "place": place, "subscription": subscription, "source": source}
        connection.execute(statement, values)


def _known(
    connection: Connection[Any], subscription: str, source: str
) -> tuple[int | None, str, int, bool] | None:
    """Return the recorded OID and place of a table, the OID of the ledger, and whether rows were
    applied. Return None if the ledger, or its row of the table, does not exist yet.
    """
    if connection.execute(_EXISTS).fetchone() != (True,):
        return None
    return connection.execute(_KNOWN, (subscription, source)).fetchone()


def _this_database(connection: Connection[Any]) -> str | None:
    """Return an identification of the server's data directory and the database; None if the role is
    not allowed to read it.
    """
    if connection.execute(_MAY_READ).fetchone() != (True,):
        return None
    row = connection.execute(_DATABASE).fetchone()
    return None if row is None else str(row[0])
