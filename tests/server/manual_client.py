"""A client of the port that is written from the protocol's published tables alone.

Nothing here comes from the project's own code: what both sides get wrong in the same way would go
unseen. Every integer is little-endian; a request is sent once the answer to the one before is here.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

TABLE_LIST: Final = 1
START_SCN: Final = 2
LAST_COMMITED_SCN: Final = 3
BACK_TO_SCN: Final = 4
LOG_OFF: Final = 5
GET_STATUS: Final = 6
GET_SAVED_SCN: Final = 7

OK: Final = 1
NO_MORE: Final = 2
ERROR: Final = 3
DATA: Final = 4
STATUS: Final = 5
SAVED_SCN: Final = 6

WAIT_TABLE_LIST: Final = 1
WAIT_START_SCN: Final = 2
REPLICATING: Final = 3

BEGIN: Final = 1
COMMIT: Final = 2
INSERT: Final = 4
DELETE: Final = 5
UPDATE: Final = 6
CHUNK: Final = 7

LAST_OF_COLUMN: Final = 1
LAST_OF_ROW: Final = 2

NULL_I64: Final = -(1 << 63)
NULL_U64: Final = (1 << 64) - 1
NULL_U8: Final = 255

NO_MORE_SECONDS: Final = 0.1
"""How long the manual's client waits after NoMore."""

PATIENCE_SECONDS: Final = 600.0


class RefusedError(Exception):
    """The server answered Error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class Value(NamedTuple):
    """A ColumnValue; None where the manual's NULL value of a field is sent."""

    name: str
    type: int
    precision: int | None
    scale: int | None
    charset: int | None
    form: int | None
    chunked: bool
    data: bytes | None


@dataclass
class Element:
    """What one Data answer carries, by the manual's names; fields that it has not are as here."""

    code: int
    scn: int
    commit_scn: int
    xid: int
    timestamp: int
    serial: int = 0
    session: int = 0
    object_id: int = 0
    schema: str = ""
    table: str = ""
    rowid: str = ""
    before: list[Value] = field(default_factory=list)
    after: list[Value] = field(default_factory=list)
    column: str = ""
    type: int = 0
    flags: int = 0
    data: bytes = b""


class Fields:
    """Reads packed fields one after the other; every byte must be taken."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def take(self, size: int) -> bytes:
        assert self._at + size <= len(self._raw), "the message is too short for its fields"
        self._at += size
        return self._raw[self._at - size : self._at]

    def number(self, form: str) -> int:
        (value,) = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))
        return int(value)

    def u8(self) -> int:
        return self.number("B")

    def u16(self) -> int:
        return self.number("H")

    def u32(self) -> int:
        return self.number("I")

    def u64(self) -> int:
        return self.number("Q")

    def i64(self) -> int:
        return self.number("q")

    def rest(self) -> bytes:
        return self.take(len(self._raw) - self._at)

    def end(self) -> None:
        assert self._at == len(self._raw), "bytes are left behind the last field"


def read_element(raw: bytes) -> Element:
    """The element of a Data answer's body."""
    fields = Fields(raw)
    code = fields.u8()
    assert code in (BEGIN, COMMIT, INSERT, DELETE, UPDATE, CHUNK)
    element = Element(code, fields.u64(), fields.u64(), fields.u64(), fields.u32())
    if code == BEGIN:
        element.serial, element.session = fields.u16(), fields.u32()
    elif code == CHUNK:
        size = fields.u8()
        element.column = fields.take(size).decode()
        element.type, element.flags = fields.u16(), fields.u16()
        assert element.flags <= LAST_OF_COLUMN | LAST_OF_ROW
        element.data = fields.take(fields.u64())
    elif code != COMMIT:
        element.object_id = fields.u32()
        sizes = fields.u8(), fields.u8(), fields.u8()
        element.schema, element.table, element.rowid = (fields.take(n).decode() for n in sizes)
        if code in (DELETE, UPDATE):
            element.before = read_columns(fields)
        if code in (INSERT, UPDATE):
            element.after = read_columns(fields)
    fields.end()
    return element


def read_columns(fields: Fields) -> list[Value]:
    """ColumnsCount and the ColumnValues."""
    return [read_column(fields) for _ in range(fields.u16())]


def read_column(fields: Fields) -> Value:
    """One ColumnValue."""
    name_size, value_size, kind = fields.u8(), fields.u64(), fields.u16()
    precision, scale, charset = fields.i64(), fields.i64(), fields.u64()
    form, chunked = fields.u8(), fields.u8()
    name, data = fields.take(name_size).decode(), fields.take(value_size)
    assert not (chunked and data), "a value that is chunked is here"
    return Value(
        name,
        kind,
        None if precision == NULL_I64 else precision,
        None if scale == NULL_I64 else scale,
        None if charset == NULL_U64 else charset,
        None if form == NULL_U8 else form,
        bool(chunked),
        data or None,
    )


class ManualClient:
    """A connection to the port."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def table_list(self, query: str) -> None:
        """Subscribe to what a query names."""
        assert self._ask(TABLE_LIST, query.encode()) == (OK, b"")

    def start_scn(self, scn: int) -> None:
        """Start to replicate."""
        assert self._ask(START_SCN, struct.pack("<Q", scn)) == (OK, b"")

    def last_commited_scn(self, scn: int) -> Element | None:
        """Confirm, and get the next element; None for NoMore."""
        return self._element(LAST_COMMITED_SCN, scn)

    def back_to_scn(self, scn: int) -> Element | None:
        """Go back; the Begin that delivery goes on with, None for NoMore."""
        element = self._element(BACK_TO_SCN, scn)
        assert element is None or element.code == BEGIN
        return element

    def next(self, confirmed: int) -> Element:
        """The next element, waited for as the manual says."""
        end = time.monotonic() + PATIENCE_SECONDS
        while (element := self.last_commited_scn(confirmed)) is None:
            assert time.monotonic() < end, "nothing more comes"
            time.sleep(NO_MORE_SECONDS)
        return element

    def status(self) -> int:
        """The state of the session."""
        code, body = self._ask(GET_STATUS)
        assert (code, len(body)) == (STATUS, 2)
        return int.from_bytes(body, "little")

    def saved_scn(self) -> int | None:
        """Where to start; None where nothing is saved."""
        code, body = self._ask(GET_SAVED_SCN)
        assert (code, len(body)) == (SAVED_SCN, 10)
        flag, scn = struct.unpack("<HQ", body)
        assert flag in (0, 1)
        return int(scn) if flag else None

    def log_off(self) -> None:
        """End the session: nothing is answered, the connection is closed."""
        self._send(LOG_OFF, b"")
        assert self._socket.recv(1) == b""

    def _element(self, request: int, scn: int) -> Element | None:
        code, body = self._ask(request, struct.pack("<Q", scn))
        if code == NO_MORE:
            assert body == b""
            return None
        assert code == DATA
        return read_element(body)

    def _ask(self, request: int, body: bytes = b"") -> tuple[int, bytes]:
        self._send(request, body)
        fields = Fields(self._exactly(Fields(self._exactly(4)).u32()))
        code = fields.u16()
        if code == ERROR:
            raise RefusedError(fields.u32(), fields.rest().decode())
        return code, fields.rest()

    def _send(self, request: int, body: bytes) -> None:
        self._socket.sendall(struct.pack("<IH", 2 + len(body), request) + body)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the server closed the connection"
            data += part
        return bytes(data)
