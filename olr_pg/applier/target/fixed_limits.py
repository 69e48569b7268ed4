"""The fixed limits of PostgreSQL that a table of Oracle can exceed: columns of a table, bytes of a
row in its page, bytes of a row in a B-tree index.

Oracle continues a row in other blocks, and supports 4,096 columns (MAX_COLUMNS, from 23ai on) and
keys of about three quarters of a block. PostgreSQL rejects such a table, row or key with SQLSTATE
54000 or 54011, but a row or key only when it arrives.

Facts: PostgreSQL's pages PostgreSQL Limits, Database Page Layout, TOAST and B-Tree Indexes, and its
headers ``htup_details.h``, ``heaptoast.h`` and ``nbtree.h``:

* A row must fit into one page. Values of more than 24 bytes can be stored outside the row; a
  pointer of 18 bytes replaces them. So a value needs at most 24 bytes of the page.
* A row of a B-tree index must fit three times into a page, and its values are never stored outside.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.datatypes.mapping import LOB_TYPES, OracleType, PgKind
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import error, warning

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.dictionary.structure import Structure
    from olr_pg.observability.findings import Finding

COLUMNS_MAX: Final = 1_600
"""``MaxHeapAttributeNumber``. PostgreSQL also counts dropped columns."""

BLOCK_BYTES: Final = 8_192
"""``block_size`` of a server that was built with the default."""

_ALIGNMENT: Final = 8
_BITS: Final = 8
_PAGE_HEADER: Final = 24
_LINE_POINTER: Final = 4
_ROW_HEADER: Final = 23
_INDEX_ROW_HEADER: Final = 8
_INDEX_SPECIAL: Final = 16
_ITEM_POINTER: Final = 8
"""Bytes of an item pointer in an index row, aligned."""
_INDEX_ROWS_MIN: Final = 3

_INLINE_MAX: Final = 24
"""Bytes of the largest value that PostgreSQL never stores outside its row."""
_SHORT_MAX: Final = 126
"""Bytes of the largest value with a header of one byte; others have a header of four bytes."""

_FIXED: Final = {
    PgKind.BOOL: (1, 1),
    PgKind.INT2: (2, 2),
    PgKind.INT4: (4, 4),
    PgKind.INT8: (8, 8),
    PgKind.FLOAT4: (4, 4),
    PgKind.FLOAT8: (8, 8),
    PgKind.DATE: (4, 4),
    PgKind.TIMESTAMP: (8, 8),
    PgKind.TIMESTAMPTZ: (8, 8),
    PgKind.INTERVAL: (16, 8),
    PgKind.UUID: (16, 1),
}
"""Bytes and alignment of the types whose values have a fixed size."""

_NUMERIC_HEADER: Final = 4
_NUMERIC_GROUP_DIGITS: Final = 4
_NUMBER_DIGITS_MAX: Final = 40
_LARGE: Final = 1 << 30
"""Bytes of a value whose type limits it to a gigabyte or more."""
_ROWID_CHARACTERS: Final = 18


class StoredColumn(NamedTuple):
    """A column as PostgreSQL stores it.

    Attributes:
        size: maximum bytes of a value, without the header that a value of variable size has.
        alignment: the offset of a value of fixed size is a multiple of this; 1 for other values.
    """

    size: int
    alignment: int
    is_fixed: bool

    @property
    def in_row(self) -> int:
        """Maximum bytes of a value in its row."""
        return self.size if self.is_fixed else min(self.size + 1, _INLINE_MAX)

    @property
    def in_index(self) -> int:
        """Maximum bytes of a value in an index."""
        if self.is_fixed:
            return self.size
        return self.size + (1 if self.size <= _SHORT_MAX else 4)


def stored_column(column: Column, kind: PgKind) -> StoredColumn:
    """Return how PostgreSQL stores the values of a column of Oracle.

    A text counts with its bytes in Oracle. If Oracle has another character set than UTF-8, the text
    can have up to three times as many bytes in PostgreSQL.
    """
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return StoredColumn(*fixed, is_fixed=True)
    size = column.length
    if kind == PgKind.NUMERIC:
        digits = column.precision or _NUMBER_DIGITS_MAX
        size = _NUMERIC_HEADER + 2 * (-(-digits // _NUMERIC_GROUP_DIGITS) + 1)
    elif column.type_code == OracleType.ROWID:
        size = _ROWID_CHARACTERS
    elif column.type_code in LOB_TYPES or column.xml:
        size = _LARGE
    return StoredColumn(size, 1, is_fixed=False)


def row_bytes(columns: Iterable[StoredColumn]) -> int:
    """Return the maximum bytes that a row needs in its page, if only one of its values is NULL."""
    columns = tuple(columns)
    size = _aligned(_ROW_HEADER + -(-len(columns) // _BITS))
    sure = _ALIGNMENT  # the offset of the next value is a multiple of this
    for column in columns:
        size += max(column.alignment - sure, 0)
        sure = math.gcd(max(column.alignment, sure), column.size) if column.is_fixed else 1
        size += column.in_row
    return size


def row_bytes_max(block_bytes: int) -> int:
    """Return the bytes that a row can have in a page (``MaxHeapTupleSize``)."""
    return block_bytes - _aligned(_PAGE_HEADER + _LINE_POINTER)


def index_row_bytes(columns: Iterable[StoredColumn]) -> int:
    """Return the maximum bytes of a row of an index, if its values cannot be compressed."""
    return _aligned(_INDEX_ROW_HEADER + sum(column.in_index for column in columns))


def index_row_bytes_max(block_bytes: int) -> int:
    """Return the bytes that a row of a B-tree index can have (``BTMaxItemSize``)."""
    header = _aligned(_PAGE_HEADER + _INDEX_ROWS_MIN * _LINE_POINTER)
    rows = (block_bytes - header - _INDEX_SPECIAL) // _INDEX_ROWS_MIN
    return rows // _ALIGNMENT * _ALIGNMENT - _ITEM_POINTER


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def read_block_bytes(connection: Connection[Any]) -> int:
    """Return the ``block_size`` of the server: 8,192, or another size with which it was built."""
    row = connection.execute("SELECT current_setting('block_size')::int").fetchone()
    assert row is not None  # the query returns a row
    size: int = row[0]
    return size


def check_fixed_limits(
    settings: ApplierSettings,
    table: Table,
    structure: Structure,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Finding]:
    """Report what of a table can exceed the fixed limits of PostgreSQL.

    Args:
        structure: unique keys and indexes of the table.
        block_bytes: ``block_size`` of the server.
    """
    name, columns = table.full_name, _stored_columns(settings, table)
    if len(columns) > COLUMNS_MAX:
        yield error(
            "postgres.limits",
            f"{name} has {len(columns):,} columns to replicate, but a table of PostgreSQL can have"
            f" only {COLUMNS_MAX:,}",
            f"exclude {len(columns) - COLUMNS_MAX:,} or more columns with `filter.columns`",
        )
        return
    size, limit = row_bytes(columns.values()), row_bytes_max(block_bytes)
    if size > limit:
        yield warning(
            "postgres.limits",
            f"{name}: a row with values in all {len(columns):,} columns can need {size:,} bytes of"
            f" a page in PostgreSQL, which has space for {limit:,}. PostgreSQL rejects a row that"
            " is larger (row is too big)",
            "if the source has such rows: exclude columns with `filter.columns`, or set types of a"
            " fixed size, such as bigint, for columns of type numeric (`columns` in `apply`)."
            f" PostgreSQL stores values of more than {_INLINE_MAX} bytes outside the row",
        )
    limit = index_row_bytes_max(block_bytes)
    large = [
        (what, names)
        for what, names in _keys(table, structure)
        if index_row_bytes(columns[one] for one in names if one in columns) > limit
    ]
    if large:
        yield warning(
            "postgres.limits",
            f"{name}: rows of {', '.join(what for what, _ in large)} can need more than the"
            f" {limit:,} bytes that an index of PostgreSQL stores. PostgreSQL rejects a row with"
            " such a key (index row size exceeds btree version 4 maximum)",
            "find the largest keys in Oracle with the following queries. If the keys are too"
            " large, leave out the index in PostgreSQL, or create a hash index or an index on an"
            " expression, such as md5(COLUMN), instead. A primary key must be shorter",
            *(_longest_query(table, columns, names) for _, names in large),
        )


def _longest_query(
    table: Table, columns: Mapping[str, StoredColumn], names: Collection[str]
) -> str:
    """Return a query for Oracle that finds the bytes of the largest key in its columns of variable
    size.
    """
    variable = (name for name in names if name in columns and not columns[name].is_fixed)
    lengths = " + ".join(f'NVL(LENGTHB("{name}"), 0)' for name in variable)
    where = f'"{table.source_owner}"."{table.name}"'
    return f"SELECT MAX({lengths}) FROM {where};"  # noqa: S608 - printed, not executed here


def _stored_columns(settings: ApplierSettings, table: Table) -> dict[str, StoredColumn]:
    """Return the replicated columns by name. Columns whose type another check reports are left
    out.
    """
    found = {}
    for column in table.delivered:
        try:
            made = settings.choices.pg_type(table.full_name, column)
        except OlrPgError:
            continue
        found[column.name] = stored_column(column, made.kind)
    return found


def _keys(table: Table, structure: Structure) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a description and the columns of each key and index that is created in the target."""
    if table.key:
        yield "the key", tuple(one.name for one in table.columns if one.intcol in table.key)
    for key in structure.unique_keys:
        yield f"the unique key {key.name}", key.columns
    for index in structure.indexes:
        yield f"the index {index.name}", index.columns
