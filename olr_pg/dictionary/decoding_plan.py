"""Row plans: arrays that describe the subscribed tables to the decoding kernels.

`Defaults` contains the defaults of added columns as arrays. A row that does not store an added
column has the column's default.

Facts: values-and-lobs §14.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_xml import NO_TOKENS, XmlTokens
from olr_pg.dictionary.lob_delivery import LobDelivery, lob_delivery
from olr_pg.redo.walk import NO_LOB_OBJECTS, LobObjects, RowScn, lob_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Column, Table


class UnstoredColumn(IntEnum):
    """The meaning of a column that a row does not store."""

    NULL = 0
    DEFAULT = 1
    UNKNOWN = 2
    """The column has a default, but the dictionary does not contain it."""

    GUARD = 3
    """The column is a guard column, which is not delivered."""


class Defaults(NamedTuple):
    """Arrays with one item per planned column, by running number. The arrays are empty if no column
    was added with a default.

    Attributes:
        missing: the column's `UnstoredColumn`.
        guard_id: the column's bit in the guard column; −1 if it has none.
        offset, length: the place of the default in `data`.
        data: the defaults, one after the other.
    """

    missing: npt.NDArray[np.uint8]
    guard_id: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]


NO_DEFAULTS: Final = Defaults(
    np.empty(0, np.uint8),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.uint8),
)


def column_defaults(columns: Sequence[Column], guarded: Sequence[bool]) -> Defaults:
    """Return the defaults of planned columns.

    Args:
        columns: the planned columns of all tables.
        guarded: for each column, whether its table has a guard column. The guard id of a column
            without a guard column is ignored.
    """
    if all(column.added is None for column in columns):
        return NO_DEFAULTS
    values = [(column.added.default if column.added else None) or b"" for column in columns]
    length = np.array([len(value) for value in values], np.int64)
    guard_ids = [
        column.added.guard_id if column.added and has_guard else None
        for column, has_guard in zip(columns, guarded, strict=True)
    ]
    return Defaults(
        np.array([_missing(column) for column in columns], np.uint8),
        np.array([-1 if guard_id is None else guard_id for guard_id in guard_ids], np.int32),
        np.cumsum(length) - length,
        length,
        np.frombuffer(b"".join(values), np.uint8),
    )


def _missing(column: Column) -> UnstoredColumn:
    if column.guard:
        return UnstoredColumn.GUARD
    if column.added is None:
        return UnstoredColumn.NULL
    if column.added.default is None:
        return UnstoredColumn.UNKNOWN
    # A default without bytes is NULL, because '' is NULL in Oracle.
    return UnstoredColumn.DEFAULT if column.added.default else UnstoredColumn.NULL


_Number = TypeVar("_Number", np.uint8, np.int32)

_NO_SCNS: Final = np.empty(0, np.int64)
_NO_FLAGS: Final = np.empty(0, np.uint8)


class Span(NamedTuple):
    """The range of SCNs in which a table of a plan is valid, and the receivers of its rows.

    Several tables of one plan can be consecutive versions of the same table.

    Attributes:
        since, until: the table is valid for row changes with an SCN from `since` to before `until`;
            None for no end.
        delivered: whether the table's rows are delivered to clients.
        followed: whether the table is a SYS table whose rows are decoded to follow dictionary
            changes.
    """

    since: int = 0
    until: int | None = None
    delivered: bool = True
    followed: bool = False


class RowPlan(NamedTuple):
    """The subscription as arrays. Table t is `tables[t]` of the sequence that the plan was built
    from. Columns have a running number over all tables.

    Attributes:
        object_key: ascending ``con_id << 32 | obj#`` of every subscribed table and partition.
        object_table: the table of each object key.
        table_obj: OBJ# of each table (the protocol's ObjectId); tables of two containers can have
            the same OBJ#.
        segment_first: shape (tables + 1); the index in `segment_column` at which each table begins.
        segment_column: for SEGCOL# 1, 2, … of a table, the number of that column among the table's
            delivered columns, from 0; −1 for a column that is neither delivered nor a guard column.
        column_first: shape (tables + 1); the running number of each table's first delivered column.
            If a table needs its guard column, the guard column follows the table's delivered
            columns.
        cluster_columns: CLUCOLS of each table.
        row_scns: `redo.walk.RowScn` of each table: whether each of its rows contains an SCN.
        column_lob: `LobDelivery` of each delivered column, by running number.
        column_charset: the character set id of each column, by running number, which is used for a
            text LOB if its locator contains none (values-and-lobs §17.1); 0 if unknown.
        column_pages: 0 if a BASICFILE page of the column consists of several blocks, else 1.
        lob_tables: 1 for each table with delivered LOB columns; empty if no table has any.
        lob_objects, lob_data: the LOB segments and LOB indexes, by OBJ# and by DATAOBJ#.
        data_key: ascending ``con_id << 32 | dataobj#`` of every segment with rows.
        data_table: the table of each data key.
        xml_tokens: the names in binary XML.
        defaults: the defaults of the columns, by running number.
        object_since, data_since: the SCN from which on each key belongs to its table. A key can
            occur several times, in ascending order of these SCNs; table −1 means that it belongs to
            no table from that SCN on.
        delivered, followed: shape (tables), see `Span`; empty if all tables are delivered and none
            is followed.
        as_stored: shape (tables); 1 if the values of an inserted row piece can be delivered
            unchanged and in their order, because the column with SEGCOL# n is delivered column n.
    """

    object_key: npt.NDArray[np.uint64]
    object_table: npt.NDArray[np.int32]
    table_obj: npt.NDArray[np.uint32]
    segment_first: npt.NDArray[np.int64]
    segment_column: npt.NDArray[np.int32]
    column_first: npt.NDArray[np.int64]
    cluster_columns: npt.NDArray[np.int32]
    column_lob: npt.NDArray[np.uint8]
    column_charset: npt.NDArray[np.int32]
    column_pages: npt.NDArray[np.uint8]
    lob_tables: npt.NDArray[np.uint8]
    lob_objects: LobObjects = NO_LOB_OBJECTS
    lob_data: LobObjects = NO_LOB_OBJECTS
    data_key: npt.NDArray[np.uint64] = NO_LOB_OBJECTS.key
    data_table: npt.NDArray[np.int32] = NO_LOB_OBJECTS.table
    xml_tokens: XmlTokens = NO_TOKENS
    defaults: Defaults = NO_DEFAULTS
    object_since: npt.NDArray[np.int64] = _NO_SCNS
    data_since: npt.NDArray[np.int64] = _NO_SCNS
    delivered: npt.NDArray[np.uint8] = _NO_FLAGS
    followed: npt.NDArray[np.uint8] = _NO_FLAGS
    as_stored: npt.NDArray[np.uint8] = _NO_FLAGS
    row_scns: npt.NDArray[np.uint8] = _NO_FLAGS


class TablePart(NamedTuple):
    """The part of a row plan that depends only on one table, so that a plan can be made again after
    the change of another table.

    Attributes:
        objects, segments: OBJ# and DATAOBJ# of the table and its partitions.
        segment_column, column_lob, column_charset, column_pages, defaults: see `RowPlan`.
        columns: the number of planned columns.
        lob_objects, lob_data: (number, whether it is a LOB index) of the LOB segments and LOB
            indexes, by OBJ# and by DATAOBJ#.
        is_as_stored: see `RowPlan.as_stored`.
    """

    objects: tuple[int, ...]
    segments: tuple[int, ...]
    segment_column: npt.NDArray[np.int32]
    columns: int
    column_lob: npt.NDArray[np.uint8]
    column_charset: npt.NDArray[np.int32]
    column_pages: npt.NDArray[np.uint8]
    has_lobs: bool
    lob_objects: tuple[tuple[int, bool], ...]
    lob_data: tuple[tuple[int, bool], ...]
    defaults: Defaults
    is_as_stored: bool


def table_part(table: Table) -> TablePart:
    """Return the part of `table` in a row plan."""
    planned = planned_columns(table)
    width = max((column.segcol for column in table.columns), default=0)
    ordinals = {column.segcol: i for i, column in enumerate(planned)}
    delivery = [lob_delivery(column) for column in planned]
    segments = [table.dataobj, *(table.segments or table.partitions)]
    return TablePart(
        (table.obj, *table.partitions),
        tuple(segment for segment in segments if segment),
        np.array([ordinals.get(segcol, -1) for segcol in range(1, width + 1)], np.int32),
        len(ordinals),
        np.array(delivery, np.uint8),
        np.array([column.charset_id or 0 for column in planned], np.int32),
        np.array(
            [column.lob is None or (column.lob.chunk_blocks or 1) == 1 for column in planned],
            np.uint8,
        ),
        any(delivery[: len(table.delivered)]),
        tuple(_lob_objects(table, by_data=False)),
        tuple(_lob_objects(table, by_data=True)),
        column_defaults(planned, [table.guard is not None] * len(planned)),
        _is_as_stored(table, width),
    )


def build_row_plan(
    tables: Sequence[Table],
    con_id: int,
    xml_tokens: XmlTokens = NO_TOKENS,
    spans: Sequence[Span] | None = None,
    parts: Sequence[TablePart] | None = None,
) -> RowPlan:
    """Return the row plan of `tables`.

    Args:
        tables: the tables; several versions of a table can be among them.
        con_id: the container of the tables whose `Table.con_id` is 0.
        xml_tokens: the names in binary XML.
        spans: the span of each table; None if all tables are valid and delivered at any SCN.
        parts: the `table_part` of each table, if they are known.
    """
    keys: list[tuple[int, int, int]] = []
    data: list[tuple[int, int, int]] = []
    spans = spans if spans is not None else [Span()] * len(tables)
    parts = list(map(table_part, tables)) if parts is None else parts
    containers = [table.con_id or con_id for table in tables]
    for number, (container, part, span) in enumerate(zip(containers, parts, spans, strict=True)):
        data.extend(_entries(container, part.segments, number, span))
        keys.extend(_entries(container, part.objects, number, span))
    keys.sort()
    data.sort()
    has_lobs = [part.has_lobs for part in parts]
    internal = any(span.followed or not span.delivered for span in spans)
    lobs = [(number, part) for number, part in enumerate(parts) if part.has_lobs]
    return RowPlan(
        np.array([key for key, _, _ in keys], np.uint64),
        np.array([number for _, _, number in keys], np.int32),
        np.array([table.obj for table in tables], np.uint32),
        _running([part.segment_column.size for part in parts]),
        _joined([part.segment_column for part in parts], np.int32),
        _running([part.columns for part in parts]),
        np.array([table.cluster_columns for table in tables], np.int32),
        _joined([part.column_lob for part in parts], np.uint8),
        _joined([part.column_charset for part in parts], np.int32),
        _joined([part.column_pages for part in parts], np.uint8),
        np.array(has_lobs if any(has_lobs) else [], np.uint8),
        lob_objects(
            (containers[number] << 32 | obj, is_index, number)
            for number, part in lobs
            for obj, is_index in part.lob_objects
        ),
        lob_objects(
            (containers[number] << 32 | obj, is_index, number)
            for number, part in lobs
            for obj, is_index in part.lob_data
        ),
        np.array([key for key, _, _ in data], np.uint64),
        np.array([number for _, _, number in data], np.int32),
        xml_tokens,
        _joined_defaults(parts),
        np.array([since for _, since, _ in keys], np.int64),
        np.array([since for _, since, _ in data], np.int64),
        np.array([span.delivered for span in spans] if internal else [], np.uint8),
        np.array([span.followed for span in spans] if internal else [], np.uint8),
        np.array(
            [
                part.is_as_stored and span.delivered and not span.followed
                for part, span in zip(parts, spans, strict=True)
            ],
            np.uint8,
        ),
        np.array([RowScn.of(table.row_dependencies) for table in tables], np.uint8),
    )


def _running(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(arrays: Sequence[npt.NDArray[_Number]], kind: type[_Number]) -> npt.NDArray[_Number]:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _joined_defaults(parts: Sequence[TablePart]) -> Defaults:
    """Return the defaults of the columns of all tables."""
    if all(part.defaults is NO_DEFAULTS for part in parts):
        return NO_DEFAULTS
    found = [
        _no_defaults(part.column_lob.size) if part.defaults is NO_DEFAULTS else part.defaults
        for part in parts
    ]
    length = np.concatenate([one.length for one in found])
    return Defaults(
        np.concatenate([one.missing for one in found]),
        np.concatenate([one.guard_id for one in found]),
        np.cumsum(length) - length,
        length,
        np.concatenate([one.data for one in found]),
    )


def _no_defaults(columns: int) -> Defaults:
    """Return the defaults of a table without a column that was added with a default."""
    return Defaults(
        np.full(columns, UnstoredColumn.NULL, np.uint8),
        np.full(columns, -1, np.int32),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.empty(0, np.uint8),
    )


def _is_as_stored(table: Table, width: int) -> bool:
    if table.guard is not None:
        return False
    changed = any(lob_delivery(c) or c.added is not None for c in table.delivered)
    numbers = [column.segcol for column in table.delivered]
    return not changed and numbers == list(range(1, width + 1))


def _entries(
    con_id: int, objects: Sequence[int], table: int, span: Span
) -> Iterator[tuple[int, int, int]]:
    """Yield (key, SCN, table) for each object and the start of its span, and (key, SCN, −1) for the
    end of the span, if it has one.

    If another table begins at the SCN of an end, it is sorted after the end, because −1 is lower.
    """
    for obj in objects:
        yield con_id << 32 | obj, span.since, table
        if span.until is not None:
            yield con_id << 32 | obj, span.until, -1


def planned_columns(table: Table) -> tuple[Column, ...]:
    """Return the delivered columns, then the guard column (`Column.guard`) if an added column needs
    it.
    """
    guard = table.guard
    return table.delivered if guard is None else (*table.delivered, guard)


def _lob_objects(table: Table, *, by_data: bool) -> Iterator[tuple[int, bool]]:
    for column in table.delivered:
        if lob_delivery(column) is LobDelivery.NONE or column.lob is None:
            continue
        for part in column.lob.segments:
            segment, index = (
                (part.dataobj, part.index_dataobj) if by_data else (part.obj, part.index_obj)
            )
            if segment:
                yield segment, False
            if index:
                yield index, True
