"""Divides a table into ROWID ranges, one per task, that together contain every row.

The ranges of a segment have no gaps: they reach from the lowest to the highest possible ROWID. The
extents, or a sample of the rows, only determine the limits of the ranges. So no row is missed if
the extents have changed since the SCN as of which the rows are read.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import func, select

from olr_pg.oracle import tables
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.oracle_connection import execute
from olr_pg.oracle.tables import among, batches, bound, named
from olr_pg.scalars import format_rowid, parse_rowid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import oracledb
    from sqlalchemy import Connection

    from olr_pg.dictionary.model import Table

BLOCKS_PER_RANGE: Final = 8_192
"""Blocks of a range: 64 MiB if a block has 8 KiB."""

ROWS_PER_RANGE: Final = 100_000
SAMPLE_PERCENT: Final = 1
SAMPLE_ROWS_MAX: Final = 200_000

_BIGFILE: Final = 1_024
"""The relative file number of a bigfile tablespace. ROWIDs in such a tablespace use 32 bits for the
block number (PL/SQL reference, DBMS_ROWID).
"""

_BLOCK_BITS: Final = 22
_DBA_MAX: Final = (1 << 32) - 1
_SLOT_MAX: Final = (1 << 16) - 1


_TYPES_WITH_ROWS: Final = (2, 19, 34)
"""OBJ$.TYPE# of tables, partitions and subpartitions."""


_OBJECTS: Final = """
SELECT o."OBJ#", o."DATAOBJ#" FROM SYS."OBJ$" o JOIN SYS."USER$" u ON o."OWNER#" = u."USER#"
WHERE u.NAME = :owner AND o.NAME = :name AND o."TYPE#" IN (2, 19, 34)
    AND (o."OBJ#" = :obj OR o."DATAOBJ#" = :data_obj)
"""
"""Finds the table and the segment by number, if they still have this name; types as in
`_TYPES_WITH_ROWS`.
"""


class RowidRange(NamedTuple):
    """The ROWIDs of one segment from `first` to `last`, both inclusive."""

    first: str
    last: str


class Extent(NamedTuple):
    """Consecutive blocks of a segment.

    Attributes:
        data_obj: DATAOBJ# of the segment.
        dba: address of the first block.
    """

    data_obj: int
    dba: int
    blocks: int


def segments_of(table: Table) -> tuple[int, ...]:
    """Return DATAOBJ# of each segment that can contain rows; empty if the table has never contained
    rows.
    """
    own = [table.dataobj] if table.dataobj else []
    return tuple(dict.fromkeys(obj for obj in (*own, *(table.segments or table.partitions)) if obj))


def read_extents(connection: Connection, chosen: Sequence[Table]) -> Iterator[Extent]:
    """Yield the extents of the tables' segments, segment by segment.

    Raises:
        sqlalchemy.exc.DBAPIError: DBA_EXTENTS cannot be read.
    """
    # Do not use an IN list: Oracle allows 1,000 values, and a table may have more partitions
    # (ORA-01795).
    wanted = frozenset(obj for table in chosen for obj in segments_of(table))
    extents, objects, users = tables.EXTENTS, tables.OBJ, tables.USER
    part = func.nvl(objects.c.SUBNAME, bound("-")) == func.nvl(extents.c.PARTITION_NAME, bound("-"))
    own = (users.c["USER#"] == objects.c["OWNER#"]) & (users.c.NAME == extents.c.OWNER)
    data_obj = objects.c["DATAOBJ#"]
    for batch in batches(sorted((table.owner, table.name) for table in chosen)):
        query = (
            select(data_obj, extents.c.RELATIVE_FNO, extents.c.BLOCK_ID, extents.c.BLOCKS)
            .select_from(
                extents.join(objects, (objects.c.NAME == extents.c.SEGMENT_NAME) & part).join(
                    users, own
                )
            )
            .where(named(extents.c.OWNER, extents.c.SEGMENT_NAME, batch))
            .order_by(data_obj)
        )
        for obj, file, block, blocks in connection.execute(query):
            if obj in wanted:  # DATAOBJ# is NULL if there is no segment
                yield Extent(int(obj), _dba(int(file), int(block)), int(blocks))


def _dba(file: int, block: int) -> int:
    return block if file == _BIGFILE else file << _BLOCK_BITS | block


def read_segments(connection: Connection, table: Table, scn: int) -> frozenset[int]:
    """Read DATAOBJ# of each segment that the table had at an SCN.

    TRUNCATE and MOVE give a table or partition another segment, and so other ROWIDs.

    Raises:
        sqlalchemy.exc.DBAPIError: OBJ$ cannot be read as of the SCN.
    """
    objects, users = as_of(tables.OBJ, scn, "o"), tables.USER
    query = (
        select(objects.c["DATAOBJ#"])
        .select_from(objects.join(users, objects.c["OWNER#"] == users.c["USER#"]))
        .where(
            bound(table.owner) == users.c.NAME,
            bound(table.name) == objects.c.NAME,
            objects.c["TYPE#"].in_(among(_TYPES_WITH_ROWS)),
        )
    )
    return frozenset(int(number) for (number,) in connection.execute(query) if number)


def changed_since(
    connection: oracledb.Connection, table: Table, part: RowidRange | None
) -> str | None:
    """Return why rows that were read just now may not belong to the table; None if they belong to
    it.

    A query names the table, and Oracle reads the table that has this name now. If two tables have
    exchanged their names meanwhile, or a table and a partition their segments, a range of ROWIDs of
    the former segment contains no rows. Oracle refuses ``AS OF SCN`` (ORA-01466) only after DDL
    that changes the structure of a table (SQL Language Reference, FLASHBACK TABLE). An exchange of
    names or segments does not change the structure.

    Args:
        part: the range that was read; None for another part of the table.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    segment = None if part is None else parse_rowid(part.first)[0]
    binds = {"owner": table.owner, "name": table.name, "obj": table.obj, "data_obj": segment or -1}
    found = execute(connection, _OBJECTS, binds)
    if table.obj not in {obj for obj, _ in found}:
        return f"the name now belongs to another table, not to the object {table.obj}"
    if segment is not None and segment not in {data_obj for _, data_obj in found}:
        return f"the table no longer has the segment {segment}, which was read"
    return None


def ranges_in_segments(
    ranges: Iterable[RowidRange], segments: Collection[int]
) -> tuple[RowidRange, ...]:
    """Return the ranges that lie in one of `segments`, and one new range for each of `segments`
    that contains no range.
    """
    found = [(parse_rowid(one.first)[0], one) for one in ranges]
    new = sorted({*segments} - {segment for segment, _ in found})
    return (
        *(one for segment, one in found if segment in segments),
        *(one for segment in new for one in _between(segment, ())),
    )


def ranges_by_extents(chosen: Iterable[Table], extents: Iterable[Extent]) -> list[list[RowidRange]]:
    """Return, for each table, ranges of about `BLOCKS_PER_RANGE` blocks.

    Args:
        extents: the extents of the tables' segments, segment by segment.
    """
    cuts = {
        data_obj: _cuts(sorted(own))
        for data_obj, own in groupby(extents, lambda extent: extent.data_obj)
    }
    return [
        [one for obj in segments_of(table) for one in _between(obj, cuts.get(obj, ()))]
        for table in chosen
    ]


def _cuts(extents: Iterable[Extent]) -> list[int]:
    """Return the addresses at which to divide a segment with these extents, which are in order."""
    cuts, left = list[int](), BLOCKS_PER_RANGE
    for _, dba, blocks in extents:
        at = 0
        while blocks - at >= left:
            at += left
            cuts.append(dba + at)
            left = BLOCKS_PER_RANGE
        left -= blocks - at
    return cuts


def ranges_by_sample(table: Table, rowids: Iterable[str]) -> list[RowidRange]:
    """Return ranges of about `ROWS_PER_RANGE` rows.

    Args:
        rowids: a sample of `SAMPLE_PERCENT` of the table's rows.
    """
    dbas: dict[int, list[int]] = defaultdict(list)
    for rowid in rowids:
        data_obj, dba, _ = parse_rowid(rowid)
        dbas[data_obj].append(dba)
    step = max(ROWS_PER_RANGE * SAMPLE_PERCENT // 100, 1)
    return [
        one
        for obj in segments_of(table)
        for one in _between(obj, sorted(set(sorted(dbas[obj])[step::step])))
    ]


def read_sample(connection: Connection, table: Table) -> list[str]:
    """Return the ROWIDs of the rows in a sample of blocks.

    Raises:
        sqlalchemy.exc.DBAPIError: the table cannot be read.
    """
    query = (
        f'SELECT ROWIDTOCHAR(ROWID) FROM "{table.owner}"."{table.name}"'  # noqa: S608 - quoted
        f" SAMPLE BLOCK ({SAMPLE_PERCENT})"
    )
    return [rowid for (rowid,) in connection.exec_driver_sql(query).fetchmany(SAMPLE_ROWS_MAX)]


def _between(data_obj: int, cuts: Sequence[int]) -> list[RowidRange]:
    """Return the ranges of a segment. The first range begins at block 0, the others at the
    addresses in `cuts`.
    """
    edges = [0, *cuts, _DBA_MAX + 1]
    return [
        RowidRange(
            format_rowid(data_obj, first, 0), format_rowid(data_obj, following - 1, _SLOT_MAX)
        )
        for first, following in pairwise(edges)
    ]
