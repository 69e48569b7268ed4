"""Finished transactions as Arrow record batches, with the columns that are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa

from olr_pg.datatypes.json_values import json_converter
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.scalars import decode_redo_time, format_xid
from olr_pg.wire.elements import Begin, Chunk, Commit, Insert, Update, decode_element
from olr_pg.wire.frames import CODE_BYTES, SIZE_BYTES, ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.datasource.redo_split import Bounds, Decoding
    from olr_pg.dictionary.model import Database
    from olr_pg.ordering.ready_transactions import ReadyRun, ReadyTransaction
    from olr_pg.wire.elements import ColumnValue, Element, RowChange

ROWS_MAX: Final = 8_192
"""Of a batch."""

BYTES_MAX: Final = 8 << 20
"""Of the messages that a batch is made of, about."""

_OPERATIONS: Final = {"Insert": "insert", "Update": "update", "Delete": "delete"}
_NOBODY: Final = SessionAttributes()

Convert = Callable[[Any], Any]


class ChangeBatches:
    """Makes record batches of the transactions of a redo thread.

    Args:
        schema: of the batches: some of the columns of `change_schema`, in any order; of the images
            some of the table's columns.
        thread: the redo thread.
        bounds: which transactions are wanted.
    """

    def __init__(self, schema: pa.Schema, decoding: Decoding, thread: int, bounds: Bounds) -> None:
        self._schema = schema
        self._sessions = decoding.sessions
        self._thread = thread
        self._bounds = bounds
        self._images = {
            name: _Image(schema.field(name).type, decoding.database)
            for name in ("before", "after")
            if name in schema.names
        }

    def of(self, runs: Iterable[ReadyRun]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of transactions, in their order."""
        rows: list[tuple[Any, ...]] = []
        size = 0
        for transaction in (one for run in runs for one in run.transactions()):
            for row, taken in self._rows(transaction):
                rows.append(row)
                size += taken
                if len(rows) == ROWS_MAX or size > BYTES_MAX:
                    yield self._batch(rows)
                    rows, size = [], 0
        if rows:
            yield self._batch(rows)

    def _batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True) if self._schema.names else ()
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _rows(self, transaction: ReadyTransaction) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Yield the rows of a transaction, and how many bytes each was."""
        bounds, elements = self._bounds, _elements(transaction.blob)
        time = _commit_of(transaction.blob).timestamp
        is_wanted = (
            bounds.first_scn <= transaction.commit_scn <= bounds.last_scn
            and bounds.first_time <= time <= bounds.last_time
        )
        if not is_wanted:
            return
        begin, _ = next(elements)
        assert isinstance(begin, Begin)
        key = SessionKey(self._thread, begin.session, begin.serial)
        session = self._sessions.get(key, _NOBODY)
        facts: dict[str, Any] = {
            "commit_scn": transaction.commit_scn,
            "commit_time": decode_redo_time(time),
            "xid": format_xid(transaction.xid),
            "thread": self._thread,
            **{name: getattr(session, name) or None
               for name in ("login_user", "os_user", "machine", "program")},
        }  # fmt: skip
        for position, (change, size) in enumerate(_whole_changes(elements)):
            facts |= {
                "op": _OPERATIONS[type(change).__name__],
                "scn": change.scn,
                "position": position,
                "rowid": change.rowid,
                "owner": change.schema,
                "table": change.table,
            }
            for name, image in self._images.items():
                is_there = isinstance(change, Update) or (
                    isinstance(change, Insert) is (name == "after")
                )
                facts[name] = image.of(getattr(change, name)) if is_there else None
            yield tuple(facts[name] for name in self._schema.names), size


def _elements(blob: memoryview) -> Iterator[tuple[Element, int]]:
    """Yield the elements of framed messages, with the size of each."""
    position = 0
    while position < len(blob):
        start = position + SIZE_BYTES
        position = start + int.from_bytes(blob[position:start], "little")
        yield (
            decode_element(blob[start + CODE_BYTES : position], ByteOrder.LITTLE),
            position - start,
        )


def _commit_of(blob: memoryview) -> Commit:
    """Return the last element of a transaction."""
    commit = decode_element(blob[-_COMMIT_BYTES:], ByteOrder.LITTLE)
    assert isinstance(commit, Commit)
    return commit


_COMMIT_BYTES: Final = 1 + 8 + 8 + 8 + 4


def _whole_changes(
    elements: Iterable[tuple[Element, int]],
) -> Iterator[tuple[RowChange, int]]:
    """Yield row changes with the LOB values that follow them, until the Commit."""
    waiting: RowChange | None = None
    parts: dict[str, list[bytes]] = {}
    size = 0
    for element, taken in elements:
        size += taken
        if isinstance(element, Chunk):
            parts.setdefault(element.column, []).append(element.data)
            continue
        if waiting is not None:
            yield _filled(waiting, parts), size
            parts, size = {}, 0
        waiting = None if isinstance(element, Begin | Commit) else element


def _filled(change: RowChange, parts: dict[str, list[bytes]]) -> RowChange:
    """Put LOB values into their row change."""
    if not any(column.chunked for column in (*change.before, *change.after)):
        return change

    def fill(column: ColumnValue) -> ColumnValue:
        if not column.chunked:
            return column
        return replace(column, chunked=False, value=b"".join(parts.get(column.name, [])))

    return replace(
        change, before=tuple(map(fill, change.before)), after=tuple(map(fill, change.after))
    )


class _Image:
    """Makes what an image column holds: JSON text, or values by name.

    Args:
        wanted: of the column.
    """

    def __init__(self, wanted: pa.DataType, database: Database) -> None:
        self._types = (
            {field.name: field.type for field in wanted.fields}
            if isinstance(wanted, pa.StructType)
            else None
        )
        self._database = database
        self._converters: dict[tuple[str, int, int | None, int | None], Convert] = {}

    def of(self, columns: Iterable[ColumnValue]) -> Any:
        """Return the image."""
        types = self._types
        if types is None:
            values = {column.name: self._value(column, None) for column in columns}
            return orjson.dumps(values).decode()
        return {
            column.name: self._value(column, types[column.name])
            for column in columns
            if column.name in types
        }

    def _value(self, column: ColumnValue, wanted: pa.DataType | None) -> Any:
        if column.value is None:
            return None
        key = column.name, column.type_code, column.charset_id, column.charset_form
        convert = self._converters.get(key)
        if convert is None:
            convert = self._converters[key] = self._converter(column, wanted)
        return convert(column.value)

    def _converter(self, column: ColumnValue, wanted: pa.DataType | None) -> Convert:
        if wanted is not None and pa.types.is_binary(wanted):
            return bytes
        database = self._database
        to_json = json_converter(
            column.described(),
            charset=database.charset,
            ncharset=database.ncharset,
            timezone=database.timezone,
        )
        if wanted is None:
            return to_json
        finish = _from_json(wanted)
        return lambda raw: None if (value := to_json(raw)) is None else finish(value)


def _from_json(wanted: pa.DataType) -> Convert:
    """Return what makes a value of Arrow's type of one of JSON."""
    if pa.types.is_decimal(wanted):
        return lambda value: Decimal(_text(value))
    if pa.types.is_floating(wanted):
        return lambda value: float(_text(value))
    if pa.types.is_integer(wanted):
        return lambda value: int(Decimal(_text(value)))
    if pa.types.is_timestamp(wanted):
        return _in_utc if wanted.tz else datetime.fromisoformat
    return _text if pa.types.is_string(wanted) else lambda value: value


def _in_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(value: Any) -> str:
    """Return a JSON value as text, numbers exactly."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
