"""Index-organised tables: finds the index that contains the rows, and decides whether the rows can
be decoded.

The rows are in the leaf blocks of the primary key's index (IND$.TYPE# 4). The redo contains OBJ#
and DATAOBJ# of this index; the table itself has no segment. If the table is partitioned, each
partition of the index has a segment (INDPART$), and the partitions of the table (TABPART$) have
none. Oracle does not allow sub-partitions (ORA-25198). Facts: dictionary §2.3, §2.6, redo-format
§6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Column
    from olr_pg.dictionary.sys_rows import IndexRow, PartitionRow, SubPartitionRow, TabRow

_ROWS_INDEX: Final = 4
"""IND$.TYPE# of the index that contains a table's rows."""

_ORGANISED: Final = 0x40
_OVERFLOW: Final = 0x80
_PARTITIONED: Final = 0x20
"""Bits of TAB$.PROPERTY."""

_MAPPED: Final = 0x10000000
"""Bit of TAB$.FLAGS: the table has a mapping table for bitmap indexes."""

_KEY_COMPRESSION: Final = 0x20
_COMPRESSED: Final = 0x8
"""Bits of IND$: `_KEY_COMPRESSION` of FLAGS, `_COMPRESSED` of PROPERTY."""


def is_index_organised(tab: TabRow) -> bool:
    """Return whether the table is index-organised."""
    return bool(tab.property & _ORGANISED)


def rows_index(indexes: Sequence[IndexRow]) -> IndexRow | None:
    """Return the index that contains the rows; None if the dictionary has none.

    Args:
        indexes: the table's indexes; empty for a dictionary from a schema checkpoint.
    """
    return next((row for row in indexes if holds_rows(row)), None)


def holds_rows(index: IndexRow) -> bool:
    """Return whether this index contains the rows of its index-organised table."""
    return index.type == _ROWS_INDEX


def row_segments(
    tab: TabRow,
    index: IndexRow,
    parts: Sequence[PartitionRow],
    of_table: Sequence[PartitionRow | SubPartitionRow],
) -> list[IndexRow | PartitionRow | SubPartitionRow]:
    """Return the objects that the redo of the rows can name: the index, or its partitions and the
    table's.

    Args:
        index: the index that contains the rows.
        parts: partitions of the index.
        of_table: partitions of the table. They have no segments, but if redo names one, it means
            rows of this table.
    """
    if not tab.property & _PARTITIONED:
        return [index]
    return [*sorted(parts, key=lambda row: row.obj), *of_table]


def index_obstacle(
    tab: TabRow,
    index: IndexRow | None,
    parts: Sequence[PartitionRow],
    key: Sequence[int],
    columns: Sequence[Column],
) -> str | None:
    """Return why the rows of an index-organised table cannot be decoded; None if they can.

    Args:
        index: the index that contains the rows.
        parts: partitions of that index.
        key: INTCOL# of the index's columns, in the order of the index.
    """
    if tab.property & _OVERFLOW:
        return "it is index-organised and has an overflow segment"
    if tab.flags & _MAPPED:
        return "it is index-organised and has a mapping table"
    if index is None:
        return "it is index-organised, and this dictionary does not name the index with its rows"
    if tab.property & _PARTITIONED and not parts:
        return "it is index-organised, and this dictionary does not name its index's partitions"
    if index.flags & _KEY_COMPRESSION or index.property & _COMPRESSED:
        return "it is index-organised with a compressed key"
    # In a leaf row, the key columns come first, in the order of the index, and then the other
    # columns. SEGCOL# must have the same order.
    places = {column.intcol: column.segcol for column in columns}
    if not key or [places.get(intcol) for intcol in key] != list(range(1, len(key) + 1)):
        return (
            "it is index-organised, and the columns of its key are not its first columns in"
            " the same order"
        )
    return None
