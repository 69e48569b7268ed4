"""Which tables are loaded or verified, and where their rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.config.model import OfflineSource
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import OlrPgError
from olr_pg.load.initial import SourceTable
from olr_pg.load.parquet import find_table
from olr_pg.replicator.appliance import applier_settings
from olr_pg.replicator.filters import filters_of
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Apply, Config
    from olr_pg.dictionary.model import Snapshot, Table

NO_FOLDER: Final = 5113
"""Error: nothing says where table data is."""


def offline_source(config: Config) -> OfflineSource:
    """The configuration's source.

    Raises:
        OlrPgError: 1090, it is a live one.
    """
    if not isinstance(config.source, OfflineSource):
        raise OlrPgError(1090, "the initial load of a live source is not implemented yet")
    return config.source


def apply_section(config: Config) -> Apply:
    """The configuration's `apply`.

    Raises:
        OlrPgError: 1091, there is none.
    """
    if config.apply is None:
        raise OlrPgError(1091, "there is no `apply` section")
    return config.apply


def read_snapshot(config: Config) -> Snapshot:
    """The source's dictionary."""
    return load_snapshot(str(offline_source(config).dictionary))


def target_settings(config: Config, snapshot: Snapshot, target: str) -> ApplierSettings:
    """The applier's settings for work that does not go over the port."""
    database = snapshot.database
    return applier_settings(
        apply_section(config),
        target,
        ("", 0),
        ByteOrder(config.target.byte_order),
        DatabaseFacts(database.charset, database.ncharset, database.timezone),
    )


def choose_tables(config: Config, snapshot: Snapshot, names: Collection[str]) -> tuple[Table, ...]:
    """The tables of `apply.tables`, or those of them that `names` lists.

    Raises:
        OlrPgError: 3xxx the tables cannot be replicated, 3012 a name is not among them, 1095 and
            1096 the filter leaves too little.
    """
    tables = query_tables(snapshot, apply_section(config).table_query)
    unknown = set(names) - {table.full_name for table in tables}
    if unknown:
        raise OlrPgError(3012, f"not in `apply.tables`: {', '.join(sorted(unknown))}")
    tables = filters_of(config.filter).chosen(tables)
    return tuple(table for table in tables if not names or table.full_name in names)


def table_sources(
    config: Config,
    snapshot: Snapshot,
    tables: Sequence[Table],
    *,
    folder: Path | None = None,
    scn: int | None = None,
) -> tuple[SourceTable, ...]:
    """The tables with their data.

    Args:
        folder: of the data; None for the configuration's.
        scn: as of which the rows are; None for what the files or the configuration say.

    Raises:
        OlrPgError: 5103 a table's data is missing, 5113 there is no folder.
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
        raise OlrPgError(NO_FOLDER, "there is no `source.tables`")
    configured = source.tables_scn if folder is None else None
    for table in tables:
        data = find_table(place, table.full_name)
        known = scn or data.scn or configured or (snapshot.scn if folder is None else 0)
        yield SourceTable(table, data, known, data.start_scn or 0)
