"""Checks whether the account's grants allow to read archived logs that are not mounted on this
host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.observability.findings import Finding, warning
from olr_pg.oracle.transport.bfile_transport import readable_directories, split_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection


def check_directories(connection: Connection, names: Iterable[str], user: str) -> list[Finding]:
    """Return findings that say whether logs that are not mounted can be read over the SQL
    connection.

    The driver can do this with and without Oracle's client libraries. The account needs READ on a
    directory object.

    Args:
        names: names of logs in Oracle.
        user: the account.

    Raises:
        sqlalchemy.exc.DBAPIError, oracledb.Error: any error of Oracle.
    """
    found = list[Finding]()
    driver = connection.connection.cursor()
    try:
        known = readable_directories(driver)
    finally:
        driver.close()
    for folder in dict.fromkeys(split_path(name)[0] for name in names):
        directory = known.get(folder)
        if directory is not None:
            what = (
                f"{folder} can be read over the SQL connection with the directory object"
                f" {directory}"
            )
            mend: tuple[str, ...] = (
                'set `source.transport` to { "kind": "bfile" }, with a `source.vault`',
            )
        else:
            what = f"{user} may read no directory object for {folder}"
            mend = (
                f"CREATE DIRECTORY ARCHIVELOG_DIR AS '{folder}';",
                f"GRANT READ ON DIRECTORY ARCHIVELOG_DIR TO {user};",
                (
                    'then set `source.transport` to kind "bfile"; or use kind "command" or'
                    ' "sftp" instead'
                ),
            )
        found.append(warning("oracle.transport", what, *mend))
    return found
