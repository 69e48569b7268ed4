"""``olr-pg dictionary export``: writes the dictionary of a live source to a file for an offline
source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.containers import join_containers
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.snapshot_file import (
    inventory_path,
    owners_of,
    write_inventory,
    write_snapshot,
)
from olr_pg.dictionary.true_charsets import with_true_charsets
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.oracle.source_containers import ContainerDatabases


class Exported(NamedTuple):
    """A dictionary that was written."""

    snapshot: Snapshot
    path: Path


def export_dictionary(config: Config, query: str | None, scn: int, path: Path) -> list[Exported]:
    """Read the dictionary of the tables and write it to `path`. Write the inventory to a file
    beside the snapshot.

    If there are several containers, each has its own files, such as ``x.PDB1.json`` for ``x.json``;
    all are as of one SCN.

    Args:
        query: a TableList query; None for `apply.tables` of the configuration.
        scn: the SCN to read as of; 0 for the current SCN.

    Raises:
        OlrPgError: 1093 the source is not a live database, 1094 no tables are selected, 3012 a
            table does not exist, other 3xxx errors of the tables or between containers, 7xxx errors
            of the database.
    """
    if isinstance(config.source, OfflineSource):
        raise OlrPgError(Code.LIVE_SOURCE_NEEDED, "source.kind is offline")
    text = query or (config.apply.table_query if config.apply else None)
    if text is None:
        raise OlrPgError(
            Code.NO_TABLES_NAMED, "the configuration has no `apply` section, and --query is missing"
        )
    from olr_pg.oracle.inventory.inventory_queries import read_inventory
    from olr_pg.oracle.source_containers import ContainerDatabases

    containers = ContainerDatabases(config.source)
    try:
        names = containers.run_table_list(text)
        sets = tuple(config.source.character_sets.items())
        snapshots = [with_true_charsets(one, sets) for one in _read_as_of(containers, names, scn)]
        joined = join_containers(snapshots)  # raises an error if they do not fit together
        find_tables(joined, names, with_refused=True)  # a missing table is an error
        inventories = [
            read_inventory(oracle, owners_of(snapshot), snapshot.scn)
            for oracle, snapshot in zip(containers.databases.values(), snapshots, strict=True)
        ]
    finally:
        containers.close()
    done: list[Exported] = []
    files = container_files(path, containers.names)
    for own, snapshot, inventory in zip(files, snapshots, inventories, strict=True):
        write_snapshot(snapshot, str(own))
        write_inventory(inventory, inventory_path(own))
        done.append(Exported(snapshot, own))
    return done


def _read_as_of(
    containers: ContainerDatabases, names: Sequence[tuple[str, str]], scn: int
) -> list[Snapshot]:
    try:
        return containers.read_dictionaries(names, scn or None)
    except OlrPgError as error:
        if not scn or error.code not in (Code.ORACLE_SNAPSHOT_TOO_OLD, Code.SCN_NOT_REACHED):
            raise
        action = (
            "name an SCN that is not above V$DATABASE.CURRENT_SCN, and not older than"
            " UNDO_RETENTION; or omit --scn to export the dictionary as of now"
        )
        raise OlrPgError(error.code, error.detail, action=action, **error.where) from error


def container_files(path: Path, containers: Sequence[str]) -> list[Path]:
    """Return the file of each container's dictionary; `path` itself if there is one."""
    return [path.with_suffix(f".{name}{path.suffix}") for name in containers] or [path]
