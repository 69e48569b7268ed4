"""Elements, the content of Data messages: Begin, Commit, Insert, Update, Delete, Chunk.

The elements are Python values, encoded and decoded one at a time. Clients and the command line use
this codec. Tests compare its bytes with those of the compiled encoder (`olr_pg.wire.encoder`).
Integers have the connection's byte order. Facts: protocol, “Elements”.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Final

from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.frames import Buffer, ByteOrder

NAME_BYTES_MAX: Final = 255
COLUMN_COUNT_MAX: Final = 0xFFFF

NULL_NUMBER: Final = -(1 << 63)
"""The number sent for a ColumnPrecision or ColumnScale that is NULL in the dictionary."""

NULL_CHARSET_ID: Final = (1 << 64) - 1
NULL_CHARSET_FORM: Final = 0xFF


class ElementCode(IntEnum):
    """The first byte of an element."""

    BEGIN = 1
    COMMIT = 2
    INSERT = 4
    DELETE = 5
    UPDATE = 6
    CHUNK = 7


class ChunkFlags(IntFlag):
    """Flags of the last chunk of a column's value, and of the last chunk of a row change."""

    NONE = 0
    LAST_OF_COLUMN = 1
    LAST_OF_ROW = 2


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """One column in the before or after image of a row change.

    Attributes:
        type_code: Oracle's internal type code.
        precision, scale: from the dictionary; None if NULL there.
        charset_id: Oracle's character set number; None for types without one.
        charset_form: 1 for the database's character set, 2 for the national one, 3 for the set
            `charset_id`, which is configured (docs/protocol.md); None for types without one.
        chunked: whether the value follows in Chunk elements; then `value` is None.
        value: in Oracle's internal representation; None if NULL or chunked.
    """

    name: str
    type_code: int
    precision: int | None = None
    scale: int | None = None
    charset_id: int | None = None
    charset_form: int | None = None
    chunked: bool = False
    value: bytes | None = None

    def described(self) -> Column:
        """Return the column as a dictionary column. Attributes that the protocol does not send have
        defaults.

        The column's position in the row and its length are unknown; they are set to 1 and 0.
        """
        return Column(
            name=self.name,
            segcol=1,
            intcol=1,
            col=1,
            type_code=self.type_code,
            length=0,
            precision=self.precision,
            scale=self.scale,
            charset_id=self.charset_id,
            charset_form=self.charset_form,
        )


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins.

    Attributes:
        scn: the SCN at which it began.
        commit_scn: SCN of its COMMIT.
        xid: packed by `olr_pg.scalars.pack_xid`.
        timestamp: the time in the redo record, in Oracle's 32-bit form.
        serial, session: the Oracle session; 0 if unknown.
    """

    scn: int
    commit_scn: int
    xid: int
    timestamp: int
    serial: int = 0
    session: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends. `scn` is the SCN of the COMMIT's redo record."""

    scn: int
    commit_scn: int
    xid: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The content that Insert, Update and Delete have in common.

    Attributes:
        scn: the SCN of this change.
        object_id: OBJ# of the table.
        rowid: extended ROWID, 18 characters.
        before: the columns with known old values; empty for Insert.
        after: the columns that the statement set, with their new values; empty for Delete.
    """

    scn: int
    commit_scn: int
    xid: int
    timestamp: int
    object_id: int
    schema: str
    table: str
    rowid: str
    before: tuple[ColumnValue, ...] = field(default=())
    after: tuple[ColumnValue, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(RowChange):
    """A new row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(RowChange):
    """A changed row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(RowChange):
    """A removed row."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a LOB value. `type_code` is 112 for CLOB and NCLOB, 113 for BLOB."""

    scn: int
    commit_scn: int
    xid: int
    timestamp: int
    column: str
    type_code: int
    flags: ChunkFlags
    data: bytes


Element = Begin | Commit | Insert | Update | Delete | Chunk

_ROW_CHANGE: Final[dict[int, type[Insert | Update | Delete]]] = {
    ElementCode.INSERT: Insert,
    ElementCode.DELETE: Delete,
    ElementCode.UPDATE: Update,
}

HEAD_FIELDS: Final = "BQQQI"  # code, SCN, CommitSCN, XID, Timestamp
COLUMN_FIELDS: Final = "BQHqqQBB"  # the fixed part of ColumnValue


class _Reader:
    """Reads the fields of one element. A read beyond its end raises an error with the field's
    name.
    """

    def __init__(self, data: Buffer, order: ByteOrder) -> None:
        self._data = data
        self._prefix = order.prefix
        self.offset = 0

    def fields(self, layout: str, name: str) -> tuple[int, ...]:
        size = struct.calcsize(self._prefix + layout)
        start = self._advance(size, name)
        return struct.unpack_from(self._prefix + layout, self._data, start)

    def raw(self, size: int, name: str) -> bytes:
        start = self._advance(size, name)
        return bytes(self._data[start : start + size])

    def text(self, size: int, name: str) -> str:
        start = self.offset
        try:
            return self.raw(size, name).decode()
        except UnicodeDecodeError as error:
            raise OlrPgError(
                Code.ELEMENT_MALFORMED,
                f"{name} is not UTF-8",
                field=name,
                offset=start + error.start,
            ) from None

    def _advance(self, size: int, name: str) -> int:
        start = self.offset
        if size > len(self._data) - start:
            raise OlrPgError(
                Code.ELEMENT_MALFORMED,
                f"{name} needs {size} bytes, but only {len(self._data) - start} are left",
                field=name,
                offset=start,
            )
        self.offset = start + size
        return start


def decode_element(data: Buffer, order: ByteOrder) -> Element:
    """Decode `data`, which must contain exactly one element.

    Raises:
        OlrPgError: 4005, the element is malformed; the error contains the field and its offset.
    """
    reader = _Reader(data, order)
    code, scn, commit_scn, xid, timestamp = reader.fields(HEAD_FIELDS, "header")
    head = (scn, commit_scn, xid, timestamp)
    element: Element
    match code:
        case ElementCode.BEGIN:
            element = Begin(*head, *reader.fields("HI", "SerialNumber"))
        case ElementCode.COMMIT:
            element = Commit(*head)
        case ElementCode.CHUNK:
            element = _decode_chunk(reader, head)
        case ElementCode.INSERT | ElementCode.DELETE | ElementCode.UPDATE:
            element = _decode_row_change(reader, code, head)
        case _:
            raise OlrPgError(
                Code.ELEMENT_MALFORMED, f"no element has code {code}", field="code", offset=0
            )
    if reader.offset != len(data):
        raise OlrPgError(
            Code.ELEMENT_MALFORMED,
            f"{len(data) - reader.offset} bytes too many",
            offset=reader.offset,
        )
    return element


def encode_element(element: Element, order: ByteOrder) -> bytes:
    """Encode `element`, without the size and the operation code of its message.

    Raises:
        OlrPgError: 4006, a name, count or number does not fit its field.
    """
    head = (element.scn, element.commit_scn, element.xid, element.timestamp)
    match element:
        case Begin(serial=serial, session=session):
            return _pack(order, HEAD_FIELDS + "HI", ElementCode.BEGIN, *head, serial, session)
        case Commit():
            return _pack(order, HEAD_FIELDS, ElementCode.COMMIT, *head)
        case Chunk(column=column, type_code=type_code, flags=flags, data=data):
            name = encode_name(column, "ColumnName")
            return (
                _pack(order, HEAD_FIELDS + "B", ElementCode.CHUNK, *head, len(name))
                + name
                + _pack(order, "HHQ", type_code, flags, len(data))
                + data
            )
        case _:
            return _encode_row_change(element, order, head)


def encode_name(name: str, what: str) -> bytes:
    """Encode a schema, table, column name or ROWID in UTF-8.

    Raises:
        OlrPgError: 4006, the name is longer than 255 bytes.
    """
    data = name.encode()
    if len(data) > NAME_BYTES_MAX:
        raise OlrPgError(Code.FIELD_OVERFLOW, f"{what} has {len(data)} bytes in UTF-8", name=name)
    return data


def encode_column_header(column: ColumnValue, size: int, order: ByteOrder) -> bytes:
    """Encode a ColumnValue from its start to the end of its name. `size` is ColumnValueSize."""
    name = encode_name(column.name, "ColumnName")
    return (
        _pack(
            order,
            COLUMN_FIELDS,
            len(name),
            size,
            column.type_code,
            NULL_NUMBER if column.precision is None else column.precision,
            NULL_NUMBER if column.scale is None else column.scale,
            NULL_CHARSET_ID if column.charset_id is None else column.charset_id,
            NULL_CHARSET_FORM if column.charset_form is None else column.charset_form,
            column.chunked,
        )
        + name
    )


def _decode_chunk(reader: _Reader, head: tuple[int, int, int, int]) -> Chunk:
    (name_size,) = reader.fields("B", "ColumnNameSize")
    name = reader.text(name_size, "ColumnName")
    type_code, flags, size = reader.fields("HHQ", "ColumnType")
    if flags > ChunkFlags.LAST_OF_COLUMN | ChunkFlags.LAST_OF_ROW:
        raise OlrPgError(
            Code.ELEMENT_MALFORMED,
            f"ChunkFlags {flags} is not in 0..3",
            field="ChunkFlags",
            offset=reader.offset,
        )
    return Chunk(*head, name, type_code, ChunkFlags(flags), reader.raw(size, "ChunkData"))


def _decode_row_change(
    reader: _Reader, code: int, head: tuple[int, int, int, int]
) -> Insert | Update | Delete:
    scn, commit_scn, xid, timestamp = head
    object_id, schema_size, table_size, rowid_size = reader.fields("IBBB", "ObjectId")
    schema = reader.text(schema_size, "SchemaName")
    table = reader.text(table_size, "TableName")
    rowid = reader.text(rowid_size, "RowId")
    before = () if code == ElementCode.INSERT else _decode_columns(reader)
    after = () if code == ElementCode.DELETE else _decode_columns(reader)
    return _ROW_CHANGE[code](
        scn=scn,
        commit_scn=commit_scn,
        xid=xid,
        timestamp=timestamp,
        object_id=object_id,
        schema=schema,
        table=table,
        rowid=rowid,
        before=before,
        after=after,
    )


def _decode_columns(reader: _Reader) -> tuple[ColumnValue, ...]:
    (count,) = reader.fields("H", "ColumnsCount")
    return tuple(_decode_column(reader) for _ in range(count))


def _decode_column(reader: _Reader) -> ColumnValue:
    start = reader.offset
    name_size, size, type_code, precision, scale, charset_id, charset_form, chunked = reader.fields(
        COLUMN_FIELDS, "ColumnValue"
    )
    if chunked and size:
        raise OlrPgError(
            Code.ELEMENT_MALFORMED,
            "a chunked column also has a value",
            field="IsChunked",
            offset=start,
        )
    name = reader.text(name_size, "ColumnName")
    value = reader.raw(size, "ColumnValue")
    return ColumnValue(
        name,
        type_code,
        None if precision == NULL_NUMBER else precision,
        None if scale == NULL_NUMBER else scale,
        None if charset_id == NULL_CHARSET_ID else charset_id,
        None if charset_form == NULL_CHARSET_FORM else charset_form,
        bool(chunked),
        value or None,
    )


def _encode_row_change(
    change: Insert | Update | Delete, order: ByteOrder, head: tuple[int, int, int, int]
) -> bytes:
    code = ElementCode[type(change).__name__.upper()]
    names = [
        encode_name(change.schema, "SchemaName"),
        encode_name(change.table, "TableName"),
        encode_name(change.rowid, "RowId"),
    ]
    sizes = [len(name) for name in names]
    parts = [_pack(order, HEAD_FIELDS + "IBBB", code, *head, change.object_id, *sizes), *names]
    if code != ElementCode.INSERT:
        parts.append(_encode_columns(change.before, order))
    if code != ElementCode.DELETE:
        parts.append(_encode_columns(change.after, order))
    return b"".join(parts)


def _encode_columns(columns: tuple[ColumnValue, ...], order: ByteOrder) -> bytes:
    parts = [_pack(order, "H", len(columns))]
    for column in columns:
        value = column.value or b""
        parts += [encode_column_header(column, len(value), order), value]
    return b"".join(parts)


def _pack(order: ByteOrder, layout: str, *values: int) -> bytes:
    try:
        return struct.pack(order.prefix + layout, *values)
    except struct.error as error:
        raise OlrPgError(Code.FIELD_OVERFLOW, f"a number does not fit its field: {error}") from None
