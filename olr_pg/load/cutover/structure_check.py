"""Compares the keys, checks, indexes, triggers and sequences of the source with those of the
target.

The converted schema (`schema.conversion`) lists the required objects, and each statement has a
query for its object in the target (`schema.presence`). A missing object must either be created (by
`olr-pg schema apply` or by hand) or be accepted by name.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.applier.statements.target_plan import target_name
from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.snapshot_file import inventory_path
from olr_pg.schema.presence import has_index
from olr_pg.schema.relations import Relations
from olr_pg.schema.source_inventory import read_schemas
from olr_pg.schema.statement import Statement
from olr_pg.schema.translating import quoted
from olr_pg.schema.trial import is_present

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.config.model import Config
    from olr_pg.dictionary.inventory import Inventory
    from olr_pg.schema.source_inventory import SourceSchemas

_KINDS: Final = ("unique key", "check", "index", "foreign key", "sequence", "trigger")


class Lacking(NamedTuple):
    """An object of the source that is missing in the target.

    Attributes:
        name: the kind and the name of the object in the source, ``foreign key
            SHOP.ORDERS.ORDERS_FK``.
        reason: the reason why `olr-pg schema apply` cannot create the object; empty if it can.
    """

    name: str
    reason: str = ""

    @property
    def words(self) -> str:
        """Return the name and the reason as text."""
        return f"{self.name} ({self.reason})" if self.reason else self.name


def lacking_structure(
    connection: Connection[Any], config: Config, target: str, dictionary: Sequence[Path] = ()
) -> list[Lacking]:
    """Return the objects of the replicated tables' structure that are missing in the target.

    Objects that are disabled or unusable in the source are not required.

    Args:
        target: connection string.
        dictionary: the final export of an offline source's dictionary, with the inventory beside
            it.

    Raises:
        OlrPgError: 3260, the inventory beside the dictionary is missing.
    """
    found = dict[str, Lacking]()
    for schemas in read_schemas(_as_of_the_end(config, dictionary)):
        schemas = schemas._replace(inventory=_wanted(schemas.inventory, schemas.replicated))
        statements = [
            *_primary_keys(config, schemas, target),
            *schemas.statements(config, target),
        ]
        owners = {name.partition(".")[0] for name in schemas.replicated}
        for one in statements:
            kind = one.what if one.kind == "by hand" else one.kind
            is_wanted = kind in _KINDS or kind == "primary key"
            if one.kind == "sequence" and one.name.partition(".")[0] not in owners:
                continue
            if is_wanted and not is_present(connection, one):
                name = f"{kind} {schemas.told(one.name)}"
                found[name] = Lacking(name, one.reason)
    return list(found.values())


def accepted(lacking: Sequence[Lacking], patterns: Sequence[str]) -> list[Lacking]:
    """Return the missing objects that are accepted.

    Args:
        patterns: names as in `Lacking.name`, with wildcards ``*`` and ``?``.
    """
    return [one for one in lacking if any(fnmatchcase(one.name, each) for each in patterns)]


def _as_of_the_end(config: Config, dictionary: Sequence[Path]) -> Config:
    source = config.source
    if not isinstance(source, OfflineSource) or not dictionary:
        return config
    if not all(inventory_path(path).exists() for path in dictionary):
        return config
    later = source.model_copy(update={"dictionary": tuple(dictionary)})
    return config.model_copy(update={"source": later})


def _wanted(inventory: Inventory, replicated: frozenset[str]) -> Inventory:
    """Remove objects of tables that are not replicated, and objects that are disabled or unusable
    in the source.
    """
    return inventory.model_copy(
        update={
            "constraints": tuple(
                one
                for one in inventory.constraints
                if one.enabled and f"{one.owner}.{one.table}" in replicated
            ),
            "indexes": tuple(
                one
                for one in inventory.indexes
                if one.usable and f"{one.table_owner}.{one.table}" in replicated
            ),
            "triggers": tuple(
                one
                for one in inventory.triggers
                if one.enabled and f"{one.table_owner}.{one.table}" in replicated
            ),
        }
    )


def _primary_keys(config: Config, schemas: SourceSchemas, target: str) -> Iterator[Statement]:
    """Yield statements for the primary keys, which the conversion includes in CREATE TABLE."""
    settings = schemas.settings(config, target)
    relations = Relations(schemas.inventory, settings)
    for one in schemas.inventory.constraints:
        relation = relations.find(one.owner, one.table)
        if one.kind != "primary key" or relation is None:
            continue
        schema, name = target_name(settings, one.owner, one.table)
        columns = [relation.columns[c].name for c in one.columns if c in relation.columns]
        yield Statement(
            "primary key",
            f"{one.owner}.{one.table}.{one.name}",
            "",
            "an existing table is not changed",
            present=has_index(f"{quoted(schema)}.{quoted(name)}", columns, unique=True),
        )
