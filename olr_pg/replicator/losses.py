"""Warnings of columns that are left out, and of values and changes that could not be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from olr_pg.dictionary.plan import planned_columns
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.replicator.filters import Filters
    from olr_pg.transactions.lobs import LobLosses

_log = structlog.get_logger(__name__)

_IDLE = 1098
_LEFT_OUT = 3081
_MISSING = 2120
_UNCLAIMED = 2121
_MALFORMED = 2122
_UNDECODED = 2123
_UNPAIRED = 2124


def report_left_out(tables: Iterable[Table]) -> None:
    """Warn of every column that a user sees and clients do not get, with the reason."""
    for table in tables:
        for column in table.left_out:
            detail = f"{column.unsupported}"
            _say(OlrPgError(_LEFT_OUT, detail, table=table.full_name, column=column.name))


def report_idle(filters: Filters, tables: Sequence[Table], **named: str) -> None:
    """Warn of every pattern of the filter that fits nothing of the tables of the dictionary."""
    for key, pattern in filters.idle(tables):
        _say(OlrPgError(_IDLE, pattern, key=key, **named))


def _say(error: OlrPgError) -> None:
    _log.warning(
        error.title, code=error.label, reason=error.detail, action=error.action, **error.where
    )


class LossReporter:
    """Says each loss the first time that it happens.

    Args:
        tables: the subscription, in the order of its row plan.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._columns = [
            (table, column.name) for table in tables for column in planned_columns(table)
        ]
        self._tables = tables
        self._reported: set[tuple[int, str, str]] = set()

    def for_tables(self, tables: Sequence[Table]) -> LossReporter:
        """A reporter for other tables that does not repeat what this one said."""
        other = LossReporter(tables)
        other._reported = self._reported
        return other

    def report(self, losses: LobLosses) -> None:
        """Warn of what is new in `losses`."""
        if not losses.any:
            return
        for code, counts in (
            (_MISSING, losses.missing),
            (_MALFORMED, losses.malformed),
            (_UNDECODED, losses.undecoded),
        ):
            for number in counts.nonzero()[0].tolist():
                table, column = self._columns[number]
                self._warn(code, table.full_name, column, int(counts[number]))
        for number in losses.unclaimed.nonzero()[0].tolist():
            name = self._tables[number].full_name
            self._warn(_UNCLAIMED, name, "", int(losses.unclaimed[number]))

    def report_unpaired(self, count: int, thread: int, path: str) -> None:
        """Warn of changes in a part of a log that belong to no transaction, each time."""
        if count == 0:
            return
        _say(OlrPgError(_UNPAIRED, f"{count} changes", thread=thread, file=path))

    def _warn(self, code: int, table: str, column: str, count: int) -> None:
        if (code, table, column) in self._reported:
            return
        self._reported.add((code, table, column))
        where = {"table": table, "column": column} if column else {"table": table}
        error = OlrPgError(code, f"{count} so far; reported once", **where)
        _log.warning(error.title, code=error.label, action=error.action, **where)
