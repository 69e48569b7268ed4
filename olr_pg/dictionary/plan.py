"""Row plans: the subscribed tables as arrays, for the decoding kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table


class RowPlan(NamedTuple):
    """The subscription as arrays. Table t is `tables[t]` of the sequence it was built from.

    Attributes:
        object_key: ascending ``con_id << 32 | obj#`` of every subscribed table and partition.
        object_table: the table of each object key.
        table_obj: OBJ# of each table (the protocol's ObjectId).
        segment_first: shape (tables + 1); where each table's part of `segment_column` begins.
        segment_column: for SEGCOL# 1, 2, … of a table, the ordinal of that column among the
            table's delivered columns, or −1 for a column that is not delivered.
        column_first: shape (tables + 1); running number of delivered columns.
        cluster_columns: CLUCOLS of each table.
    """

    object_key: npt.NDArray[np.uint64]
    object_table: npt.NDArray[np.int32]
    table_obj: npt.NDArray[np.uint32]
    segment_first: npt.NDArray[np.int64]
    segment_column: npt.NDArray[np.int32]
    column_first: npt.NDArray[np.int64]
    cluster_columns: npt.NDArray[np.int32]


def build_row_plan(tables: Sequence[Table], con_id: int) -> RowPlan:
    """The row plan of `tables`, which all live in container `con_id`."""
    keys: list[tuple[int, int]] = []
    segment_first, column_first, segment_column = [0], [0], list[int]()
    for number, table in enumerate(tables):
        keys.extend((con_id << 32 | obj, number) for obj in (table.obj, *table.partitions))
        width = max((column.segcol for column in table.columns), default=0)
        ordinals = {column.segcol: i for i, column in enumerate(table.delivered)}
        segment_column.extend(ordinals.get(segcol, -1) for segcol in range(1, width + 1))
        segment_first.append(len(segment_column))
        column_first.append(column_first[-1] + len(ordinals))
    keys.sort()
    return RowPlan(
        np.array([key for key, _ in keys], np.uint64),
        np.array([number for _, number in keys], np.int32),
        np.array([table.obj for table in tables], np.uint32),
        np.array(segment_first, np.int64),
        np.array(segment_column, np.int32),
        np.array(column_first, np.int64),
        np.array([table.cluster_columns for table in tables], np.int32),
    )
