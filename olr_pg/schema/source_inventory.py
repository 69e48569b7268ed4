"""The inventory of a configuration's source, live or beside its dictionary snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.appliance.appliance import applier_settings
from olr_pg.appliance.container_names import refuse_several
from olr_pg.config.source_section import OfflineSource
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.inventory_file import inventory_path, owners_of, read_inventory_file
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.dictionary.inventory import Inventory
    from olr_pg.dictionary.model import Snapshot


def read_source(
    config: Config, owners: Sequence[str] = ()
) -> tuple[Inventory, Snapshot, frozenset[str]]:
    """Read what is in the source's schemas.

    Args:
        owners: of which schemas; empty for those of `apply.tables`.

    Returns:
        The inventory; the dictionary of the tables; ``OWNER.NAME`` of those that are replicated.

    Raises:
        OlrPgError: 1091 there is no `apply`, 3xxx the dictionary, 7xxx the database.
    """
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "there is no `apply` section")
    query = config.apply.table_query
    if isinstance(config.source, OfflineSource):
        path = _only_one(config.source)
        snapshot = load_snapshot(str(path))
        tables = query_tables(snapshot, query)
        inventory = read_inventory_file(inventory_path(path))
        return inventory, snapshot, frozenset(table.full_name for table in tables)
    from olr_pg.oracle.dictionary_queries import read_dictionary
    from olr_pg.oracle.inventory.inventory_queries import read_inventory
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.oracle.table_list_query import run_table_list

    refuse_several(config.source, "exporting and assessing schemas")
    oracle = OracleDatabase(config.source)
    try:
        names = run_table_list(oracle, query)
        snapshot = read_dictionary(oracle, names, None)
        inventory = read_inventory(oracle, owners or sorted(owners_of(snapshot)), snapshot.scn)
    finally:
        oracle.close()
    return inventory, snapshot, frozenset(f"{owner}.{name}" for owner, name in names)


def _only_one(source: OfflineSource) -> Path:
    """Return the dictionary of a source of one container.

    Raises:
        OlrPgError: 1170, it is of several.
    """
    if len(source.dictionary) > 1:
        raise OlrPgError(
            Code.NOT_OF_SEVERAL_CONTAINERS,
            "the schemas of several containers are not exported or assessed together",
            key="source.dictionary",
        )
    return source.dictionary[0]


def settings_for(config: Config, snapshot: Snapshot, target: str) -> ApplierSettings:
    """Make the applier's settings: they say what things are called in the target."""
    assert config.apply is not None
    database = snapshot.database
    facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
    order = ByteOrder(config.port.byte_order)
    settings = applier_settings(config.apply, target, ("", 0), order, facts)
    return replace(settings, containers=database.containers)
