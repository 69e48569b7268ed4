"""Packets, primitives and values of Oracle's network protocols, as the driver uses them.

A packet of Oracle Net (TNS) frames each message on the socket. A packet has an 8-byte header
(length, type, flags) and a body; the body of a data packet begins with two bytes of flags. The
length has two bytes until the connection is accepted, and four bytes after that. Source of the
facts: python-oracledb's thin mode (``impl/thin/packet.pyx``, ``transport.pyx``).

The primitives of the two-task protocol (TTC) are integers, byte strings and addresses. An integer
has its length before it; it is big-endian, without leading zero bytes. A byte string has one length
byte before it, or is sent in chunks if it is long. Source of the facts: ``impl/base/buffer.pyx``.

Values of the catalogue's queries are converted to them. Clients have AL32UTF8, the database has the
character set that it declares, and Oracle's server converts text between them. Bytes that are no
character of the declared set are sent as U+FFFD. A character that the declared set lacks is stored
as ``?``. Within the stand-in, a text whose bytes are not valid UTF-8 contains each of these bytes
as a lone surrogate (`cells.bytes_text`), or it is bytes.
"""

from __future__ import annotations

import select
import socket
import struct
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.datatypes.charsets import DATABASE_FORM, Charset, charset
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.temporal import DateTime, encode_date
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.simulator.fields.cells import bytes_text, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


LONG_LENGTH: Final = 254
"""Length byte of a byte string that follows in chunks."""

NULL_LENGTH: Final = 255
SHORT_LENGTH_MAX: Final = 252
CHUNK: Final = 32_767

_NEGATIVE: Final = 0x80
_SIZES: Final = (0, 1, 2, 4, 4, 8, 8, 8, 8)
"""The length of an integer with so many bytes: lengths of 3, 5, 6 and 7 never occur."""


class MalformedMessageError(Exception):
    """The client sent something that cannot be read."""


class TtcReader:
    """Reads the fields of one message.

    Args:
        data: the data of the message's first packet.
        more: returns the data of the next packet. A packet does not say whether it is the last one;
            only while reading fields does the reader notice that another packet must follow.
    """

    def __init__(self, data: bytes, more: Callable[[], bytes] | None = None) -> None:
        self._data = data
        self._at = 0
        self._more = more

    @property
    def done(self) -> bool:
        """Return whether all received data was read."""
        return self._at >= len(self._data)

    def raw(self, size: int) -> bytes:
        """Read the next `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            self._receive(size)
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def byte(self) -> int:
        """Read one byte."""
        at = self._at
        if at >= len(self._data):
            self._receive(1)
        self._at = at + 1
        return self._data[at]

    def _receive(self, size: int) -> None:
        """Receive packets until the next `size` bytes are here."""
        while self._at + size > len(self._data):
            if self._more is None:
                raise MalformedMessageError(f"{size} bytes at {self._at} of {len(self._data)}")
            self._data += self._more()

    def skip(self, layout: str) -> None:
        """Skip fields; each letter of `layout` is one field: ``b`` a byte, ``i`` an integer."""
        data, at = self._data, self._at
        for field in layout:
            if at >= len(data):
                self._at = at
                self._receive(1)
                data = self._data
            first = data[at]
            at += 1
            if first and field == "i":
                at += first & ~_NEGATIVE
        self._at = at
        if at > len(data):
            self._receive(0)

    def u16(self) -> int:
        """Read two bytes, big-endian."""
        return int.from_bytes(self.raw(2), "big")

    def integer(self) -> int:
        """Read an integer whose length precedes it."""
        at = self._at
        if at >= len(self._data):
            self._receive(1)
        size = self._data[at]
        self._at = at + 1
        if not size:  # more than half of all
            return 0
        value = int.from_bytes(self.raw(size & ~_NEGATIVE), "big")
        return -value if size & _NEGATIVE else value

    def bytes_(self) -> bytes | None:
        """Read a byte string; None for NULL."""
        size = self.byte()
        if size in (0, NULL_LENGTH):
            return None
        if size != LONG_LENGTH:
            return self.raw(size)
        chunks = bytearray()
        while chunk := self.integer():
            chunks += self.raw(chunk)
        return bytes(chunks)

    def sized_bytes(self) -> bytes:
        """Read a byte string whose total length precedes it."""
        return (self.bytes_() or b"") if self.integer() else b""


class TtcWriter:
    """Collects the fields of one message."""

    def __init__(self) -> None:
        self.data = bytearray()

    def raw(self, data: bytes) -> TtcWriter:
        """Write bytes unchanged."""
        self.data += data
        return self

    def byte(self, *values: int) -> TtcWriter:
        """Write single bytes."""
        self.data += bytes(values)
        return self

    def u16(self, value: int) -> TtcWriter:
        """Write two bytes, big-endian."""
        self.data += value.to_bytes(2, "big")
        return self

    def integer(self, *values: int) -> TtcWriter:
        """Write integers, each after its length."""
        for value in values:
            if not value:  # more than half of all
                self.data.append(0)
                continue
            size = _SIZES[(abs(value).bit_length() + 7) // 8]
            self.data.append(size | (_NEGATIVE if value < 0 else 0))
            self.data += abs(value).to_bytes(size, "big")
        return self

    def bytes_(self, value: bytes | None) -> TtcWriter:
        """Write a byte string; None for NULL."""
        if not value:
            self.data.append(0)
        elif len(value) <= SHORT_LENGTH_MAX:
            self.data.append(len(value))
            self.data += value
        else:
            self.data.append(LONG_LENGTH)
            for at in range(0, len(value), CHUNK):
                chunk = value[at : at + CHUNK]
                self.integer(len(chunk))
                self.data += chunk
            self.integer(0)
        return self

    def sized_bytes(self, value: bytes) -> TtcWriter:
        """Write a byte string, after its total length."""
        self.integer(len(value))
        return self.bytes_(value) if value else self

    def sized_text(self, text: str) -> TtcWriter:
        """Write a text in UTF-8, as `sized_bytes` does."""
        return self.sized_bytes(text.encode())


HEADER_BYTES: Final = 8
DATA_FLAGS_BYTES: Final = 2
DEFAULT_SDU: Final = 8192
"""Maximum size of a packet until both sides have agreed on one."""


class PacketType(IntEnum):
    """The types of packets that the simulated Oracle server uses."""

    CONNECT = 1
    ACCEPT = 2
    REFUSE = 4
    DATA = 6
    MARKER = 12


class Marker(IntEnum):
    """The meaning of a marker packet."""

    BREAK = 1
    RESET = 2
    INTERRUPT = 3


class Packet(NamedTuple):
    """A packet without its header."""

    type: int
    body: bytes

    @property
    def marker(self) -> int:
        """The `Marker` of a marker packet."""
        return self.body[2]


class PeerGoneError(Exception):
    """The client closed the connection."""


class PacketStream:
    """Packets over a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.sdu = DEFAULT_SDU
        self.accepted = False

    def receive(self) -> Packet:
        """Receive the next packet.

        Raises:
            PeerGoneError: the client has closed the connection.
        """
        header = self._exactly(HEADER_BYTES)
        size = int.from_bytes(header[: 4 if self.accepted else 2], "big")
        return Packet(header[4], self._exactly(size - HEADER_BYTES))

    def readable(self, seconds: float) -> bool:
        """Return whether the client sends something within `seconds`."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def send(self, packet_type: PacketType, body: bytes) -> None:
        """Send one packet."""
        size = HEADER_BYTES + len(body)
        length = size.to_bytes(4, "big") if self.accepted else size.to_bytes(2, "big") + b"\0\0"
        try:
            self._socket.sendall(length + bytes((packet_type, 0, 0, 0)) + body)
        except OSError as error:
            raise PeerGoneError from error

    def send_message(self, message: bytes) -> None:
        """Send a message in one or more data packets."""
        room = self.sdu - HEADER_BYTES - DATA_FLAGS_BYTES
        for at in range(0, len(message), room):
            self.send(PacketType.DATA, bytes(DATA_FLAGS_BYTES) + message[at : at + room])

    def send_marker(self, marker: Marker) -> None:
        """Send a marker packet."""
        self.send(PacketType.MARKER, bytes((1, 0, marker)))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except OSError as error:
                raise PeerGoneError from error
            if not piece:
                raise PeerGoneError
            data += piece
        return data


class ServerText:
    """The conversions of a database.

    Args:
        declared: NLS_CHARACTERSET.
    """

    def __init__(self, declared: Charset) -> None:
        self._declared = declared
        self.is_single_byte = declared.structure == "single-byte"

    @staticmethod
    def stored(value: str | bytes) -> bytes:
        """Return the bytes with which the simulated database stores a text."""
        return value if isinstance(value, bytes) else text_bytes(value)

    def sent(self, value: str | bytes) -> bytes:
        """Return the bytes that a client receives for a text, in UTF-8."""
        raw = self.stored(value)
        if not self.is_single_byte:
            return raw  # clients have the same set
        return decode_text_by_policy(raw, self._declared)[0].encode()

    def sent_clob(self, value: str | bytes) -> bytes:
        """Return the bytes that a client receives for a CLOB, in UTF-16. In a database with several
        bytes per character, a value of bytes is in UTF-16 already, possibly invalid.
        """
        if self.is_single_byte:
            return self.sent(value).decode().encode("utf-16-be")
        return value if isinstance(value, bytes) else value.encode("utf-16-be")

    def received(self, raw: bytes) -> str:
        """Return the text that the database has after a client sent it in UTF-8."""
        if not self.is_single_byte:
            return raw.decode()
        return bytes_text(raw.decode().encode(self._declared.codec, "replace"))


UNICODE: Final = ServerText(charset("AL32UTF8"))
"""The conversions of a database in AL32UTF8."""

LOBS: Final = (OracleType.CLOB, OracleType.BLOB)
LONGS: Final = (OracleType.LONG, OracleType.LONG_RAW)
_WITH_MORE: Final = (*LOBS, *LONGS)
"""Types for which more than the value is sent, also for NULL."""

_TEXTS: Final = (OracleType.VARCHAR2, OracleType.CHAR)
NATIONAL: Final = 2
"""The character set form of national character data."""

LOCATOR_BYTES: Final = 40
_CHUNK_BYTES: Final = 8132
_CHARACTER_FLAGS: Final = 6
_UTF16: Final = 0x80
_UTF16_NAME: Final = "utf-16-be"
_NUMBER_IN_LOCATOR: Final = 20
_TEXT_BYTES_MAX: Final = 32_767


class BindType(NamedTuple):
    """The type of a bind, or the type that the driver wants for a column."""

    code: int
    form: int
    size: int


class Wanted(NamedTuple):
    """The type and the character set form in which a column is sent."""

    code: int
    form: int = 0


class ResultType(NamedTuple):
    """The type of a result column."""

    code: int
    size: int
    form: int = 0
    precision: int = 0
    scale: int = 0


class ResultColumn(NamedTuple):
    """A column of a result."""

    name: str
    kind: ResultType


NUMBER_KIND: Final = ResultType(OracleType.NUMBER, 22, scale=-127)


def float_kind(code: int) -> ResultType:
    """Return the type of a result column with binary floats."""
    return ResultType(code, 4 if code == OracleType.BINARY_FLOAT else 8)


def kind_of(values: Sequence[object], *, lob: bool) -> ResultType:
    """Return the type that a column must have for its values.

    Args:
        lob: bytes and texts are sent as LOBs.
    """
    first = next((value for value in values if value is not None), None)
    if isinstance(first, Bfile):
        return ResultType(OracleType.BFILE, 530)
    if isinstance(first, bytes) or (first is None and lob):
        longest = max((len(value) for value in values if isinstance(value, bytes)), default=0)
        return (
            ResultType(OracleType.BLOB, 4000)
            if lob
            else ResultType(OracleType.RAW, max(longest, 1))
        )
    if isinstance(first, int | float):
        return NUMBER_KIND
    if isinstance(first, datetime):
        return ResultType(OracleType.DATE, 7)
    if lob:
        return ResultType(OracleType.CLOB, 4000, 1)
    texts = [str(value).encode() for value in values if value is not None]
    return ResultType(
        OracleType.VARCHAR2, min(max(map(len, texts), default=1) or 1, _TEXT_BYTES_MAX), 1
    )


def decode_bind(
    kind: BindType, raw: bytes | None, text: ServerText, lobs: list[LobValue]
) -> object:
    """Decode a bind's value for the catalogue.

    Args:
        text: converts text as the database does.
        lobs: the LOBs of the session, which locators name.
    """
    if raw is None:
        return None
    if kind.code in LOBS:
        return lob_of(raw, lobs).value
    if kind.code == OracleType.NUMBER:
        return _bound_number(raw)
    if kind.code in (OracleType.RAW, OracleType.LONG_RAW):
        return raw
    return raw.decode(_UTF16_NAME) if kind.form == NATIONAL else text.received(raw)


@lru_cache(4096)  # clients bind the numbers of objects again and again
def _bound_number(raw: bytes) -> int | float:
    number = Decimal(decode_number(raw))
    return int(number) if number == int(number) else float(number)


_BFILE_FLAGS: Final = bytes.fromhex("0001080800000001000000000000")
_BFILE_FLAG_AT: Final = 4
_IS_BFILE: Final = 0x08
_BFILE_NAMES_AT: Final = 16
"""These constants describe the locator of a BFILE that a real 23ai sends to the driver's thin mode.
"""


class Bfile(NamedTuple):
    """The value that BFILENAME returns."""

    directory: str
    name: str

    @property
    def locator(self) -> bytes:
        """The locator, which the driver sends back with each operation."""
        names = b"".join(len(one).to_bytes(2, "big") + one for one in map(str.encode, self))
        return (len(_BFILE_FLAGS) + len(names)).to_bytes(2, "big") + _BFILE_FLAGS + names

    @classmethod
    def of(cls, locator: bytes) -> Bfile | None:
        """Return the file that a locator names; None if it is the locator of another LOB."""
        if not locator[_BFILE_FLAG_AT] & _IS_BFILE:
            return None
        names, at = list[str](), _BFILE_NAMES_AT
        for _ in cls._fields:
            end = at + 2 + int.from_bytes(locator[at : at + 2], "big")
            names.append(locator[at + 2 : end].decode())
            at = end
        return cls(*names)


class LobValue(NamedTuple):
    """The content of a LOB, text in UTF-16; its length is counted in units of `unit` bytes. `value`
    is the LOB in the database.
    """

    content: bytes
    unit: int
    value: str | bytes = b""

    @property
    def size(self) -> int:
        """The length in units."""
        return len(self.content) // self.unit

    def piece(self, offset: int, amount: int) -> bytes:
        """Return at most `amount` units, from unit `offset` on (from 1)."""
        start = (offset - 1) * self.unit
        return self.content[start : start + amount * self.unit]


def write_value(
    out: TtcWriter, value: object, wanted: Wanted, lobs: list[LobValue], text: ServerText
) -> None:
    """Write a value of a row.

    Args:
        text: converts text as the database does.
        wanted: the type that the driver expects.
        lobs: the LOBs of the session; a LOB value is added, so that its locator can name it.
    """
    code = wanted.code
    if value is None and code not in _WITH_MORE:
        out.data.append(0)
    elif isinstance(value, str) and code in _TEXTS:
        out.bytes_(_to_bytes(value, wanted.form, text))
    elif code in LOBS:
        _write_locator(out, value, code, lobs, text)
    elif isinstance(value, Bfile):
        # The size of the file is not sent with the locator.
        out.integer(len(value.locator)).bytes_(value.locator)
    elif code == OracleType.BOOLEAN:
        out.bytes_(bytes([str(value).upper() in ("1", "TRUE")]))
    elif code in (OracleType.BINARY_FLOAT, OracleType.BINARY_DOUBLE):
        out.bytes_(_ordered_float(float(str(value)), float_kind(code).size))
    elif code == OracleType.NUMBER:
        out.bytes_(_number(str(value)))
    elif isinstance(value, datetime):
        out.bytes_(encode_date(DateTime(*value.timetuple()[:6])))
    else:
        out.bytes_(_to_bytes(value, wanted.form, text))
        if code in LONGS:
            out.integer(0, 0)


@lru_cache(4096)  # the numbers of a dictionary are few, and clients ask for them again and again
def _number(text: str) -> bytes:
    return encode_number(Decimal(text))


def _ordered_float(number: float, size: int) -> bytes:
    """Encode a binary float so that the bytes sort like the numbers (values-and-lobs §8)."""
    raw = struct.pack(">f" if size == 4 else ">d", number)
    top = raw[0] ^ 0x80 if raw[0] < 0x80 else None
    return bytes(byte ^ 0xFF for byte in raw) if top is None else bytes((top,)) + raw[1:]


def _to_bytes(value: object, form: int, text: ServerText) -> bytes | None:
    if value is None:
        return None
    if form == DATABASE_FORM:
        return text.sent(value if isinstance(value, bytes) else str(value))
    if isinstance(value, bytes):
        return value
    return str(value).encode(_UTF16_NAME if form == NATIONAL else "utf-8")


def _write_locator(
    out: TtcWriter, value: object, code: int, lobs: list[LobValue], text: ServerText
) -> None:
    """Write the locator of a LOB."""
    if value is None:
        out.integer(0)
        return
    assert isinstance(value, str | bytes)
    if code == OracleType.BLOB:
        lob = LobValue(value if isinstance(value, bytes) else value.encode(_UTF16_NAME), 1, value)
    else:
        lob = LobValue(text.sent_clob(value), 2, value)
    locator = bytearray(LOCATOR_BYTES)
    locator[1] = LOCATOR_BYTES - 2
    if code == OracleType.CLOB:
        locator[_CHARACTER_FLAGS] = _UTF16
    locator[_NUMBER_IN_LOCATOR : _NUMBER_IN_LOCATOR + 4] = len(lobs).to_bytes(4, "big")
    lobs.append(lob)
    out.integer(LOCATOR_BYTES, lob.size, _CHUNK_BYTES).bytes_(bytes(locator))


def lob_of(locator: bytes, lobs: list[LobValue]) -> LobValue:
    """Return the LOB that a locator names."""
    return lobs[int.from_bytes(locator[_NUMBER_IN_LOCATOR : _NUMBER_IN_LOCATOR + 4], "big")]
