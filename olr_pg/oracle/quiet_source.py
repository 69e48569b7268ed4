"""Reads the open transactions of a live database, and the SCN up to which its logs are archived
(dictionary §4, §5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from olr_pg.oracle.archive import open_threads
from olr_pg.oracle.facts import read_incarnations, read_scn
from olr_pg.oracle.tables import ARCHIVED_LOG, TRANSACTION, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Activity(NamedTuple):
    """The open transactions of the database.

    Attributes:
        scn: the current SCN.
        transactions: number of open transactions with changes, on all instances.
        oldest: SCN at which the oldest of these transactions began; 0 if there is none.
    """

    scn: int
    transactions: int
    oldest: int


def read_activity(connection: Connection) -> Activity:
    """Read the open transactions and then an SCN. Transactions that had ended before the query were
    committed at or below that SCN.
    """
    # START_SCN is 0 if the transaction has not changed anything yet.
    begun = func.nullif(TRANSACTION.c.START_SCN, bound(0))
    query = select(func.count(), func.min(begun)).select_from(TRANSACTION)
    count, oldest = connection.execute(query).one()
    return Activity(read_scn(connection), int(count), int(oldest or 0))


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
