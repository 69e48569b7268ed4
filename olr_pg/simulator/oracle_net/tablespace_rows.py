"""The tablespaces of the stand-in, including encrypted ones, and the statement that moves segments.

Segments move only in the dictionary: they keep their DATAOBJ#.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.stored_segments import ENCRYPTED
from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.simulator.oracle_net.catalogue import Catalogue

TABLESPACE: Final = 6
SECURE: Final = 7
BLOCK_SIZE: Final = 8192

_MOVE: Final = re.compile(
    r'ALTER\s+TABLE\s+"?([\w$#]+)"?\s*\.\s*"?([\w$#]+)"?\s+MOVE\s+'
    r'(?:(?:SUB)?PARTITION\s+"?([\w$#]+)"?\s+)?'
    r'(?:LOB\s*\(\s*"?([\w$#]+)"?\s*\)\s*STORE\s+AS\s*\(\s*)?TABLESPACE\s+"?([\w$#]+)"?\s*\)?\s*$',
    re.IGNORECASE,
)
_PARTS: Final = """
SELECT "OBJ#", BO FROM (
    SELECT "OBJ#", "BO#" BO FROM SYS."TABPART$"
    UNION ALL SELECT s."OBJ#", c."BO#" FROM SYS."TABSUBPART$" s
        JOIN SYS."TABCOMPART$" c ON c."OBJ#" = s."POBJ#"
    UNION ALL SELECT p."OBJ#", i."BO#" FROM SYS."INDPART$" p JOIN SYS."IND$" i ON i."OBJ#" = p."BO#"
)
"""
"""A query for OBJ# of all partitions that may contain rows, each with the OBJ# of its table."""

_OF_ROWS: Final = {"TAB$": "OBJ#", "TABPART$": "OBJ#", "TABSUBPART$": "OBJ#", "INDPART$": "OBJ#"}


def insert_tablespace(
    catalogue: Catalogue, number: int, name: str, *, encrypted: bool = False, flags: int = 0
) -> None:
    """Insert an online tablespace.

    Args:
        number: TS#.
        flags: further bits of TS$.FLAGS.
    """
    flags |= ENCRYPTED if encrypted else 0
    catalogue.put("TS$", TS=number, NAME=name, BLOCKSIZE=BLOCK_SIZE, ONLINE=1, FLAGS=flags)
    if encrypted:
        own = {"ENCRYPTEDTS": "YES", "STATUS": "NORMAL"}
        catalogue.put("V$ENCRYPTED_TABLESPACES", TS=number, CON_ID=0, **own)


def move_segment(catalogue: Catalogue, sql: str) -> bool:
    """Carry out ``ALTER TABLE … MOVE`` of a table, partition or LOB; False if it is another
    statement.

    Raises:
        OraError: ORA-00942, ORA-00959, ORA-02149, no table, tablespace or partition has this name.
    """
    match = _MOVE.match(sql)
    if match is None:
        return False
    owner, table, part, column, tablespace = match.groups()
    numbers = catalogue.rows('SELECT "TS#" FROM SYS."TS$" WHERE "NAME" = ?', tablespace)
    if not numbers:
        raise OraError(959, f"tablespace '{tablespace}' does not exist")
    objects = _objects(catalogue, owner, table, part)
    if not objects:
        raise OraError(942 if part is None else 2149, "the table or partition does not exist")
    for obj in objects:
        if column is not None:
            _move_lob(catalogue, obj, column, numbers[0][0], is_part=part is not None)
        else:
            _move_rows(catalogue, obj, numbers[0][0])
    return True


def encrypt_tables(catalogue: Catalogue, names: Iterable[str]) -> None:
    """Move all segments of the tables ``OWNER.NAME`` to an encrypted tablespace."""
    for number, name in enumerate(names):
        if number == 0:
            insert_tablespace(catalogue, SECURE, "SECURE", encrypted=True)
        owner, _, table = name.partition(".")
        (obj,) = _objects(catalogue, owner, table, None)
        parts = catalogue.rows(f"{_PARTS} WHERE BO = ?", obj)
        for one in (obj, *(part for part, _ in parts)):
            _move_rows(catalogue, one, SECURE)
        catalogue.update('UPDATE SYS."LOB$" SET "TS#" = ? WHERE "OBJ#" = ?', SECURE, obj)
        catalogue.update(
            'UPDATE SYS."LOBFRAG$" SET "TS#" = ? WHERE "PARENTOBJ#" IN'
            ' (SELECT "LOBJ#" FROM SYS."LOB$" WHERE "OBJ#" = ?)',
            *(SECURE, obj),
        )


def _objects(catalogue: Catalogue, owner: str, table: str, part: str | None) -> list[object]:
    """Return the OBJ# of a table, or of its partitions named `part` and those of the index with its
    rows.
    """
    own = (
        'SELECT o."OBJ#" FROM SYS."OBJ$" o JOIN SYS."USER$" u ON u."USER#" = o."OWNER#"'
        ' WHERE u."NAME" = ? AND o."TYPE#" = 2 AND o."NAME" = ?'
    )
    if part is None:
        return [obj for (obj,) in catalogue.rows(own, owner, table)]
    parts = (
        f"{_PARTS} WHERE BO IN ({own})"  # noqa: S608
        ' AND "OBJ#" IN (SELECT "OBJ#" FROM SYS."OBJ$" WHERE "SUBNAME" = ?)'
    )
    return [obj for obj, _ in catalogue.rows(parts, owner, table, part)]


def _move_rows(catalogue: Catalogue, obj: object, tablespace: object) -> None:
    for table, column in _OF_ROWS.items():
        if "BLOCK#" in _columns(catalogue, table):
            catalogue.update(
                'UPDATE SYS."SEG$" SET "TS#" = ? WHERE ("FILE#", "BLOCK#") IN'  # noqa: S608
                f' (SELECT "FILE#", "BLOCK#" FROM SYS."{table}" WHERE "{column}" = ?)',
                *(tablespace, obj),
            )
        catalogue.update(
            f'UPDATE SYS."{table}" SET "TS#" = ? WHERE "{column}" = ?',  # noqa: S608
            *(tablespace, obj),
        )
    catalogue.update(
        'UPDATE SYS."IND$" SET "TS#" = ? WHERE "BO#" = ? AND "TYPE#" = 4', tablespace, obj
    )


def _columns(catalogue: Catalogue, table: str) -> set[object]:
    return {row[1] for row in catalogue.rows(f'PRAGMA SYS.table_info("{table}")')}


def _move_lob(
    catalogue: Catalogue, obj: object, column: str, tablespace: object, *, is_part: bool
) -> None:
    where, values = '"TABFRAGOBJ#" = ?', [obj]
    table = "LOBFRAG$"
    if not is_part:
        table, values = "LOB$", [obj, obj, column]
        where = (
            '"OBJ#" = ? AND "INTCOL#" IN'
            ' (SELECT "INTCOL#" FROM SYS."COL$" WHERE "OBJ#" = ? AND "NAME" = ?)'
        )
    catalogue.update(f'UPDATE SYS."{table}" SET "TS#" = ? WHERE {where}', tablespace, *values)  # noqa: S608
