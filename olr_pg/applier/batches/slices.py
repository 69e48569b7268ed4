"""Applies a large transaction in slices, one after the other, within one target transaction.

A slice is applied as a set, like a batch of small transactions. Net changes per key are computed
per slice, not for the whole transaction. If a statement moves keys over each other (``SET k = k +
1``), a slice may need a key that a later slice frees. So if a transaction is refused in slices, it
is retried whole, if it is not too large. Otherwise it is applied slice by slice with the conflict
policy, and a refused slice change by change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from olr_pg.applier.statements.table_changes import join
from olr_pg.applier.stopped.refused_changes import RefusedError
from olr_pg.applier.target.ledger import ChangeCounts, ErrorRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.applier.batches.table_writer import Skipped, TableWriter
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.errors import OlrPgError


WHOLE_SPOOLS: Final = 4
"""A refused transaction is retried whole up to this multiple of `ApplierSettings.spool_bytes`."""


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
        """Bytes of the messages."""

    def read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        """Yield the changes from the first on, in parts of about these sizes.

        Raises:
            OlrPgError: they cannot be read.
        """


class SliceRefusedError(Exception):
    """Raised if the target refuses a slice of a large transaction.

    Attributes:
        first: the index of its first change within the transaction's changes of the table.
    """

    def __init__(self, refusal: RefusedError, part: Selection, first: int = 0) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.part = part
        self.first = first

    def row(self) -> ErrorRow:
        """Return the row of the error table for the stopped table."""
        row = self.refusal.row(self.part, "stopped")
        return row._replace(position=self.first + row.position)

    def located(self, table: str) -> OlrPgError:
        """Return the error with the position of its transaction."""
        return self.refusal.located(table, self.part)


def numbered(slices: Iterator[Selection]) -> Iterator[tuple[int, Selection]]:
    """Yield each slice with the index of its first change."""
    first = 0
    for part in slices:
        yield first, part
        first += len(part)


def renumbered(skipped: Skipped, first: int) -> Skipped:
    """Renumber changes to skip, so that they count from the change `first` of their transaction."""
    return frozenset((scn, xid, number - first) for scn, xid, number in skipped)


def read_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield slices of the size of a batch."""
    return slices.read(settings.batch_changes, settings.batch_bytes)


def whole_or_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield a transaction whole if it fits in memory once, else in slices.

    Applied whole it can succeed where slices in any order fail: rows that exchange their keys.
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
