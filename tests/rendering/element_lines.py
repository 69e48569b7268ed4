"""Protocol elements as JSON Lines, element by element: the judge of `olr_pg.rendering.json_lines`.

One object per line, keys in this order, absent parts left out: ``op``, ``scn``, ``commit_scn``,
``xid``, ``table``, ``rowid``, ``before``, ``after``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from olr_pg.datatypes.json_values import json_converter
from olr_pg.errors import Code, OlrPgError
from olr_pg.rendering.change_lines import session_attributes
from olr_pg.scalars import format_xid
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    Insert,
    Update,
    decode_element,
)
from olr_pg.wire.frames import CODE_BYTES, SIZE_BYTES, ByteOrder

if TYPE_CHECKING:
    from olr_pg.datatypes.json_values import JsonConverter
    from olr_pg.dictionary.model import Database
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.wire.frames import Buffer

ValueRenderer = Callable[[ColumnValue], Any]
"""Gives a column's value as something that orjson writes, `orjson.Fragment` for exact numbers."""

_OPERATIONS: Final[dict[type, str]] = {
    Begin: "begin",
    Insert: "insert",
    Update: "update",
    Delete: "delete",
    Commit: "commit",
}


def elements_of(framed: Buffer, order: ByteOrder) -> Iterator[Element]:
    """Yield the elements of a blob of framed Data messages.

    Raises:
        OlrPgError: 4001, the blob does not end with a whole frame; 4005, an element is malformed.
    """
    blob, position = memoryview(framed), 0
    while position < len(blob):
        start = position + SIZE_BYTES
        size = int.from_bytes(blob[position:start], order.value)
        position = start + size
        if size < CODE_BYTES or position > len(blob):
            raise OlrPgError(Code.MESSAGE_SIZE, f"a frame of {size} bytes is cut off", offset=start)
        yield decode_element(blob[start + CODE_BYTES : position], order)


@dataclass(slots=True)
class _OpenRow:
    """A row change whose LOB values still arrive.

    Attributes:
        parts: chunks so far by column name.
    """

    change: Insert | Update | Delete
    parts: dict[str, list[bytes]] = field(default_factory=dict)

    def complete(self) -> Insert | Update | Delete:
        return replace(
            self.change,
            before=tuple(self._filled(column) for column in self.change.before),
            after=tuple(self._filled(column) for column in self.change.after),
        )

    def _filled(self, column: ColumnValue) -> ColumnValue:
        if not column.chunked:
            return column
        return replace(column, chunked=False, value=b"".join(self.parts.get(column.name, [])))


def whole_changes(elements: Iterable[Element]) -> Iterator[Element]:
    """Put every Chunk into its row change, which waits for its last one.

    Raises:
        OlrPgError: 4005, a Chunk without its row change or a row change without its last Chunk.
    """
    row: _OpenRow | None = None
    for element in elements:
        if isinstance(element, Chunk):
            if row is None:
                raise OlrPgError(
                    Code.ELEMENT_MALFORMED, f"a Chunk of {element.column} without its row change"
                )
            row.parts.setdefault(element.column, []).append(element.data)
            if element.flags & ChunkFlags.LAST_OF_ROW:
                yield row.complete()
                row = None
            continue
        if row is not None:
            raise OlrPgError(
                Code.ELEMENT_MALFORMED, "a row change without its last Chunk", scn=row.change.scn
            )
        if isinstance(element, Insert | Update | Delete) and any(
            column.chunked for column in (*element.before, *element.after)
        ):
            row = _OpenRow(element)
            continue
        yield element
    if row is not None:
        raise OlrPgError(
            Code.ELEMENT_MALFORMED, "a row change without its last Chunk", scn=row.change.scn
        )


def render_line(
    element: Element, render_value: ValueRenderer, sessions: SessionDirectory | None = None
) -> bytes:
    """Render an element as its JSON line, with the line break; Chunks have none of their own."""
    record: dict[str, Any] = {
        "op": _OPERATIONS[type(element)],
        "scn": element.scn,
        "commit_scn": element.commit_scn,
        "xid": format_xid(element.xid),
    }
    if isinstance(element, Insert | Update | Delete):
        record["table"] = f"{element.schema}.{element.table}"
        record["rowid"] = element.rowid
        if not isinstance(element, Insert):
            record["before"] = _image(element, element.before, render_value)
        if not isinstance(element, Delete):
            record["after"] = _image(element, element.after, render_value)
    if isinstance(element, Begin) and sessions is not None:
        record["session"] = session_attributes(
            sessions, element.xid, element.serial << 32 | element.session
        )
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def render_blob(
    framed: Buffer,
    order: ByteOrder,
    render_value: ValueRenderer,
    sessions: SessionDirectory | None = None,
) -> bytes:
    """Return the JSON lines of framed messages."""
    elements = whole_changes(elements_of(framed, order))
    return b"".join(render_line(element, render_value, sessions) for element in elements)


def _image(
    change: Insert | Update | Delete,
    columns: tuple[ColumnValue, ...],
    render_value: ValueRenderer,
) -> dict[str, Any]:
    image: dict[str, Any] = {}
    for column in columns:
        try:
            image[column.name] = None if column.value is None else render_value(column)
        except OlrPgError as error:
            place: dict[str, Any] = {
                **error.where,
                "table": f"{change.schema}.{change.table}",
                "column": column.name,
                "rowid": change.rowid,
                "xid": format_xid(change.xid),
                "scn": change.scn,
            }
            raise OlrPgError(error.code, error.detail, action=error.action, **place) from error
    return image


def value_renderer(database: Database) -> ValueRenderer:
    """Make what renders values of `database`; conversions are made once per type.

    The renderer raises OlrPgError 2050, 2051 or 2056 for bytes that are no value of the type and
    for character sets without a decoder.
    """
    converters: dict[tuple[int, int | None, int | None], JsonConverter] = {}

    def render(column: ColumnValue) -> Any:
        key = (column.type_code, column.charset_id, column.charset_form)
        converter = converters.get(key)
        if converter is None:
            converter = converters[key] = json_converter(
                column.described(),
                charset=database.charset,
                ncharset=database.ncharset,
                timezone=database.timezone,
            )
        return converter(column.value)

    return render
