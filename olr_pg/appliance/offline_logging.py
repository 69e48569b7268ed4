"""Checks from an offline source's dictionary whether its redo can be decoded, for `olr-pg doctor`.

The checks concern supplemental logging and encrypted tablespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.stored_segments import is_encryption_known
from olr_pg.observability.findings import Finding, error, warning
from olr_pg.oracle.supplemental import (
    NO_MINIMAL_LOGGING,
    told_columns,
    without_key,
    without_key_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.dictionary.sys_rows import SysRows

CHECK: Final = "offline.supplemental"
ENCRYPTION: Final = "offline.encryption"
_NAMED_MAX: Final = 5


def check_supplemental(snapshot: Snapshot, chosen: Sequence[Table]) -> Iterator[Finding]:
    """Yield findings about tables whose key is not written to the redo, according to the
    dictionary.

    A dictionary without rows of the SYS tables contains no information about this. An older
    dictionary may lack the logging level of the database; in this case there is one warning for all
    tables.
    """
    for member in snapshot.containers:
        own = {table.object_key for table in member.tables}
        yield from _of_container(member.sys_rows, [one for one in chosen if one.object_key in own])


def _of_container(rows: SysRows | None, chosen: Sequence[Table]) -> Iterator[Finding]:
    if rows is None:
        return
    if rows.supp_log_db_min == 0:
        yield error(CHECK, *NO_MINIMAL_LOGGING)
    missing = list(without_key(told_columns(rows, chosen)))
    if rows.supp_log_db_all is not None:
        for table, level in missing:
            yield error(CHECK, *without_key_words(table, level))
    elif missing:
        names = ", ".join(table.full_name for table, _ in missing[:_NAMED_MAX])
        more = len(missing) - _NAMED_MAX
        yield warning(
            CHECK,
            "the dictionary does not say whether the database logs the key of every"
            f" changed row, and these tables do not log it themselves: {names}"
            + (f" and {more} more" if more > 0 else ""),
            "SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_PK, SUPPLEMENTAL_LOG_DATA_ALL"
            " FROM V$DATABASE;",
            "if one of the last two columns says YES, ignore this warning; else"
            f" {without_key_words(*missing[0])[1]}",
        )


def check_encryption(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a warning if a dictionary contains no information about encrypted tablespaces.

    If the dictionary lacks the rows of the SYS tables, `refusal` of the tables reports this.
    """
    for member in snapshot.containers:
        if member.sys_rows is not None and not is_encryption_known(member.sys_rows):
            name = f" of {member.database.con_name}" if member.database.con_name else ""
            yield warning(
                ENCRYPTION,
                f"the dictionary{name} does not say which tables are in encrypted tablespaces:"
                " the first change of such a table stops it",
                "SELECT TABLESPACE_NAME FROM DBA_TABLESPACES WHERE ENCRYPTED = 'YES';",
                "if the query returns no row, ignore this warning. Else export the"
                " dictionary with `olr-pg dictionary export`, which records the"
                " encrypted tablespaces",
            )
