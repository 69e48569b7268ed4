"""Selects the tables to load or to verify, opens the source of their rows, and filters the rows.

`filter.rows` applies to whole tables as to changes: the values are converted to the form that redo
has, and the condition is evaluated as in replication. So a loaded table contains the same rows as a
replicated one.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from olr_pg.appliance.appliance import settings_for
from olr_pg.appliance.container_names import offline_dictionary, source_dictionary
from olr_pg.appliance.mapping_checks import report_idle_mappings
from olr_pg.conditions.evaluate import Truth, evaluate
from olr_pg.config.source_section import OfflineSource
from olr_pg.decoding.filters import charsets_of, filters_of_target, report_idle
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import waiting_rows_sealed
from olr_pg.load.arrow import arrow_column
from olr_pg.load.parquet import find_table_data
from olr_pg.load.table_data import (
    Present,
    SourceTable,
    TableSource,
    named_tables,
    place_in,
    schema_of,
)
from olr_pg.oracle.key_cuts import LargeRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.conditions.typed_conditions import Charsets, RowCondition
    from olr_pg.config.model import Apply, Config
    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.errors import Place
    from olr_pg.load.table_data import SourcePartition, TableData
    from olr_pg.oracle.key_cuts import KeyCut


_WHERE: Final = "\nwhere "
"""Separates the identity of the data from the condition in the identity of the filtered data."""


class FilteredPartition(NamedTuple):
    """The rows of a partition that meet the filter's condition."""

    inner: SourcePartition
    table: Table
    filters: Filters
    charsets: Charsets

    @property
    def rows(self) -> int:
        """See `SourcePartition.rows`; unknown."""
        return 0

    @property
    def size(self) -> int:
        """See `SourcePartition.size`; the whole partition is read, including the rows that the
        filter removes.
        """
        return self.inner.size

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        return self.inner.place

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """See `SourcePartition.batches`.

        Raises:
            OlrPgError: 5102 a value of the condition's columns is invalid; errors of reading.
        """
        rows: _Rows | None = None
        for found in self.inner.batches():
            if rows is None:
                rows = _Rows(self.table, self.filters, self.charsets, schema_of(found))
            if isinstance(found, LargeRow):
                if rows.fulfilling(found.batch).num_rows:
                    yield found
                continue
            left = rows.fulfilling(found)
            if left.num_rows:
                yield left


class _Rows:
    """The condition, prepared for batches of one schema."""

    def __init__(
        self, table: Table, filters: Filters, charsets: Charsets, schema: pa.Schema
    ) -> None:
        wanted = filters.row_condition(table, charsets)
        assert wanted is not None  # `filtered_data` has checked this
        self._columns = []
        described = {}
        for ordinal in wanted.ordinals:
            column = table.delivered[ordinal]
            place = place_in(schema, table, column)
            arrow = arrow_column(column, schema.field(place).type)
            described[column.name] = arrow.described
            self._columns.append((place, arrow))
        found = filters.row_condition(table, charsets, described)
        assert found is not None
        self._condition: RowCondition = found

    def fulfilling(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return only the rows that meet the condition."""
        values = [arrow.convert(batch.column(place)) for place, arrow in self._columns]
        is_true = evaluate(self._condition, values) == Truth.TRUE
        return batch if is_true.all() else batch.filter(pa.array(is_true))


class FilteredTables:
    """A source of tables with filtered rows; see `TableSource`."""

    def __init__(self, inner: TableSource, filters: Filters) -> None:
        self._inner = inner
        self._filters = filters
        self.snapshot: Snapshot = inner.snapshot

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """See `TableSource.sources`."""
        return tuple(map(self._filtered, self._inner.sources(tables)))

    def later(self, source: SourceTable) -> SourceTable | None:
        """See `TableSource.later`."""
        found = self._inner.later(source)
        return None if found is None else self._filtered(found)

    def by_key(self, table: Table, *, is_checked: bool = False) -> SourceTable | None:
        """See `TableSource.by_key`."""
        found = self._inner.by_key(table, is_checked=is_checked)
        return None if found is None else self._filtered(found)

    def __getattr__(self, name: str) -> Any:
        """Delegate all other attributes to the source of all rows."""
        return getattr(self._inner, name)

    def _filtered(self, source: SourceTable) -> SourceTable:
        charsets = charsets_of(self.snapshot.database)
        data = filtered_data(source.data, source.table, self._filters, charsets)
        return source._replace(data=data)


def filtered_data(data: TableData, table: Table, filters: Filters, charsets: Charsets) -> TableData:
    """Return the data of a table with the configured row filter.

    The identity of the returned data contains the condition, so that a load cannot be resumed with
    another condition.

    Raises:
        OlrPgError: 1132 to 1134, the condition does not fit the columns.
    """
    condition = filters.row_condition(table, charsets)
    if condition is None:
        return data
    as_of = data.as_of
    return replace(
        data,
        partitions=tuple(
            FilteredPartition(one, table, filters, charsets) for one in data.partitions
        ),
        rows=0,
        identity=f"{data.identity}{_WHERE}{condition.text}",
        as_of=as_of and partial(_as_of, data, table, filters, charsets),
        within=data.within and partial(_within, data, table, filters, charsets),
    )


def _as_of(
    data: TableData,
    table: Table,
    filters: Filters,
    charsets: Charsets,
    scn: int,
    identity: str | None,
) -> TableData:
    assert data.as_of is not None
    inner = identity and identity.split(_WHERE, 1)[0]
    return filtered_data(data.as_of(scn, inner), table, filters, charsets)


def _within(
    data: TableData,
    table: Table,
    filters: Filters,
    charsets: Charsets,
    scn: int,
    cuts: Sequence[KeyCut],
) -> TableData:
    assert data.within is not None
    return filtered_data(data.within(scn, cuts), table, filters, charsets)


NO_FOLDER: Final = Code.NO_TABLE_DATA
"""Error: the location of the table data is not configured."""


@contextmanager
def open_tables(
    config: Config,
    *,
    folder: Path | None = None,
    scn: int | None = None,
    for_load: bool = False,
) -> Iterator[TableSource]:
    """Open the tables of the configured source.

    Args:
        folder: the directory of the table data; overrides the configuration.
        scn: the SCN of the rows; None for the current SCN, or the SCN in the files.
        for_load: whether replication will continue from that SCN.

    Raises:
        OlrPgError: 3xxx errors of the dictionary, 7xxx errors of the live database.
    """
    with (
        waiting_rows_sealed(are_sealed=config.context.is_encrypted),
        _opened(config, folder, scn, for_load=for_load) as tables,
    ):
        yield tables


@contextmanager
def _opened(
    config: Config, folder: Path | None, scn: int | None, *, for_load: bool
) -> Iterator[TableSource]:
    filters = filters_of_target(config)
    if isinstance(config.source, OfflineSource):
        offline = _OfflineTables(config, folder, scn, for_load=for_load)
        report_idle(filters, offline.snapshot.tables)
        _report_mappings(config, offline.snapshot.tables)
        yield FilteredTables(offline, filters)
        return
    if folder is not None:
        raise OlrPgError(
            Code.NOT_SUPPORTED,
            "--tables is only for an offline source; olr_pg reads the rows of a live source from"
            " the database",
            action="omit --tables",
        )
    from olr_pg.load.live_rows import LiveTables

    query = apply_section(config).table_query
    join = partial(source_dictionary, config, keep=for_load)
    live = LiveTables(
        config.source,
        query,
        filters,
        scn,
        for_load=for_load,
        join=join,
        other_queries=config.other_queries,
    )
    try:
        report_idle(filters, live.snapshot.tables)
        _report_mappings(config, live.snapshot.tables)
        yield FilteredTables(live, filters)
    finally:
        live.close()


def _report_mappings(config: Config, tables: Sequence[Table]) -> None:
    if config.apply is not None:
        report_idle_mappings(config.apply, tables)


class _OfflineTables:
    """The tables of an offline source."""

    def __init__(
        self, config: Config, folder: Path | None, scn: int | None, *, for_load: bool
    ) -> None:
        self._config = config
        self._folder = folder
        self._scn = scn
        self.snapshot = read_dictionary(config, for_load=for_load)

    @property
    def moment(self) -> None:
        """See `TableSource.moment`: logs and files do not show how far the database has written."""
        return

    def choose(self, names: Collection[str]) -> tuple[Table, ...]:
        """See `TableSource.choose`."""
        return choose_tables(self._config, self.snapshot, names)

    def store_dictionary(
        self, path: Path, scn: int, present: Present = Present.UNUSED
    ) -> tuple[str, ...]:
        """See `TableSource.store_dictionary`."""
        del path, scn, present
        return ()

    def sources(self, tables: Sequence[Table]) -> tuple[SourceTable, ...]:
        """See `TableSource.sources`."""
        return table_sources(
            self._config, self.snapshot, tables, folder=self._folder, scn=self._scn
        )

    def later(self, source: SourceTable) -> SourceTable | None:
        """See `TableSource.later`; files contain the rows as of only one SCN, so the result is
        None.
        """
        del source
        return None

    def by_key(self, table: Table, *, is_checked: bool = False) -> SourceTable | None:
        """See `TableSource.by_key`: files have no index."""
        del table, is_checked
        return None

    def undo_retention(self) -> str:
        """See `TableSource.undo_retention`; files need no undo."""
        return ""


def current_scn(config: Config) -> int | None:
    """Return the current SCN of a live source; None for an offline source, because its logs do not
    show how far the database has written.

    Raises:
        OlrPgError: 70xx, errors of the database.
    """
    if isinstance(config.source, OfflineSource):
        return None
    from olr_pg.oracle.facts import read_scn
    from olr_pg.oracle.source_containers import ContainerDatabases

    with closing(ContainerDatabases(config.source)) as containers:
        return containers.first.read("reading the current SCN", read_scn)


def offline_source(config: Config) -> OfflineSource:
    """Return the configuration's source.

    Raises:
        OlrPgError: 1090, the source is a live database.
    """
    if not isinstance(config.source, OfflineSource):
        raise OlrPgError(
            Code.NOT_SUPPORTED, "the source must be offline (`source.kind`) for this command"
        )
    return config.source


def apply_section(config: Config) -> Apply:
    """Return the configuration's `apply`.

    Raises:
        OlrPgError: 1091, the section is missing.
    """
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "the configuration has no `apply` section")
    return config.apply


def read_dictionary(config: Config, *, for_load: bool = False) -> Snapshot:
    """Read the source's dictionary.

    Args:
        for_load: True for a load: the names of new schemas are then stored.
    """
    return offline_dictionary(config, offline_source(config), keep=for_load)


def target_settings(config: Config, snapshot: Snapshot, target: str) -> ApplierSettings:
    """Return the applier's settings for commands that do not connect to the port."""
    apply_section(config)
    settings = settings_for(config, snapshot, target)
    return replace(settings, dbid=snapshot.database.dbid or None)


def choose_tables(config: Config, snapshot: Snapshot, names: Collection[str]) -> tuple[Table, ...]:
    """Return the tables of `apply.tables`; if `names` is not empty, only the tables that it lists.

    Raises:
        OlrPgError: 3xxx the tables cannot be replicated, 3012 a name is not in `apply.tables`, 1095
            and 1096 the filter excludes too much.
    """
    tables = query_tables(snapshot, apply_section(config).table_query)
    return named_tables(tables, names, filters_of_target(config), snapshot.database)


def table_sources(
    config: Config,
    snapshot: Snapshot,
    tables: Sequence[Table],
    *,
    folder: Path | None = None,
    scn: int | None = None,
) -> tuple[SourceTable, ...]:
    """Find the data of the tables.

    Args:
        folder: the directory of the table data; None for the configured directory.
        scn: the SCN of the rows; None for the SCN in the files or the configuration.

    Raises:
        OlrPgError: 5103 a table's data is missing, 5113 the folder is not configured.
    """
    return tuple(_sources(config, snapshot, tables, folder, scn))


def _sources(
    config: Config,
    snapshot: Snapshot,
    tables: Sequence[Table],
    folder: Path | None,
    scn: int | None,
) -> Iterator[SourceTable]:
    source = offline_source(config)
    place = folder or source.tables
    if place is None:
        raise OlrPgError(NO_FOLDER, "`source.tables` is missing")
    configured = source.tables_scn if folder is None else None
    as_of = {key: one.scn for one in snapshot.containers for key in {t.con_id for t in one.tables}}
    for table in tables:
        data = find_table_data(place, table.full_name)
        if scn is not None and data.scn is not None and scn != data.scn:
            # The rows would be taken for those of another SCN: changes between the two SCNs would
            # look like differences, or not be noticed.
            raise OlrPgError(
                Code.TABLE_DATA_UNUSABLE,
                f"the rows in the files are as of SCN {data.scn}, not {scn}",
                action="omit --at-scn, or name the files of this SCN with --tables",
                table=table.full_name,
            )
        known = scn or data.scn or configured or (as_of[table.con_id] if folder is None else 0)
        yield SourceTable(table, data, known, data.start_scn or 0)
