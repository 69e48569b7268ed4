"""Applies a large transaction in slices, one after the other, within one target transaction.

All changes of a slice are applied together as a set, like a batch of small transactions. Net
changes per key are computed for each slice, not for the whole transaction. A source statement such
as ``SET k = k + 1`` can give a row the key that another row had. Then a slice may need a key that
only a later slice removes. So if PostgreSQL refuses a slice, all changes of the transaction are
retried as one set, if they are not too large. Otherwise each slice is retried alone, and the
changes of a refused slice are applied one by one, with the conflict policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from olr_pg.applier.statements.table_changes import join
from olr_pg.applier.stopped.error_table import RefusedError
from olr_pg.applier.target.ledger import ChangeCounts, ErrorRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.applier.batches.table_writer import Skipped, TableWriter
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.errors import OlrPgError


WHOLE_SPOOLS: Final = 4
"""A refused transaction is retried as one set if its size is at most `ApplierSettings.spool_bytes`
times this number.
"""


class Slices(Protocol):
    """The changes of one large transaction to one table, or to all tables, in delivery order."""

    @property
    def commit_scn(self) -> int:
        """The transaction's commit SCN."""

    @property
    def xid(self) -> int:
        """The transaction's XID."""

    @property
    def size(self) -> int:
        """The size of the messages in bytes."""

    def read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        """Yield all changes in their order, in parts of about this size.

        Raises:
            OlrPgError: the changes cannot be read.
        """


class SliceRefusedError(Exception):
    """Raised if the target refuses a slice of a large transaction.

    Attributes:
        first: the index of the slice's first change among the transaction's changes of the table.
    """

    def __init__(self, refusal: RefusedError, part: Selection, first: int = 0) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.part = part
        self.first = first

    def row(self) -> ErrorRow:
        """Return the row of the error table for the refused change."""
        row = self.refusal.row(self.part, "stopped")
        return row._replace(position=self.first + row.position)

    def located(self, table: str) -> OlrPgError:
        """Return the error with the table and the transaction."""
        return self.refusal.located(table, self.part)


def numbered(slices: Iterator[Selection]) -> Iterator[tuple[int, Selection]]:
    """Yield the index of each slice's first change, and the slice."""
    first = 0
    for part in slices:
        yield first, part
        first += len(part)


def renumbered(skipped: Skipped, first: int) -> Skipped:
    """Return the changes to skip with indexes that count from the change `first` of their
    transaction.
    """
    return frozenset((scn, xid, number - first) for scn, xid, number in skipped)


def read_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield slices of the size of a batch."""
    return slices.read(settings.batch_changes, settings.batch_bytes)


def whole_or_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield all changes of a transaction as one selection if they fit in memory, else in slices.

    As one set, changes of rows that exchange their keys can succeed, although they fail in slices.
    """
    parts = read_slices(slices, settings)
    if slices.size <= settings.spool_bytes * WHOLE_SPOOLS:
        return iter([join(list(parts))])
    return parts


def write_slices(
    connection: Connection[Any],
    writer: TableWriter,
    slices: Slices,
    settings: ApplierSettings,
    skipped: Skipped = frozenset(),
) -> ChangeCounts:
    """Write a large transaction's changes of one table, within the caller's target transaction.

    Raises:
        SliceRefusedError: the target refuses a change; nothing of the transaction is written.
        psycopg.Error: a transient error.
    """
    mine = frozenset(one for one in skipped if one[:2] == (slices.commit_scn, slices.xid))
    if not mine:
        try:
            with connection.transaction():
                return _write_sets(connection, writer, slices, settings)
        except RefusedError:
            pass
    with connection.transaction():
        done = ChangeCounts()
        for first, part in numbered(whole_or_slices(slices, settings)):
            done = done.plus(_write_part(connection, writer, part, first, mine))
        return done._replace(transactions=1)


def _write_sets(
    connection: Connection[Any], writer: TableWriter, slices: Slices, settings: ApplierSettings
) -> ChangeCounts:
    writer.tune(connection)
    done = ChangeCounts()
    for part in read_slices(slices, settings):
        done = done.plus(writer.write_set(connection, part))
    return done._replace(transactions=1)


def _write_part(
    connection: Connection[Any], writer: TableWriter, part: Selection, first: int, skipped: Skipped
) -> ChangeCounts:
    written = writer.write(connection, part, renumbered(skipped, first))
    if written.refused is not None:
        raise SliceRefusedError(written.refused, part, first)
    return written.counters
