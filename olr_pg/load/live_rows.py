"""Reads tables of a live database: ranges of ROWIDs or keys as of one SCN.

Before any rows are read, first the open transactions and then the SCN are read. So a transaction
that is open at that SCN was either found by the query of open transactions, or began after that
query. Replication starts at the lower of two SCNs: the oldest begin SCN of the open transactions,
and the SCN of that query (architecture, “Initial load and hand-over”).
"""

from __future__ import annotations

import json
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import structlog

from olr_pg.dictionary.containers import join_containers, unqualified
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.snapshot_file import store_snapshot
from olr_pg.dictionary.structure import NO_STRUCTURE
from olr_pg.errors import Code, OlrPgError, Place
from olr_pg.load.table_data import (
    RANGE_BYTES,
    UNDO_GONE,
    LoadMoment,
    Present,
    SourceTable,
    TableData,
    named_tables,
)
from olr_pg.oracle.dictionary_queries import SYS, read_dictionary
from olr_pg.oracle.driver.bounded_calls import (
    NOT_REACHED,
    PRIVILEGE,
    SNAPSHOT_AGE,
    TIMEOUT,
    oracle_error,
)
from olr_pg.oracle.facts import (
    ReadableScn,
    read_oldest_open,
    read_readable_scn,
    read_scn,
    receives_redo,
)
from olr_pg.oracle.flashback import read_undo_retention
from olr_pg.oracle.key_cuts import LargeRow
from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from olr_pg.oracle.redo_source import check_in_doubt
from olr_pg.oracle.run_dictionary import CATALOGUE
from olr_pg.oracle.source_containers import ContainerDatabases, begun_file
from olr_pg.oracle.table_query import (
    RowidRange,
    changed_since,
    query_schema,
    ranges_by_extents,
    ranges_by_sample,
    ranges_in_segments,
    read_extents,
    read_rows,
    read_sample,
    read_segments,
    segments_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from sqlalchemy import Connection

    from olr_pg.config.source_section import OracleSource
    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.oracle.key_cuts import KeyCut, Pieces

BATCH_BYTES: Final = 4 << 20
"""Approximate maximum bytes of values in one batch, by the columns' declared lengths."""

KEY_RANGE_SECONDS_MAX: Final = 30.0
"""Maximum time of a statement that reads a range of keys; a longer statement could find that its
undo is gone.
"""

BATCH_ROWS_MAX: Final = 16_384
BATCH_ROWS_MIN: Final = 64

_STANDBY: Final = Code.STANDBY_HIDES_TRANSACTIONS
"""Error: V$TRANSACTION of a standby does not contain the primary's transactions."""

_log = structlog.get_logger(__name__)


class LivePartition(NamedTuple):
    """A range of rows of a live table.

    Attributes:
        table: the table, under the name that distinguishes it from tables of other containers.
        part: the rows' ROWID range; None for all rows.
        moment: the SCN as of which the rows are read.
        cuts: the ranges of the table's key to read; if empty, `part` is read.
        seconds_max: maximum time to read one cut; None for no limit.
    """

    source: OracleSource
    table: Table
    part: RowidRange | None
    moment: LoadMoment
    batch_rows: int
    cuts: tuple[KeyCut, ...] = ()
    seconds_max: float | None = None

    @property
    def rows(self) -> int:
        """See `SourcePartition.rows`."""
        return 0

    @property
    def size(self) -> int:
        """See `SourcePartition.size`. The size of a range of keys is unknown, but small."""
        return 0 if self.cuts else RANGE_BYTES

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        ends = {} if self.part is None else self.part._asdict()
        return {"scn": self.moment.scn, **ends}

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """See `SourcePartition.batches`.

        Raises:
            OlrPgError: 5118 the table was exchanged for another one, 7040 the undo is gone, 7042
                reading takes too long, 7047 a policy may hide rows or replace values, 7100 the
                source has not yet reached the SCN, 7001 to 7009 errors of the database.
        """
        with (
            self._coded_errors(),
            closing(open_connection(self.source, self.seconds_max)) as connection,
        ):
            for number, part in enumerate(self.cuts or (self.part,)):
                for rows in self._read(connection, part, is_checked=number > 0):
                    if isinstance(rows, LargeRow):
                        yield LargeRow(
                            rows.batch, {n: self._coded_pieces(p) for n, p in rows.large.items()}
                        )
                    else:
                        yield rows
            self._check_unchanged(connection)

    def _check_unchanged(self, connection: oracledb.Connection) -> None:
        """Check that the rows that were read belong to the table.

        Raises:
            OlrPgError: 5118, the rows may belong to another table, or to another segment.
        """
        reason = changed_since(connection, unqualified(self.table), self.part)
        if reason is not None:
            raise OlrPgError(
                Code.DEFINITION_CHANGED,
                reason,
                action=(
                    "run the command again; for a load, use --restart, because a load with"
                    " --resume would read the same segments"
                ),
                table=self.table.full_name,
                **self.place,
            )

    def _read(
        self, connection: oracledb.Connection, part: RowidRange | KeyCut | None, *, is_checked: bool
    ) -> Iterator[pa.RecordBatch | LargeRow]:
        """Read a part with one statement, within `seconds_max`; `is_checked` as in `read_rows`."""
        deadline = None if self.seconds_max is None else time.monotonic() + self.seconds_max
        table = unqualified(self.table)
        scn, size = self.moment.scn, self.batch_rows
        for rows in read_rows(connection, table, scn, part, size, is_checked=is_checked):
            if deadline is not None and time.monotonic() > deadline:
                raise self._too_slow()
            yield rows

    def _coded_pieces(self, pieces: Pieces) -> Pieces:
        """Return `pieces` with their errors converted as in `batches`, because they are read after
        `batches` yields them.
        """

        def read() -> Iterator[Any]:
            with self._coded_errors():
                yield from pieces()

        return read

    @contextmanager
    def _coded_errors(self) -> Iterator[None]:
        try:
            yield
        except oracledb.Error as error:
            doing = f"reading {self.table.full_name}"
            raise self._coded(oracle_error(error, doing)) from error
        except OlrPgError as error:
            if error.code != Code.POLICY_HIDES_DATA:
                raise
            # The check of policies knows the table only by the name that it has in its container.
            name = self.table.full_name
            raise OlrPgError(error.code, error.detail, action=error.action, table=name) from error

    def _coded(self, error: OlrPgError) -> OlrPgError:
        name = self.table.full_name
        if error.code == TIMEOUT and self.seconds_max is not None:
            return self._too_slow()
        if error.code == SNAPSHOT_AGE:
            return OlrPgError(UNDO_GONE, error.detail, action=None, table=name, **self.place)
        if error.code == PRIVILEGE:
            return OlrPgError(
                PRIVILEGE, error.detail, action=_grant(self.source, self.table), table=name
            )
        return OlrPgError(error.code, error.detail, action=error.action, table=name, **self.place)

    def _too_slow(self) -> OlrPgError:
        return OlrPgError(
            Code.KEY_RANGE_TOO_SLOW,
            f"reading a range of keys takes longer than {self.seconds_max:g} s",
            action=None,
            table=self.table.full_name,
            **self.place,
        )


class LiveTables:
    """The tables of a live database, for a load or a verification.

    Args:
        query: the configured query that lists the tables (TableList).
        filters: the configured filters.
        scn: the SCN to read as of; None for the current SCN.
        for_load: whether replication continues from this SCN, which requires that the open
            transactions are known.
        join: joins the dictionaries of several containers.
        other_queries: the queries that list the tables of other targets. All targets share the
            dictionary that is stored for a later `run`.

    Attributes:
        snapshot: the dictionary of the tables as of `moment`.
        moment: the SCN as of which rows are read by default.

    Raises:
        OlrPgError: 3010 to 3017 errors of the query, 7001 to 7009 errors of the database, 7041 the
            database is a standby.
    """

    def __init__(
        self,
        source: OracleSource,
        query: str,
        filters: Filters,
        scn: int | None = None,
        *,
        for_load: bool = False,
        join: Callable[[Sequence[Snapshot]], Snapshot] = join_containers,
        other_queries: Sequence[str] = (),
    ) -> None:
        self._filters = filters
        self._other_queries = other_queries
        # A run reads a table that a pattern finds, and that is newer, from redo.
        self._by_pattern = CATALOGUE in query
        self._containers = ContainerDatabases(source)
        try:
            self._names = self._containers.run_table_list(query)
            first = self._containers.first
            if for_load and first.read("reading V$DATABASE", receives_redo):
                raise OlrPgError(
                    _STANDBY, "according to V$DATABASE, the source is a physical standby"
                )
            if for_load:
                self._check_in_doubt()
            now = read_moments(self._containers)
            if for_load:  # an instance may have ended in between
                self._check_in_doubt()
            self.moment = now if scn is None else LoadMoment(scn, min(now.start_scn, scn))
            self._dictionaries = self._containers.read_dictionaries(self._names, self.moment.scn)
            self.snapshot: Snapshot = join(self._dictionaries)
        except BaseException:
            self.close()
            raise

    def _check_in_doubt(self) -> None:
        for one in self._containers.databases.values():
            one.read("looking for distributed transactions in doubt", check_in_doubt)

    def close(self) -> None:
        """Close the connections."""
        self._containers.close()

    def source_of(self, table: Table) -> OracleSource:
        """Return the source, restricted to the table's container."""
        return self._containers.sources[self._containers.container_of(table, self.snapshot)]

    def _database_of(self, table: Table) -> OracleDatabase:
        return self._containers.databases[self._containers.container_of(table, self.snapshot)]

    def store_dictionary(
        self, path: Path, scn: int, present: Present = Present.UNUSED
    ) -> tuple[str, ...]:
        """See `TableSource.store_dictionary`."""
        kept = self._containers.files(path)
        files = [begun_file(file, scn) for file in kept]
        stored = self._stored(files)
        others = self._containers.run_other_lists(self._other_queries)
        other_names = [name for names in others.values() for name in names]
        if stored and not self._lacking(stored, other_names):
            return ()
        run = self._stored(kept) if present is Present.EARLIER_RUNS else []
        if run and not self._lacking(run) and max(one.scn for one in run) <= scn:
            return ()
        # A table whose copy by another tool has begun is not in the list until the copy ends.
        names = tuple(dict.fromkeys((*self._names, *other_names, *self._tables_of(stored))))
        try:
            read = self._containers.read_dictionaries(names, scn, structure=False)
        except OlrPgError as error:
            if error.code == NOT_REACHED:
                return ()  # a checkpoint can be after the last SCN of an idle source
            if error.code != SNAPSHOT_AGE:
                raise
            if stored or present in (Present.UNUSED, Present.EARLIER_RUNS):
                return self._lacking(stored)
            assert self.moment is not None
            read = [replace(one, structure=NO_STRUCTURE) for one in self._dictionaries]
            if other_names:
                read = self._containers.read_dictionaries(names, self.moment.scn, structure=False)
            if present is Present.CLAIMED:
                read = [replace(one, scn=scn) for one in read]
        for snapshot, file in zip(read, files, strict=True):
            store_snapshot(snapshot, file)
        return () if self._by_pattern else self._lacking(read)

    def _stored(self, files: Sequence[Path]) -> list[Snapshot]:
        """Return the stored dictionary of each container; empty if they are missing, or of another
        database.
        """
        if not all(file.exists() for file in files):
            return []
        stored = [load_snapshot(str(file)) for file in files]
        pairs = zip(stored, self._dictionaries, strict=True)
        return stored if all(a.database.dbid == b.database.dbid for a, b in pairs) else []

    def _lacking(
        self, stored: Sequence[Snapshot], others: Iterable[tuple[str, str]] = ()
    ) -> tuple[str, ...]:
        """Return the names of the listed tables, and of `others`, that stored dictionaries lack."""
        there = set(self._tables_of(stored))
        return tuple(".".join(pair) for pair in (*self._names, *others) if pair not in there)

    def _tables_of(self, stored: Sequence[Snapshot]) -> list[tuple[str, str]]:
        """Return the tables of stored dictionaries as `run_table_list` names them."""
        several = self._containers.names
        return [
            (f"{name}.{table.source_owner}" if several else table.source_owner, table.name)
            for name, snapshot in zip(self._containers.databases, stored, strict=False)
            for table in snapshot.tables
            if table.source_owner != SYS
        ]

    def choose(self, names: Collection[str]) -> tuple[Table, ...]:
        """See `TableSource.choose`."""
        tables = find_tables(self.snapshot, self._names)
        return named_tables(tables, names, self._filters, self.snapshot.database)

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """See `TableSource.sources`.

        Raises:
            OlrPgError: 7004, the account cannot read a table.
        """
        return tuple(
            SourceTable(
                table,
                live_data(self.source_of(table), table, self.moment, ranges),
                self.moment.scn,
                self.moment.start_scn,
                self.snapshot.database.resetlogs[0],
            )
            for table, ranges in zip(tables, self._ranges(tables), strict=True)
        )

    def later(self, source: SourceTable) -> SourceTable:
        """See `TableSource.later`.

        Raises:
            OlrPgError: 5118, the table has another definition now; 7001 to 7009.
        """
        table = source.table
        # Open transactions of other containers do not affect this table.
        self._check_in_doubt()
        moment = self._database_of(table).read("looking for open transactions", read_moment)
        now = self._same_definition(table, moment.scn)
        stored = replace(
            table, dataobj=now.dataobj, partitions=now.partitions, segments=now.segments
        )
        (ranges,) = self._ranges([stored])
        data = live_data(self.source_of(table), table, moment, ranges)
        return source._replace(data=data, scn=moment.scn, start_scn=moment.start_scn)

    def _same_definition(self, table: Table, scn: int) -> Table:
        """Read a table's definition as of an SCN; it may have other segments than in `snapshot`.

        Raises:
            OlrPgError: 5118, the table has other columns or another key.
        """
        container = self._containers.container_of(table, self.snapshot)
        before = self._dictionaries[list(self._containers.databases).index(container)]
        dictionary = read_dictionary(
            self._database_of(table), [(table.source_owner, table.name)], scn
        )
        now = _definition(dictionary, table)
        if now is None or _without_segments(now) != _without_segments(_definition(before, table)):
            raise OlrPgError(
                Code.DEFINITION_CHANGED,
                f"the table's definition as of SCN {scn} differs from that as of SCN"
                f" {self.moment.scn}",
                table=table.full_name,
            )
        return now

    def by_key(self, table: Table, *, is_checked: bool = False) -> SourceTable:
        """See `TableSource.by_key`."""
        moment = self._database_of(table).read("looking for open transactions", read_moment)
        if is_checked:
            self._same_definition(table, moment.scn)
        data = live_data(self.source_of(table), table, moment, ())
        return SourceTable(table, data, moment.scn, moment.start_scn)

    def undo_retention(self) -> str:
        """See `TableSource.undo_retention`. If a privilege is missing, return a text that says
        this.

        Raises:
            OlrPgError: 7001 to 7009 except missing privileges.
        """
        try:
            database = self._containers.first
            found = database.read("reading the undo retention", read_undo_retention)
        except OlrPgError as error:
            if error.code != PRIVILEGE:
                raise
            source = next(iter(self._containers.sources.values()))
            user = source.user.upper()
            return (
                f"{user} cannot read V$PARAMETER and V$UNDOSTAT, so the current undo"
                " retention is unknown"
            )
        tuned = "" if found.tuned is None else f", tuned to {found.tuned} by V$UNDOSTAT"
        return f"UNDO_RETENTION is {found.wanted}{tuned}"

    def _ranges(self, tables: Sequence[Table]) -> list[Sequence[RowidRange | None]]:
        """Return the ranges of each table: None for all rows of an index-organised table."""
        divided: dict[int, Sequence[RowidRange]] = {}
        for name, oracle in self._containers.databases.items():
            own = [
                table
                for table in tables
                if not table.index_organised
                and segments_of(table)
                and self._containers.container_of(table, self.snapshot) == name
            ]
            found = self._ranges_in(oracle, own) if own else ()  # other containers may be closed
            divided.update(zip((table.object_key for table in own), found, strict=True))
        return [
            (None,) if table.index_organised else divided.get(table.object_key, ())
            for table in tables
        ]

    def _ranges_in(
        self, oracle: OracleDatabase, qualified: Sequence[Table]
    ) -> Sequence[Sequence[RowidRange]]:
        """Return the ranges of tables of one container."""
        own = [unqualified(table) for table in qualified]
        try:
            return oracle.read(
                "reading DBA_EXTENTS",
                lambda connection: ranges_by_extents(own, read_extents(connection, own)),
            )
        except OlrPgError as error:
            if error.code != PRIVILEGE:
                raise
        return [self._sampled(oracle, table) for table in qualified]

    def _sampled(self, oracle: OracleDatabase, qualified: Table) -> Sequence[RowidRange]:
        _log.info(
            "DBA_EXTENTS is not readable: estimating the table's ranges from a sample",
            table=qualified.full_name,
        )
        table = unqualified(qualified)
        return oracle.read(
            f"sampling {qualified.full_name}",
            lambda connection: ranges_by_sample(table, read_sample(connection, table)),
            action=_grant(self.source_of(qualified), table),
        )


def _definition(dictionary: Snapshot, table: Table) -> Table | None:
    """Return a table's definition in the dictionary of its container; None if it has none."""
    named = (table.source_owner, table.name)
    return next((one for one in dictionary.tables if (one.owner, one.name) == named), None)


def _without_segments(table: Table | None) -> Table | None:
    return table and replace(table, dataobj=None, partitions=(), segments=())


def _grant(source: OracleSource, table: Table) -> str:
    """Return the statement that grants the account access to a table's rows; it must be run in the
    table's container.
    """
    enter = "".join(f"ALTER SESSION SET CONTAINER = {one}; " for one in source.containers)
    quoted = f'"{table.source_owner}"."{table.name}"'
    return f"{enter}GRANT SELECT, FLASHBACK ON {quoted} TO {source.user.upper()};"


def read_moments(containers: ContainerDatabases) -> LoadMoment:
    """Read the current moment for all containers; see the docstring of the module.

    All containers get the same SCN: the last one that was read, which is not earlier than any query
    of open transactions. Each container is queried, because in a container V$TRANSACTION shows only
    the transactions of that container.
    """
    moments = [
        one.read("looking for open transactions", read_moment)
        for one in containers.databases.values()
    ]
    return LoadMoment(moments[-1].scn, min(one.start_scn for one in moments))


def read_moment(connection: Connection) -> LoadMoment:
    """Read the current moment of one container; see the docstring of the module.

    A transaction that has not changed anything yet is ignored, because its changes will be later
    than the SCN of the rows.
    """
    before = read_scn(connection)
    oldest = read_oldest_open(connection)
    start = before if oldest is None else min(oldest, before)
    return LoadMoment(read_scn(connection), start)


def live_data(
    source: OracleSource, table: Table, moment: LoadMoment, ranges: Sequence[RowidRange | None]
) -> TableData:
    """Return the data of a table in these ranges; the data's `identity` contains the ranges."""
    rows = batch_rows(table)
    partitions = tuple(LivePartition(source, table, one, moment, rows) for one in ranges)
    return TableData(
        query_schema(table),
        partitions,
        rows=0,
        scn=moment.scn,
        start_scn=moment.start_scn,
        identity=json.dumps(ranges),
        as_of=partial(_as_of, source, table, moment, tuple(ranges)),
        reached=partial(_reached, source),
        within=partial(_within, source, table, moment),
    )


def _within(
    source: OracleSource, table: Table, moment: LoadMoment, scn: int, cuts: Sequence[KeyCut]
) -> TableData:
    then, rows = LoadMoment(scn, moment.start_scn), batch_rows(table)
    part = LivePartition(source, table, None, then, rows, tuple(cuts), KEY_RANGE_SECONDS_MAX)
    return replace(live_data(source, table, then, ()), partitions=(part,))


def _as_of(
    source: OracleSource,
    table: Table,
    moment: LoadMoment,
    ranges: Sequence[RowidRange | None],
    scn: int,
    identity: str | None,
) -> TableData:
    if identity is not None:
        found: list[Any] = json.loads(identity)
        ranges = [None if one is None else RowidRange(*one) for one in found]
    elif not table.index_organised and scn != moment.scn:
        ranges = _ranges_as_of(source, table, ranges, scn)
    return live_data(source, table, LoadMoment(scn, moment.start_scn), ranges)


def _ranges_as_of(
    source: OracleSource, table: Table, ranges: Sequence[RowidRange | None], scn: int
) -> Sequence[RowidRange]:
    """Return ranges that contain all rows of a table as of an SCN. Since the table's definition was
    read, the table may have got other segments (TRUNCATE, MOVE, a new partition).
    """
    with closing(OracleDatabase(source)) as oracle:
        segments = oracle.read(
            f"reading the segments of {table.full_name}",
            lambda connection: read_segments(connection, unqualified(table), scn),
        )
    return ranges_in_segments((one for one in ranges if one is not None), segments)


def _reached(source: OracleSource) -> ReadableScn:
    """Read the SCN as of which rows can be read.

    Raises:
        OlrPgError: 7001 to 7009.
    """
    with closing(OracleDatabase(source)) as oracle:
        return oracle.read("reading the current SCN", read_readable_scn)


def batch_rows(table: Table) -> int:
    """Return the number of rows per fetch."""
    width = sum(min(max(column.length, 8), 4_000) for column in table.delivered)
    return max(min(BATCH_BYTES // max(width, 1), BATCH_ROWS_MAX), BATCH_ROWS_MIN)
