"""Reads how much redo the source archives per day."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import oracledb
import sqlalchemy.exc
from sqlalchemy import select

from olr_pg.dictionary.inventory import LogDay
from olr_pg.oracle.driver.driver_failures import PRIVILEGE, oracle_error
from olr_pg.oracle.tables import LOG_VOLUME

if TYPE_CHECKING:
    from sqlalchemy import Connection


def read_redo_volume(connection: Connection, unread: list[str]) -> tuple[LogDay, ...]:
    """Add up the sizes of the archived logs for each day. A log counts once, on the day of its
    first change.

    Args:
        unread: receives the view's name if the account cannot read it.
    """
    columns = [LOG_VOLUME.c[name] for name in ("THREAD#", "SEQUENCE#", "RESETLOGS_ID")]
    sizes = [LOG_VOLUME.c[name] for name in ("FIRST_TIME", "BLOCKS", "BLOCK_SIZE")]
    try:
        rows = connection.execute(select(*columns, *sizes)).all()
    except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
        if oracle_error(error, "").code != PRIVILEGE:
            raise
        unread.append("V$ARCHIVED_LOG")
        return ()
    logs, size, seen = Counter[str](), Counter[str](), set[tuple[int, ...]]()
    for thread, sequence, resetlogs, began, blocks, block_size in rows:
        if began is None or (thread, sequence, resetlogs) in seen:
            continue
        seen.add((thread, sequence, resetlogs))
        day = str(began)[:10]
        logs[day] += 1
        size[day] += int(blocks) * int(block_size)
    return tuple(LogDay(day=day, logs=logs[day], bytes=size[day]) for day in sorted(logs))
