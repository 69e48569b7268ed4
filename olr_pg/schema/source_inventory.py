"""Reads the inventory of the source's schemas: from a live source, or from files beside the
dictionary snapshots.

Each container (PDB) is converted separately, with the names that its schemas have there. So a
schema name in SQL means the schema of that container. If schemas of several containers have the
same name, they get different names in the target; `SourceSchemas.settings` contains these names.
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.appliance.appliance import settings_for
from olr_pg.appliance.container_names import source_dictionary
from olr_pg.applier.statements.target_plan import check_names, target_schema
from olr_pg.config.source_section import OfflineSource
from olr_pg.config.table_patterns import LEDGER
from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.snapshot_file import inventory_path, owners_of, read_inventory_file
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.schema.conversion import convert
from olr_pg.schema.statement import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.inventory import Inventory
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.schema.statement import Statement


class SourceSchemas(NamedTuple):
    """The inventory of the schemas of a source, or of one of its containers.

    Attributes:
        container: the name of the container, if the source has several; otherwise empty.
        inventory: the objects of the schemas, with their names in the container.
        snapshot: the dictionary snapshot of the container.
        replicated: the replicated tables of the container, as ``OWNER.NAME``.
        names: converts names of the container's schemas to names that are unique among all
            containers.
        joined: the dictionary snapshot of all containers.
    """

    container: str
    inventory: Inventory
    snapshot: Snapshot
    replicated: frozenset[str]
    names: ContainerNames
    joined: Snapshot

    def settings(self, config: Config, target: str) -> ApplierSettings:
        """Return the applier's settings with the names of all objects in the target."""
        settings = settings_for(config, self.joined, target)
        if not self.container:
            return settings
        owners = dict.fromkeys((*self.inventory.owners, *owners_of(self.snapshot)))
        called = {owner: self.names.owner(owner) for owner in owners}
        tables = {
            f"{owner}.{name.removeprefix(f'{known}.')}": target
            for owner, known in called.items()
            for name, target in settings.table_names.items()
            if name.startswith(f"{known}.") and "." not in name.removeprefix(f"{known}.")
        }
        return replace(
            settings,
            schema_names={one: target_schema(settings, known) for one, known in called.items()},
            table_names=tables,
            choices=replace(settings.choices, owners=called),
            containers=(),
        )

    def statements(self, config: Config, target: str = "") -> list[Statement]:
        """Return the statements that create the objects in the target, in an order in which they
        can run.
        """
        # Syntax trees contain reference cycles, so the garbage collector runs often. Exclude the
        # inventory from its scans.
        gc.freeze()
        try:
            return convert(self.inventory, self.settings(config, target))
        finally:
            gc.unfreeze()

    def told(self, name: str) -> str:
        """Return an object's name, with its container if there are several, for lists of objects of
        all containers.
        """
        return f"{self.container}.{name}" if self.container else name


def read_schemas(config: Config, owners: Sequence[str] = ()) -> list[SourceSchemas]:
    """Read the inventory of the source's schemas, one container after the other.

    Args:
        owners: the schemas to read, of a live source; empty for the schemas in `apply.tables`.

    Raises:
        OlrPgError: 1090 the source is offline, and `owners` are named, 1091 `apply` is missing,
            3019 a schema of `owners` has no objects, other 3xxx errors of the dictionary, 5016 two
            tables map to the same table in the target, 7xxx errors of the source database.
    """
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "the configuration has no `apply` section")
    query = config.apply.table_query
    if isinstance(config.source, OfflineSource):
        if owners:
            raise OlrPgError(
                Code.NOT_SUPPORTED,
                "--owner is only for a live source; the inventory beside a dictionary contains"
                " the schemas of its tables",
                action="omit --owner",
            )
        paths = config.source.dictionary
        snapshots = [load_snapshot(str(path)) for path in paths]
        inventories = [_without_way_back(read_inventory_file(inventory_path(p))) for p in paths]
        joined = source_dictionary(config, snapshots, keep=False)
        tables = query_tables(joined, query, with_refused=True)
        return _by_container(config, snapshots, inventories, joined, tables)
    return _read_live(config, config.source, query, owners)


def _read_live(
    config: Config, source: OracleSource, query: str, owners: Sequence[str]
) -> list[SourceSchemas]:
    from olr_pg.oracle.inventory.inventory_queries import read_inventory
    from olr_pg.oracle.source_containers import ContainerDatabases

    containers = ContainerDatabases(source)
    try:
        names = containers.run_table_list(query)
        snapshots = containers.read_dictionaries(names, structure=False)
        inventories = [
            _without_way_back(read_inventory(oracle, owners or sorted(owners_of(one)), one.scn))
            for oracle, one in zip(containers.databases.values(), snapshots, strict=True)
        ]
    finally:
        containers.close()
    found = {one.owner for own in inventories for one in (*own.objects, *own.tables)}
    for owner in owners:
        if owner not in found:
            raise OlrPgError(Code.SCHEMA_WITHOUT_OBJECTS, owner)
    if not containers.names:
        snapshot = source_dictionary(config, snapshots, keep=False)
        find_tables(snapshot, names, with_refused=True)  # a missing table is an error
        replicated = frozenset(f"{owner}.{name}" for owner, name in names)
        known = ContainerNames.of(snapshot)
        return [SourceSchemas("", inventories[0], snapshot, replicated, known, snapshot)]
    joined = source_dictionary(config, snapshots, keep=False)
    tables = find_tables(joined, names, with_refused=True)
    return _by_container(config, snapshots, inventories, joined, tables)


def _without_way_back(inventory: Inventory) -> Inventory:
    """Return an inventory without the tables of the way back. These tables are in a replicated
    schema if the owner of the schema is the account of the way back.
    """
    return inventory.model_copy(
        update={
            "objects": tuple(o for o in inventory.objects if not o.name.startswith(LEDGER)),
            "tables": tuple(t for t in inventory.tables if not t.name.startswith(LEDGER)),
            "constraints": tuple(
                c for c in inventory.constraints if not c.table.startswith(LEDGER)
            ),
            "indexes": tuple(i for i in inventory.indexes if not i.table.startswith(LEDGER)),
        }
    )


def _by_container(
    config: Config,
    snapshots: Sequence[Snapshot],
    inventories: Sequence[Inventory],
    joined: Snapshot,
    tables: Sequence[Table],
) -> list[SourceSchemas]:
    check_names(settings_for(config, joined, ""), tables)
    found: list[SourceSchemas] = []
    for at, (snapshot, inventory) in enumerate(zip(snapshots, inventories, strict=True)):
        names = _names(joined.containers[at], inventories)
        own = frozenset(
            f"{table.source_owner}.{table.name}" for table in tables if table.con_id == names.con_id
        )
        container = names.container if joined.members else ""
        found.append(SourceSchemas(container, inventory, snapshot, own, names, joined))
    return found


def _names(member: Snapshot, inventories: Iterable[Inventory]) -> ContainerNames:
    """Return the names of a container's schemas that are unique among all containers. The result
    includes schemas without replicated tables.
    """
    names = ContainerNames.of(member)
    counts = Counter(owner for one in inventories for owner in one.owners)
    plain = {table.owner for table in member.tables if not table.container}
    several = {owner for owner, count in counts.items() if count > 1}
    return names._replace(clashing=names.clashing | (several - plain))


def all_statements(
    config: Config, schemas: Sequence[SourceSchemas], target: str = ""
) -> list[Statement]:
    """Return the statements for the schemas of all containers. If there are several containers,
    names of objects include the container.
    """
    found = [
        statement._replace(name=one.told(statement.name))
        for one in schemas
        for statement in one.statements(config, target)
    ]
    made: dict[str, Statement] = {}
    for statement in found:
        if statement.kind == "schema":
            made.setdefault(statement.sql, statement)
    once = [one for one in found if one.kind != "schema" or made[one.sql] is one]
    return sorted(once, key=lambda one: KINDS.index(one.kind))
