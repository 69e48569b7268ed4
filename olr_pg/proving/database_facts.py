"""Reads the properties of a database that affect the format of its redo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy.exc
from sqlalchemy import text

from olr_pg.dictionary.inventory import named_version

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from olr_pg.oracle.facts import CurrentDatabase

_UNKNOWN: Final = "may not be read"
_QUERIES: Final = {
    "patch": "SELECT VERSION_FULL FROM PRODUCT_COMPONENT_VERSION",
    "platform": "SELECT PLATFORM_NAME FROM V$DATABASE",
    "block size": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'db_block_size'",
    "compatible": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'compatible'",
    "undo management": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'undo_management'",
    "temp undo": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'temp_undo_enabled'",
    "local undo": "SELECT PROPERTY_VALUE FROM DATABASE_PROPERTIES WHERE PROPERTY_NAME ="
    " 'LOCAL_UNDO_ENABLED'",
    "log mode": "SELECT LOG_MODE FROM V$DATABASE",
    "force logging": "SELECT FORCE_LOGGING FROM V$DATABASE",
    "supplemental logging": "SELECT 'minimal ' || SUPPLEMENTAL_LOG_DATA_MIN || ', primary key ' ||"
    " SUPPLEMENTAL_LOG_DATA_PK || ', unique ' || SUPPLEMENTAL_LOG_DATA_UI || ', foreign key ' ||"
    " SUPPLEMENTAL_LOG_DATA_FK || ', all ' || SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE",
    "encrypted tablespaces": "SELECT TO_CHAR(COUNT(*)) FROM V$ENCRYPTED_TABLESPACES",
    "redo threads": "SELECT TO_CHAR(COUNT(*)) FROM V$THREAD",
    "cluster (RAC)": "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'cluster_database'",
    "container database": "SELECT CDB FROM V$DATABASE",
    "role": "SELECT DATABASE_ROLE FROM V$DATABASE",
}


def database_facts(connection: Connection, current: CurrentDatabase) -> dict[str, str]:
    """Return the properties by name. If the account cannot read a property, its value says this."""
    database = current.database
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    found = {"name": database.name, "version": named_version(version) or version}
    for name, query in _QUERIES.items():
        found[name] = _asked(connection, query)
    found["container"] = database.con_name or "none"
    found["character sets"] = f"{database.charset}, national {database.ncharset}"
    if database.true_charsets:
        found["configured character sets"] = ", ".join(map(": ".join, database.true_charsets))
    found["time zone"] = database.timezone
    found["byte order"] = "big endian" if database.big_endian else "little endian"
    return found


def _asked(connection: Connection, query: str) -> str:
    try:
        row: Any = connection.execute(text(query)).first()
    except sqlalchemy.exc.DBAPIError:
        return _UNKNOWN
    return _UNKNOWN if row is None or row[0] is None else str(row[0])
