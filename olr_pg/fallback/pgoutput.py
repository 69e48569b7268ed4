"""Parses the messages of PostgreSQL's output plug-in pgoutput, and collects whole transactions.

PostgreSQL's documentation describes the formats (protocol version 2, “Logical Replication Message
Formats”). Each message is parsed by itself, without knowledge of earlier messages. Between Stream
Start and Stream Stop, most messages begin with the XID of their subtransaction.

Transactions are returned in commit order. The messages of a transaction are kept until its commit
arrives: in memory while the transaction is small, otherwise on disk (`files.waiting_rows`). The
segments of several streamed transactions can alternate. Subtransactions that rolled back are
skipped when the transaction is read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.waiting_rows import WaitingRows, WaitingUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


VERSION: Final = 2
"""With version 2, large transactions are streamed before they commit."""

NULL: Final = ord("n")
UNCHANGED: Final = ord("u")
TEXT: Final = ord("t")
BINARY: Final = ord("b")

_CHANGES: Final = b"IUD"
_IN_STREAM: Final = b"RYIUDTM"
"""Kinds of messages that begin with an XID between Stream Start and Stream Stop."""

_EPOCH_MICROSECONDS: Final = 946_684_800_000_000
"""Microseconds from 1970 to 2000, which is the epoch of PostgreSQL's times."""

_U32: Final = struct.Struct("!I")
_U64: Final = struct.Struct("!Q")
_I16: Final = struct.Struct("!h")
_BEGIN: Final = struct.Struct("!QqI")
_COMMIT: Final = struct.Struct("!BQQq")
_STREAM_COMMIT: Final = struct.Struct("!IBQQq")
_COLUMN_TYPE: Final = struct.Struct("!Ii")
_PAIR: Final = struct.Struct("!II")


class Row(NamedTuple):
    """The values of one row image.

    Attributes:
        values: the bytes of each column; None for NULL and for values that PostgreSQL did not send.
        kinds: one byte for each column: `NULL`, `UNCHANGED` (a TOAST value that was not sent),
            `TEXT` or `BINARY`.
    """

    values: tuple[bytes | None, ...]
    kinds: bytes


class RelationColumn(NamedTuple):
    """A column of a relation; `is_key` if it is part of the replica identity."""

    name: str
    type_oid: int
    modifier: int
    is_key: bool


class Begin(NamedTuple):
    """The start of a transaction that committed at `lsn`; its time is in microseconds since
    1970.
    """

    lsn: int
    committed_at: int
    xid: int


class Commit(NamedTuple):
    """The end of a transaction. If `xid` is not None, the transaction was streamed and the message
    is Stream Commit.
    """

    lsn: int
    end_lsn: int
    committed_at: int
    xid: int | None = None


class Origin(NamedTuple):
    """The replication origin of the current transaction."""

    lsn: int
    name: str


class Relation(NamedTuple):
    """The description of a table. PostgreSQL sends this description before the table's first
    change, and again after each DDL.

    Attributes:
        identity: kind of the replica identity: ``d`` default, ``n`` nothing, ``f`` full, ``i``
            index.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Type(NamedTuple):
    """A data type that is not built in."""

    oid: int
    schema: str
    name: str


class Insert(NamedTuple):
    """An inserted row."""

    relation: int
    new: Row


class Update(NamedTuple):
    """An updated row; `old` is None unless the row's key changed, or the replica identity is
    full.
    """

    relation: int
    old: Row | None
    new: Row


class Delete(NamedTuple):
    """A deleted row; it contains only the columns of the replica identity."""

    relation: int
    old: Row


class Truncate(NamedTuple):
    """Truncated tables."""

    relations: tuple[int, ...]


class Mark(NamedTuple):
    """A message written by pg_logical_emit_message."""

    lsn: int
    prefix: str


class StreamStart(NamedTuple):
    """The start of a segment of the streamed transaction `xid`."""

    xid: int


class StreamStop(NamedTuple):
    """The end of the segment that `StreamStart` began."""


class StreamAbort(NamedTuple):
    """The rollback of the subtransaction `subxid` of the streamed transaction `xid`. If both are
    equal, the whole transaction was rolled back.
    """

    xid: int
    subxid: int


Message = (
    Begin | Commit | Origin | Relation | Type | Insert | Update | Delete | Truncate | Mark
    | StreamStart | StreamStop | StreamAbort
)  # fmt: skip


class Header(NamedTuple):
    """The start of a message, read before the whole message is parsed.

    Attributes:
        kind: first byte of the message.
        subxid: XID of the subtransaction, between Stream Start and Stream Stop; otherwise 0.
        relation: OID of the relation, for an Insert, Update or Delete; otherwise 0.
    """

    kind: int
    subxid: int
    relation: int

    @property
    def is_change(self) -> bool:
        """Return whether the message is a row change."""
        return self.kind in _CHANGES


def read_header(data: bytes, *, in_stream: bool) -> Header:
    """Parse the start of a message.

    Raises:
        OlrPgError: 7300, the message is too short.
    """
    try:
        kind, place, subxid = data[0], 1, 0
        if in_stream and kind in _IN_STREAM:
            (subxid,) = _U32.unpack_from(data, 1)
            place = 5
        relation = _U32.unpack_from(data, place)[0] if kind in _CHANGES else 0
    except (struct.error, IndexError) as error:
        raise _malformed("it is too short", data) from error
    return Header(kind, subxid, relation)


def read_message(data: bytes, *, in_stream: bool) -> Message:
    """Parse one message.

    Args:
        in_stream: whether the message arrived between Stream Start and Stream Stop.

    Raises:
        OlrPgError: 7300, the data is not a message of this protocol version.
    """
    reader = _Reader(data)
    try:
        message = reader.message(in_stream=in_stream)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise _malformed("the message is too short or damaged", data) from error
    if reader.place != len(data):
        raise _malformed("the message has more bytes than it should", data)
    return message


def lsn_text(lsn: int) -> str:
    """Format an LSN as PostgreSQL does."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFF_FFFF:X}"


def lsn_number(text: str) -> int:
    """Parse an LSN in PostgreSQL's format."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def _malformed(what: str, data: bytes) -> OlrPgError:
    kind = chr(data[0]) if data else ""
    return OlrPgError(Code.PGOUTPUT_MALFORMED, f"a message {kind!r} of {len(data)} bytes: {what}")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def message(self, *, in_stream: bool) -> Message:
        kind = self._byte()
        if in_stream and kind in _IN_STREAM:
            self._u32()  # skip the subtransaction's XID, which `read_header` returns
        read = _READERS.get(kind)
        if read is None:
            raise _malformed("its kind is unknown", self._data)
        found: Message = read(self)
        return found

    def _unpack(self, form: struct.Struct) -> tuple[int, ...]:
        found: tuple[int, ...] = form.unpack_from(self._data, self.place)
        self.place += form.size
        return found

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _u32(self) -> int:
        return self._unpack(_U32)[0]

    def _text(self) -> str:
        end = self._data.find(b"\0", self.place)
        if end < 0:
            raise _malformed("a text does not end", self._data)
        found = self._data[self.place : end].decode()
        self.place = end + 1
        return found

    def _count(self) -> int:
        (count,) = self._unpack(_I16)
        if count < 0:
            raise _malformed("a count is negative", self._data)
        return count

    def _bytes(self, size: int) -> bytes:
        end = self.place + size
        if end > len(self._data):
            raise _malformed("a value is cut off", self._data)
        found = self._data[self.place : end]
        self.place = end
        return found

    def _row(self) -> Row:
        count = self._count()
        values: list[bytes | None] = []
        kinds = bytearray()
        for _ in range(count):
            kind = self._byte()
            kinds.append(kind)
            if kind in (NULL, UNCHANGED):
                values.append(None)
            elif kind in (TEXT, BINARY):
                values.append(self._bytes(self._u32()))
            else:
                raise _malformed("the kind of a value is unknown", self._data)
        return Row(tuple(values), bytes(kinds))

    def _begin(self) -> Begin:
        lsn, at, xid = self._unpack(_BEGIN)
        return Begin(lsn, at + _EPOCH_MICROSECONDS, xid)

    def _commit(self) -> Commit:
        _flags, lsn, end, at = self._unpack(_COMMIT)
        return Commit(lsn, end, at + _EPOCH_MICROSECONDS)

    def _origin(self) -> Origin:
        return Origin(self._unpack(_U64)[0], self._text())

    def _relation(self) -> Relation:
        oid, schema, name = self._u32(), self._text(), self._text()
        identity = chr(self._byte())
        return Relation(oid, schema, name, identity, tuple(self._columns()))

    def _columns(self) -> list[RelationColumn]:
        found = []
        for _ in range(self._count()):
            flags, name = self._byte(), self._text()
            oid, modifier = self._unpack(_COLUMN_TYPE)
            found.append(RelationColumn(name, oid, modifier, bool(flags & 1)))
        return found

    def _type(self) -> Type:
        return Type(self._u32(), self._text(), self._text())

    def _insert(self) -> Insert:
        relation = self._u32()
        self._expect(b"N")
        return Insert(relation, self._row())

    def _update(self) -> Update:
        relation, old = self._u32(), None
        if self._expect(b"KON") != ord("N"):
            old = self._row()
            self._expect(b"N")
        return Update(relation, old, self._row())

    def _delete(self) -> Delete:
        relation = self._u32()
        self._expect(b"KO")
        return Delete(relation, self._row())

    def _truncate(self) -> Truncate:
        count = self._u32()
        self._byte()  # skip the options CASCADE and RESTART IDENTITY
        return Truncate(tuple(self._u32() for _ in range(count)))

    def _mark(self) -> Mark:
        self._byte()  # skip the flag for a transactional message
        lsn, prefix = self._unpack(_U64)[0], self._text()
        self._bytes(self._u32())
        return Mark(lsn, prefix)

    def _stream_start(self) -> StreamStart:
        xid = self._u32()
        self._byte()  # skip the flag for the first segment
        return StreamStart(xid)

    def _stream_stop(self) -> StreamStop:
        return StreamStop()

    def _stream_commit(self) -> Commit:
        xid, _flags, lsn, end, at = self._unpack(_STREAM_COMMIT)
        return Commit(lsn, end, at + _EPOCH_MICROSECONDS, xid)

    def _stream_abort(self) -> StreamAbort:
        xid, subxid = self._unpack(_PAIR)
        return StreamAbort(xid, subxid)

    def _expect(self, wanted: bytes) -> int:
        found = self._byte()
        if found not in wanted:
            raise _malformed("the kind of a row image is unknown", self._data)
        return found


_READERS: Final[dict[int, Callable[[_Reader], Message]]] = {
    ord("B"): _Reader._begin,
    ord("C"): _Reader._commit,
    ord("O"): _Reader._origin,
    ord("R"): _Reader._relation,
    ord("Y"): _Reader._type,
    ord("I"): _Reader._insert,
    ord("U"): _Reader._update,
    ord("D"): _Reader._delete,
    ord("T"): _Reader._truncate,
    ord("M"): _Reader._mark,
    ord("S"): _Reader._stream_start,
    ord("E"): _Reader._stream_stop,
    ord("c"): _Reader._stream_commit,
    ord("A"): _Reader._stream_abort,
}


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
