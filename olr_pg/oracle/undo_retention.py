"""Reads for how long the source keeps what reading ``AS OF SCN`` needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from olr_pg.oracle.tables import PARAMETER, UNDOSTAT, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection


class UndoRetention(NamedTuple):
    """Seconds for which undo is kept.

    Attributes:
        wanted: UNDO_RETENTION; Oracle falls short of it where the undo tablespace is full, unless
            its retention is guaranteed.
        tuned: what Oracle makes of it by the latest line of V$UNDOSTAT; None where there is none.
    """

    wanted: int
    tuned: int | None


def read_undo_retention(connection: Connection) -> UndoRetention:
    """Read the retention now (Database Reference, V$UNDOSTAT: a line for ten minutes).

    Raises:
        sqlalchemy.exc.DBAPIError: one of the two views may not be read.
    """
    wanted = connection.execute(
        select(PARAMETER.c.VALUE).where(bound("undo_retention") == PARAMETER.c.NAME)
    ).scalar_one()
    columns = UNDOSTAT.c
    latest = select(func.max(columns.BEGIN_TIME)).scalar_subquery()
    tuned = connection.execute(
        select(columns.TUNED_UNDORETENTION).where(latest == columns.BEGIN_TIME)
    ).scalar()
    return UndoRetention(int(wanted), None if tuned is None else int(tuned))
