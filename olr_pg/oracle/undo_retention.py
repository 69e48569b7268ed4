"""Reads how long the source keeps undo for queries ``AS OF SCN``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from olr_pg.oracle.tables import PARAMETER, UNDOSTAT, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection


class UndoRetention(NamedTuple):
    """Number of seconds for which Oracle keeps undo.

    Attributes:
        wanted: the parameter UNDO_RETENTION. If the undo tablespace is full, Oracle keeps undo for
            a shorter time, unless the retention is guaranteed.
        tuned: the retention that Oracle currently uses, from the latest row of V$UNDOSTAT; None if
            there is no row.
    """

    wanted: int
    tuned: int | None


def read_undo_retention(connection: Connection) -> UndoRetention:
    """Read the current retention (Database Reference, V$UNDOSTAT: one row per ten minutes).

    Raises:
        sqlalchemy.exc.DBAPIError: one of the two views cannot be read.
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
