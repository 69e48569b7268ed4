"""Checks for NOLOGGING operations: whether the source allows them, and whether the control file
shows that such an operation has happened.

A NOLOGGING operation writes no redo for its rows. FORCE LOGGING prevents such operations. Without
FORCE LOGGING, every table, partition or LOB with the NOLOGGING attribute is a risk. For each data
file, Oracle records the last SCN of a write without redo (V$DATAFILE.UNRECOVERABLE_CHANGE#).

`Storage` checks for `olr-pg doctor` whether the segments of the tables are stored in a form that
can be decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from sqlalchemy import select

from olr_pg.dictionary.lob_delivery import LobDelivery, lob_delivery
from olr_pg.dictionary.stored_segments import (
    UNCOMPRESSED,
    UNENCRYPTED,
    StoredSegments,
    is_encrypted,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, warning
from olr_pg.oracle import tables
from olr_pg.oracle.dictionary_queries import read_compression
from olr_pg.oracle.driver.bounded_calls import PASSING, PRIVILEGE
from olr_pg.oracle.tables import batches, bound, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Connection
    from sqlalchemy import Table as View

    from olr_pg.dictionary.model import Column, Snapshot, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase

FORCE_LOGGING: Final = "ALTER DATABASE FORCE LOGGING;"

_Rows = dict[tuple[str, str], list[tuple[str, ...]]]

_log = structlog.get_logger(__name__)


class UnloggedFile(NamedTuple):
    """A data file with blocks that were written without redo.

    Attributes:
        scn, time: SCN and time of the last such write.
    """

    number: int
    name: str
    scn: int
    time: str

    @property
    def as_error(self) -> OlrPgError:
        """Return error 7050: the file was written without redo."""
        what = f"data file {self.number} ({self.name}) was written without redo at {self.time}"
        return OlrPgError(Code.UNLOGGED_WORK, what, scn=self.scn)


class NologgingPart(NamedTuple):
    """A part of a table with the NOLOGGING attribute.

    Attributes:
        name: the name of the table, with the partition or the LOB column.
        mend: SQL that sets the part to LOGGING.
    """

    name: str
    mend: str

    @property
    def as_error(self) -> OlrPgError:
        """Return error 7051 with the SQL that solves the problem."""
        return OlrPgError(
            Code.UNLOGGED_WORK_POSSIBLE, f"{self.name} is NOLOGGING", action=self.mend
        )


def unlogged_files(connection: Connection) -> list[UnloggedFile]:
    """List the data files that were ever written without redo."""
    columns = tables.DATAFILE.c
    scn = columns["UNRECOVERABLE_CHANGE#"]
    rows = connection.execute(
        select(columns["FILE#"], columns.NAME, scn, columns.UNRECOVERABLE_TIME)
        .where(scn > bound(0))
        .order_by(columns["FILE#"])
    )
    return [
        UnloggedFile(int(number), str(name), int(at), str(time)) for number, name, at, time in rows
    ]


def is_forced(connection: Connection) -> bool:
    """Return whether FORCE LOGGING is enabled for the database."""
    return connection.execute(select(tables.DATABASE.c.FORCE_LOGGING)).scalar() == "YES"


class _Attributes(NamedTuple):
    """The parts of tables with the NOLOGGING attribute: for each view, the names of the parts in
    order, by (owner, name) of the table.
    """

    tables: _Rows
    partitions: _Rows
    subpartitions: _Rows
    lobs: _Rows
    lob_partitions: _Rows
    lob_subpartitions: _Rows


def nologging_parts(connection: Connection, chosen: Sequence[Table]) -> Iterator[NologgingPart]:
    """Yield the parts with the NOLOGGING attribute: tables, partitions and delivered LOBs."""
    found = _read_attributes(connection, chosen)
    for table in chosen:
        yield from _of_table(found, table)


def _read_attributes(connection: Connection, chosen: Sequence[Table]) -> _Attributes:
    names = [(table.owner, table.name) for table in chosen]
    of_lobs = [(table.owner, table.name) for table in chosen if _lobs(table)]
    column = "COLUMN_NAME"
    return _Attributes(
        tables=_nologging(connection, tables.ALL_TABLES, names),
        partitions=_nologging(connection, tables.TAB_PARTITIONS, names, "PARTITION_NAME"),
        subpartitions=_nologging(connection, tables.TAB_SUBPARTITIONS, names, "PARTITION_NAME"),
        lobs=_nologging(connection, tables.LOBS, of_lobs, column),
        lob_partitions=_nologging(
            connection, tables.LOB_PARTITIONS, of_lobs, column, "PARTITION_NAME"
        ),
        lob_subpartitions=_nologging(
            connection, tables.LOB_SUBPARTITIONS, of_lobs, column, "SUBPARTITION_NAME"
        ),
    )


def _lobs(table: Table) -> list[str]:
    """Return the names of the LOB columns whose changes are delivered."""
    return [c.name for c in table.delivered if lob_delivery(c) is not LobDelivery.NONE]


def _of_table(found: _Attributes, table: Table) -> Iterator[NologgingPart]:
    own, alter = (table.owner, table.name), f'ALTER TABLE "{table.owner}"."{table.name}"'
    if own in found.tables:
        yield NologgingPart(table.full_name, f"{alter} LOGGING;")
    # ALTER TABLE has no LOGGING clause for a subpartition; it gets the attribute of its partition.
    parts = (*found.partitions.get(own, ()), *found.subpartitions.get(own, ()))
    for (name,) in dict.fromkeys(parts):
        yield NologgingPart(
            f"{table.full_name} partition {name}", f'{alter} MODIFY PARTITION "{name}" LOGGING;'
        )
    lobs = _lobs(table)
    for (column,) in found.lobs.get(own, ()):
        if column in lobs:
            yield NologgingPart(
                f"{table.full_name}.{column}",
                f'{alter} MODIFY LOB ("{column}") (NOCACHE LOGGING);',
            )
    for of_lobs, kind in (
        (found.lob_partitions, "PARTITION"),
        (found.lob_subpartitions, "SUBPARTITION"),
    ):
        for column, name in of_lobs.get(own, ()):
            if column in lobs:
                yield NologgingPart(
                    f"{table.full_name}.{column} {kind.lower()} {name}",
                    f'{alter} MODIFY {kind} "{name}" LOB ("{column}") (NOCACHE LOGGING);',
                )


def _nologging(
    connection: Connection, view: View, of: Sequence[tuple[str, str]], *names: str
) -> _Rows:
    """Read the columns `names` of the rows of a view that belong to the tables `of` and have the
    NOLOGGING attribute.
    """
    columns, found = view.c, _Rows()
    owner = columns.OWNER if "OWNER" in columns else columns.TABLE_OWNER
    wanted = [columns[name] for name in names]
    for batch in batches(sorted(of)):
        query = (
            select(owner, columns.TABLE_NAME, *wanted)
            .where(named(owner, columns.TABLE_NAME, batch), bound("NO") == columns.LOGGING)
            .order_by(*wanted)
        )
        listed = set(batch)
        for table_owner, table, *row in connection.execute(query):
            if (table_owner, table) in listed:
                found.setdefault((table_owner, table), []).append(tuple(map(str, row)))
    return found


class UnloggedWatch:
    """While a source is read, logs warnings about NOLOGGING operations, and about settings that
    allow them.

    Args:
        since: the SCN from which redo is read; 0 if unknown.
    """

    def __init__(self, oracle: OracleDatabase, since: Callable[[], int]) -> None:
        self._oracle = oracle
        self._since = since
        self._known: dict[int, int] | None = None
        self._invited: set[str] = set()
        self._seen: set[str] = set()
        self._is_forced = True
        self._is_allowed = True

    def look(self, chosen: Sequence[Table]) -> None:
        """Query the source, and log the problems that no earlier call has logged."""
        if not self._is_allowed:
            return
        try:
            self._oracle.read(
                "looking for NOLOGGING operations", lambda connection: self._ask(connection, chosen)
            )
        except OlrPgError as error:
            if error.code == PRIVILEGE:
                self._is_allowed = False
                _say(OlrPgError(Code.UNLOGGED_WORK_UNKNOWN, error.detail))
            elif error.code not in PASSING:
                raise

    def _ask(self, connection: Connection, chosen: Sequence[Table]) -> None:
        files = unlogged_files(connection)
        forced = is_forced(connection)
        known = self._known
        since = self._since() if known is None else 0
        new = [
            one for one in files
            if (one.scn >= since > 0 if known is None else one.scn > known.get(one.number, 0))
        ]  # fmt: skip
        # For a NOLOGGING operation, someone may have set a table to NOLOGGING.
        if not forced:
            everything = self._is_forced or new
            asked = [one for one in chosen if everything or one.full_name not in self._seen]
            self._seen.update(one.full_name for one in asked)
            for part in nologging_parts(connection, asked):
                if part.name not in self._invited:
                    self._invited.add(part.name)
                    _say(part.as_error)
        for one in new:
            _say(one.as_error)
        self._known = {one.number: one.scn for one in files}
        self._is_forced = forced


def _say(error: OlrPgError) -> None:
    _log.warning(
        error.title, code=error.label, reason=error.detail, action=error.action, **error.where
    )


_SYSTEM: Final = 0
"""TS# of the tablespace that contains the dictionary."""

_REBUILD: Final = "rebuild its indexes afterwards, or add ONLINE to the statement (12.2 or later)"
_DECRYPT: Final = "or decrypt the tablespace: ALTER TABLESPACE … ENCRYPTION ONLINE DECRYPT"
_NAMED_MAX: Final = 5


class Storage:
    """The storage of the segments of a dictionary's tables, with SQL to change it."""

    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        rows = snapshot.sys_rows
        assert rows is not None, "a live source reads these rows"
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
        again = (
            "then load the table again (`olr-pg initial-load --anew --table OWNER.NAME`). If you do"
            " nothing, the column is not replicated, as now"
        )
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
        """Yield warnings about storage that hides some changes from decoding, although the tables
        can be replicated: an encrypted SYSTEM tablespace, and compressed tables.

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
                    "or insert into the table only with conventional INSERT while it is replicated",
                )
