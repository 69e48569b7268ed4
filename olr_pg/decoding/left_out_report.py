"""Logs warnings about columns that are left out, and about values and changes that cannot be
delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from olr_pg.capture.wanted_logs import begins_later
from olr_pg.dictionary.decoding_plan import planned_columns
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.opcodes import opcode_name
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.redo.uninterpreted import PassedVector
    from olr_pg.transactions.lobs.assembly import LobLosses

_log = structlog.get_logger(__name__)


def report_left_out(tables: Iterable[Table]) -> None:
    """Log a warning, with the reason, for every visible column that clients do not receive."""
    for table in tables:
        for column in table.left_out:
            detail = f"{column.unsupported}"
            log_left_out(
                OlrPgError(Code.COLUMN_LEFT_OUT, detail, table=table.full_name, column=column.name)
            )


def log_left_out(error: OlrPgError) -> None:
    """Log a warning, with the error's code, about something that is left out."""
    _log.warning(
        error.title, code=error.label, reason=error.detail, action=error.action, **error.where
    )


def report_unknown_ddl(logs: Sequence[ArchivedLog], snapshot: Snapshot) -> None:
    """Log a warning if there is redo between the dictionary snapshot and the oldest log of a redo
    thread: it can contain DDL.

    Args:
        logs: the logs in the order in which they are read.
    """
    oldest: dict[int, ArchivedLog] = {}
    for log in logs:
        oldest.setdefault(log.header.thread, log)
    for thread, log in oldest.items():
        if begins_later(log, snapshot.scn):
            first_scn = log.header.first_scn
            detail = f"the log begins at SCN {first_scn}, the dictionary is of SCN {snapshot.scn}"
            sequence = log.header.sequence
            log_left_out(
                OlrPgError(Code.DICTIONARY_BEFORE_LOGS, detail, thread=thread, sequence=sequence)
            )


def report_unread_begins(count: int, logs: Sequence[ArchivedLog]) -> None:
    """Log a warning about transactions that began before the first log.

    Args:
        count: the number of these transactions.
        logs: the logs in the order in which they are read.
    """
    if count:
        first = logs[0].header
        detail = f"number of transactions that committed in the logs: {count}"
        log_left_out(
            OlrPgError(Code.BEGIN_NOT_READ, detail, thread=first.thread, sequence=first.sequence)
        )


def report_invalid_dates(count: int) -> None:
    """Log a warning about invalid dates that were replaced by NULL, unless their number is 0."""
    if count:
        log_left_out(OlrPgError(Code.INVALID_DATES_REPLACED, f"number of values: {count}"))


class LossReporter:
    """Logs a warning about each kind of loss when it happens for the first time.

    Args:
        tables: the tables of the subscription, in the order of its row plan.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._columns = [
            (table, column.name) for table in tables for column in planned_columns(table)
        ]
        self._tables = tables
        self._reported: set[tuple[int, str, str]] = set()

    def for_tables(self, tables: Sequence[Table]) -> LossReporter:
        """Return a reporter for other tables, which does not repeat warnings of this reporter."""
        other = LossReporter(tables)
        other._reported = self._reported
        return other

    def report(self, losses: LobLosses) -> None:
        """Log a warning about the losses that no earlier call has reported."""
        if not losses.any:
            return
        for code, counts in (
            (Code.LOB_NOT_WHOLE, losses.missing),
            (Code.LOB_LOCATOR_MALFORMED, losses.malformed),
            (Code.LOB_CONTENT_UNDECODABLE, losses.undecoded),
        ):
            for number in counts.nonzero()[0].tolist():
                table, column = self._columns[number]
                self._warn(code, table.full_name, column, int(counts[number]))
        for number in losses.unclaimed.nonzero()[0].tolist():
            name = self._tables[number].full_name
            self._warn(Code.LOB_WITHOUT_ROW_CHANGE, name, "", int(losses.unclaimed[number]))

    def report_passed(self, noted: Iterable[PassedVector]) -> None:
        """Log a warning about uninterpreted vectors of subscribed tables or without an object, once
        per opcode and table.
        """
        for one in noted:
            code, kind = Code.VECTOR_NOT_INTERPRETED, opcode_name(one.opcode)
            table = ""
            subject: dict[str, Any] = {}
            if one.table < 0:
                code = Code.VECTOR_WITHOUT_OBJECT
            else:
                table = self._tables[one.table].full_name
                subject = {"object": one.dataobj, "table": table}
            if (code, table, kind) in self._reported:
                continue
            self._reported.add((code, table, kind))
            thread, sequence, block, offset = one.position
            where = {"xid": format_xid(one.xid)} if one.xid else {}
            log_left_out(
                OlrPgError(
                    code, "reported once", thread=thread, sequence=sequence, block=block,
                    offset=offset, scn=one.scn, vector=kind, **where, **subject,
                )
            )  # fmt: skip

    def report_fetched(self, error: OlrPgError) -> None:
        """Log a warning about LOB pages that are not in the redo. The values of these LOBs are read
        from the source.
        """
        key = Code.LOB_PAGES_WITHOUT_REDO, str(error.where["table"]), str(error.where["column"])
        if key not in self._reported:
            self._reported.add(key)
            log_left_out(error)

    def _warn(self, code: int, table: str, column: str, count: int) -> None:
        if (code, table, column) in self._reported:
            return
        self._reported.add((code, table, column))
        where = {"table": table, "column": column} if column else {"table": table}
        error = OlrPgError(code, f"{count} so far; reported once", **where)
        _log.warning(error.title, code=error.label, action=error.action, **where)
