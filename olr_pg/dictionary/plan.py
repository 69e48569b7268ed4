"""Row plans: the subscribed tables as arrays, for the decoding kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_xml import NO_TOKENS, XmlTokens
from olr_pg.dictionary.defaults import NO_DEFAULTS, Defaults, column_defaults
from olr_pg.dictionary.lob import LobDelivery, lob_delivery
from olr_pg.redo.lobs import NO_LOB_OBJECTS, LobObjects, lob_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Column, Table


class RowPlan(NamedTuple):
    """The subscription as arrays. Table t is `tables[t]` of the sequence it was built from.

    Attributes:
        object_key: ascending ``con_id << 32 | obj#`` of every subscribed table and partition.
        object_table: the table of each object key.
        table_obj: OBJ# of each table (the protocol's ObjectId).
        segment_first: shape (tables + 1); where each table's part of `segment_column` begins.
        segment_column: for SEGCOL# 1, 2, … of a table, the ordinal of that column among the
            table's delivered columns, or −1 for a column that is neither delivered nor a guard.
        column_first: shape (tables + 1); running number of delivered columns; a guard column
            that is needed stands behind its table's delivered ones.
        cluster_columns: CLUCOLS of each table.
        column_lob: `LobDelivery` of each delivered column, by running number.
        column_charset: the character set of a text LOB whose locator names none (values-and-lobs
            §17.1), by running number; 0 where the dictionary does not tell.
        column_pages: 0 where a BASICFILE page of the column takes several blocks, else 1.
        lob_tables: 1 for each table with delivered LOB columns; empty where no table has any.
        lob_objects, lob_data: LOB segments and indexes by OBJ# and by DATAOBJ#.
        data_key: ascending ``con_id << 32 | dataobj#`` of every segment with rows; a partition's is
            taken to be its OBJ#, as it is until the partition is truncated or moved.
        data_table: the table of each data key.
        xml_tokens: the names of binary XML.
        defaults: of the columns by running number.
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


def build_row_plan(
    tables: Sequence[Table], con_id: int, xml_tokens: XmlTokens = NO_TOKENS
) -> RowPlan:
    """The row plan of `tables`, which all live in container `con_id`."""
    keys: list[tuple[int, int]] = []
    data: list[tuple[int, int]] = []
    segment_first, column_first, segment_column = [0], [0], list[int]()
    for number, table in enumerate(tables):
        segments = [table.dataobj] if table.dataobj else []
        data.extend((con_id << 32 | obj, number) for obj in (*segments, *table.partitions))
        keys.extend((con_id << 32 | obj, number) for obj in (table.obj, *table.partitions))
        width = max((column.segcol for column in table.columns), default=0)
        ordinals = {column.segcol: i for i, column in enumerate(planned_columns(table))}
        segment_column.extend(ordinals.get(segcol, -1) for segcol in range(1, width + 1))
        segment_first.append(len(segment_column))
        column_first.append(column_first[-1] + len(ordinals))
    keys.sort()
    data.sort()
    delivered = [column for table in tables for column in planned_columns(table)]
    delivery = [lob_delivery(column) for column in delivered]
    has_lobs = [any(map(lob_delivery, table.delivered)) for table in tables]
    pages = [column.lob is None or (column.lob.chunk_blocks or 1) == 1 for column in delivered]
    return RowPlan(
        np.array([key for key, _ in keys], np.uint64),
        np.array([number for _, number in keys], np.int32),
        np.array([table.obj for table in tables], np.uint32),
        np.array(segment_first, np.int64),
        np.array(segment_column, np.int32),
        np.array(column_first, np.int64),
        np.array([table.cluster_columns for table in tables], np.int32),
        np.array(delivery, np.uint8),
        np.array([column.charset_id or 0 for column in delivered], np.int32),
        np.array(pages, np.uint8),
        np.array(has_lobs if any(has_lobs) else [], np.uint8),
        lob_objects(_lob_objects(tables, con_id, by_data=False)),
        lob_objects(_lob_objects(tables, con_id, by_data=True)),
        np.array([key for key, _ in data], np.uint64),
        np.array([number for _, number in data], np.int32),
        xml_tokens,
        column_defaults(delivered),
    )


def planned_columns(table: Table) -> tuple[Column, ...]:
    """The delivered columns, and the guard column where an added column needs it."""
    guard = table.guard
    return table.delivered if guard is None else (*table.delivered, guard)


def _lob_objects(
    tables: Sequence[Table], con_id: int, *, by_data: bool
) -> Iterator[tuple[int, bool, int]]:
    for number, table in enumerate(tables):
        for column in table.delivered:
            if lob_delivery(column) is LobDelivery.NONE or column.lob is None:
                continue
            for part in column.lob.segments:
                segment, index = (
                    (part.dataobj, part.index_dataobj) if by_data else (part.obj, part.index_obj)
                )
                if segment:
                    yield con_id << 32 | segment, False, number
                if index:
                    yield con_id << 32 | index, True, number
