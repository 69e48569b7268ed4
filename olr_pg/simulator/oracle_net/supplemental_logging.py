"""Supplemental logging of the stand-in: its views, and the statements that change it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

_NAME: Final = r'"?([\w$#]+)"?'
_DATA: Final = r"(ADD|DROP)\s+SUPPLEMENTAL\s+LOG\s+DATA"
_COLUMNS: Final = r"\(\s*([\w ]+?)\s*\)\s*COLUMNS"
_OF_DATABASE: Final = re.compile(
    rf"ALTER\s+(PLUGGABLE\s+)?DATABASE\s+{_DATA}(?:\s*{_COLUMNS})?\s*$", re.IGNORECASE
)
_OF_TABLE: Final = re.compile(
    rf"ALTER\s+TABLE\s+{_NAME}\s*\.\s*{_NAME}\s+{_DATA}\s*{_COLUMNS}\s*$", re.IGNORECASE
)
_GROUP: Final = re.compile(
    rf"ALTER\s+TABLE\s+{_NAME}\s*\.\s*{_NAME}\s+ADD\s+SUPPLEMENTAL\s+LOG\s+GROUP\s+{_NAME}"
    r"\s*\(([^)]+)\)(?:\s*ALWAYS)?\s*$",
    re.IGNORECASE,
)
_OF_SCHEMA: Final = re.compile(
    r"BEGIN\s+DBMS_CAPTURE_ADM\.PREPARE_SCHEMA_INSTANTIATION\s*\(\s*'(\w+)'\s*,"
    r"\s*'(none|keys|all)'\s*\)\s*;\s*END\s*;?\s*$",
    re.IGNORECASE,
)
_DATABASE_LEVELS: Final = {
    None: ("MIN", "MINIMAL"),
    "PRIMARY KEY": ("PK", "PRIMARY_KEY"),
    "UNIQUE": ("UI", "UNIQUE_INDEX"),
    "FOREIGN KEY": ("FK", "FOREIGN_KEY"),
    "ALL": ("ALL", "ALL_COLUMN"),
}
"""By level: its column in V$DATABASE, and its column in DBA_SUPPLEMENTAL_LOGGING for a PDB."""

_TABLE_LEVELS: Final = {"PRIMARY KEY": 14, "UNIQUE": 15, "FOREIGN KEY": 16, "ALL": 17}
_NAMED_GROUP: Final = 12
"""CDEF$.TYPE# (dictionary §2.5)."""

_SCHEMA_BITS: Final = {"NONE": 0, "KEYS": 1 | 2 | 4, "ALL": 8}
"""USER$.SPARE1 (dictionary §2.2)."""


def tell_logging(catalogue: Catalogue, snapshot: Snapshot, levels: Mapping[str, Logging]) -> None:
    """Fill the views with the supplemental logging of the simulated tables.

    Args:
        levels: by ``OWNER.NAME``; a table that is missing here logs all columns.
    """
    told = [levels.get(table.full_name, Logging.ALL) for table in snapshot.tables]
    if all(level is Logging.ALL for level in told):
        return
    _set_database(catalogue, "ALL", on=False)
    _set_database(catalogue, "MIN", on=any(level is not Logging.NONE for level in told))
    for table, level in zip(snapshot.tables, told, strict=True):
        if level in (Logging.ALL, Logging.PRIMARY_KEY):
            # Oracle logs all columns of a table without a primary key.
            _add_group(catalogue, table, _TABLE_LEVELS[level.name.replace("_", " ")])


def _set_database(catalogue: Catalogue, column: str, *, on: bool) -> None:
    sql = f'UPDATE SYS."V$DATABASE" SET "SUPPLEMENTAL_LOG_DATA_{column}" = ?'  # noqa: S608
    catalogue.update(sql, "YES" if on else "NO")


def _level(words: str) -> str:
    return " ".join(words.upper().split())


def _of_database(
    catalogue: Catalogue, _: Snapshot, of_pdb: str | None, verb: str, level: str | None
) -> None:
    column, own = _DATABASE_LEVELS[level if level is None else _level(level)]
    on = verb.upper() == "ADD"
    if of_pdb is None:
        _set_database(catalogue, column, on=on)
        return
    sql = f'UPDATE SYS."DBA_SUPPLEMENTAL_LOGGING" SET "{own}" = ?'  # noqa: S608
    catalogue.update(sql, "YES" if on else "NO")


def _of_table(
    catalogue: Catalogue, snapshot: Snapshot, owner: str, name: str, verb: str, level: str
) -> None:
    table, kind = _table(snapshot, owner, name), _TABLE_LEVELS[_level(level)]
    if verb.upper() == "ADD":
        _add_group(catalogue, table, kind)
        return
    sql = 'DELETE FROM SYS."CDEF$" WHERE "OBJ#" = ? AND "TYPE#" = ?'
    catalogue.update(sql, table.obj, kind)


def _of_group(
    catalogue: Catalogue, snapshot: Snapshot, owner: str, name: str, _group: str, listed: str
) -> None:
    table = _table(snapshot, owner, name)
    number = _add_group(catalogue, table, _NAMED_GROUP)
    known = {column.name: column.intcol for column in table.columns}
    for entry in listed.split(","):
        column, *no_log = entry.replace('"', "").split(maxsplit=1)
        if column not in known:
            raise OraError(904, f'"{column}": invalid identifier')
        of = {"CON": number, "OBJ": table.obj, "INTCOL": known[column]}
        catalogue.put("CCOL$", **of, SPARE1=int(bool(no_log)))


def _of_schema(catalogue: Catalogue, snapshot: Snapshot, owner: str, level: str) -> None:
    if all(table.owner != owner for table in snapshot.tables):
        raise OraError(1918, f"user '{owner}' does not exist")
    sql = 'UPDATE SYS."USER$" SET "SPARE1" = ? WHERE "NAME" = ?'
    catalogue.update(sql, _SCHEMA_BITS[level.upper()], owner)


def _table(snapshot: Snapshot, owner: str, name: str) -> Table:
    table = snapshot.find(owner, name)
    if table is None:
        raise OraError(942, "table or view does not exist")
    return table


def _add_group(catalogue: Catalogue, table: Table, kind: int) -> int:
    """Add a log group to CDEF$; return its CON#."""
    largest = catalogue.rows('SELECT COALESCE(MAX("CON#"), 0) FROM SYS."CDEF$"')[0][0]
    number = 1 + int(str(largest))
    catalogue.put("CDEF$", CON=number, OBJ=table.obj, TYPE=kind)
    return number


STATEMENTS: Final = (
    (_OF_DATABASE, _of_database),
    (_OF_TABLE, _of_table),
    (_GROUP, _of_group),
    (_OF_SCHEMA, _of_schema),
)
"""The statements that change supplemental logging: patterns with their handlers. A handler receives
the catalogue, the snapshot and the match of the pattern.
"""
