"""The calls of DBMS_LOB that change a LOB: compute the new value, and the changed part.

Offsets count from 1. Offsets and amounts are in bytes for a BLOB, and in UTF-16 units for a CLOB.
So a supplementary character of a CLOB counts twice, as in Oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.model.lobs import UTF16
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import Blob, Clob, to_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.sql.row_store import StoredRow
    from olr_pg.simulator.sql.typed_values import Value

WRITE, TRIM, ERASE = "write", "trim", "erase"


class Locator(NamedTuple):
    """A LOB of a row; `at` is its column, from 0."""

    stored: StoredRow
    at: int

    def read(self) -> Clob | Blob:
        """Return the current value."""
        values = self.stored.values
        value = None if values is None else values[self.at]
        if not isinstance(value, Clob | Blob):
            raise OraError(22275, "invalid LOB locator specified")
        return value


@dataclass(frozen=True, slots=True)
class LobChange:
    """A change of a part of a LOB.

    Attributes:
        kind: `WRITE`, `TRIM` or `ERASE`; empty if the value does not change.
        offset: the first changed byte, from 0; for TRIM, the new length.
        data: the written bytes: for ERASE, zeros or blanks.
        value: the whole new value.
    """

    kind: str
    offset: int
    data: bytes
    value: Clob | Blob


def content_of(value: str | bytes) -> bytes:
    """Return the bytes of a LOB as they are stored."""
    return bytes(value) if isinstance(value, bytes) else value.encode(UTF16, "surrogatepass")


def _value_of(kind: type, content: bytes) -> Clob | Blob:
    if issubclass(kind, bytes):
        return Blob(content)
    return Clob(content.decode(UTF16, "surrogatepass"))


def _width(lob: Value) -> int:
    return 1 if isinstance(lob, bytes) else 2


def _count(value: Value, least: int = 0) -> int:
    count = int(to_number(value) or 0)
    if count < least:
        raise OraError(21560, "argument is null, invalid, or out of range")
    return count


def _buffer(lob: Value, value: Value, amount: int) -> bytes:
    """Return the bytes to write: the first `amount` units of a text or RAW."""
    if isinstance(lob, bytes) and isinstance(value, str):
        value = bytes.fromhex(value)
    assert isinstance(value, str | bytes)
    content = content_of(value)
    size = amount * _width(lob)
    if size > len(content):
        raise OraError(21560, "argument 2 is null, invalid, or out of range")
    return content[:size]


def _written(lob: Clob | Blob, offset: int, data: bytes) -> LobChange:
    """Return the change that writes bytes at an offset; a gap after the end is filled."""
    content = content_of(lob)
    if offset > len(content):
        gap = offset - len(content)
        data = (bytes(gap) if isinstance(lob, bytes) else b"\0 " * (gap // 2)) + data
        offset = len(content)
    new = content[:offset] + data + content[offset + len(data) :]
    return LobChange(WRITE, offset, data, _value_of(type(lob), new))


def _write(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, offset, buffer = arguments
    at = (_count(offset, 1) - 1) * _width(lob)
    return _written(lob, at, _buffer(lob, buffer, _count(amount, 1)))


def _write_append(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, buffer = arguments
    return _written(lob, len(content_of(lob)), _buffer(lob, buffer, _count(amount, 1)))


def _append(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    (other,) = arguments
    assert isinstance(other, str | bytes)
    return _written(lob, len(content_of(lob)), content_of(other))


def _copy(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    source, amount, *places = arguments
    to, start = [*places, None, None][:2]
    width = _width(lob)
    assert isinstance(source, str | bytes)
    first = (_count(start or to_number("1"), 1) - 1) * width
    data = content_of(source)[first : first + _count(amount, 1) * width]
    return _written(lob, (_count(to or to_number("1"), 1) - 1) * width, data)


def _trim(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    size, content = _count(arguments[0]) * _width(lob), content_of(lob)
    if size > len(content):
        raise OraError(22926, "specified trim length is greater than current LOB value's length")
    kind = TRIM if size < len(content) else ""
    return LobChange(kind, size, b"", _value_of(type(lob), content[:size]))


def _erase(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, *places = arguments
    width, content = _width(lob), content_of(lob)
    offset = (_count(places[0], 1) - 1) * width if places else 0
    size = min(_count(amount, 1) * width, max(0, len(content) - offset))
    blank = bytes(size) if isinstance(lob, bytes) else b"\0 " * (size // 2)
    new = content[:offset] + blank + content[offset + size :]
    return LobChange(ERASE if size else "", offset, blank, _value_of(type(lob), new))


LOB_CALLS: Final[dict[str, Callable[[Clob | Blob, Sequence[Value]], LobChange]]] = {
    "DBMS_LOB.WRITE": _write,
    "DBMS_LOB.WRITEAPPEND": _write_append,
    "DBMS_LOB.APPEND": _append,
    "DBMS_LOB.COPY": _copy,
    "DBMS_LOB.TRIM": _trim,
    "DBMS_LOB.ERASE": _erase,
}
