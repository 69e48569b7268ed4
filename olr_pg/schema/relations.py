"""Resolves names in Oracle's SQL to the tables, views, columns and sequences of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.statements.target_plan import target_name
from olr_pg.schema.relation_columns import RelationColumn, relation_column
from olr_pg.schema.value_kinds import column_fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.inventory import (
        Constraint,
        Inventory,
        InventoryColumn,
        InventoryTable,
        InventoryView,
    )


_NAME_BYTES: Final = 63
_OF_QUERY: Final = "materialized view"
"""The value of `kind` for tables in the inventory that are materialized views."""


class Relation(NamedTuple):
    """A table or view of the source.

    Attributes:
        schema, name: schema and name of the relation in the target.
        columns: the columns of the relation, by their names in the source.
    """

    owner: str
    source: str
    schema: str
    name: str
    columns: Mapping[str, RelationColumn]


class Relations:
    """Resolves names in the source's SQL to objects of the target.

    Attributes:
        settings: the settings of the applier, which contain the names and types in the target.
    """

    def __init__(self, inventory: Inventory, settings: ApplierSettings) -> None:
        self.settings = settings
        self._found: dict[tuple[str, str], Relation] = {}
        relations: tuple[InventoryTable | InventoryView, ...] = (
            *inventory.tables,
            *inventory.views,
        )
        stored = {(one.owner, one.name) for one in inventory.tables if one.kind != _OF_QUERY}
        for one in relations:
            is_table = (one.owner, one.name) in stored
            self._found[one.owner, one.name] = self._relation(
                one.owner, one.name, one.columns, is_table=is_table
            )
        for view in inventory.materialized_views:
            self._found.setdefault(
                (view.owner, view.name), self._relation(view.owner, view.name, ())
            )
        self._materialized = {(one.owner, one.name) for one in inventory.materialized_views}
        self._tables = {(one.owner, one.name): one for one in inventory.tables}
        self._constraints: dict[tuple[str, str], list[Constraint]] = {}
        for key in inventory.constraints:
            self._constraints.setdefault((key.owner, key.table), []).append(key)
        self._sequences = {(one.owner, one.name) for one in inventory.sequences}
        self._synonyms = {
            (one.owner, one.name): (one.target_owner, one.target, one.link)
            for one in inventory.synonyms
        }
        self._taken = {(one.schema, one.name) for one in self._found.values()}
        self._taken |= {target_name(settings, *one) for one in self._sequences}
        self._free: dict[tuple[str, str, str, str], str] = {}
        self._code = {(one.owner, one.name) for one in inventory.sources}

    def _relation(
        self,
        owner: str,
        name: str,
        columns: Iterable[InventoryColumn],
        *,
        is_table: bool = False,
    ) -> Relation:
        """Return a relation with the names of its columns in the target. A table's columns also get
        their types in the target; a view's query determines the types of a view.
        """
        visible = [column for column in columns if not column.hidden or column.invisible]
        table = f"{owner}.{name}"
        names = self.settings.choices.column_names(table, [column.name for column in visible])
        found = {
            column.name: relation_column(self.settings, table, column, names[column.name])
            if is_table
            else RelationColumn(names[column.name], column_fact(column))
            for column in visible
        }
        return Relation(owner, name, *target_name(self.settings, owner, name), found)

    def name(self, name: str, *, column: bool = False) -> str:
        """Return the name in the target for a name in the source that no mapping names
        explicitly.
        """
        return self.settings.choices.name(name, column=column)

    def free_name(self, schema: str, of: str, name: str, suffix: str) -> str:
        """Return an unused name for an index, the index of a key, or a partition.

        Unlike in Oracle, this name must differ from the names of tables, views and sequences in the
        schema. A name has at most 63 bytes. The same arguments always return the same name.

        Args:
            of: the table to which the object belongs.
            suffix: a text that is appended if the name is already used.
        """
        key = (schema, of, name, suffix)
        if key not in self._free:
            found, number = _cut(name, ""), 0
            while (schema, found) in self._taken:
                number += 1
                found = _cut(name, f"_{suffix}" + (str(number) if number > 1 else ""))
            self._taken.add((schema, found))
            self._free[key] = found
        return self._free[key]

    def table(self, owner: str, name: str) -> InventoryTable | None:
        """Return the source's table with exactly this owner and name; None if there is none."""
        return self._tables.get((owner, name))

    def constraints_of(self, owner: str, table: str) -> Sequence[Constraint]:
        """Return the constraints of a table."""
        return self._constraints.get((owner, table), ())

    def find(self, owner: str, name: str) -> Relation | None:
        """Return the table or view to which a name refers, also through synonyms; None if there is
        none.
        """
        return self._found.get(self._behind(owner, name))

    def sequence(self, owner: str, name: str) -> tuple[str, str] | None:
        """Return (schema, name) of a sequence in the target; None if there is no such sequence."""
        key = self._behind(owner, name)
        return target_name(self.settings, *key) if key in self._sequences else None

    def context(self, name: str) -> str:
        """Return the prefix of the PostgreSQL settings that replace an application context; empty
        if no context has that name.
        """
        return self.settings.choices.contexts.get(name, "")

    def code_name(self, owner: str, name: str) -> tuple[str, str]:
        """Return (schema, name) of a function or procedure in the target."""
        return target_name(self.settings, owner, name)

    def has_schema(self, name: str) -> bool:
        """Return whether tables, views or sequences are created in a schema of the target."""
        return any(schema == name for schema, _ in self._taken)

    def is_stored_query(self, owner: str, name: str) -> bool:
        """Return whether a relation is a materialized view."""
        found = self._tables.get((owner, name))
        return (owner, name) in self._materialized or (
            found is not None and found.kind == _OF_QUERY
        )

    def is_code(self, owner: str, name: str) -> bool:
        """Return whether a name refers to a function or package of the source."""
        return self._behind(owner, name) in self._code

    def _behind(self, owner: str, name: str) -> tuple[str, str]:
        """Return the owner and name to which a name refers. Synonyms are resolved: first the
        owner's synonyms, then public synonyms.
        """
        key = (owner, name)
        for _ in range(len(self._synonyms) + 1):
            if key in self._found or key in self._sequences:
                return key
            target = self._synonyms.get(key) or self._synonyms.get(("PUBLIC", key[1]))
            if target is None or target[2]:
                return key
            key = target[0], target[1]
        return key


def _cut(name: str, end: str) -> str:
    """Append the suffix `end` to the name. Truncate the name first, so that the result is not
    longer than PostgreSQL allows.
    """
    kept = name.encode()[: _NAME_BYTES - len(end)].decode(errors="ignore")
    return kept + end
