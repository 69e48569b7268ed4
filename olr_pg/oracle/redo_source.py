"""The database whose redo is read: the source, or a standby of it (`source.standby`).

A physical standby receives a byte-for-byte copy of the primary's redo, and its control file lists
the logs. It can be mounted and not open. Then only users with an administrative privilege can log
in, and they can read only fixed views (Database Error Messages, ORA-01219). So the source, which is
the primary, provides everything else: the dictionary, rows, LOB values, and three facts about redo.

- **The open redo threads.** The status of threads in a standby's control file follows the redo that
  the standby applies, and says nothing about the redo that it has not received yet.
- **The logs that the standby must receive** (`expected_logs`). A thread that is closed in the
  primary can have archived logs that the standby lacks: without them, transactions of other threads
  would be delivered too early. And if the primary no longer sends redo, only its own list shows it.
- **The incarnations.** After a RESETLOGS of the primary, the standby can still contain orphaned
  redo. The incarnations of the primary show its end.

Each read first checks that the two databases belong together. If the standby is activated (a
failover), its redo continues in an incarnation that the old primary does not have. From then on,
rows and LOB values of the old primary would be wrong, so the read fails until `source.server` leads
to the new primary. Both connections may lead to the same database then.

Oracle writes an audit record for each statement of an administrative user, in a mounted database
into files of its host (Database Reference, AUDIT_SYS_OPERATIONS; Security Guide, mandatory
auditing). So a standby is asked rarely: `RedoSource.has_news` polls the primary, which shows when
the standby must have something new.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sqlalchemy import select

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import list_positions, open_threads
from olr_pg.oracle.facts import read_incarnations
from olr_pg.oracle.online_log_queries import read_online_logs
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.tables import DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy import Connection

    from olr_pg.config.source_section import OracleSource
    from olr_pg.oracle.online_log_queries import OnlineLog
    from olr_pg.transactions.ancestry import Incarnation

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
    """Reads what the source, and its standby if one is configured, show about redo.

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

        A standby is asked when the primary shows something new, and again after `poll-ms`, after
        twice that time and so on, because the new redo can arrive later.

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
        """Run `work` with a connection to the source, and one to the database whose redo is read.
        Without a standby, both are the same object.

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
            f"its DBID is {theirs}, but the DBID of the source is {ours}",
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
