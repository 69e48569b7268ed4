"""The database whose redo is read: the source, or a standby of it (`source.standby`).

A physical standby receives a byte-for-byte copy of the primary's redo, and its control file lists
the logs. The standby can be mounted and not open. In a mounted standby, only users with an
administrative privilege can log in, and they can read only fixed views (Database Error Messages,
ORA-01219). So the source, which is the primary, provides everything else: the dictionary, rows, LOB
values, and three facts about redo.

- **The open redo threads.** The status of threads in a standby's control file follows the redo that
  the standby applies. This status says nothing about the redo that the standby has not received
  yet.
- **The logs that the standby must receive** (`expected_logs`). A thread that is closed in the
  primary can have archived logs that the standby lacks: without them, transactions of other threads
  would be delivered too early. And if the primary no longer sends redo, only the primary's list of
  logs shows this.
- **The incarnations.** After a RESETLOGS of the primary, the standby can still contain orphaned
  redo. The incarnations of the primary show its end.

Each read first checks that the two databases belong together. If the standby is activated (a
failover), its redo continues in an incarnation that the old primary does not have. From then on,
rows and LOB values of the old primary would be wrong, so the read fails until `source.server` leads
to the new primary. After a failover, both connections may lead to the same database.

Oracle writes an audit record for each statement of an administrative user, in a mounted database
into files of its host (Database Reference, AUDIT_SYS_OPERATIONS; Security Guide, mandatory
auditing). So the standby is queried rarely: `RedoSource.has_news` polls the primary, which shows
when the standby must have something new.

`online_groups` finds the files of a live database's online logs on this host, from V$LOG and
V$LOGFILE. On a physical standby or a far sync instance, the files of the standby redo logs are
used, which receive the primary's redo.

`read_activity` reads the open transactions of a live database. `read_archived` reads the SCN up to
which its logs are archived (dictionary §4, §5).
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sqlalchemy import func, select

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.allowed_queries import unreadable
from olr_pg.oracle.archive import list_positions, map_path, open_threads
from olr_pg.oracle.facts import (
    read_incarnations,
    read_log_members,
    read_online_logs,
    read_scn,
    read_standby_logs,
    receives_redo,
)
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.tables import ARCHIVED_LOG, DATABASE, PENDING, TRANSACTION, bound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from sqlalchemy import Connection

    from olr_pg.config.source_section import OracleSource
    from olr_pg.oracle.facts import LogMember, OnlineLog
    from olr_pg.transactions.schema_event import Incarnation

ASK_SECONDS: Final = 60.0
"""Maximum time between two reads of a standby's lists of logs."""

_Result = TypeVar("_Result")


class _ShownRedo(NamedTuple):
    """The redo that the primary shows.

    Attributes:
        archived: first and next SCN of each archived log, by (incarnation, thread, sequence).
        opened: the threads that will produce more logs.
        online: the groups of online logs.
    """

    incarnations: tuple[Incarnation, ...]
    archived: dict[tuple[int, int, int], tuple[int, int]]
    opened: frozenset[int]
    online: list[OnlineLog]


class RedoSource:
    """Reads the facts about redo from the source, and from its standby if a standby is configured.

    Args:
        source: the configuration.
        primary: the source database.

    Raises:
        OlrPgError: 7008, see `OracleDatabase`.
    """

    def __init__(self, source: OracleSource, primary: OracleDatabase) -> None:
        self._primary = primary
        standby = source.standby
        self._standby = None if standby is None else OracleDatabase(source, standby=standby)
        self._poll_seconds = source.poll_ms / 1000
        self._shown: _ShownRedo | None = None
        self._interval = 0.0
        self._ask_at = 0.0

    def has_news(self, incarnations: Sequence[int], scn: int) -> bool:
        """Return whether the lists of logs must be read: always, unless they are in a standby.

        The standby is queried when the primary shows something new. The standby is queried again
        after `poll-ms`, after twice that time and so on, because the new redo can arrive later.

        Args:
            incarnations: resetlogs ids of the known incarnations.
            scn: logs that end at this SCN or before it are not needed.

        Raises:
            OlrPgError: 7001 to 7009, errors of the source.
        """
        if self._standby is None:
            return True
        shown = self._primary.read(
            "looking for new logs",
            lambda connection: _ShownRedo(
                read_incarnations(connection),
                list_positions(connection, incarnations, scn),
                open_threads(connection, scn),
                read_online_logs(connection),
            ),
        )
        now = time.monotonic()
        if shown == self._shown and now < self._ask_at:
            return False
        later = 2 * self._interval if shown == self._shown else self._poll_seconds
        self._shown, self._interval = shown, min(later, ASK_SECONDS)
        self._ask_at = now + self._interval
        return True

    def close(self) -> None:
        """Close the connections to the standby."""
        if self._standby is not None:
            self._standby.close()

    def read(self, doing: str, work: Callable[[Connection, Connection], _Result]) -> _Result:
        """Run `work` with a connection to the source, and a connection to the database whose redo
        is read. Without a standby, both connections are the same object.

        Args:
            doing: the purpose of `work`, for messages.

        Raises:
            OlrPgError: 7001 to 7009 errors of the databases, 7044 and 7045 they do not belong
                together; any error of `work`.
        """
        standby = self._standby
        if standby is None:
            return self._primary.read(doing, lambda connection: work(connection, connection))

        def read_both(primary: Connection) -> _Result:
            def read_standby(received: Connection) -> _Result:
                _check_fit(primary, received)
                return work(primary, received)

            # The outer read retries.
            return standby.read(f"{doing} in the standby", read_standby, attempts=1)

        try:
            return self._primary.read(doing, read_both)
        except OlrPgError:
            self._shown = None  # ask again soon
            raise


def read_once(
    source: OracleSource, doing: str, work: Callable[[Connection, Connection], _Result]
) -> _Result:
    """Call `RedoSource.read` with connections of its own."""
    with (
        closing(OracleDatabase(source)) as primary,
        closing(RedoSource(source, primary)) as redo,
    ):
        return redo.read(doing, work)


def _check_fit(primary: Connection, standby: Connection) -> None:
    """Check that a database is a standby of the primary, or the primary itself.

    Raises:
        OlrPgError: 7044 it is another database, 7045 its redo is of an incarnation that the primary
            does not have.
    """
    ours, theirs = (one.execute(select(DATABASE.c.DBID)).scalar_one() for one in (primary, standby))
    if ours != theirs:
        raise OlrPgError(
            Code.STANDBY_OF_ANOTHER_DATABASE,
            f"the DBID of the standby is {theirs}, but the DBID of the source is {ours}",
        )
    line, other = read_incarnations(primary), read_incarnations(standby)
    # The standby may be behind: it reaches a RESETLOGS of the primary later.
    if line and other and other[0] not in line:
        raise OlrPgError(
            Code.STANDBY_INCARNATION,
            f"`source.standby` is in incarnation {other[0].resetlogs_id}, which began at SCN"
            f" {other[0].resetlogs_scn}; `source.server` is in incarnation"
            f" {line[0].resetlogs_id} and does not contain it",
        )


def expected_logs(
    primary: Connection, incarnations: Sequence[int], scn: int, opened: Collection[int]
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return the first and next SCN of every log that the primary has archived and its standby
    should have received.

    The newest log of an open thread is left out, because it can still be on its way.

    Args:
        incarnations: resetlogs ids of the incarnations to list.
        scn: logs that end at this SCN or before it are left out.
        opened: the threads that will produce more logs.
    """
    archived = list_positions(primary, incarnations, scn)
    newest = {position[1]: position for position in sorted(archived)}
    for thread in newest.keys() & opened:
        del archived[newest[thread]]
    return archived


_UNUSED: Final = frozenset({"UNUSED", "UNASSIGNED"})
_GONE: Final = frozenset({"INVALID", "DELETED"})


def online_groups(connection: Connection, source: OracleSource) -> list[tuple[str, ...]]:
    """Return, for each group that contains redo, the paths of its members on this host.

    With a transport, the paths are the names in Oracle. Members that Oracle cannot use are left
    out; an incomplete member comes last.
    """
    standby = receives_redo(connection)
    logs = read_standby_logs(connection) if standby else read_online_logs(connection)
    used = {log.group for log in logs if log.status not in _UNUSED and log.sequence}
    kind = "STANDBY" if standby else "ONLINE"
    members: dict[int, list[LogMember]] = {}
    for member in read_log_members(connection):
        if member.group in used and member.kind == kind and member.status not in _GONE:
            members.setdefault(member.group, []).append(member)
    mapping = source.path_mapping if source.transport is None else ()
    return [_paths(members[group], mapping) for group in sorted(members)]


def _paths(members: list[LogMember], mapping: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    whole_first = sorted(members, key=lambda member: member.status is not None)
    return tuple(map_path(member.name, mapping) for member in whole_first)


def unreadable_group(paths: tuple[str, ...], problem: OlrPgError) -> OlrPgError:
    """Return the error for a group if none of its members can be read on this host."""
    return OlrPgError(Code.ONLINE_LOG_UNREADABLE, f"looked at {', '.join(paths)}: {problem.detail}")


class Activity(NamedTuple):
    """The open transactions of the database.

    Attributes:
        scn: the current SCN.
        transactions: number of open transactions with changes, on all instances.
        oldest: SCN at which the oldest of these transactions began; 0 if there is none.
        in_doubt: the distributed transactions in doubt; see `read_in_doubt`.
    """

    scn: int
    transactions: int
    oldest: int
    in_doubt: tuple[str, ...] = ()


def read_activity(connection: Connection) -> Activity:
    """Read the open transactions and then an SCN. Transactions that had ended before the query were
    committed at or below that SCN.
    """
    # START_SCN is 0 if the transaction has not changed anything yet.
    begun = func.nullif(TRANSACTION.c.START_SCN, bound(0))
    query = select(func.count(), func.min(begun)).select_from(TRANSACTION)
    count, oldest = connection.execute(query).one()
    in_doubt = tuple(read_in_doubt(connection))
    return Activity(read_scn(connection), int(count), int(oldest or 0), in_doubt)


def read_in_doubt(connection: Connection) -> list[str]:
    """Return the distributed transactions that are prepared and no longer belong to an instance.

    When an instance ends, a transaction that is prepared for a two-phase commit remains, and can be
    committed days later (Oracle Database Administrator's Guide, “Managing Distributed
    Transactions”). GV$TRANSACTION no longer contains such a transaction, so nobody knows where its
    redo begins.

    Returns:
        The LOCAL_TRAN_ID of each transaction in doubt, such as ``70.31.1376339``; empty if the
        account cannot read the view.
    """
    if unreadable(connection, (PENDING,)):
        return []
    pending = PENDING.c
    prepared = select(pending["LOCAL_TRAN_ID"]).where(pending["STATE"] == bound("prepared"))
    found = {str(one) for (one,) in connection.execute(prepared)}
    if found:
        columns = TRANSACTION.c
        query = select(columns.XIDUSN, columns.XIDSLOT, columns.XIDSQN)
        found -= {f"{usn}.{slot}.{wrap}" for usn, slot, wrap in connection.execute(query)}
    return sorted(found)


def check_in_doubt(connection: Connection) -> None:
    """Check that no distributed transaction is in doubt.

    Raises:
        OlrPgError: 7046.
    """
    found = read_in_doubt(connection)
    if found:
        raise OlrPgError(Code.IN_DOUBT, f"DBA_2PC_PENDING: {', '.join(found)}")


def read_archived(connection: Connection, redo: Connection) -> dict[int, int]:
    """Return for each open thread of the current incarnation the last SCN that is archived.

    A log contains redo below its NEXT_CHANGE#. The SCN is 0 if no log is archived.

    Args:
        redo: a connection to the database whose redo is read.
    """
    columns = ARCHIVED_LOG.c
    current = read_incarnations(connection)[0]
    query = (
        select(columns["THREAD#"], func.max(columns["NEXT_CHANGE#"]))
        .where(
            columns["RESETLOGS_ID"] == bound(current.resetlogs_id),
            columns["ARCHIVED"] == bound("YES"),
            columns["STANDBY_DEST"] == bound("NO"),
        )
        .group_by(columns["THREAD#"])
    )
    found = {int(thread): int(scn) - 1 for thread, scn in redo.execute(query)}
    return {thread: found.get(thread, 0) for thread in open_threads(connection)}
