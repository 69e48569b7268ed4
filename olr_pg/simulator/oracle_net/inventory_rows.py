"""An inventory as the rows of the views that it could have been read from.

The way back of `olr_pg.oracle.inventory.inventory_queries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.inventory import (
        Constraint,
        Inventory,
        InventoryColumn,
        InventoryIndex,
        InventoryTable,
    )
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

_CONSTRAINT_TYPES: Final = {"primary key": "P", "unique": "U", "foreign key": "R", "check": "C"}


def insert_inventory(catalogue: Catalogue, inventory: Inventory) -> None:
    """Put everything in; lines of tables that are there already are completed."""
    _Writer(catalogue, inventory).write()


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


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
            self._one(
                "DBA_OBJECTS",
                OWNER=schema_object.owner,
                OBJECT_NAME=name,
                SUBOBJECT_NAME=part or None,
                OBJECT_TYPE=schema_object.kind,
                STATUS=schema_object.status,
            )
        for table in found.tables:
            self._table(table)
        for constraint in found.constraints:
            self._constraint(constraint)
        for index in found.indexes:
            self._index(index)
        self._views()
        self._code()
        self._others()

    def _one(self, view: str, **row: Any) -> None:
        self._catalogue.insert(view, [row])

    def _put(self, view: str, key: dict[str, str], row: dict[str, Any]) -> None:
        """Complete the line with that key, or add it."""
        if row:
            changes = ", ".join(f'"{name}" = ?' for name in row)
            where = " AND ".join(f'"{name}" = ?' for name in key)
            statement = f'UPDATE SYS."{view}" SET {changes} WHERE {where}'  # noqa: S608
            if self._catalogue.update(statement, *row.values(), *key.values()):
                return
        self._one(view, **key, **row)

    def _table(self, table: InventoryTable) -> None:
        own = {"OWNER": table.owner, "TABLE_NAME": table.name}
        row = {
            "NUM_ROWS": table.rows,
            "IOT_TYPE": "IOT" if table.kind == "index-organised table" else None,
            "TEMPORARY": "Y" if table.kind == "temporary table" else "N",
            "DURATION": table.temporary_duration or None,
            "NESTED": _yes(table.kind == "nested table"),
            "CLUSTER_NAME": "CLUSTERED" if table.kind == "clustered table" else None,
        }
        self._put("DBA_TABLES", own, row)
        if table.kind == "external table":
            self._one("DBA_EXTERNAL_TABLES", **own)
        if table.kind == "materialized view log":
            self._one("DBA_MVIEW_LOGS", LOG_OWNER=table.owner, LOG_TABLE=table.name)
        self._columns(own, table.columns)
        self._one("DBA_TAB_COMMENTS", **own, COMMENTS=table.comment or None)
        for group in table.logging:
            self._one("DBA_LOG_GROUPS", **own, LOG_GROUP_TYPE=group)
        segment = {"OWNER": table.owner}
        if table.bytes:
            of_table = {"SEGMENT_NAME": table.name, "SEGMENT_TYPE": "TABLE"}
            self._one("DBA_SEGMENTS", **segment, **of_table, BYTES=table.bytes)
        if table.lob_bytes:
            name = f"SYS_LOB_{table.name}$$"
            lob = next(c.name for c in table.columns if c.data_type in ("CLOB", "BLOB", "NCLOB"))
            self._put("DBA_LOBS", own | {"COLUMN_NAME": lob}, {"SEGMENT_NAME": name})
            of_lob = {"SEGMENT_NAME": name, "SEGMENT_TYPE": "LOBSEGMENT"}
            self._one("DBA_SEGMENTS", **segment, **of_lob, BYTES=table.lob_bytes)
        self._partitions(table)

    def _columns(self, own: dict[str, str], columns: Sequence[InventoryColumn]) -> None:
        number = 0
        for internal, column in enumerate(columns, 1):
            number += not column.hidden
            of_column = own | {"COLUMN_NAME": column.name}
            self._one(
                "DBA_TAB_COLS",
                **of_column,
                DATA_TYPE=column.data_type,
                DATA_TYPE_OWNER=column.type_owner or None,
                DATA_LENGTH=column.length,
                CHAR_LENGTH=column.char_length,
                DATA_PRECISION=column.precision,
                DATA_SCALE=column.scale,
                NULLABLE="Y" if column.nullable else "N",
                DATA_DEFAULT=column.default or None,
                VIRTUAL_COLUMN=_yes(column.virtual),
                HIDDEN_COLUMN=_yes(column.hidden),
                DEFAULT_ON_NULL=_yes(column.default_on_null),
                USER_GENERATED=_yes(not column.hidden or column.invisible),
                COLUMN_ID=None if column.hidden else number,
                INTERNAL_COLUMN_ID=internal,
            )
            if column.comment:
                self._one("DBA_COL_COMMENTS", **of_column, COMMENTS=column.comment)
            if column.identity:
                generated = {"GENERATION_TYPE": column.identity}
                sequence = {"SEQUENCE_NAME": column.identity_sequence}
                self._one("DBA_TAB_IDENTITY_COLS", **of_column, **generated, **sequence)

    def _partitions(self, table: InventoryTable) -> None:
        parted = table.partitioning
        if parted is None:
            return
        own = {"OWNER": table.owner, "TABLE_NAME": table.name}
        self._one(
            "DBA_PART_TABLES",
            **own,
            PARTITIONING_TYPE=parted.method,
            SUBPARTITIONING_TYPE=parted.submethod or "NONE",
            INTERVAL=parted.interval or None,
        )
        of_key = {"OWNER": table.owner, "NAME": table.name, "OBJECT_TYPE": "TABLE"}
        for view, columns in (
            ("DBA_PART_KEY_COLUMNS", parted.columns),
            ("DBA_SUBPART_KEY_COLUMNS", parted.subcolumns),
        ):
            for at, column in enumerate(columns, 1):
                self._one(view, **of_key, COLUMN_NAME=column, COLUMN_POSITION=at)
        of_parts = {"TABLE_OWNER": table.owner, "TABLE_NAME": table.name}
        for at, part in enumerate(parted.partitions, 1):
            key = of_parts | {"PARTITION_NAME": part.name}
            row = {"HIGH_VALUE": part.high_value or None, "PARTITION_POSITION": at}
            self._put("DBA_TAB_PARTITIONS", key, row)
            for number, sub in enumerate(part.subpartitions, 1):
                bound = {"HIGH_VALUE": sub.high_value or None, "SUBPARTITION_POSITION": number}
                self._put("DBA_TAB_SUBPARTITIONS", key | {"SUBPARTITION_NAME": sub.name}, bound)

    def _constraint(self, one: Constraint) -> None:
        parent = one.parent_owner, one.parent_table, one.parent_columns
        self._one(
            "DBA_CONSTRAINTS",
            OWNER=one.owner,
            CONSTRAINT_NAME=one.name,
            CONSTRAINT_TYPE=one.oracle_kind or _CONSTRAINT_TYPES[one.kind],
            TABLE_NAME=one.table,
            SEARCH_CONDITION=one.condition or None,
            R_OWNER=one.parent_owner or None,
            R_CONSTRAINT_NAME=self._names.get(parent),
            DELETE_RULE=one.delete_rule or None,
            STATUS="ENABLED" if one.enabled else "DISABLED",
            DEFERRABLE="DEFERRABLE" if one.deferrable else "NOT DEFERRABLE",
            DEFERRED="DEFERRED" if one.deferred else "IMMEDIATE",
            VALIDATED="VALIDATED" if one.validated else "NOT VALIDATED",
            GENERATED="GENERATED NAME" if one.generated_name else "USER NAME",
            INDEX_NAME=one.index or None,
        )
        own = {"OWNER": one.owner, "CONSTRAINT_NAME": one.name}
        for at, column in enumerate(one.columns, 1):
            position = None if one.kind == "check" else at
            self._one("DBA_CONS_COLUMNS", **own, COLUMN_NAME=column, POSITION=position)

    def _index(self, one: InventoryIndex) -> None:
        self._one(
            "DBA_INDEXES",
            OWNER=one.owner,
            INDEX_NAME=one.name,
            INDEX_TYPE=one.kind,
            TABLE_OWNER=one.table_owner,
            TABLE_NAME=one.table,
            UNIQUENESS="UNIQUE" if one.unique else "NONUNIQUE",
            STATUS="VALID" if one.usable else "UNUSABLE",
            PARTITIONED=_yes(one.partitioned),
        )
        own = {"INDEX_OWNER": one.owner, "INDEX_NAME": one.name, "TABLE_OWNER": one.table_owner}
        for at, part in enumerate(one.parts, 1):
            computed = part.expression or part.descending
            self._one(
                "DBA_IND_COLUMNS",
                **own,
                COLUMN_NAME=f"SYS_NC{at:05}$" if computed else part.text,
                COLUMN_POSITION=at,
                DESCEND="DESC" if part.descending else "ASC",
            )
            if computed:
                text = part.text if part.expression else f'"{part.text}"'
                expression = {"COLUMN_EXPRESSION": text, "COLUMN_POSITION": at}
                self._one("DBA_IND_EXPRESSIONS", **own, **expression)

    def _views(self) -> None:
        for view in self._inventory.views:
            own = {"OWNER": view.owner}
            self._one("DBA_VIEWS", **own, VIEW_NAME=view.name, TEXT=view.text)
            self._columns(own | {"TABLE_NAME": view.name}, view.columns)
            if view.comment:
                comment = {"TABLE_NAME": view.name, "COMMENTS": view.comment}
                self._one("DBA_TAB_COMMENTS", **own, **comment)
        for one in self._inventory.materialized_views:
            self._one(
                "DBA_MVIEWS",
                OWNER=one.owner,
                MVIEW_NAME=one.name,
                QUERY=one.query,
                REFRESH_MODE=one.refresh_mode,
                REFRESH_METHOD=one.refresh_method,
                BUILD_MODE=one.build_mode,
            )
        for synonym in self._inventory.synonyms:
            self._one(
                "DBA_SYNONYMS",
                OWNER=synonym.owner,
                SYNONYM_NAME=synonym.name,
                TABLE_OWNER=synonym.target_owner or None,
                TABLE_NAME=synonym.target,
                DB_LINK=synonym.link or None,
            )

    def _code(self) -> None:
        for trigger in self._inventory.triggers:
            self._one(
                "DBA_TRIGGERS",
                OWNER=trigger.owner,
                TRIGGER_NAME=trigger.name,
                TRIGGER_TYPE=trigger.kind,
                TRIGGERING_EVENT=trigger.event,
                BASE_OBJECT_TYPE=trigger.base,
                TABLE_OWNER=trigger.table_owner or None,
                TABLE_NAME=trigger.table or None,
                WHEN_CLAUSE=trigger.when or None,
                STATUS="ENABLED" if trigger.enabled else "DISABLED",
                TRIGGER_BODY=trigger.body,
            )
        for source in self._inventory.sources:
            own = {"OWNER": source.owner, "NAME": source.name, "TYPE": source.kind}
            for number, line in enumerate(source.text.splitlines(keepends=True), 1):
                self._one("DBA_SOURCE", **own, LINE=number, TEXT=line)
        for one in self._inventory.types:
            typed = {"TYPE_NAME": one.name, "TYPECODE": one.kind, "ATTRIBUTES": one.attributes}
            self._one("DBA_TYPES", OWNER=one.owner, **typed)

    def _others(self) -> None:
        for one in self._inventory.sequences:
            self._one(
                "DBA_SEQUENCES",
                SEQUENCE_OWNER=one.owner,
                SEQUENCE_NAME=one.name,
                MIN_VALUE=one.minimum,
                MAX_VALUE=one.maximum,
                INCREMENT_BY=one.increment,
                CYCLE_FLAG="Y" if one.cycle else "N",
                CACHE_SIZE=one.cache,
                LAST_NUMBER=one.next,
            )
        for job in self._inventory.jobs:
            self._one(
                "DBA_SCHEDULER_JOBS",
                OWNER=job.owner,
                JOB_NAME=job.name,
                JOB_TYPE=job.kind,
                JOB_ACTION=job.action,
                REPEAT_INTERVAL=job.schedule or None,
                ENABLED="TRUE" if job.enabled else "FALSE",
            )
        for link in self._inventory.links:
            place = {"USERNAME": link.user or None, "HOST": link.host}
            self._one("DBA_DB_LINKS", OWNER=link.owner, DB_LINK=link.name, **place)
        for grant in self._inventory.grants:
            self._one(
                "DBA_TAB_PRIVS",
                GRANTEE=grant.grantee,
                OWNER=grant.owner,
                TABLE_NAME=grant.name,
                PRIVILEGE=grant.privilege,
                GRANTABLE=_yes(grant.grantable),
                TYPE=grant.kind or None,
            )
        for other in self._inventory.others:
            for number in range(other.objects):
                name = {"OBJECT_NAME": f"T{number}", "OBJECT_TYPE": "TABLE", "STATUS": "VALID"}
                self._one("DBA_OBJECTS", OWNER=other.owner, **name)
