"""Reads the tables of an inventory: columns, partitions, sizes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.inventory import InventoryColumn, InventoryTable, Partition, Partitioning
from olr_pg.oracle.inventory import dictionary_views as views
from olr_pg.oracle.inventory.view_reading import OWNER, grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from olr_pg.oracle.inventory.view_reading import Row, ViewReader

    Columns = Mapping[tuple[str, ...], tuple[InventoryColumn, ...]]

_LOB_SEGMENT: Final = re.compile(r"LOB|LOBSEGMENT|LOB PARTITION|LOB SUBPARTITION")
_NONE: Final = ("", "NONE")
_YES: Final = "YES"


def read_columns(reader: ViewReader) -> dict[tuple[str, ...], tuple[InventoryColumn, ...]]:
    """Read the columns of tables and views by (owner, name), in the order in which users see the
    columns.
    """
    comments = {
        (row[OWNER], row["TABLE_NAME"], row["COLUMN_NAME"]): row["COMMENTS"]
        for row in reader.rows(views.COL_COMMENTS)
    }
    identities = {
        (row[OWNER], row["TABLE_NAME"], row["COLUMN_NAME"]): row
        for row in reader.rows(views.IDENTITY_COLS)
    }
    found = {}
    for table, rows in grouped(reader.rows(views.TAB_COLS), "TABLE_NAME").items():
        rows.sort(key=lambda row: (row["COLUMN_ID"] or 1 << 30, row["INTERNAL_COLUMN_ID"] or 0))
        found[table] = tuple(
            _column(
                row,
                identities.get((*table, row["COLUMN_NAME"])),
                comments.get((*table, row["COLUMN_NAME"]), ""),
            )
            for row in rows
        )
    return found


def _column(row: Row, identity: Row | None, comment: str) -> InventoryColumn:
    hidden = row["HIDDEN_COLUMN"] == _YES
    default = row["DATA_DEFAULT"].strip()
    return InventoryColumn(
        name=row["COLUMN_NAME"],
        data_type=row["DATA_TYPE"] or "UNDEFINED",
        type_owner=row["DATA_TYPE_OWNER"],
        length=int(row["DATA_LENGTH"] or 0),
        char_length=int(row["CHAR_LENGTH"] or 0),
        precision=row["DATA_PRECISION"],
        scale=row["DATA_SCALE"],
        nullable=row["NULLABLE"] != "N",
        default="" if default.upper() == "NULL" else default,
        default_on_null=row.get("DEFAULT_ON_NULL") == _YES,
        identity=identity["GENERATION_TYPE"] if identity else "",
        identity_sequence=identity["SEQUENCE_NAME"] if identity else "",
        virtual=row["VIRTUAL_COLUMN"] == _YES,
        hidden=hidden,
        invisible=hidden and row.get("USER_GENERATED") == _YES,
        comment=comment,
    )


def read_tables(reader: ViewReader, columns: Columns) -> Iterator[InventoryTable]:
    """Read the tables, with the columns from `read_columns`."""
    rows = reader.rows(views.TABLES)
    external = {(row[OWNER], row["TABLE_NAME"]) for row in reader.rows(views.EXTERNAL_TABLES)}
    containers = {(row[OWNER], row["MVIEW_NAME"]) for row in reader.rows(views.MVIEWS)}
    logs = {(row[OWNER], row["LOG_TABLE"]) for row in reader.rows(views.MVIEW_LOGS)}
    comments = {
        (row[OWNER], row["TABLE_NAME"]): row["COMMENTS"] for row in reader.rows(views.TAB_COMMENTS)
    }
    groups = grouped(reader.rows(views.LOG_GROUPS), "TABLE_NAME")
    sizes, lob_sizes = _sizes(reader)
    partitions = _partitions(reader)
    for row in sorted(rows, key=lambda row: (row[OWNER], row["TABLE_NAME"])):
        name = row[OWNER], row["TABLE_NAME"]
        kind = _kind(row)
        if name in external:
            kind = "external table"
        elif name in containers:
            kind = "materialized view"
        elif name in logs:
            kind = "materialized view log"
        yield InventoryTable(
            owner=name[0],
            name=name[1],
            kind=kind,
            columns=columns.get(name, ()),
            rows=row["NUM_ROWS"],
            bytes=sizes[name],
            lob_bytes=lob_sizes[name],
            comment=comments.get(name, ""),
            logging=tuple(sorted({one["LOG_GROUP_TYPE"] for one in groups.get(name, ())})),
            partitioning=partitions.get(name),
            temporary_duration=row["DURATION"],
        )


def _kind(row: Row) -> str:
    if row["NESTED"] == _YES:
        return "nested table"
    if row["TEMPORARY"] == "Y":
        return "temporary table"
    if row["CLUSTER_NAME"]:
        return "clustered table"
    return "index-organised table" if row["IOT_TYPE"] else "table"


def _sizes(reader: ViewReader) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return two sums for each table: the bytes of its segments, and the bytes of its LOB
    segments.
    """
    sizes, lobs = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    tables = {
        (row[OWNER], row["SEGMENT_NAME"]): (row[OWNER], row["TABLE_NAME"])
        for row in reader.rows(views.LOBS)
    }
    for row in reader.rows(views.SEGMENTS):
        name = row[OWNER], row["SEGMENT_NAME"]
        size = int(row["BYTES"] or 0)
        if _LOB_SEGMENT.fullmatch(row["SEGMENT_TYPE"]) and name in tables:
            lobs[tables[name]] += size
        elif row["SEGMENT_TYPE"].startswith("TABLE"):
            sizes[name] += size
    return sizes, lobs


def _partitions(reader: ViewReader) -> dict[tuple[str, str], Partitioning]:
    keys = grouped(reader.rows(views.PART_KEYS), "NAME")
    subkeys = grouped(reader.rows(views.SUBPART_KEYS), "NAME")
    parts = grouped(reader.rows(views.TAB_PARTITIONS), "TABLE_NAME")
    subparts = grouped(reader.rows(views.TAB_SUBPARTITIONS), "TABLE_NAME", "PARTITION_NAME")
    found = {}
    for row in reader.rows(views.PART_TABLES):
        name = row[OWNER], row["TABLE_NAME"]
        own = sorted(parts.get(name, ()), key=lambda one: one["PARTITION_POSITION"])
        submethod = row["SUBPARTITIONING_TYPE"]
        found[name] = Partitioning(
            method=row["PARTITIONING_TYPE"],
            columns=_key(keys.get(name, ())),
            submethod="" if submethod in _NONE else submethod,
            subcolumns=_key(subkeys.get(name, ())),
            interval=row["INTERVAL"].strip(),
            partitions=tuple(
                Partition(
                    name=one["PARTITION_NAME"],
                    high_value=one["HIGH_VALUE"].strip(),
                    subpartitions=_subpartitions(subparts.get((*name, one["PARTITION_NAME"]), ())),
                )
                for one in own
            ),
        )
    return found


def _key(rows: list[Row] | tuple[()]) -> tuple[str, ...]:
    tables = [row for row in rows if row["OBJECT_TYPE"].strip() == "TABLE"]
    ordered = sorted(tables, key=lambda row: int(row["COLUMN_POSITION"]))
    return tuple(row["COLUMN_NAME"] for row in ordered)


def _subpartitions(rows: list[Row] | tuple[()]) -> tuple[Partition, ...]:
    ordered = sorted(rows, key=lambda row: int(row["SUBPARTITION_POSITION"]))
    return tuple(
        Partition(name=row["SUBPARTITION_NAME"], high_value=row["HIGH_VALUE"].strip())
        for row in ordered
    )
