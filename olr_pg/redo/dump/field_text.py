"""Prints the fields of a change vector as lines of text: known members, texts, columns, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.redo.dump.members import write_members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.format.structure import Member
    from olr_pg.redo.record_view import Fields

_BYTES_PER_LINE: Final = 32


def hex_lines(data: bytes, indent: str = "  ") -> Iterator[str]:
    """Yield lines with the bytes and their offsets, 32 bytes per line."""
    for at in range(0, len(data), _BYTES_PER_LINE):
        part = data[at : at + _BYTES_PER_LINE]
        yield f"{indent}{at:04x}: {part.hex(' ')}"


def rest_lines(fields: Fields, first: int) -> Iterator[str]:
    """Yield the lines of all fields from field `first` on, as bytes."""
    for number in range(first, fields.count + 1):
        yield from plain_lines(fields, number)


def plain_lines(fields: Fields, number: int, label: str = "field") -> Iterator[str]:
    """Yield the lines with the size and the bytes of a field."""
    data = fields.bytes(number)
    head = f"{label} {number}: [{len(data):3}]"
    if len(data) <= _BYTES_PER_LINE:
        yield f"{head} {data.hex(' ')}".rstrip()
        return
    yield head
    yield from hex_lines(data)


def known_lines(
    fields: Fields, number: int, label: str, known: tuple[Member, ...]
) -> Iterator[str]:
    """Yield the lines of a field, member by member; no lines if the field is empty."""
    data = fields.bytes(number)
    if data:
        yield f"{label}: [{len(data)}] {write_members(data, known, big=fields.big)}"


def _text(data: bytes) -> str:
    # The log does not contain the character set, so everything except printable ASCII is escaped.
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\x{c:02x}" for c in data)


def text_lines(fields: Fields, number: int, label: str) -> Iterator[str]:
    """Yield the line of a field as text; no line if the field is empty."""
    data = fields.bytes(number)
    if data:
        yield f"{label}: {_text(data)}"


def column_lines(label: str, data: bytes | None) -> Iterator[str]:
    """Yield the lines of a column's value in hexadecimal. None stands for NULL."""
    if data is None:
        yield f"{label}: *NULL*"
    elif len(data) <= _BYTES_PER_LINE:
        yield f"{label}: [{len(data):3}] {data.hex(' ')}"
    else:
        yield f"{label}: [{len(data):3}]"
        yield from hex_lines(data, "    ")
