"""Checks for `olr-pg doctor` whether the segments of the tables are stored in a form that can be
decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.stored_segments import (
    UNCOMPRESSED,
    UNENCRYPTED,
    StoredSegments,
    is_encrypted,
)
from olr_pg.observability.findings import Finding, warning
from olr_pg.oracle.segment_storage import read_compression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from olr_pg.dictionary.model import Column, Snapshot, Table

_SYSTEM: Final = 0
"""TS# of the tablespace that contains the dictionary."""

_REBUILD: Final = "rebuild its indexes afterwards, or add ONLINE to the statement (12.2 or later)"
_DECRYPT: Final = "or decrypt the tablespace: ALTER TABLESPACE … ENCRYPTION ONLINE DECRYPT"
_NAMED_MAX: Final = 5


class Storage:
    """The storage of the segments of a dictionary's tables, with SQL to change it."""

    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        rows = snapshot.sys_rows
        assert rows is not None, "a live source reads them"
        compression = read_compression(connection, rows, snapshot.scn)
        self._segments = StoredSegments(rows, compression)
        self._tablespaces = rows.sys_ts

    def mend_table(self, table: Table) -> tuple[str, ...]:
        """Return the SQL and further steps that make a table replicable if it is refused because of
        its storage.
        """
        name = table.source_owner, table.name
        encrypted = self._segments.encrypted(table.obj)
        columnar = self._segments.columnar(table.obj)
        moves = [one.move(*name, UNENCRYPTED) for one in encrypted]
        moves += [one.move(*name, UNCOMPRESSED) for one in columnar]
        return (*moves, _REBUILD, *([_DECRYPT] if encrypted else [])) if moves else ()

    def mend_column(self, table: Table, column: Column) -> tuple[str, ...]:
        """Return the SQL that decrypts a column if its values are encrypted in any way; otherwise
        empty.
        """
        name = table.source_owner, table.name
        again = "then load the table again. If you do nothing, the column is not replicated, as now"
        if column.encrypted:
            return (
                f'ALTER TABLE "{name[0]}"."{name[1]}" MODIFY ("{column.name}" DECRYPT);',
                again,
            )
        to = f'LOB ("{column.name}") STORE AS ({UNENCRYPTED})'
        moves = [
            one.move(*name, to) for one in self._segments.encrypted_lob(table.obj, column.intcol)
        ]
        return (*moves, _REBUILD, _DECRYPT, again) if moves else ()

    def findings(self, chosen: Iterable[Table]) -> Iterator[Finding]:
        """Yield a warning for each table that can be replicated, but whose storage hides some of
        its changes.

        Rows that a direct-path load inserts into a compressed segment are compressed in the redo,
        so they cannot be decoded.
        """
        for row in self._tablespaces:
            if row.ts == _SYSTEM and is_encrypted(row):
                yield warning(
                    "oracle.encryption",
                    f"tablespace {row.name} is encrypted, so the redo does not show how"
                    " DDL changes a table",
                    f"before a DDL that changes columns: ALTER TABLESPACE {row.name}"
                    " ENCRYPTION ONLINE DECRYPT; otherwise such DDL stops its table"
                    " (OLR-03070 and following codes)",
                )
        for table in chosen:
            found = self._segments.compressed(table.obj)
            if found:
                moves = [one.move(table.source_owner, table.name, UNCOMPRESSED) for one in found]
                more = len(moves) - _NAMED_MAX
                yield warning(
                    "oracle.compression",
                    f"{table.full_name} is compressed; a direct-path load (INSERT /*+"
                    " APPEND */, SQL*Loader) stops the table",
                    *moves[:_NAMED_MAX],
                    *([f"and so on, {more} more"] if more > 0 else []),
                    "or insert into it only with conventional INSERT while it is replicated",
                )
