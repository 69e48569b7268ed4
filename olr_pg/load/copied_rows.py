"""Rows that another tool copies into the target, instead of `olr-pg initial-load`.

A copy is a load without partitions: the SCN of its rows is recorded when the copy begins, and the
table is handed over to replication when the copy ends. Between these two steps, the load counts as
interrupted, so `run` refuses to replicate the table. The SCN is chosen when the copy begins,
because only then V$TRANSACTION shows the transactions that are open at that SCN. Their changes are
not among the copied rows, so `run` must read the redo from the oldest begin SCN on.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from olr_pg.applier.session.handover import COPIED, copy_under_way
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.table_data import LoadMoment, SourceTable, TableData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.load.load_progress import LoadState
    from olr_pg.load.table_data import TableSource


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
            action="copy the rows as of an SCN that you choose in the source, then run"
            " `olr-pg initial-load --end-copy --scn SCN --since SCN`",
        )
    moment = copy.moment or now or LoadMoment(0, 0)
    if now is not None and moment.scn > now.scn:
        raise OlrPgError(
            Code.COPY_NOT_USABLE, f"the source has only reached SCN {now.scn}", scn=moment.scn
        )
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
            action="run `olr-pg initial-load --begin-copy`, and copy the rows as of the SCN that"
            " it prints. If the rows are already copied, name their SCN with --scn and --since",
            table=name,
        )
    if state is not None and copy.moment is not None and copy.moment[:2] != state[:2]:
        raise OlrPgError(
            Code.COPY_NOT_USABLE,
            f"the copy of the table began at SCN {state.scn}",
            action="omit --scn if the rows are those of that SCN. Otherwise forget the copy with"
            f" `olr-pg initial-load --restart --table {name}`, which empties the table and loads"
            " it",
            table=name,
        )
