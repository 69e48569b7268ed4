"""Joins the dictionaries of several containers (PDBs) of one database.

Two containers can have the same object numbers, schema names and transaction ids. So in a joined
dictionary each table has its container (`Table.con_id`). If several containers have tables in a
schema of the same name, a table's name is ``PDB.OWNER.NAME``, and ``PDB.OWNER`` is its owner in the
protocol, the target and the ledger. In all other cases, a table's name is ``OWNER.NAME``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.datatypes.binary_xml import NO_TOKENS
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import BaseModel

    from olr_pg.datatypes.binary_xml import XmlTokens
    from olr_pg.dictionary.model import Database, Snapshot, Table

_ALIKE: Final = ("charset", "ncharset", "true_charsets", "timezone")
"""Properties that affect the conversion of values. They must be equal in all containers."""

_SAME: Final = ("name", "big_endian")
"""Properties that are always equal in the containers of one database."""


def join_containers(
    snapshots: Sequence[Snapshot], known: Mapping[str, str] = MappingProxyType({})
) -> Snapshot:
    """Join the dictionaries of several containers. A single dictionary is returned unchanged.

    The dictionaries can have different SCNs: changes of a container before the SCN of its
    dictionary are ignored. The joined dictionary has the lowest SCN.

    Args:
        known: the names that schemas have already, from `names_given`. They are kept.

    Raises:
        OlrPgError: 3020, the dictionaries are not from different containers of one database; 3021,
            the containers differ in a property that affects the conversion of values.
    """
    if len(snapshots) == 1:
        return snapshots[0]
    first = snapshots[0].database
    for one in snapshots[1:]:
        _check_alike(first, one.database)
    _check_different([one.database for one in snapshots])
    clashing = _clashing_owners(snapshots)
    members = tuple(_member(one, clashing, known) for one in snapshots)
    names = tuple(one.database.con_name or "" for one in snapshots)
    return replace(
        snapshots[0],
        scn=min(one.scn for one in snapshots),
        database=replace(first, con_name=", ".join(names), containers=names),
        tables=tuple(table for one in members for table in one.tables),
        sys_rows=None,
        xml_tokens=_xml_tokens(snapshots),
        structure=_joined_structure([one.structure for one in members]),
        members=members,
    )


class ContainerNames(NamedTuple):
    """Converts the table names of one container to names that are unique in all containers.

    Attributes:
        con_id: the container's id; 0 if the dictionary has only one container, so that names stay
            unchanged.
        clashing: the owners whose names must include the container, because other containers have
            the same owners.
    """

    con_id: int
    container: str
    clashing: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> ContainerNames:
        """Return the names for a dictionary of one container, which can be a member of a joined
        dictionary.
        """
        tables, database = snapshot.tables, snapshot.database
        clashing = frozenset(table.source_owner for table in tables if table.container)
        return cls(tables[0].con_id if tables else 0, database.con_name or "", clashing)

    def owner(self, owner: str) -> str:
        """Return the unique name of an owner of this container."""
        return f"{self.container}.{owner}" if owner in self.clashing else owner

    def qualify(self, table: Table) -> Table:
        """Return a table of this container with its unique name."""
        if not self.con_id:
            return table
        owner = self.owner(table.owner)
        container = self.container if owner != table.owner else ""
        return replace(table, owner=owner, container=container, con_id=self.con_id)

    def spellings(self, owner: str) -> tuple[str, ...]:
        """Return the names that a user can write for an owner of this container: without the
        container, and with it.
        """
        return (owner, f"{self.container}.{owner}") if self.con_id else (owner,)


def unqualified(table: Table) -> Table:
    """Return a table with the name in its own container."""
    return replace(table, owner=table.source_owner, container="", con_id=0)


def _check_alike(first: Database, other: Database) -> None:
    for name in _SAME:
        if getattr(first, name) != getattr(other, name):
            raise OlrPgError(
                Code.CONTAINERS_NOT_TOGETHER,
                f"{first.con_name} belongs to {first.name}, but {other.con_name} belongs"
                f" to {other.name}: {name} is {getattr(first, name)} and"
                f" {getattr(other, name)}",
            )
    for name in _ALIKE:
        if getattr(first, name) != getattr(other, name):
            raise OlrPgError(
                Code.CONTAINERS_DIFFER,
                f"{name} is {getattr(first, name)} in {first.con_name}, but"
                f" {getattr(other, name)} in {other.con_name}",
            )


def _check_different(databases: Sequence[Database]) -> None:
    for what, values in (
        ("container", [one.con_id for one in databases]),
        ("name", [one.con_name for one in databases]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        unknown = [one for one in databases if not one.con_id or not one.con_name]
        if twice or unknown:
            raise OlrPgError(
                Code.CONTAINERS_NOT_TOGETHER,
                f"two dictionaries have the same {what}: {twice[0]}"
                if twice
                else f"a dictionary of {unknown[0].name} belongs to no container, or does not"
                " name its container",
            )


def _clashing_owners(snapshots: Iterable[Snapshot]) -> frozenset[str]:
    """Return the names of schemas that have tables in several containers."""
    counts = Counter(owner for one in snapshots for owner in {table.owner for table in one.tables})
    return frozenset(owner for owner, count in counts.items() if count > 1)


def names_given(joined: Snapshot) -> dict[str, str]:
    """Return, by schema, the name of the container whose tables have names without the container;
    empty ("") if all names of the schema's tables include the container.
    """
    given = dict[str, str]()
    for member in joined.members:
        for table in member.tables:
            if table.container:
                given.setdefault(table.source_owner, "")
            else:
                given[table.source_owner] = member.database.con_name or ""
    return given


def _member(snapshot: Snapshot, clashing: frozenset[str], known: Mapping[str, str]) -> Snapshot:
    database = snapshot.database
    clashing |= known.keys()
    clashing -= {owner for owner, container in known.items() if container == database.con_name}
    names = ContainerNames(database.con_id, database.con_name or "", clashing)
    return replace(
        snapshot,
        tables=tuple(map(names.qualify, snapshot.tables)),
        structure=_qualified_structure(snapshot.structure, names),
    )


def _qualified_structure(structure: Structure, names: ContainerNames) -> Structure:
    def of(part: BaseModel) -> BaseModel:
        owners = {name: getattr(part, name) for name in _OWNERS if name in type(part).model_fields}
        return part.model_copy(update={name: names.owner(one) for name, one in owners.items()})

    return structure.model_copy(
        update={kind: tuple(map(of, getattr(structure, kind))) for kind in Structure.model_fields}
    )


_OWNERS: Final = ("owner", "parent_owner")
"""The fields of a structure's parts that contain schema names."""


def _joined_structure(structures: Sequence[Structure]) -> Structure:
    return NO_STRUCTURE.model_copy(
        update={
            kind: tuple(part for one in structures for part in getattr(one, kind))
            for kind in Structure.model_fields
        }
    )


def _xml_tokens(snapshots: Sequence[Snapshot]) -> XmlTokens:
    """Return the tokens of binary XML. All containers with binary XML must have the same tokens."""
    known = [one for one in snapshots if one.xml_tokens != NO_TOKENS]
    if not known:
        return NO_TOKENS
    using = [one for one in snapshots if any(map(_has_binary_xml, one.tables))]
    for one in using:
        if one.xml_tokens != known[0].xml_tokens:
            raise OlrPgError(
                Code.CONTAINERS_DIFFER,
                f"the binary XML tokens in {known[0].database.con_name} differ from those"
                f" in {one.database.con_name}",
            )
    return known[0].xml_tokens


def _has_binary_xml(table: Table) -> bool:
    return any(column.xml and column.type_code == OracleType.BLOB for column in table.columns)
