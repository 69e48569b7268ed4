"""Large transactions in slices: one after the other, all in one target transaction.

A slice is brought in as a set, like a batch of small transactions. The net change of a key is that
of each slice, not of the transaction: where a statement moves keys over each other (``SET k = k +
1``), one slice may need a key that a later one frees. So a transaction that is refused in slices is
tried as a whole once more, if it is not too large for that; else slice by slice with the conflict
policy, change by change where a slice is refused.
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
"""A refused transaction of up to so many times `ApplierSettings.spool_bytes` is tried whole."""


class Slices(Protocol):
    """The changes of one large transaction to one table (or to all), in the delivery's order."""

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
        """Return the changes from the first on, in parts up to about these limits.

        Raises:
            OlrPgError: they cannot be read.
        """


class SliceRefusedError(Exception):
    """The target refuses a slice of a large transaction.

    Attributes:
        first: the number of its first change within the transaction's changes of the table.
    """

    def __init__(self, refusal: RefusedError, part: Selection, first: int = 0) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.part = part
        self.first = first

    def row(self) -> ErrorRow:
        """Return the line of the error table for a table that stops."""
        row = self.refusal.row(self.part, "stopped")
        return row._replace(position=self.first + row.position)

    def located(self, table: str) -> OlrPgError:
        """Return the error with the place of its transaction."""
        return self.refusal.located(table, self.part)


def numbered(slices: Iterator[Selection]) -> Iterator[tuple[int, Selection]]:
    """Yield each slice with the number of its first change."""
    first = 0
    for part in slices:
        yield first, part
        first += len(part)


def renumbered(skipped: Skipped, first: int) -> Skipped:
    """Renumber changes to leave out, counted from the change `first` of their transaction on."""
    return frozenset((scn, xid, number - first) for scn, xid, number in skipped)


def read_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield slices of the size of a batch."""
    return slices.read(settings.batch_changes, settings.batch_bytes)


def whole_or_slices(slices: Slices, settings: ApplierSettings) -> Iterator[Selection]:
    """Yield a transaction whole where memory may have it for once, else slices of it.

    Whole it can go in where no order of slices does: rows that take one another's keys.
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
    """Bring a large transaction's changes of one table in, in the caller's target transaction.

    Raises:
        SliceRefusedError: something of it does not go in; nothing of it is in then.
        psycopg.Error: an error that may pass.
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
