"""The statements that find the online redo logs of a live database, and their rows.

V$LOG has a row for each group of online logs, V$STANDBY_LOG one for each group of standby redo
logs, V$LOGFILE one for each member (a file) of either (Oracle Database Reference).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Connection

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
"""The least NEXT_CHANGE# of a current log: the highest SCN of 48 bits; from 12.2 on it is one of 64
bits. A standby log that is being written to has NULL."""


class OnlineLog(NamedTuple):
    """A group of online or standby redo logs, as V$LOG or V$STANDBY_LOG has it.

    Attributes:
        thread: redo thread; 0 of a standby log that is assigned to none.
        sequence: of the log that is in the group's files; 0 where there was none yet.
        size: of each member in bytes.
        members: how many files there are; 0 where V$STANDBY_LOG does not tell.
        archived: the group need not be archived any more.
        status: CURRENT, ACTIVE, INACTIVE, UNUSED, CLEARING, CLEARING_CURRENT; of a standby log
            ACTIVE or UNASSIGNED.
        first_time: in the time zone of the database's host.
        next_scn: exclusive; None while the log is written to.
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
    """A file of a group, as V$LOGFILE has it.

    Attributes:
        status: INVALID (cannot be accessed), STALE (not complete), DELETED (not in use); None of a
            file in use.
        kind: ONLINE or STANDBY.
        name: of the file, as Oracle has it.
    """

    group: int
    status: str | None
    kind: str
    name: str


def read_online_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of online logs, those of every thread, by number of the group."""
    rows = connection.exec_driver_sql(LOGS)
    return sorted(_log(*row) for row in rows)


def read_standby_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of standby redo logs, by number of the group."""
    rows = connection.exec_driver_sql(STANDBY_LOGS)
    return sorted(_log(*row[:5], 0, *row[5:]) for row in rows)


def read_log_members(connection: Connection) -> list[LogMember]:
    """Read the files of all groups, in the order of group and name."""
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
