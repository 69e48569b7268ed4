"""``olr-pg dictionary export``: the dictionary of a live source, for an offline one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.appliance.container_names import refuse_several
from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.inventory_file import inventory_path, owners_of, write_inventory
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot


def export_dictionary(config: Config, query: str | None, scn: int, path: Path) -> Snapshot:
    """Read the dictionary of the tables and write it to `path`, and the inventory beside it.

    Args:
        query: a TableList query; None for the configuration's `apply.tables`.
        scn: as of which; 0 for now.

    Raises:
        OlrPgError: 1093 there is no live source, 1094 nothing names the tables, 3xxx the tables,
            7xxx the database.
    """
    if isinstance(config.source, OfflineSource):
        raise OlrPgError(Code.LIVE_SOURCE_NEEDED, "source.kind is offline")
    text = query or (config.apply.table_query if config.apply else None)
    if text is None:
        raise OlrPgError(Code.NO_TABLES_NAMED, "there is no `apply` section, and no --query")
    from olr_pg.oracle.dictionary_queries import read_dictionary
    from olr_pg.oracle.inventory.inventory_queries import read_inventory
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.oracle.structure_queries import read_structure
    from olr_pg.oracle.table_list_query import run_table_list

    refuse_several(config.source, "exporting a dictionary")
    oracle = OracleDatabase(config.source)
    try:
        names = run_table_list(oracle, text)
        snapshot = read_dictionary(oracle, names, scn or None)
        snapshot = replace(snapshot, structure=read_structure(oracle, snapshot))
        inventory = read_inventory(oracle, owners_of(snapshot), snapshot.scn)
    finally:
        oracle.close()
    write_snapshot(snapshot, str(path))
    write_inventory(inventory, inventory_path(path))
    return snapshot
