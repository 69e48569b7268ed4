"""Reads the open transactions of a live database, and the SCN up to which its logs are archived
(dictionary §4, §5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.allowed_queries import unreadable
from olr_pg.oracle.archive import open_threads
from olr_pg.oracle.facts import read_incarnations, read_scn
from olr_pg.oracle.tables import ARCHIVED_LOG, PENDING, TRANSACTION, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection


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
    Transactions”). GV$TRANSACTION no longer contains it, so nobody knows where its redo begins.

    Returns:
        Their LOCAL_TRAN_ID, such as ``70.31.1376339``; empty if the account cannot read the view.
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
