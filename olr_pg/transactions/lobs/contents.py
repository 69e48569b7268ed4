"""Converts the contents of LOB values that cannot be delivered as they are stored, because they are
compressed or have another character set.

Contents are converted in pieces of limited size, so that a large value does not need memory. The
exception is binary XML: a document is assembled as a whole. Facts: values-and-lobs §17, §22, §24.
"""

from __future__ import annotations

import codecs
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_xml import XmlTokens, binary_xml_text
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.lob_locator import (
    COMPRESSION,
    LENGTH,
    STORED,
    TEXT,
    LobCompression,
    LobText,
)
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.lob_delivery import LobDelivery
from olr_pg.errors import OlrPgError
from olr_pg.transactions.lobs.value_tables import ValueRoom, Values, ValueStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.transactions.waiting_storage import Allocate

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_PIECE_BYTES: Final = 1 << 20
_CHUNK_MAP_MARK: Final = b"\xde\xad\xbe\xef\x01"
_CHUNK_MAP_HEAD: Final = 29
_GROWTH: Final = 3
"""Maximum factor by which text grows when it is converted to another character set, rounded up."""


class _BrokenError(Exception):
    """Raised if the stored bytes do not match their locator."""


def rewrite(
    values: Values,
    room: ValueRoom,
    delivery: npt.NDArray[np.uint8],
    charset_id: npt.NDArray[np.int32],
    xml_tokens: XmlTokens,
    allocate: Allocate,
) -> dict[int, U8]:
    """Return the converted contents by the number of the value. If a value cannot be decoded, its
    status in `room` becomes UNDECODED.

    Args:
        values, room: the values and the result of `resolve_values`.
        delivery: `LobDelivery` of each value.
        charset_id: character set of each value's column.
        xml_tokens: the names to which binary XML refers by numbers.
        allocate: returns a buffer for contents.
    """
    text = room.facts[:, TEXT]
    as_it_stands = (
        (delivery == LobDelivery.BYTES)
        | ((delivery == LobDelivery.UTF16) & (text == LobText.UTF16_BE))
        | ((delivery == LobDelivery.CHARSET) & (text == LobText.CHARSET))
    )
    packed = room.facts[:, COMPRESSION] != LobCompression.NONE
    whole = room.status == ValueStatus.WHOLE
    rewritten: dict[int, U8] = {}
    for i in np.flatnonzero(whole & (packed | ~as_it_stands)).tolist():
        pieces = _inflated(_stored(values, room, i), room.facts[i])
        size = int(room.facts[i, LENGTH])
        if size < 0:
            size = int(room.parts[1, room.part_first[i] : room.part_first[i + 1]].sum())
        try:
            if delivery[i] == LobDelivery.XML_TEXT:
                document = binary_xml_text(b"".join(pieces), xml_tokens).encode()
                rewritten[i] = np.frombuffer(document, np.uint8)
                continue
            if not as_it_stands[i]:
                form, target = LobText(int(text[i])), LobDelivery(int(delivery[i]))
                pieces = _converted(pieces, form, target, int(charset_id[i]))
                size = _GROWTH * size
            rewritten[i] = _gathered(pieces, allocate(size))
        except (_BrokenError, UnicodeError, OlrPgError):
            room.status[i] = ValueStatus.UNDECODED  # the caller counts it as a loss
    return rewritten


def _gathered(pieces: Iterable[bytes], room: U8) -> U8:
    at = 0
    for piece in pieces:
        if at + len(piece) > room.size:
            raise _BrokenError
        room[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    return room[:at]


def _stored(values: Values, room: ValueRoom, i: int) -> Iterator[bytes]:
    """Yield the stored bytes of value i, in pieces."""
    size = values.data.size
    for part in range(int(room.part_first[i]), int(room.part_first[i + 1])):
        offset, length = int(room.parts[0, part]), int(room.parts[1, part])
        source, at = (values.data, offset) if offset < size else (room.extra, offset - size)
        for start in range(at, at + length, _PIECE_BYTES):
            yield source[start : min(start + _PIECE_BYTES, at + length)].tobytes()


def _inflated(stored: Iterator[bytes], facts: I64) -> Iterator[bytes]:
    """Yield the content of a value, in pieces. If it is compressed, decompress it."""
    compression, length = LobCompression(int(facts[COMPRESSION])), int(facts[LENGTH])
    if compression is LobCompression.NONE:
        yield from stored
        return
    reader = _Reader(stored)
    pieces = (
        _stream(reader, int(facts[STORED]))
        if compression is LobCompression.STREAM
        else _chunk_map(reader)
    )
    done = 0
    for piece in pieces:
        done += len(piece)
        if done > length:
            raise _BrokenError
        yield piece
    if done != length or (compression is LobCompression.STREAM and reader.taken != facts[STORED]):
        raise _BrokenError


class _Reader:
    """Reads a given number of bytes from a sequence of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""
        self.taken = 0

    def some(self, most: int) -> bytes:
        """Return the next bytes, at most `most`. Return no bytes only if the last piece has
        ended.
        """
        while not self._left:
            following = next(self._pieces, None)
            if following is None:
                return b""
            self._left = following
        found, self._left = self._left[:most], self._left[most:]
        self.taken += len(found)
        return found

    def exactly(self, size: int) -> bytes:
        if size < 0:
            raise _BrokenError
        parts = []
        while size > 0:
            part = self.some(size)
            if not part:
                raise _BrokenError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _stream(reader: _Reader, size: int) -> Iterator[bytes]:
    """Decompress one zlib stream, which has `size` bytes when compressed."""
    stream = zlib.decompressobj()
    end = reader.taken + size
    try:
        while not stream.eof:
            packed = stream.unconsumed_tail or reader.some(min(_PIECE_BYTES, end - reader.taken))
            if not packed:
                raise _BrokenError
            yield stream.decompress(packed, _PIECE_BYTES)
    except zlib.error:
        raise _BrokenError from None
    reader.exactly(end - reader.taken)


def _chunk_map(reader: _Reader) -> Iterator[bytes]:
    """Decompress the units of a chunk map, one after the other (values-and-lobs §22)."""
    while True:
        unit = reader.taken
        mark = reader.some(1)
        if not mark:
            return
        head = mark + reader.exactly(_CHUNK_MAP_HEAD - 1)
        if not head.startswith(_CHUNK_MAP_MARK):
            raise _BrokenError
        total = int.from_bytes(head[13:21])
        count, start = int.from_bytes(head[21:23]), int.from_bytes(head[23:25])
        listed = reader.exactly(8 * count)
        reader.exactly(unit + start - reader.taken)
        for k in range(count):
            logical = int.from_bytes(listed[8 * k : 8 * k + 4])
            done = 0
            for piece in _stream(reader, int.from_bytes(listed[8 * k + 4 : 8 * k + 8])):
                done += len(piece)
                yield piece
            if done != logical:
                raise _BrokenError
        reader.exactly(unit + total - reader.taken)


def _converted(
    pieces: Iterable[bytes], text: LobText, delivery: LobDelivery, charset_id: int
) -> Iterator[bytes]:
    """Convert text from the character set that its locator names to the character set for
    delivery.
    """
    decoder: codecs.IncrementalDecoder
    if text is LobText.UTF16_LE:
        decoder = codecs.getincrementaldecoder("utf-16-le")("surrogatepass")
    elif text is LobText.UTF16_BE:
        decoder = codecs.getincrementaldecoder("utf-16-be")("surrogatepass")
    elif text is LobText.CHARSET and charset_id:
        decoder = codecs.getincrementaldecoder(charset(charset_id).codec)()
    else:
        raise _BrokenError
    target = None if delivery is LobDelivery.UTF16 else charset(charset_id)
    for decoded in _decoded(pieces, decoder):
        if target is None:
            yield decoded.encode("utf-16-be", "surrogatepass")
        else:
            yield encode_text(decoded, target)


def _decoded(pieces: Iterable[bytes], decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)
