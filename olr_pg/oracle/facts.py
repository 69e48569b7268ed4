"""Reads a database's identity, incarnations, character sets and SCN (dictionary §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import func, select

from olr_pg.capture.lineage import Incarnation
from olr_pg.dictionary.model import Database
from olr_pg.oracle.tables import DATABASE, DUAL, INCARNATION, PLATFORM, PROPERTIES, among, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection

_STANDBY: Final = "PHYSICAL STANDBY"
_WRITES_REDO: Final = frozenset(("PRIMARY", "LOGICAL STANDBY"))
"""Roles of databases whose redo is their own; a snapshot standby's is passed over in the end."""

FIRST_CDB: Final = (12, 1)
_PROPERTIES: Final = ("NLS_CHARACTERSET", "NLS_NCHAR_CHARACTERSET", "DBTIMEZONE")


class DatabaseFacts(NamedTuple):
    """The database as it is now.

    Attributes:
        database: what a dictionary snapshot says of it.
        incarnations: the current one first, then its ancestors.
        dbid: as log headers have it (the CDB's).
        scn: the current SCN; on a standby the last one applied.
    """

    database: Database
    incarnations: tuple[Incarnation, ...]
    dbid: int
    scn: int


def read_facts(connection: Connection) -> DatabaseFacts:
    """Read the facts of the container that the connection is in."""
    is_cdb_release = (connection.dialect.server_version_info or ()) >= FIRST_CDB
    left_out = () if is_cdb_release else ("CDB", "CON_DBID")
    columns = [column for column in DATABASE.c if column.name not in left_out]
    row = connection.execute(select(*columns)).mappings().one()
    platform = select(PLATFORM.c.ENDIAN_FORMAT).where(
        bound(row["PLATFORM_ID"]) == PLATFORM.c.PLATFORM_ID
    )
    endian = connection.execute(platform).scalar()
    settings = select(PROPERTIES.c.PROPERTY_NAME, PROPERTIES.c.PROPERTY_VALUE).where(
        PROPERTIES.c.PROPERTY_NAME.in_(among(_PROPERTIES))
    )
    values = {str(row[0]): str(row[1]) for row in connection.execute(settings)}
    con_id, con_name = read_container(connection) if row.get("CDB") == "YES" else (0, None)
    incarnations = read_incarnations(connection)
    dbid = int(row["DBID"])
    database = Database(
        name=row["NAME"],
        con_id=con_id,
        con_name=con_name,
        dbid=int(row.get("CON_DBID") or dbid),
        resetlogs=tuple(incarnation.resetlogs_id for incarnation in incarnations),
        activation=row["ACTIVATION#"],
        big_endian=None if endian is None else endian == "Big",
        charset=values["NLS_CHARACTERSET"],
        ncharset=values["NLS_NCHAR_CHARACTERSET"],
        timezone=values.get("DBTIMEZONE", "+00:00"),
    )
    return DatabaseFacts(database, incarnations, dbid, int(row["CURRENT_SCN"] or 0))


def read_scn(connection: Connection) -> int:
    """Read the current SCN."""
    return int(connection.execute(select(DATABASE.c.CURRENT_SCN)).scalar_one())


def read_primary_scn(connection: Connection) -> int | None:
    """Read the current SCN where it tells what redo there may be; None where it does not.

    A database that takes another one's redo (a standby, a far sync instance) has an SCN of its own:
    that of what it has applied. One that is not open has none (Oracle Database Reference,
    V$DATABASE: CURRENT_SCN is null then).
    """
    scn, role = connection.execute(select(DATABASE.c.CURRENT_SCN, DATABASE.c.DATABASE_ROLE)).one()
    return int(scn) if role in _WRITES_REDO and scn else None


def is_physical_standby(connection: Connection) -> bool:
    """Tell whether the database only applies another one's redo."""
    role = connection.execute(select(DATABASE.c.DATABASE_ROLE)).scalar_one()
    return str(role) == _STANDBY


def read_incarnations(connection: Connection) -> tuple[Incarnation, ...]:
    """Read the current incarnation and its ancestors; orphans are none of them."""
    rows: list[Any] = list(connection.execute(select(INCARNATION)).mappings())
    by_number = {row["INCARNATION#"]: row for row in rows}
    number = next((row["INCARNATION#"] for row in rows if row["STATUS"] == "CURRENT"), None)
    line: list[Incarnation] = []
    # Taking rows out as they are visited ends the walk even if the rows form a circle.
    while (row := by_number.pop(number, None)) is not None:
        line.append(Incarnation(int(row["RESETLOGS_ID"]), int(row["RESETLOGS_CHANGE#"])))
        number = row["PRIOR_INCARNATION#"]
    return tuple(line)


def read_container(connection: Connection) -> tuple[int, str]:
    """Read the number and the name of the container that the connection is in, of a CDB."""

    def context(name: str) -> Any:
        return func.sys_context("USERENV", name)

    query = select(context("CON_ID"), context("CON_NAME")).select_from(DUAL)
    con_id, con_name = connection.execute(query).one()
    return int(con_id), str(con_name)
