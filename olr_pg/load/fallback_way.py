"""Sets up the way back of a configuration: the account in Oracle, the tables, and the conversion of
values.

Each PDB has a fallback of its own, with its own ledger and its own slot, because a transaction of
Oracle cannot change two PDBs. So a closed PDB does not stop the fallback to the others.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.encryption import row_key
from olr_pg.appliance.opened_target import open_target
from olr_pg.appliance.target import target_directory
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.decoding.filters import charsets_of, filters_of_target
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.way_back import WayBack
from olr_pg.files.sealed import sealing
from olr_pg.load import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.fallback.way_back import ValueColumn
    from olr_pg.load.table_data import TableSource

SPOOL: Final = "fallback"
"""The directory for large transactions, below the target's."""


def check_way_back(config: Config) -> None:
    """Check that a fallback is configured, before anything is opened.

    Raises:
        OlrPgError: 1135, `fallback` is missing, or has no address of Oracle.
    """
    _ = config.fallback_source


@contextmanager
def open_ways_back(config: Config) -> Iterator[tuple[WayBack, ...]]:
    """Open the fallbacks of a configuration that has one target, and enable the encryption of files
    if a key is configured.

    Raises:
        OlrPgError: 1091 there is no target, 1135 `fallback` has no account, 1190 the key cannot be
            used, 3xxx and 7xxx errors of the dictionary.
    """
    check_way_back(config)
    with ExitStack() as stack:
        stack.enter_context(sealing(row_key(config)))
        source = stack.enter_context(sources.open_tables(config))
        target = open_target(sources.apply_section(config), target_directory(config), stack)
        yield ways_back(config, source, target)


def ways_back(config: Config, source: TableSource, target: str) -> tuple[WayBack, ...]:
    """Return the fallback to each PDB that has tables.

    Args:
        target: the target's connection string.

    Raises:
        OlrPgError: 1135, `fallback` has no account.
    """
    apply, fallback, account = (
        sources.apply_section(config), config.way_back, config.fallback_source,
    )  # fmt: skip
    settings = ValueSettings.of(fallback.policies, apply, source.snapshot.database)
    filters = filters_of_target(config)
    charsets = charsets_of(source.snapshot.database)

    def keeps_rows_out(table: Table) -> bool:
        """Return whether Oracle's table can have rows that PostgreSQL never had."""
        dropped = filters.dropped([table])
        return (
            filters.concerns_transactions
            or filters.row_condition(table, charsets) is not None
            or (dropped is not None and bool(dropped[0, 0]))
        )

    def value_column(table: str, column: Column, typed: TargetColumn) -> ValueColumn:
        return oracle_column(table, column, typed.kind, settings)

    def way_back(container: str, tables: tuple[Table, ...]) -> WayBack:
        own = {"containers": (container,)} if container else {}
        return WayBack(
            source=account.model_copy(update=own),
            connect_string=target,
            subscription=apply.subscription,
            slot=fallback.slot_of(apply.subscription, container),
            publication=fallback.publication_of(apply.subscription, container),
            tables=tables,
            settings=sources.target_settings(config, source.snapshot, target),
            value_column=value_column,
            directory=target_directory(config) / SPOOL,
            batch_changes=apply.batch_changes,
            conflict=ConflictPolicy(fallback.on_conflict),
            container=container,
            omits=fallback.omits,
            partial=frozenset(one.full_name for one in tables if keeps_rows_out(one)),
        )

    tables = source.choose(())
    if not source.snapshot.members:
        return (way_back("", tables),)
    by_container = {
        one.database.con_name or "": tuple(
            table for table in tables if table.con_id == one.database.con_id
        )
        for one in source.snapshot.members
    }
    return tuple(way_back(name, own) for name, own in by_container.items() if own)
