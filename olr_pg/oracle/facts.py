"""Reads a database's identity, incarnations, character sets and SCN (dictionary §4), and finds the
online redo logs of a live database.

V$LOG has a row for each group of online logs, V$STANDBY_LOG a row for each group of standby redo
logs, and V$LOGFILE a row for each member (file) of either kind of group (Oracle Database
Reference).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from olr_pg.dictionary.model import Database
from olr_pg.oracle.tables import (
    ARCHIVED_LOG,
    DATABASE,
    DUAL,
    INCARNATION,
    LOG,
    PLATFORM,
    PROPERTIES,
    TRANSACTION,
    among,
    bound,
)
from olr_pg.transactions.schema_event import Incarnation

LOGS: Final = (
    "SELECT group#, thread#, sequence#, bytes, blocksize, members, archived, status,"
    " first_change#, first_time, next_change# FROM v$log"
)
LOG_MEMBERS: Final = "SELECT group#, status, type, member FROM v$logfile"
STANDBY_LOGS: Final = (
    "SELECT group#, thread#, sequence#, bytes, blocksize, archived, status,"
    " first_change#, first_time, next_change# FROM v$standby_log"
)

NO_NEXT_SCN: Final = 0xFFFFFFFFFFFF
"""NEXT_CHANGE# of a log that is still being written is at least this value, which is the highest
48-bit SCN. Since 12.2 it is a higher, 64-bit value. For a standby log in use it is NULL.
"""


class OnlineLog(NamedTuple):
    """A group of online or standby redo logs, from V$LOG or V$STANDBY_LOG.

    Attributes:
        thread: redo thread; 0 for a standby log that is not assigned to a thread.
        sequence: sequence number of the log in the group's files; 0 if the group was never used.
        size: bytes of each member.
        members: number of members; 0 if unknown (V$STANDBY_LOG does not contain the number).
        archived: whether the log is archived, or does not need to be archived.
        status: CURRENT, ACTIVE, INACTIVE, UNUSED, CLEARING, CLEARING_CURRENT; for a standby log
            ACTIVE or UNASSIGNED.
        first_time: time of the first SCN, in the time zone of the database's host.
        next_scn: the SCN at which the log ends, exclusive; None while the log is being written.
    """

    group: int
    thread: int
    sequence: int
    size: int
    block_size: int
    members: int
    archived: bool
    status: str
    first_scn: int
    first_time: datetime | None
    next_scn: int | None


class LogMember(NamedTuple):
    """A file of a group, from V$LOGFILE.

    Attributes:
        status: INVALID (inaccessible), STALE (incomplete) or DELETED (not in use); None for a file
            in use.
        kind: ONLINE or STANDBY.
        name: name of the file in Oracle.
    """

    group: int
    status: str | None
    kind: str
    name: str


def read_online_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of online logs of every thread, in the order of group numbers."""
    rows = connection.exec_driver_sql(LOGS)
    return sorted(_log(*row) for row in rows)


def read_standby_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of standby redo logs, in the order of group numbers."""
    rows = connection.exec_driver_sql(STANDBY_LOGS)
    return sorted(_log(*row[:5], 0, *row[5:]) for row in rows)


def read_log_members(connection: Connection) -> list[LogMember]:
    """Read the files of all groups, ordered by group and name."""
    rows = [LogMember(*row) for row in connection.exec_driver_sql(LOG_MEMBERS)]
    return sorted(rows, key=lambda member: (member.group, member.name))


def _log(*row: Any) -> OnlineLog:
    group, thread, sequence, size, block_size, members, archived, status, first_scn, *rest = row
    first_time, next_scn = rest
    return OnlineLog(
        group=group,
        thread=thread,
        sequence=sequence,
        size=size,
        block_size=block_size,
        members=members,
        archived=archived == "YES",
        status=status,
        first_scn=first_scn or 0,
        first_time=first_time,
        next_scn=None if next_scn is None or next_scn >= NO_NEXT_SCN else next_scn,
    )


_RECEIVES_REDO: Final = frozenset(("PHYSICAL STANDBY", "FAR SYNC"))
"""Roles of databases whose standby redo logs contain the redo of another database."""

SNAPSHOT_STANDBY: Final = "SNAPSHOT STANDBY"
_WRITES_REDO: Final = frozenset(("PRIMARY", "LOGICAL STANDBY"))
"""Roles of databases that write their own redo."""

FIRST_CDB: Final = (12, 1)
_PROPERTIES: Final = ("NLS_CHARACTERSET", "NLS_NCHAR_CHARACTERSET", "DBTIMEZONE")


class CurrentDatabase(NamedTuple):
    """The current properties of the database.

    Attributes:
        database: the properties that a dictionary snapshot contains.
        incarnations: the current incarnation, then its ancestors.
        dbid: the DBID of the CDB, which log headers contain.
        scn: the current SCN; on a standby, the last SCN that was applied.
    """

    database: Database
    incarnations: tuple[Incarnation, ...]
    dbid: int
    scn: int


def read_facts(connection: Connection) -> CurrentDatabase:
    """Read the properties of the container that the connection is in."""
    # Read the incarnations first. If a RESETLOGS happens after that, the next read of the
    # incarnations shows it.
    incarnations = read_incarnations(connection)
    is_cdb_release = (connection.dialect.server_version_info or ()) >= FIRST_CDB
    left_out = () if is_cdb_release else ("CDB", "CON_DBID")
    columns = [column for column in DATABASE.c if column.name not in left_out]
    row = connection.execute(select(*columns)).mappings().one()
    platform = select(PLATFORM.c.ENDIAN_FORMAT).where(
        bound(row["PLATFORM_ID"]) == PLATFORM.c.PLATFORM_ID
    )
    endian = connection.execute(platform).scalar()
    values = _read_properties(connection)
    con_id, con_name = read_container(connection) if row.get("CDB") == "YES" else (0, None)
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
    return CurrentDatabase(database, incarnations, dbid, int(row["CURRENT_SCN"] or 0))


def _read_properties(connection: Connection) -> dict[str, str]:
    settings = select(PROPERTIES.c.PROPERTY_NAME, PROPERTIES.c.PROPERTY_VALUE).where(
        PROPERTIES.c.PROPERTY_NAME.in_(among(_PROPERTIES))
    )
    return {str(row[0]): str(row[1]) for row in connection.execute(settings)}


class ValueSettings(NamedTuple):
    """The properties of a container on which the meaning of stored values depends."""

    charset: str
    ncharset: str
    timezone: str

    @classmethod
    def of(cls, database: Database) -> ValueSettings:
        """Return the settings that a dictionary contains."""
        return cls(database.charset, database.ncharset, database.timezone)


def read_value_settings(connection: Connection) -> ValueSettings:
    """Read the properties of the container that the connection is in."""
    values = _read_properties(connection)
    zone = values.get("DBTIMEZONE", "+00:00")
    return ValueSettings(values["NLS_CHARACTERSET"], values["NLS_NCHAR_CHARACTERSET"], zone)


def read_scn(connection: Connection) -> int:
    """Read the current SCN."""
    return int(connection.execute(select(DATABASE.c.CURRENT_SCN)).scalar_one())


def read_oldest_open(connection: Connection) -> int | None:
    """Read the begin SCN of the oldest open transaction that has changed anything; None without
    such a transaction.
    """
    begin = TRANSACTION.c.START_SCN
    # START_SCN is 0 if a transaction has not changed anything yet.
    scn = connection.execute(select(func.min(begin)).where(begin > bound(0))).scalar()
    return None if scn is None else int(scn)


class ReadableScn(NamedTuple):
    """The SCN as of which rows can be read.

    Attributes:
        scn: the current SCN; on a standby, the last SCN that was applied; 0 while the database is
            not open (Oracle Database Reference, V$DATABASE: CURRENT_SCN is null then).
        is_standby: whether the database applies the redo of another database (a physical or
            snapshot standby, a far sync instance), so that it can be behind that database.
    """

    scn: int
    is_standby: bool


def read_readable_scn(connection: Connection) -> ReadableScn:
    """Read the SCN as of which rows can be read."""
    scn, role = connection.execute(select(DATABASE.c.CURRENT_SCN, DATABASE.c.DATABASE_ROLE)).one()
    return ReadableScn(int(scn or 0), str(role) not in _WRITES_REDO)


def read_written_scn(connection: Connection) -> int | None:
    """Read an SCN up to which the database has written redo, or None if it is unknown.

    The result is the highest of these SCNs: the current SCN, and the SCNs that the control file
    contains for logs of this incarnation. The current SCN is not enough, because the SCN of an
    instance can be slightly lower than the SCN of another instance. After FLASHBACK DATABASE, the
    current SCN is even far behind the redo with which the database can be recovered. Redo of an
    older incarnation is not considered, because it can extend past the SCN of the RESETLOGS.

    On a standby the result is None, because the standby's SCN is only the last SCN that the standby
    has applied, and the target may already have later redo of the primary. If the database is not
    open, its SCN is NULL or 0, and the result is None, because it is unknown how far the current
    log was written.
    """
    readable = read_readable_scn(connection)
    if readable.is_standby or readable.scn == 0:
        return None
    archived = ARCHIVED_LOG.c
    of_incarnation = select(DATABASE.c["RESETLOGS_CHANGE#"]).scalar_subquery()
    ends = select(func.max(archived["NEXT_CHANGE#"])).where(
        archived["RESETLOGS_CHANGE#"] == of_incarnation,
        archived["NEXT_CHANGE#"] < bound(NO_NEXT_SCN),
    )
    end = connection.execute(ends).scalar()
    begin = connection.execute(select(func.max(LOG.c["FIRST_CHANGE#"]))).scalar()
    # The next SCN of a log is exclusive.
    return max(readable.scn, int(end or 0) - 1, int(begin or 0))


def receives_redo(connection: Connection) -> bool:
    """Return whether the database only receives another database's redo: a physical standby, or a
    far sync instance.
    """
    role = connection.execute(select(DATABASE.c.DATABASE_ROLE)).scalar_one()
    return str(role) in _RECEIVES_REDO


def read_incarnations(connection: Connection) -> tuple[Incarnation, ...]:
    """Read the current incarnation and its ancestors, without orphaned incarnations."""
    rows: list[Any] = list(connection.execute(select(INCARNATION)).mappings())
    by_number = {row["INCARNATION#"]: row for row in rows}
    number = next((row["INCARNATION#"] for row in rows if row["STATUS"] == "CURRENT"), None)
    line: list[Incarnation] = []
    # `pop` removes each row, so the loop ends even if the rows form a cycle.
    while (row := by_number.pop(number, None)) is not None:
        line.append(Incarnation(int(row["RESETLOGS_ID"]), int(row["RESETLOGS_CHANGE#"])))
        number = row["PRIOR_INCARNATION#"]
    return tuple(line)


def read_container_dbid(connection: Connection) -> int:
    """Read the DBID of the container (in a CDB) that the connection is in."""
    return int(connection.execute(select(DATABASE.c.CON_DBID)).scalar_one())


def is_in_cdb(connection: Connection) -> bool:
    """Return whether the connection is in the root or in a PDB of a CDB."""
    if (connection.dialect.server_version_info or ()) < FIRST_CDB:
        return False
    return str(connection.execute(select(DATABASE.c.CDB)).scalar_one()) == "YES"


def read_container(connection: Connection) -> tuple[int, str]:
    """Read the number and the name of the container (in a CDB) that the connection is in."""

    def context(name: str) -> Any:
        return func.sys_context("USERENV", name)

    query = select(context("CON_ID"), context("CON_NAME")).select_from(DUAL)
    con_id, con_name = connection.execute(query).one()
    return int(con_id), str(con_name)
