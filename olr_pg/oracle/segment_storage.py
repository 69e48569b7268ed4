"""Finds the tables that have compressed segments as of an SCN, and the tablespaces that are
encrypted now.

The facts come from the text of Oracle's views DBA_TABLES and DBA_TAB_PARTITIONS (11.2 to 19c).
These views find a segment by its header block, and read the kind of compression from SEG$.SPARE1.

TS$.FLAGS contains the same information as DBA_TABLESPACES.ENCRYPTED, and can be read as of an SCN.
V$ENCRYPTED_TABLESPACES shows the headers of the data files, so it also lists a tablespace that is
being encrypted (ALTER TABLESPACE … ENCRYPTION ONLINE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from olr_pg.dictionary.stored_segments import Compression
from olr_pg.oracle import tables
from olr_pg.oracle.allowed_queries import rows_if_allowed
from olr_pg.oracle.facts import FIRST_CDB
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.tables import among, bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Table

    from olr_pg.dictionary.model import Database
    from olr_pg.dictionary.sys_rows import SysRows

_COMPRESSED: Final = 0x800
_HYBRID_COLUMNAR: Final = 0x2000000 | 0x4000000 | 0x8000000
"""Bits of SEG$.SPARE1 for the kinds of hybrid columnar compression."""

_BATCH: Final = 500


def read_compression(connection: Connection, rows: SysRows, scn: int) -> Compression:
    """Return the compressed segments of the tables of `rows`, and of their partitions.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    objs = [row.obj for row in rows.sys_tab]
    composite = [row.obj for row in rows.sys_tabcompart]
    found = [
        *_segments(connection, scn, (tables.TAB, "OBJ#"), objs),
        *_segments(connection, scn, (tables.TABPART, "BO#"), objs),
        *_segments(connection, scn, (tables.TABSUBPART, "POBJ#"), composite),
    ]
    return Compression(
        frozenset(obj for obj, _ in found),
        frozenset(obj for obj, bits in found if bits & _HYBRID_COLUMNAR),
    )


def _segments(
    connection: Connection, scn: int, owner: tuple[Table, str], objs: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield (OBJ#, SPARE1) of the compressed segments of tables or partitions."""
    part, segment = as_of(owner[0], scn, "t"), as_of(tables.SEG, scn, "s")
    place = [part.c[name] == segment.c[name] for name in ("FILE#", "BLOCK#", "TS#")]
    for at in range(0, len(objs), _BATCH):
        query = (
            select(part.c["OBJ#"], segment.c.SPARE1)
            .select_from(part.join(segment, place[0] & place[1] & place[2]))
            .where(part.c[owner[1]].in_(among(objs[at : at + _BATCH])))
            .where(func.bitand(segment.c.SPARE1, bound(_COMPRESSED)) == bound(_COMPRESSED))
        )
        yield from ((int(obj), int(bits)) for obj, bits in connection.execute(query))


def encrypted_now(connection: Connection, database: Database) -> frozenset[int]:
    """Return TS# of the container's encrypted tablespaces; empty if the view cannot be read.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    columns = tables.ENCRYPTED_TABLESPACES.c
    query = select(columns["TS#"]).where(bound("YES") == columns.ENCRYPTEDTS)
    if (connection.dialect.server_version_info or ()) >= FIRST_CDB:
        # In the root, the view lists the tablespaces of all containers. TS# is unique only within a
        # container.
        query = query.where(columns.CON_ID.in_(among([0, database.con_id])))
    return frozenset(int(ts) for (ts,) in rows_if_allowed(connection, query) or ())
