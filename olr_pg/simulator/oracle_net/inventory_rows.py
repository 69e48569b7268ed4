"""Makes rows of the dictionary's views from an inventory.

This is the inverse of `olr_pg.oracle.inventory.inventory_queries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.simulator.oracle_net.catalogue import INVENTORY_VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.inventory import (
        Constraint,
        Inventory,
        InventoryColumn,
        InventoryIndex,
        InventoryTable,
        InventoryView,
        NamedObject,
    )
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

_CONSTRAINT_TYPES: Final = {"primary key": "P", "unique": "U", "foreign key": "R", "check": "C"}
_WHOLE_ROWS: Final = {
    "materialized_views": "DBA_MVIEWS",
    "synonyms": "DBA_SYNONYMS",
    "triggers": "DBA_TRIGGERS",
    "types": "DBA_TYPES",
    "sequences": "DBA_SEQUENCES",
    "jobs": "DBA_SCHEDULER_JOBS",
    "links": "DBA_DB_LINKS",
    "grants": "DBA_TAB_PRIVS",
}
"""Kinds of objects whose row in a single view contains the whole object."""

_NAMED: Final = {
    "COLUMN PRIVILEGE": (
        *("DBA_COL_PRIVS", "OWNER", "TABLE_NAME", "COLUMN_NAME", "PRIVILEGE", "GRANTEE"),
    ),
    "VPD POLICY": (
        *("DBA_POLICIES", "OBJECT_OWNER", "OBJECT_NAME", "POLICY_NAME", "PF_OWNER", "FUNCTION"),
    ),
    "REDACTION POLICY": ("REDACTION_POLICIES", "OBJECT_OWNER", "OBJECT_NAME", "POLICY_NAME"),
    "APPLICATION CONTEXT": ("DBA_CONTEXT", "SCHEMA", "NAMESPACE", "PACKAGE"),
    "AUDIT POLICY": ("DBA_AUDIT_POLICIES", "OBJECT_SCHEMA", "OBJECT_NAME", "POLICY_NAME"),
}
"""Views with objects of other kinds, by kind, with their columns for owner, name and detail."""


def insert_inventory(catalogue: Catalogue, inventory: Inventory) -> None:
    """Insert all objects; rows of tables that already exist are completed."""
    _Writer(catalogue, inventory).write()


def _told(view: str, one: object) -> dict[str, Any]:
    """Return the values of a view's columns for an object; an empty text is NULL."""
    row = dict[str, Any]()
    for told in INVENTORY_VIEWS[view].split():
        column, _, field = told.partition("=")
        name, _, words = field.partition(":")
        if name:
            value = getattr(one, name)
            row[column] = words.split("/")[not value] if words else None if value == "" else value
    return row


class _Writer:
    def __init__(self, catalogue: Catalogue, inventory: Inventory) -> None:
        self._catalogue = catalogue
        self._inventory = inventory
        self._names = {
            (one.owner, one.table, one.columns): one.name
            for one in inventory.constraints
            if one.kind in ("primary key", "unique")
        }

    def write(self) -> None:
        found = self._inventory
        for schema_object in found.objects:
            name, _, part = schema_object.name.partition(".")
            self._one("DBA_OBJECTS", schema_object, OBJECT_NAME=name, SUBOBJECT_NAME=part or None)
        for table in found.tables:
            self._table(table)
        for constraint in found.constraints:
            self._constraint(constraint)
        for index in found.indexes:
            self._index(index)
        for view in found.views:
            self._view(view)
        for field, name in _WHOLE_ROWS.items():
            for one in getattr(found, field):
                self._one(name, one)
        for source in found.sources:
            for number, line in enumerate(source.text.splitlines(keepends=True), 1):
                self._one("DBA_SOURCE", source, LINE=number, TEXT=line)
        for trigger in found.triggers:
            if trigger.head:
                text = f"{trigger.head}{trigger.body}"
                row = {"OWNER": trigger.owner, "NAME": trigger.name, "TYPE": "TRIGGER"}
                self._catalogue.put("DBA_SOURCE", **row, LINE=1, TEXT=text)
        for named in found.named:
            self._named(named)
        for other in found.others:
            for number in range(other.objects):
                of = {"OWNER": other.owner, "OBJECT_TYPE": "TABLE", "STATUS": "VALID"}
                self._catalogue.put("DBA_OBJECTS", **of, OBJECT_NAME=f"T{number}")

    def _named(self, one: NamedObject) -> None:
        """Add a named object; the words of its detail are the values of further columns."""
        view, owner, *columns = _NAMED[one.kind]
        row = dict(zip(columns, (one.name, *one.detail.split()), strict=False))
        self._catalogue.put(view, **{owner: one.owner}, **row)

    def _one(self, view: str, one: object, **others: Any) -> None:
        """Add the row of an object, with `others` as further values."""
        self._catalogue.insert(view, [_told(view, one) | others])

    def _put(self, view: str, key: dict[str, str], row: dict[str, Any]) -> None:
        """Update the row with this key, or insert it."""
        changes = ", ".join(f'"{name}" = ?' for name in row)
        where = " AND ".join(f'"{name}" = ?' for name in key)
        statement = f'UPDATE SYS."{view}" SET {changes} WHERE {where}'  # noqa: S608
        if not self._catalogue.update(statement, *row.values(), *key.values()):
            self._catalogue.insert(view, [key | row])

    def _table(self, table: InventoryTable) -> None:
        own = {"OWNER": table.owner, "TABLE_NAME": table.name}
        row = {
            "IOT_TYPE": "IOT" if table.kind == "index-organised table" else None,
            "TEMPORARY": "Y" if table.kind == "temporary table" else "N",
            "NESTED": "YES" if table.kind == "nested table" else "NO",
            "CLUSTER_NAME": "CLUSTERED" if table.kind == "clustered table" else None,
        }
        self._put("DBA_TABLES", own, row | _told("DBA_TABLES", table))
        if table.kind == "external table":
            self._one("DBA_EXTERNAL_TABLES", table)
        if table.kind == "materialized view log":
            self._one("DBA_MVIEW_LOGS", table)
        self._columns(own, table.columns)
        self._one("DBA_TAB_COMMENTS", table)
        for group in table.logging:
            self._one("DBA_LOG_GROUPS", table, LOG_GROUP_TYPE=group)
        if table.bytes:
            of_table = {"SEGMENT_NAME": table.name, "SEGMENT_TYPE": "TABLE"}
            self._one("DBA_SEGMENTS", table, **of_table, BYTES=table.bytes)
        if table.lob_bytes:
            name = f"SYS_LOB_{table.name}$$"
            lob = next(c.name for c in table.columns if c.data_type in ("CLOB", "BLOB", "NCLOB"))
            self._put("DBA_LOBS", own | {"COLUMN_NAME": lob}, {"SEGMENT_NAME": name})
            of_lob = {"SEGMENT_NAME": name, "SEGMENT_TYPE": "LOBSEGMENT"}
            self._one("DBA_SEGMENTS", table, **of_lob, BYTES=table.lob_bytes)
        self._partitions(table)

    def _columns(self, own: dict[str, str], columns: Sequence[InventoryColumn]) -> None:
        number = 0
        for internal, column in enumerate(columns, 1):
            number += not column.hidden
            place = {
                "USER_GENERATED": "NO" if column.hidden and not column.invisible else "YES",
                "COLUMN_ID": None if column.hidden else number,
            }
            self._one("DBA_TAB_COLS", column, **own, **place, INTERNAL_COLUMN_ID=internal)
            if column.comment:
                self._one("DBA_COL_COMMENTS", column, **own)
            if column.identity:
                self._one("DBA_TAB_IDENTITY_COLS", column, **own)

    def _partitions(self, table: InventoryTable) -> None:
        parted = table.partitioning
        if parted is None:
            return
        own = {"OWNER": table.owner, "TABLE_NAME": table.name}
        submethod = parted.submethod or "NONE"
        self._one("DBA_PART_TABLES", parted, **own, SUBPARTITIONING_TYPE=submethod)
        for view, columns in (
            ("DBA_PART_KEY_COLUMNS", parted.columns),
            ("DBA_SUBPART_KEY_COLUMNS", parted.subcolumns),
        ):
            for at, column in enumerate(columns, 1):
                place = {"COLUMN_NAME": column, "COLUMN_POSITION": at}
                self._one(view, table, OBJECT_TYPE="TABLE", **place)
        of_parts = {"TABLE_OWNER": table.owner, "TABLE_NAME": table.name}
        for at, part in enumerate(parted.partitions, 1):
            key = of_parts | {"PARTITION_NAME": part.name}
            row = _told("DBA_TAB_PARTITIONS", part) | {"PARTITION_POSITION": at}
            self._put("DBA_TAB_PARTITIONS", key, row)
            for number, sub in enumerate(part.subpartitions, 1):
                row = _told("DBA_TAB_SUBPARTITIONS", sub) | {"SUBPARTITION_POSITION": number}
                self._put("DBA_TAB_SUBPARTITIONS", key | {"SUBPARTITION_NAME": sub.name}, row)

    def _constraint(self, one: Constraint) -> None:
        self._one(
            *("DBA_CONSTRAINTS", one),
            CONSTRAINT_TYPE=one.oracle_kind or _CONSTRAINT_TYPES[one.kind],
            R_CONSTRAINT_NAME=self._names.get(
                (one.parent_owner, one.parent_table, one.parent_columns)
            ),
            DEFERRABLE="DEFERRABLE" if one.deferrable else "NOT DEFERRABLE",
            VALIDATED="VALIDATED" if one.validated else "NOT VALIDATED",
            GENERATED="GENERATED NAME" if one.generated_name else "USER NAME",
        )
        for at, column in enumerate(one.columns, 1):
            position = None if one.kind == "check" else at
            self._one("DBA_CONS_COLUMNS", one, COLUMN_NAME=column, POSITION=position)

    def _index(self, one: InventoryIndex) -> None:
        self._one("DBA_INDEXES", one)
        for at, part in enumerate(one.parts, 1):
            computed = part.expression or part.descending
            self._one(
                *("DBA_IND_COLUMNS", one),
                COLUMN_NAME=f"SYS_NC{at:05}$" if computed else part.text,
                COLUMN_POSITION=at,
                DESCEND="DESC" if part.descending else "ASC",
            )
            if computed:
                text = part.text if part.expression else f'"{part.text}"'
                place = {"COLUMN_EXPRESSION": text, "COLUMN_POSITION": at}
                self._one("DBA_IND_EXPRESSIONS", one, **place)

    def _view(self, view: InventoryView) -> None:
        self._one("DBA_VIEWS", view)
        self._columns({"OWNER": view.owner, "TABLE_NAME": view.name}, view.columns)
        if view.comment:
            self._one("DBA_TAB_COMMENTS", view)
