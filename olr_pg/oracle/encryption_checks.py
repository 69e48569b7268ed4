"""Checks the tables for encrypted tablespaces and columns: `olr-pg doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.encrypted_segments import EncryptedSegments, is_encrypted
from olr_pg.observability.findings import Finding, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.dictionary.model import Column, Snapshot, Table

_SYSTEM: Final = 0
"""TS# of the tablespace that holds the dictionary."""

_REBUILD: Final = (
    "rebuild its indexes afterwards, or add ONLINE to the statement (12.2 or later); or decrypt the"
    " tablespace: ALTER TABLESPACE … ENCRYPTION ONLINE DECRYPT"
)


class Moves:
    """Says how to get the tables of a dictionary out of encrypted tablespaces."""

    def __init__(self, snapshot: Snapshot) -> None:
        rows = snapshot.sys_rows
        self._segments = None if rows is None else EncryptedSegments(rows)

    def of_table(self, table: Table) -> tuple[str, ...]:
        """Return the SQL for a table whose rows are in one, and what else to do; else nothing."""
        if self._segments is None:
            return ()
        name = table.source_owner, table.name
        moves = [one.statement(*name) for one in self._segments.of_rows(table.obj)]
        return (*moves, _REBUILD) if moves else ()

    def of_column(self, table: Table, column: Column) -> tuple[str, ...]:
        """Return the same for a column whose values are encrypted, in any way."""
        name = f'"{table.source_owner}"."{table.name}"'
        again = "then load the table again; or leave the column out, as it is now"
        if column.encrypted:
            return f'ALTER TABLE {name} MODIFY ("{column.name}" DECRYPT);', again
        found = self._segments.of_lob(table.obj, column.intcol) if self._segments else ()
        moves = [one.statement(table.source_owner, table.name, column.name) for one in found]
        return (*moves, _REBUILD, again) if moves else ()


def dictionary_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Warn if the dictionary itself is in an encrypted tablespace: redo does not show DDL then."""
    rows = snapshot.sys_rows
    for row in rows.sys_ts if rows is not None else ():
        if row.ts == _SYSTEM and is_encrypted(row):
            yield warning(
                "oracle.encryption",
                f"tablespace {row.name} is encrypted: redo does not show how DDL changes a table",
                f"before a DDL that changes columns: ALTER TABLESPACE {row.name} ENCRYPTION ONLINE"
                " DECRYPT; else such a DDL stops its table (OLR-03070 and later)",
            )
