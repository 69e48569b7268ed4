"""Checks whether supplemental logging writes the key of every changed row to the redo (dictionary
§9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import Connection, select

from olr_pg.dictionary.model import KeyKind, Snapshot, Table
from olr_pg.oracle import tables
from olr_pg.oracle.allowed_queries import rows_if_allowed, unreadable
from olr_pg.oracle.facts import FIRST_CDB
from olr_pg.oracle.tables import among, batches

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from olr_pg.dictionary.sys_rows import SysRows

ALL: Final = "ALL"
PRIMARY_KEY: Final = "PRIMARY KEY"

NO_MINIMAL_LOGGING: Final = (
    "minimal supplemental logging is off, so rows that consist of several pieces cannot be read",
    "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;",
)
"""The problem, and the SQL that solves it."""

_GROUP: Final = 12
_TABLE_PRIMARY_KEY: Final = 14
_TABLE_ALL: Final = 17
"""Values of CDEF$.TYPE# (dictionary §2.5)."""

_SCHEMA_PRIMARY_KEY: Final = 1
_SCHEMA_ALL: Final = 8
"""Bits of USER$.SPARE1 (dictionary §2.2)."""


class Levels(NamedTuple):
    """The columns that are logged for every table, according to the settings of the database or of
    the current container.
    """

    minimal: bool
    primary_key: bool
    everything: bool


def read_levels(connection: Connection) -> Levels:
    """Read the logging levels of the database and of the current PDB.

    V$DATABASE contains the levels of the whole database; a PDB can have further levels. If the
    account cannot read DBA_SUPPLEMENTAL_LOGGING, the levels of the PDB are unknown.
    """
    columns = tables.DATABASE.c
    told = [
        connection.execute(
            select(
                columns.SUPPLEMENTAL_LOG_DATA_MIN,
                columns.SUPPLEMENTAL_LOG_DATA_PK,
                columns.SUPPLEMENTAL_LOG_DATA_ALL,
            )
        ).one()
    ]
    if _has_containers(connection):
        own = tables.SUPPLEMENTAL.c
        query = select(own.MINIMAL, own.PRIMARY_KEY, own.ALL_COLUMN)
        told += rows_if_allowed(connection, query) or ()
    # The value is not only YES or NO: for minimal logging it is IMPLICIT if another level includes
    # it.
    return Levels(*(any(value != "NO" for value in level) for level in zip(*told, strict=True)))


def may_read_levels(connection: Connection) -> bool | None:
    """Return whether the account can read the PDB's own levels of supplemental logging; None for a
    release without PDBs.
    """
    if not _has_containers(connection):
        return None
    return not unreadable(connection, [tables.SUPPLEMENTAL])


def _has_containers(connection: Connection) -> bool:
    """Return whether the release supports containers."""
    return (connection.dialect.server_version_info or ()) >= FIRST_CDB


class Logged(NamedTuple):
    """The columns of a changed row that the redo always contains.

    Attributes:
        everything: whether every column is logged.
        primary_key: whether the columns of the primary key are logged.
        grouped: INTCOL# of the columns in named log groups.
    """

    everything: bool
    primary_key: bool
    grouped: frozenset[int]


def unlogged_tables(
    connection: Connection, snapshot: Snapshot, chosen: Sequence[Table]
) -> Iterator[tuple[Table, str]]:
    """Yield the tables whose key is not logged, with the logging level that they need.

    Minimal logging is checked separately; without it, the other levels have no effect.
    """
    yield from without_key(logged_columns(connection, snapshot, chosen))


def without_key(found: Iterable[tuple[Table, Logged]]) -> Iterator[tuple[Table, str]]:
    """Yield the tables whose key is not logged, with the logging level that they need."""
    for table, logged in found:
        has_primary_key = table.key_kind is KeyKind.PRIMARY
        if logged.everything or (has_primary_key and logged.primary_key):
            continue
        if table.key and logged.grouped.issuperset(table.key):
            continue
        yield table, PRIMARY_KEY if has_primary_key else ALL


def without_key_words(table: Table, level: str) -> tuple[str, str]:
    """Return the text of the problem that a table's key is not logged, and the SQL that solves
    it.
    """
    return (
        f"{table.full_name}: the redo of updates and deletes does not contain a key",
        f'ALTER TABLE "{table.owner}"."{table.name}" ADD SUPPLEMENTAL LOG DATA ({level}) COLUMNS;',
    )


def told_columns(rows: SysRows, chosen: Sequence[Table]) -> Iterator[tuple[Table, Logged]]:
    """Yield the logged columns of each table, from the rows of a snapshot.

    The snapshot does not show which columns of a named log group are marked NO LOG, so all columns
    of the group count as logged. Minimal logging is not considered.
    """
    levels, groups = _table_levels(rows)
    grouped: dict[int, set[int]] = {}
    for row in rows.sys_ccol:
        if row.con in groups:
            grouped.setdefault(groups[row.con], set()).add(row.int_col)
    schemas = {row.name: row.spare1 for row in rows.sys_user}
    database = Levels(
        minimal=True,
        primary_key=rows.supp_log_db_primary == 1,
        everything=rows.supp_log_db_all == 1,
    )
    for table in chosen:
        here, bits = levels.get(table.obj, ()), schemas.get(table.owner, 0)
        yield table, _logged(database, bits, here, grouped.get(table.obj, ()))


def _logged(database: Levels, bits: int, here: Container[int], grouped: Iterable[int]) -> Logged:
    """Return the logged columns of a table, from the settings of the database, of its schema
    (USER$.SPARE1) and of its log groups (CDEF$.TYPE#), and the columns in named groups.
    """
    return Logged(
        database.everything or _TABLE_ALL in here or bool(bits & _SCHEMA_ALL),
        database.primary_key or _TABLE_PRIMARY_KEY in here or bool(bits & _SCHEMA_PRIMARY_KEY),
        frozenset(grouped),
    )


def _table_levels(rows: SysRows) -> tuple[dict[int, set[int]], dict[int, int]]:
    """Return two mappings: OBJ# of a table → the CDEF$.TYPE# values of its log groups, and CON# of
    a named log group → OBJ# of its table.
    """
    levels: dict[int, set[int]] = {}
    groups: dict[int, int] = {}
    for row in rows.sys_cdef:
        levels.setdefault(row.obj, set()).add(row.type)
        if row.type == _GROUP:
            groups[row.con] = row.obj
    return levels, groups


def logged_columns(
    connection: Connection, snapshot: Snapshot, chosen: Sequence[Table]
) -> Iterator[tuple[Table, Logged]]:
    """Yield the logged columns of each table, read from the database. Minimal logging is not
    considered.
    """
    assert snapshot.sys_rows is not None
    database = read_levels(connection)
    levels, groups = _table_levels(snapshot.sys_rows)
    logged = _grouped_columns(connection, groups)
    schemas = _schema_bits(connection, sorted({table.owner for table in chosen}))
    for table in chosen:
        here, columns = levels.get(table.obj, ()), logged.get(table.obj, ())
        yield table, _logged(database, schemas.get(table.owner, 0), here, columns)


def _grouped_columns(connection: Connection, groups: dict[int, int]) -> dict[int, set[int]]:
    """Return, by OBJ# of the table, INTCOL# of the columns in named log groups, without columns
    that are marked NO LOG.
    """
    found: dict[int, set[int]] = {}
    for batch in batches(list(groups)):
        columns = tables.CCOL.c
        rows = connection.execute(
            select(columns["CON#"], columns["INTCOL#"], columns["SPARE1"]).where(
                columns["CON#"].in_(among(batch))
            )
        )
        for constraint, intcol, not_logged in rows:
            if not not_logged:
                found.setdefault(groups[constraint], set()).add(intcol)
    return found


def _schema_bits(connection: Connection, owners: Sequence[str]) -> dict[str, int]:
    """Return USER$.SPARE1 of each owner."""
    user = tables.USER.c
    queries = (
        select(user.NAME, user.SPARE1).where(user.NAME.in_(among(batch)))
        for batch in batches(owners)
    )
    return {name: int(bits or 0) for one in queries for name, bits in connection.execute(one)}
