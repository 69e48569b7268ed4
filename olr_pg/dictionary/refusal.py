"""Decides which tables cannot be replicated, and why (dictionary §2.1, §2.3, §13)."""

from __future__ import annotations

import re
from typing import Final

from olr_pg.dictionary.oracle_schemas import is_oracle_schema

_TABLE_PROPERTIES: Final = (
    (0x1, "it is an object table"),
    (0x200, "it is the overflow segment of an index-organised table"),
    (0x2000, "it is the storage table of a nested table"),
    (0xC00000, "it is a temporary table, so the redo does not contain its rows"),
    (0x80000000, "it is an external table, so the redo does not contain its rows"),
)
_TABLE_FLAGS: Final = ((0x20000000, "it is the mapping table of an index-organised table"),)
_OBJECT_FLAGS: Final = (
    (0x22, "it is a temporary table, so the redo does not contain its rows"),
    (0x80, "it was dropped and is in the recycle bin"),
    (0x10, "it is a secondary object of a domain index"),
)
_AUXILIARY_NAMES: Final = (
    (r"BIN\$.*", "it was dropped and is in the recycle bin"),
    (r"MLOG\$_.*", "it is a materialized view log"),
    (r"RUPD\$_.*", "it is the temporary log of an updatable materialized view"),
    (r"SYS_IOT_OVER_.*", "it is the overflow segment of an index-organised table"),
    (r"DR\$.*\$.*", "it is storage of a text index"),
    (r"AQ\$_.*", "it is auxiliary storage of a queue table"),
)


def table_refusal(
    owner: str,
    name: str,
    *,
    table_properties: int,
    table_flags: int,
    object_flags: int,
    cluster_columns: int,
    index_obstacle: str | None = None,
    storage_obstacle: str | None = None,
) -> str | None:
    """Return why a table cannot be replicated; None if it can.

    Args:
        table_properties, table_flags: the table's TAB$.PROPERTY and TAB$.FLAGS.
        object_flags: OBJ$.FLAGS.
        cluster_columns: TAB$.CLUCOLS.
        index_obstacle: for an index-organised table, the result of
            `index_organised.index_obstacle`.
        storage_obstacle: for encrypted or compressed segments, the result of
            `StoredSegments.obstacle`.

    Oracle's own clustered tables are not refused. They contain the core of the dictionary, and must
    be decoded to follow it (dictionary §1.3, §10).
    """
    bits = ((table_properties, _TABLE_PROPERTIES), (table_flags, _TABLE_FLAGS))
    for value, reasons in (*bits, (object_flags, _OBJECT_FLAGS)):
        for mask, reason in reasons:
            if value & mask:
                return reason
    for pattern, reason in _AUXILIARY_NAMES:
        if re.fullmatch(pattern, name, re.DOTALL):
            return reason
    if index_obstacle is not None:
        return index_obstacle
    if storage_obstacle is not None:
        return storage_obstacle
    if cluster_columns > 0 and not is_oracle_schema(owner):
        return "it is stored in a cluster"
    return None
