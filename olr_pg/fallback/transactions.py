"""Collects pgoutput messages into whole transactions of the target, in commit order.

The messages of a transaction are kept until its commit arrives: in memory while the transaction is
small, otherwise on disk (`files.waiting_rows`). The segments of several streamed transactions can
alternate. Subtransactions that rolled back are skipped when the transaction is read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Mark,
    Origin,
    Relation,
    StreamAbort,
    StreamStart,
    StreamStop,
    Truncate,
    Type,
    Update,
    read_header,
    read_message,
)
from olr_pg.files.waiting_rows import WaitingRows, WaitingUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.fallback.pgoutput import Header

Change = Insert | Update | Delete | Truncate

MEMORY_BYTES: Final = 1 << 20
"""Maximum bytes of one transaction in memory; a larger one is written to a file."""

WAITING: Final = WaitingUse("fallback-", Code.SPOOL_UNWRITABLE, Code.SPOOL_DAMAGED)

_SIZE: Final = struct.Struct("!I")
_KEPT: Final = b"RIUDT"


class Transaction:
    """One transaction of PostgreSQL.

    Attributes:
        commit: the Commit message of the transaction; None while it is open.
        changes: number of row changes received, including changes that were rolled back later.
        size: bytes of the messages.
        is_streamed: whether the transaction is streamed, so that its messages contain XIDs of
            subtransactions.
    """

    def __init__(self, xid: int, directory: Path | None, *, is_streamed: bool) -> None:
        self.xid = xid
        self.commit: Commit | None = None
        self.changes = 0
        self.size = 0
        self.is_streamed = is_streamed
        self._directory = directory
        self._memory: list[bytes] = []
        self._file: WaitingRows | None = None
        self._rolled_back: set[int] = set()
        self._relations: dict[int, set[int]] = {}

    @property
    def end_lsn(self) -> int:
        """The LSN at which the commit record ends. If a slot is confirmed up to this LSN,
        PostgreSQL does not send the transaction again.
        """
        assert self.commit is not None
        return self.commit.end_lsn

    def add(self, data: bytes, header: Header) -> None:
        """Add one message.

        Raises:
            OlrPgError: 5021, the message cannot be written to disk.
        """
        if header.is_change:
            self.changes += 1
            self._relations.setdefault(header.subxid, set()).add(header.relation)
        self.size += len(data)
        if self._file is not None:
            self._file.append(_SIZE.pack(len(data)) + data)
            return
        self._memory.append(data)
        if self.size > MEMORY_BYTES:
            self._file = WaitingRows(WAITING, self._directory)
            for one in self._memory:
                self._file.append(_SIZE.pack(len(one)) + one)
            self._memory.clear()

    def roll_back(self, subxid: int) -> None:
        """Discard the changes of a subtransaction."""
        self._rolled_back.add(subxid)

    def changed(self) -> set[int]:
        """Return the OIDs of the relations that the transaction changes."""
        kept = (oids for subxid, oids in self._relations.items() if subxid not in self._rolled_back)
        return set[int]().union(*kept)

    def read(self) -> Iterator[Relation | Change]:
        """Yield the changes in order, and the descriptions of relations between them."""
        for data in self._messages():
            header = read_header(data, in_stream=self.is_streamed)
            is_relation = header.kind == ord("R")
            if header.subxid in self._rolled_back and not is_relation:
                continue  # valid even if the subtransaction was rolled back
            message = read_message(data, in_stream=self.is_streamed)
            assert isinstance(message, Relation | Insert | Update | Delete | Truncate)
            yield message

    def close(self) -> None:
        """Close and remove the transaction's file."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()

    def _messages(self) -> Iterator[bytes]:
        if self._file is None:
            yield from self._memory
            return
        stream = self._file.stream()
        while head := stream.read(_SIZE.size):
            yield stream.read(_SIZE.unpack(head)[0])


class TransactionReader:
    """Collects messages into transactions.

    Args:
        directory: directory for the files of large transactions; None for the system's temporary
            directory.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._open: Transaction | None = None
        self._piece: Transaction | None = None
        self._streamed: dict[int, Transaction] = {}

    @property
    def is_within(self) -> bool:
        """Return whether the stream is inside a transaction or inside a segment of one."""
        return self._open is not None or self._piece is not None

    def close(self) -> None:
        """Close and remove all files."""
        for one in (self._open, *self._streamed.values()):
            if one is not None:
                one.close()

    def feed(self, data: bytes) -> Transaction | None:
        """Process one message; return the transaction that it completes, if any.

        Raises:
            OlrPgError: 7300, the message is invalid, or is not allowed at this point of the stream.
        """
        in_stream = self._piece is not None
        header = read_header(data, in_stream=in_stream)
        if header.kind in _KEPT:
            receiver = self._piece or self._open
            if receiver is None:
                raise _misplaced("a change is outside of a transaction")
            receiver.add(data, header)
            return None
        message = read_message(data, in_stream=in_stream)
        match message:
            case Begin():
                self._open = Transaction(message.xid, self._directory, is_streamed=False)
            case StreamStart():
                self._piece = self._streamed.get(message.xid)
                if self._piece is None:
                    self._piece = Transaction(message.xid, self._directory, is_streamed=True)
                    self._streamed[message.xid] = self._piece
            case StreamStop():
                self._piece = None
            case StreamAbort():
                self._abort(message)
            case Commit():
                return self._end(message)
            case Mark() | Origin() | Type():
                pass
            case _:
                raise _misplaced("a message is at an unexpected position")
        return None

    def _abort(self, abort: StreamAbort) -> None:
        known = self._streamed.get(abort.xid)
        if known is None:
            raise _misplaced("a rollback of an unknown transaction")
        if abort.xid == abort.subxid:
            del self._streamed[abort.xid]
            known.close()
        else:
            known.roll_back(abort.subxid)

    def _end(self, commit: Commit) -> Transaction:
        if commit.xid is None:
            ended, self._open = self._open, None
        else:
            ended = self._streamed.pop(commit.xid, None)
        if ended is None:
            raise _misplaced("a commit of an unknown transaction")
        ended.commit = commit
        return ended


def _misplaced(what: str) -> OlrPgError:
    return OlrPgError(Code.PGOUTPUT_MALFORMED, what)
