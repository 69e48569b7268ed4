"""Protocol elements as JSON Lines, for ``olr-pg decode``.

One object per line, keys in this order, absent parts left out: ``op``, ``scn``, ``commit_scn``,
``xid``, ``table``, ``rowid``, ``before``, ``after``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.sessions import SessionKey
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
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.wire.frames import Buffer

PIECE_BYTES: Final = 16 << 20
"""A transaction of less text is rendered whole before any of it is printed."""

ValueRenderer = Callable[[ColumnValue], Any]
"""Gives a column's value as something that orjson writes, `orjson.Fragment` for exact numbers."""

COMMANDS: Final = {
    1: "CREATE TABLE", 9: "CREATE INDEX", 10: "DROP INDEX", 11: "ALTER INDEX", 12: "DROP TABLE",
    13: "CREATE SEQUENCE", 14: "ALTER SEQUENCE", 15: "ALTER TABLE", 16: "DROP SEQUENCE",
    17: "GRANT", 18: "REVOKE", 19: "CREATE SYNONYM", 20: "DROP SYNONYM", 21: "CREATE VIEW",
    22: "DROP VIEW", 24: "CREATE PROCEDURE", 25: "ALTER PROCEDURE", 28: "RENAME", 29: "COMMENT",
    59: "CREATE TRIGGER", 60: "ALTER TRIGGER", 61: "DROP TRIGGER", 62: "ANALYZE TABLE",
    68: "DROP PROCEDURE", 85: "TRUNCATE TABLE", 91: "CREATE FUNCTION", 94: "CREATE PACKAGE",
    97: "CREATE PACKAGE BODY",
}  # fmt: skip
"""Of V$SQLCOMMAND, those that are met most; others are given by their number."""

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
        record["session"] = _session(element, sessions)
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _session(begin: Begin, sessions: SessionDirectory) -> dict[str, Any]:
    """Return the session's numbers, and the attributes that are set."""
    thread = sessions.thread_of(begin.xid)
    attributes = None
    if thread is not None:
        attributes = sessions.find(SessionKey(thread, begin.session, begin.serial))
    attributes = attributes or sessions.find_in_any_thread(begin.session, begin.serial)
    named = {} if attributes is None else attributes._asdict()
    name = sessions.name_of(begin.xid)
    return {
        **({} if thread is None else {"thread": thread}),
        **({"transaction_name": name} if name else {}),
        "session": begin.session,
        "serial": begin.serial,
        **{name: text for name, text in named.items() if text},
    }


def render_ddl(
    transaction: DictionaryTransaction, wanted: Callable[[str, str], bool]
) -> Iterator[bytes]:
    """Yield the JSON lines of a transaction's DDL statements.

    Args:
        wanted: whether those of an object of that owner and name are.
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


def render_blob(
    framed: Buffer,
    order: ByteOrder,
    render_value: ValueRenderer,
    sessions: SessionDirectory | None = None,
) -> bytes:
    """Return the JSON lines of a finished transaction's framed messages (`render_pieces`)."""
    return b"".join(render_pieces(framed, order, render_value, sessions))


def render_pieces(
    framed: Buffer,
    order: ByteOrder,
    render_value: ValueRenderer,
    sessions: SessionDirectory | None = None,
) -> Iterator[bytes]:
    """Yield the same in pieces of whole lines: one, unless the transaction is large.

    Args:
        sessions: the session of a transaction goes with its begin; None to leave it out.
    """
    lines: list[bytes] = []
    size = 0
    for element in whole_changes(elements_of(framed, order)):
        lines.append(render_line(element, render_value, sessions))
        size += len(lines[-1])
        if size >= PIECE_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)


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
