"""Builds the SQL for the target that repeats DDL of the source on indexes, keys, checks and virtual
columns.

`olr-pg schema` builds the same statements from an inventory (`conversion`). Here the inventory
contains only the table of the DDL, and the table to which a foreign key refers.

The statements hold strong locks only for a moment, so the applier hardly waits for them. An index
is created with ``CREATE INDEX CONCURRENTLY``. A key is created from an index that was created in
this way. A check is created without validation, and validated afterwards. Foreign keys stay ``NOT
VALID``, as after an initial load; the cut-over validates them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.applier.settings import TargetSql
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.dictionary.inventory import (
    Constraint,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.evolution import Step
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.schema.statement import Statement

_NATIONAL: Final = 2
"""The value of COL$.CHARSETFORM for the national character set."""

_INDEX: Final = "INDEX "
_NOT_VALID: Final = " NOT VALID"


def step_sql(settings: ApplierSettings, definition: Table, step: Step) -> TargetSql:
    """Return the SQL for the object that a step creates: an index, a constraint, or a virtual
    column.

    Args:
        definition: the definition of the table after the step.
    """
    if step.kind is DdlKind.ADD_PARTITION:
        return _partition_values(settings, definition, step)
    # Import the parser of Oracle's SQL only when it is needed.
    from olr_pg.schema.conversion import convert

    structure = step.structure
    inventory = _inventory(definition, step)
    if isinstance(structure, Constraint) and structure.kind == "primary key":
        return _key(settings, inventory, structure, "PRIMARY KEY", "")
    name = _statement_name(definition, step)
    found = [one for one in convert(inventory, settings) if one.name == name]
    made = next((one for one in found if one.kind not in ("table", "comment", "default")), None)
    if made is None:
        return TargetSql("", reason="PostgreSQL has no equivalent")
    if made.reason:
        return TargetSql("", reason=made.reason)
    if isinstance(structure, InventoryIndex):
        return TargetSql(_index_name(made), (_concurrently(made.sql),), made.present)
    if structure is None:
        return TargetSql("", (made.sql,), made.present)
    if structure.kind == "unique":
        later = made.sql.rpartition(")")[2]
        return _key(settings, inventory, structure, "UNIQUE", later)
    if structure.kind == "check":
        table, _, rest = made.sql.partition(" ADD CONSTRAINT ")
        quoted_name = rest.split(" CHECK ", 1)[0]
        validate = f"{table} VALIDATE CONSTRAINT {quoted_name}"
        present = made.present.replace(" AND conname", " AND convalidated AND conname")
        return TargetSql(_bare(quoted_name), (made.sql + _NOT_VALID, validate), present)
    quoted_name = made.sql.partition(" ADD CONSTRAINT ")[2].split(" FOREIGN KEY ", 1)[0]
    return TargetSql(_bare(quoted_name), (made.sql,), made.present)


def _partition_values(settings: ApplierSettings, definition: Table, step: Step) -> TargetSql:
    """Return the bound or the values of a new partition as the only statement."""
    from olr_pg.schema.partition_statements import bound_values
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.translating import UntranslatableError

    relations = Relations(_inventory(definition, step), settings)
    try:
        values = bound_values(step.text, relations, definition.owner)
    except UntranslatableError as error:
        return TargetSql("", reason=str(error))
    return TargetSql("", (values,))


def _key(
    settings: ApplierSettings,
    inventory: Inventory,
    key: Constraint,
    what: str,
    later: str,
) -> TargetSql:
    """Return the SQL that creates a unique index concurrently, and then makes it a key, so that
    other sessions hardly wait.
    """
    from olr_pg.schema.presence import has_key
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.translating import quoted

    relations = Relations(inventory, settings)
    relation = relations.find(key.owner, key.table)
    assert relation is not None
    lacking = [one for one in key.columns if one not in relation.columns]
    if lacking or not key.columns:
        return TargetSql("", reason=f"the target lacks columns of it: {', '.join(lacking)}")
    target = f"{quoted(relation.schema)}.{quoted(relation.name)}"
    names = [relation.columns[one].name for one in key.columns]
    suffix = "pkey" if what == "PRIMARY KEY" else "key"
    name = relations.free_name(relation.schema, relation.name, relations.name(key.name), suffix)
    columns = ", ".join(map(quoted, names))
    made = f"CREATE UNIQUE INDEX CONCURRENTLY {quoted(name)} ON {target} ({columns})"
    added = f"ALTER TABLE {target} ADD CONSTRAINT {quoted(name)} {what} USING INDEX {quoted(name)}"
    own = f"{quoted(relation.schema)}.{quoted(name)}"
    return TargetSql(name, (made, added + later), has_key(target, names, own))


def _concurrently(statement: str) -> str:
    before, _, rest = statement.partition(_INDEX)
    return f"{before}{_INDEX}CONCURRENTLY {rest}"


def _index_name(made: Statement) -> str:
    return _bare(made.sql.partition(_INDEX)[2].split(" ON ", 1)[0])


def _bare(quoted_name: str) -> str:
    return quoted_name.strip().strip('"').replace('""', '"')


def _statement_name(definition: Table, step: Step) -> str:
    """Return the name that `conversion` gives to the statement of a step."""
    structure = step.structure
    if isinstance(structure, InventoryIndex):
        return structure.full_name
    if isinstance(structure, Constraint):
        return f"{structure.owner}.{structure.table}.{structure.name}"
    assert step.after is not None
    return f"{definition.full_name}.{step.after.name}"


def _inventory(definition: Table, step: Step) -> Inventory:
    """Return an inventory of the table, the object that the step creates, and the table that this
    object references.
    """
    columns = [_column(one, step) for one in definition.columns]
    table = InventoryTable(owner=definition.owner, name=definition.name, columns=tuple(columns))
    tables = [table]
    structure = step.structure
    if isinstance(structure, InventoryIndex):
        return Inventory(tables=(table,), indexes=(structure,))
    if not isinstance(structure, Constraint):
        return Inventory(tables=(table,))
    own = structure.owner, structure.table
    if structure.parent_table and (structure.parent_owner, structure.parent_table) != own:
        tables.append(_parent(structure, columns))
    return Inventory(tables=tuple(tables), constraints=(structure,))


def _parent(key: Constraint, columns: Sequence[InventoryColumn]) -> InventoryTable:
    """Return the table to which a foreign key refers. The referenced columns of this table have the
    types of the key's own columns.
    """
    by_name = {one.name: one for one in columns}
    found = [
        replace(by_name[own], name=other)
        for own, other in zip(key.columns, key.parent_columns, strict=True)
        if own in by_name
    ]
    return InventoryTable(owner=key.parent_owner, name=key.parent_table, columns=tuple(found))


def _column(column: Column, step: Step) -> InventoryColumn:
    """Return a column in the form in which Oracle's dictionary views describe it."""
    name = _data_type(column)
    is_text = column.charset_form is not None and column.lob is None
    own = step.after is not None and step.after.name == column.name and step.structure is None
    return InventoryColumn(
        name=column.name,
        data_type=name,
        type_owner="PUBLIC" if column.xml else "",
        length=column.length,
        char_length=(column.char_length or column.length) if is_text else 0,
        precision=column.precision,
        scale=column.scale,
        nullable=column.nullable,
        default=step.text if own and column.virtual else "",
        virtual=column.virtual,
        hidden=column.hidden,
    )


def _data_type(column: Column) -> str:
    if column.xml:
        return "XMLTYPE"
    try:
        title = OracleType(column.type_code).title
    except ValueError:
        return f"TYPE {column.type_code}"
    national = column.charset_form == _NATIONAL and title in ("VARCHAR2", "CHAR", "CLOB")
    return f"N{title}" if national else title
