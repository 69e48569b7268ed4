"""Writes transactions as JSON Lines. The input is packed transactions, which decoding yields, or
protocol messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import orjson

from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.received.column_numbers import ColumnNumbers
from olr_pg.datatypes.columns import read_only
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel
from olr_pg.rendering.change_lines import ChangeLines
from olr_pg.scalars import format_xid
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.packed_changes import PackedReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Table
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.frames import Buffer

PIECE_BYTES: Final = 512 << 10
"""A transaction with fewer packed bytes is written completely before its first line is yielded."""

_MESSAGE_BYTES: Final = 2 << 20
_ROW_BYTES_MAX: Final = 1 << 62
_COMMIT: Final = int(ElementCode.COMMIT)

U8 = npt.NDArray[np.uint8]


@kernel
def piece_end_kernel(data: U8, big: bool, first: int, limit: int) -> int:
    """Find the end of the next piece: after the last Commit within `limit` bytes, or if there is
    none, after the last complete message within them.

    Returns:
        The end, which is after at least one message; `first` if no message is complete.
    """
    at = message_end = commit_end = first
    while data.size - at >= 4:
        size = 0
        for i in range(4):
            size |= int(np.int64(data[at + i])) << (24 - 8 * i if big else 8 * i)
        if size < 2 or data.size - at - 4 < size:
            break
        at += 4 + size
        if at - first > limit and message_end > first:
            break
        message_end = at
        if size > 2 and data[at - size + 2] == 2:
            commit_end = at
    return commit_end if commit_end > first else message_end


def cut_messages(framed: Buffer, order: ByteOrder, limit: int) -> Iterator[U8]:
    """Yield the messages in pieces of about `limit` bytes. A piece ends at the end of a transaction
    unless the transaction is larger.

    Raises:
        OlrPgError: 4001, a message is cut off.
    """
    data = read_only(np.frombuffer(framed, np.uint8))
    at = 0
    while at < data.size:
        end = piece_end_kernel(data, order.is_big, at, limit)
        if end == at:
            raise OlrPgError(Code.MESSAGE_SIZE, "a message is truncated", offset=at)
        yield data[at:end]
        at = end


class PackedLines:
    """Writes the lines of packed transactions.

    Args:
        database, sessions, invalid_dates: as for `ChangeLines`.
    """

    def __init__(
        self,
        database: Database,
        sessions: SessionDirectory | None = None,
        *,
        invalid_dates: InvalidDates | None = None,
    ) -> None:
        self._reader = PackedReader()
        self._lines = ChangeLines(
            database, self._reader.directory, sessions, invalid_dates=invalid_dates
        )

    def pieces(self, packed: Buffer, tables: Sequence[Table]) -> Iterator[Buffer]:
        """Yield the lines in pieces. Each piece is valid until the next one is requested.

        The lines of a transaction are in one piece unless it is large (`PIECE_BYTES`).
        """
        self._reader.know(tables)
        for read in self._reader.read(packed, PIECE_BYTES):
            for lines in self._lines.of(read.changes, read.session):
                yield lines.text

    def write_transactions(
        self, packed: Buffer, tables: Sequence[Table], write: Callable[[Buffer], object]
    ) -> npt.NDArray[np.int64]:
        """Write the lines of packed transactions.

        Args:
            packed, tables: as for `pieces`.
            write: called with the lines, piece by piece.

        Returns:
            Shape (transactions + 1); the offset in the output at which each transaction's lines
            begin, and the end of the output.

        Raises:
            OlrPgError: as `pieces`; the caller must then discard the output.
        """
        self._reader.know(tables)
        ends = [np.zeros(1, np.int64)]
        size = 0
        for read in self._reader.read(packed, PIECE_BYTES):
            first = 0
            for text, line_end, _ in self._lines.of(read.changes):
                is_commit = read.changes.kind[first : first + len(line_end)] == _COMMIT
                ends.append(line_end[is_commit] + size)
                write(text)
                size += len(text)
                first += len(line_end)
        return np.concatenate(ends)


class JsonLines:
    """Writes the lines of protocol messages.

    Args:
        database: as for `ChangeLines`.
        order: the byte order of the messages.
    """

    def __init__(self, database: Database, order: ByteOrder = ByteOrder.LITTLE) -> None:
        self._order = order
        self._numbers = ColumnNumbers(order)
        self._lines = ChangeLines(database, self._numbers.directory)

    @property
    def directory(self) -> ColumnDirectory:
        """The tables and columns that the messages so far have described."""
        return self._numbers.directory

    def render(self, framed: Buffer) -> bytes:
        """Return all lines of the messages at once; see `pieces`."""
        return b"".join(bytes(piece) for piece in self.pieces(framed))

    def pieces(self, framed: Buffer) -> Iterator[Buffer]:
        """Yield the lines in pieces. Each piece is valid until the next one is requested.

        Args:
            framed: Data messages.

        Raises:
            OlrPgError: as for `ChangeLines.of`; 4001, 4005, 5013, the messages are malformed.
        """
        for changes in self.changes(framed):
            for lines in self._lines.of(changes):
                yield lines.text

    def line(self, framed: Buffer, number: int) -> bytes | None:
        """Return the line of one element; None if there are not so many elements. Chunks have no
        line and are not counted.

        Args:
            framed: Data messages of whole row changes.
            number: the number of the element, from 0.

        Raises:
            OlrPgError: as `pieces`, but only for the values of that line.
        """
        for changes in self.changes(framed):
            if number < changes.kind.size:
                return b"".join(one.text for one in self._lines.some(changes, number, number + 1))
            number -= changes.kind.size
        return None

    def changes(self, framed: Buffer) -> Iterator[ChangeColumns]:
        """Yield the elements of messages in pieces. A piece ends at the end of a transaction if
        possible.
        """
        reader = MessageReader(self._order, _ROW_BYTES_MAX, self._numbers)
        for piece in cut_messages(framed, self._order, _MESSAGE_BYTES):
            for received in reader.feed(piece):
                yield received.changes
        if reader.is_open:
            raise OlrPgError(Code.ANSWER_MALFORMED, "a row change without its last Chunk")


COMMANDS: Final = {
    1: "CREATE TABLE", 9: "CREATE INDEX", 10: "DROP INDEX", 11: "ALTER INDEX", 12: "DROP TABLE",
    13: "CREATE SEQUENCE", 14: "ALTER SEQUENCE", 15: "ALTER TABLE", 16: "DROP SEQUENCE",
    17: "GRANT", 18: "REVOKE", 19: "CREATE SYNONYM", 20: "DROP SYNONYM", 21: "CREATE VIEW",
    22: "DROP VIEW", 24: "CREATE PROCEDURE", 25: "ALTER PROCEDURE", 28: "RENAME", 29: "COMMENT",
    59: "CREATE TRIGGER", 60: "ALTER TRIGGER", 61: "DROP TRIGGER", 62: "ANALYZE TABLE",
    68: "DROP PROCEDURE", 85: "TRUNCATE TABLE", 91: "CREATE FUNCTION", 94: "CREATE PACKAGE",
    97: "CREATE PACKAGE BODY",
}  # fmt: skip
"""Names of the most common commands, by their number in V$SQLCOMMAND. For other commands, the line
has the number.
"""


def render_ddl(
    transaction: DictionaryTransaction, wanted: Callable[[str, str], bool]
) -> Iterator[bytes]:
    """Yield the JSON lines of a transaction's DDL statements.

    Args:
        wanted: returns whether the statements about an object, given its owner and name, are
            wanted.
    """
    for statement in transaction.statements:
        if not wanted(statement.owner, statement.name):
            continue
        record = {
            "op": "ddl",
            "scn": statement.scn,
            "commit_scn": transaction.commit_scn,
            "xid": format_xid(transaction.xid),
            "table": f"{statement.owner}.{statement.name}",
            "command": COMMANDS.get(statement.command, statement.command),
            "text": statement.text,
        }
        yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
