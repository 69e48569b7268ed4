"""The views that show LOGGING and NOLOGGING, and the statements that change it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

_ALTER: Final = re.compile(
    r'ALTER\s+TABLE\s+"?([\w$#]+)"?\s*\.\s*"?([\w$#]+)"?\s+'
    r'(?:MODIFY\s+(SUB)?PARTITION\s+"?([\w$#]+)"?\s+)?'
    r'(?:(?:MODIFY\s+)?LOB\s*\(\s*"?([\w$#]+)"?\s*\)\s*\(\s*NOCACHE\s+(NO)?LOGGING\s*\)'
    r"|(NO)?LOGGING)\s*$",
    re.IGNORECASE,
)


def insert_logging(catalogue: Catalogue, table: Table, names: Sequence[str]) -> None:
    """Add a table, with its partitions' names, to the views that show LOGGING."""
    own = {"OWNER": table.owner, "TABLE_NAME": table.name}
    parted = {"TABLE_OWNER": table.owner, "TABLE_NAME": table.name}
    put = catalogue.put
    catalogue.readable.add(table.name)
    place = {"PARTITIONED": "YES"} if names else {"LOGGING": "YES"}
    if table.index_organised:
        place |= {"IOT_TYPE": "IOT"}
    elif not names:
        place |= {"TABLESPACE_NAME": "USERS"}
    put("DBA_TABLES", **own, **place, TEMPORARY="N")
    for name in names:
        put("DBA_TAB_PARTITIONS", **parted, PARTITION_NAME=name, LOGGING="YES")
    for column in table.columns:
        if column.lob is None:
            continue
        logging = "NO" if column.lob.nologging else "YES"
        put("DBA_LOBS", **own, COLUMN_NAME=column.name, LOGGING="NONE" if names else logging)
        for name in names:
            of_part = {"COLUMN_NAME": column.name, "PARTITION_NAME": name}
            put("DBA_LOB_PARTITIONS", **parted, **of_part, LOGGING=logging)


def alter_logging(catalogue: Catalogue, sql: str) -> bool:
    """Carry out ``ALTER TABLE … [NO]LOGGING`` of a table, partition or LOB; False if it is another
    statement.

    Raises:
        OraError: ORA-00942, ORA-02149, no table or partition has this name.
    """
    match = _ALTER.match(sql)
    if match is None:
        return False
    owner, table, sub, partition, column, *no = match.groups()
    if column is None:
        view = "DBA_TABLES" if partition is None else "DBA_TAB_PARTITIONS"
    else:
        view = "DBA_LOBS" if partition is None else f"DBA_LOB_{sub or ''}PARTITIONS"
    where = {"OWNER" if partition is None else "TABLE_OWNER": owner, "TABLE_NAME": table}
    where |= {} if partition is None else {f"{sub or ''}PARTITION_NAME": partition}
    where |= {} if column is None else {"COLUMN_NAME": column}
    condition = " AND ".join(f'"{name}" = ?' for name in where)
    logging = "NO" if any(no) else "YES"
    changed = catalogue.update(
        f'UPDATE SYS."{view}" SET "LOGGING" = ? WHERE {condition}',  # noqa: S608
        *(logging, *where.values()),
    )
    if not changed:
        raise OraError(942 if partition is None else 2149, "the table or partition does not exist")
    return True


def note_unrecoverable(catalogue: Catalogue, file: int, scn: int, at: int) -> None:
    """Note that data file `file` was written to without redo at `scn`, Unix time `at`."""
    catalogue.update('DELETE FROM SYS."V$DATAFILE" WHERE "FILE#" = ?', file)
    catalogue.put(
        "V$DATAFILE",
        FILE=file,
        NAME=f"/u01/app/oracle/oradata/file{file}.dbf",
        UNRECOVERABLE_CHANGE=scn,
        UNRECOVERABLE_TIME=f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}",
    )
