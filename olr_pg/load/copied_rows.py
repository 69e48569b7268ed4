"""Rows that another tool copies into the target, instead of `olr-pg initial-load`.

A copy is a load without partitions: the SCN of its rows is recorded when the copy begins, and the
table is handed over to replication when the copy ends. Between these two steps, the load counts as
interrupted, so `run` refuses to replicate the table. The SCN is chosen when the copy begins,
because only then V$TRANSACTION shows the transactions that are open at that SCN. The changes of
open transactions are not among the copied rows, so `run` must read the redo from the oldest begin
SCN on.
"""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from olr_pg.applier.session.handover import copy_under_way
from olr_pg.applier.target.table_identity import COPIED
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.table_data import LoadMoment, SourceTable, TableData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

    from olr_pg.dictionary.model import Table
    from olr_pg.load.load_progress import LoadState
    from olr_pg.load.table_data import TableSource

# A prepared transaction has locks, but no session.
_WRITER: Final = """
SELECT coalesce(
    'session ' || l.pid::text || coalesce(' (' || nullif(a.application_name, '') || ')', ''),
    'a prepared transaction')
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.relation = %(oid)s::oid
         OR l.relation IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass)))
    AND l.pid IS DISTINCT FROM pg_backend_pid()
ORDER BY l.pid LIMIT 1
"""


class CopyStep(Enum):
    """A step of a copy by another tool."""

    BEGIN = "begin"
    END = "end"


class Copy(NamedTuple):
    """A step of a copy, and its SCNs.

    Attributes:
        moment: the SCN of rows that were copied without a begin step; None if there was one, or
            if the step is the begin.
    """

    step: CopyStep
    moment: LoadMoment | None = None


def copied_tables(
    source: TableSource, tables: Sequence[Table], copy: Copy
) -> tuple[SourceTable, ...]:
    """Return tables without data, for a step of a copy.

    Raises:
        OlrPgError: 1090, an offline source cannot choose an SCN; 5119, the SCN of the rows is in
            the future.
    """
    now = source.moment
    if copy.step is CopyStep.BEGIN and now is None:
        raise OlrPgError(
            Code.NOT_SUPPORTED,
            "an offline source does not show its present SCN",
            action="copy the rows as of an SCN that you choose in the source, then repeat the"
            " command with --end-copy --scn SCN --since SCN instead of --begin-copy",
        )
    moment = copy.moment or now or LoadMoment(0, 0)
    if now is not None and moment.scn > now.scn:
        raise OlrPgError(
            Code.COPY_NOT_USABLE, f"the source has only reached SCN {now.scn}", scn=moment.scn
        )
    if now is not None and copy.moment is not None:
        # A transaction that is open now may have begun before the SCN that the operator has named.
        moment = LoadMoment(moment.scn, min(moment.start_scn, now.start_scn))
    resetlogs = source.snapshot.database.resetlogs
    incarnation = resetlogs[0] if now is not None and resetlogs else None
    nothing = TableData(pa.schema([]), (), 0, moment.scn, moment.start_scn, COPIED)
    return tuple(SourceTable(one, nothing, *moment, incarnation) for one in tables)


def check_copy(source: SourceTable, state: LoadState | None, copy: Copy | None) -> None:
    """Raise an error if the recorded load of a table does not fit the step.

    Args:
        state: the record of the load, which is not complete; None if there is none.
        copy: the step; None for a load by this tool.

    Raises:
        OlrPgError: 5106 the table is being loaded by this tool; 5119 another tool copies its rows,
            no copy has begun, or it began at another SCN.
    """
    name = source.table.full_name
    if state is not None and (state.source == COPIED) != (copy is not None):
        if copy is None:
            raise copy_under_way(name, state.scn)
        raise OlrPgError(
            Code.LOAD_INTERRUPTED, f"the load of the table began at SCN {state.scn}", table=name
        )
    if copy is None or copy.step is CopyStep.BEGIN:
        return
    if state is None and copy.moment is None:
        raise OlrPgError(
            Code.COPY_NOT_USABLE,
            "no copy of the table has begun",
            action="run the command with --begin-copy instead of --end-copy, and copy the rows as"
            " of the SCN that it prints. If the rows are already copied, name their SCN with --scn"
            " and --since",
            table=name,
        )
    if state is not None:
        check_moment(name, state, copy)


def check_moment(name: str, state: LoadState, copy: Copy | None) -> None:
    """Raise an error if the step names other SCNs than the recorded load of the table.

    Args:
        state: the record of the load, which may be complete.

    Raises:
        OlrPgError: 5119, the SCNs differ.
    """
    named = None if copy is None else copy.moment
    if named is None or (named.scn == state.scn and named.start_scn >= state.start_scn):
        return
    word = shlex.quote(name)
    load, action = "the copy of the table began", f"`olr-pg initial-load --restart --table {word}`"
    if state.finished:
        load = "the table is already loaded, and was read"
        action = f"`olr-pg initial-load --anew --table {word}`"
    raise OlrPgError(
        Code.COPY_NOT_USABLE,
        f"{load} at SCN {state.scn}, and its redo is read from SCN {state.start_scn} on",
        action="omit --scn and --since if the rows are those of that SCN, or name other tables with"
        f" --table. Otherwise load the table with {action}, which empties it first",
        table=name,
    )


def check_written(connection: Connection[Any], name: str, oid: int) -> None:
    """Raise an error if a transaction has written to the target table and has not ended. The rows
    of such a transaction are not visible yet, so the table would seem empty, or the copy complete.

    Args:
        oid: the OID of the target table, which may have partitions.

    Raises:
        OlrPgError: 5119, the table is being written.
    """
    writer = connection.execute(_WRITER, {"oid": oid}).fetchone()
    if writer is None:
        return
    raise OlrPgError(
        Code.COPY_NOT_USABLE,
        f"{writer[0]} is writing to the target table",
        action="wait until its transaction has ended, then repeat the command",
        table=name,
    )
