"""Makes the rows of the stand-in's dictionary: SYS tables from a dictionary snapshot, with its
keys, indexes and sequences, and the views about schemas from an inventory.

The module is the inverse of `olr_pg.dictionary.sys_rows` and
`olr_pg.oracle.inventory.inventory_queries`. Values that a snapshot does not contain get plausible
defaults. The module also makes the rows of the views that show LOGGING, NOLOGGING and supplemental
logging, and executes the statements that change these settings.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import count, zip_longest
from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary import sys_tables
from olr_pg.dictionary.lob_delivery import BLOB, CLOB
from olr_pg.dictionary.model import KeyKind
from olr_pg.dictionary.sys_rows import SYS_COLUMNS
from olr_pg.simulator.model.tables import ROWS_INDEX as PARTITIONED_ROWS_INDEX
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import INVENTORY_VIEWS, TABLESPACE, insert_tablespace
from olr_pg.simulator.sessions import sys_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.datatypes.binary_xml import XmlTokens
    from olr_pg.dictionary.inventory import (
        Constraint,
        Inventory,
        InventoryColumn,
        InventoryIndex,
        InventoryTable,
        InventoryView,
        NamedObject,
        SchemaObject,
    )
    from olr_pg.dictionary.model import Column, LobSegment, Snapshot, Table
    from olr_pg.dictionary.sys_rows import SysRows
    from olr_pg.simulator.oracle_net.catalogue import Catalogue


_ALTER: Final = re.compile(
    r'ALTER\s+TABLE\s+"?([\w$#]+)"?\s*\.\s*"?([\w$#]+)"?\s+'
    r'(?:MODIFY\s+(SUB)?PARTITION\s+"?([\w$#]+)"?\s+)?'
    r'(?:(?:MODIFY\s+)?LOB\s*\(\s*"?([\w$#]+)"?\s*\)\s*\(\s*NOCACHE\s+(NO)?LOGGING\s*\)'
    r"|(NO)?LOGGING)\s*$",
    re.IGNORECASE,
)


def insert_logging(catalogue: Catalogue, table: Table, names: Sequence[str]) -> None:
    """Add a table, with its partitions' names, to the views that show LOGGING."""
    own = {"OWNER": table.owner, "TABLE_NAME": table.name}
    parted = {"TABLE_OWNER": table.owner, "TABLE_NAME": table.name}
    put = catalogue.put
    catalogue.readable.add(table.name)
    place = {"PARTITIONED": "YES"} if names else {"LOGGING": "YES"}
    if table.index_organised:
        place |= {"IOT_TYPE": "IOT"}
    elif not names:
        place |= {"TABLESPACE_NAME": "USERS"}
    put("DBA_TABLES", **own, **place, TEMPORARY="N")
    for name in names:
        put("DBA_TAB_PARTITIONS", **parted, PARTITION_NAME=name, LOGGING="YES")
    for column in table.columns:
        if column.lob is None:
            continue
        logging = "NO" if column.lob.nologging else "YES"
        put("DBA_LOBS", **own, COLUMN_NAME=column.name, LOGGING="NONE" if names else logging)
        for name in names:
            of_part = {"COLUMN_NAME": column.name, "PARTITION_NAME": name}
            put("DBA_LOB_PARTITIONS", **parted, **of_part, LOGGING=logging)


def alter_logging(catalogue: Catalogue, sql: str) -> bool:
    """Carry out ``ALTER TABLE … [NO]LOGGING`` of a table, partition or LOB; False if it is another
    statement.

    Raises:
        OraError: ORA-00942, ORA-02149, no table or partition has this name.
    """
    match = _ALTER.match(sql)
    if match is None:
        return False
    owner, table, sub, partition, column, *no = match.groups()
    if column is None:
        view = "DBA_TABLES" if partition is None else "DBA_TAB_PARTITIONS"
    else:
        view = "DBA_LOBS" if partition is None else f"DBA_LOB_{sub or ''}PARTITIONS"
    where = {"OWNER" if partition is None else "TABLE_OWNER": owner, "TABLE_NAME": table}
    where |= {} if partition is None else {f"{sub or ''}PARTITION_NAME": partition}
    where |= {} if column is None else {"COLUMN_NAME": column}
    condition = " AND ".join(f'"{name}" = ?' for name in where)
    logging = "NO" if any(no) else "YES"
    changed = catalogue.update(
        f'UPDATE SYS."{view}" SET "LOGGING" = ? WHERE {condition}',  # noqa: S608
        *(logging, *where.values()),
    )
    if not changed:
        raise OraError(942 if partition is None else 2149, "the table or partition does not exist")
    return True


def note_unrecoverable(catalogue: Catalogue, file: int, scn: int, at: int) -> None:
    """Record that data file `file` was written to without redo at `scn`, Unix time `at`."""
    catalogue.update('DELETE FROM SYS."V$DATAFILE" WHERE "FILE#" = ?', file)
    catalogue.put(
        "V$DATAFILE",
        FILE=file,
        NAME=f"/u01/app/oracle/oradata/file{file}.dbf",
        UNRECOVERABLE_CHANGE=scn,
        UNRECOVERABLE_TIME=f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}",
    )


SEGMENT_FILE: Final = 12
PLAIN_SEGMENT: Final = 0x400001
NORMAL_INDEX: Final = 1
USER_LOBS: Final = 0x40800
TOKEN_SET: Final = "28IKF5O20KT14E0OPPJDF68MK2"  # noqa: S105 - a suffix of table names
FIRST_USER: Final = 136
FIRST_CONSTRAINT: Final = 8_500

_LOB_FLAGS: Final = {
    "nologging": 0x2,
    "encrypted": 0x1000,
    "compressed": 0x2000,
    "deduplicated": 0x10000,
}
"""Bits of LOB$.FLAGS, by the fields of `dictionary.model.Lob`."""


_REDO_ROWS: Final = {
    "OBJ$": ("sys_obj", ("OBJ#",)),
    "TAB$": ("sys_tab", ("OBJ#",)),
    "COL$": ("sys_col", ("OBJ#", "INTCOL#")),
    "ECOL$": ("sys_ecol", ("TABOBJ#", "COLNUM")),
    "TABPART$": ("sys_tabpart", ("OBJ#",)),
    "LOB$": ("sys_lob", ("OBJ#", "INTCOL#")),
    "IND$": ("sys_ind", ("OBJ#",)),
    "INDPART$": ("sys_indpart", ("OBJ#",)),
}
"""SYS tables whose rows DDL changes: the field of `SysRows`, and the columns that identify a row.
"""


def insert_dictionary(catalogue: Catalogue, snapshot: Snapshot) -> None:
    """Insert the tables of `snapshot` into the catalogue, and the token set of binary XML."""
    insert_xml_tokens(catalogue, snapshot.xml_tokens)
    insert_tables(catalogue, snapshot)


def insert_tables(catalogue: Catalogue, snapshot: Snapshot) -> None:
    """Insert the tables of `snapshot` into the catalogue, including the views of table names."""
    owners = sorted({table.owner for table in snapshot.tables})
    users = {owner: FIRST_USER + number for number, owner in enumerate(owners)}
    rows = snapshot.sys_rows
    if rows is not None:
        users |= {row.name: row.user for row in rows.sys_user if row.name in users}
    for name, number in users.items():
        catalogue.put("USER$", USER=number, NAME=name, TYPE=1, SPARE1=0)
    insert_tablespace(catalogue, TABLESPACE, "USERS")
    constraints = count(FIRST_CONSTRAINT)
    for table in snapshot.tables:
        insert_table(catalogue, table, users[table.owner], constraints)
    insert_structure(catalogue, snapshot, users)
    if rows is not None:
        _name_rows(catalogue, rows)


def _name_rows(catalogue: Catalogue, rows: SysRows) -> None:
    """Give the rows of SYS tables the ROWIDs that they have in redo."""
    for table, (section, keys) in _REDO_ROWS.items():
        fields = {column: field for field, column in SYS_COLUMNS[section].items()}
        where = " AND ".join(f'"{key}" = ?' for key in keys)
        statement = f'UPDATE SYS."{table}" SET "ROWID" = ? WHERE {where}'  # noqa: S608
        for row in getattr(rows, section):
            if row.row_id:
                catalogue.update(statement, row.row_id, *(getattr(row, fields[k]) for k in keys))


def insert_xml_tokens(catalogue: Catalogue, tokens: XmlTokens) -> None:
    """Insert the names of binary XML as the default token set."""
    update = catalogue.update
    update('INSERT INTO XDB."XDB$TTSET" VALUES (?, 0)', TOKEN_SET)
    update(f'CREATE TABLE XDB."X$NM{TOKEN_SET}" (NMSPCURI, ID)')
    update(f'CREATE TABLE XDB."X$QN{TOKEN_SET}" (NMSPCID, LOCALNAME, FLAGS, ID)')
    for token, uri in tokens.namespaces.items():
        update(f'INSERT INTO XDB."X$NM{TOKEN_SET}" VALUES (?, ?)', uri, bytes.fromhex(token))  # noqa: S608
    for token, name in tokens.names.items():
        values = (bytes.fromhex(name.namespace), name.local, bytes((name.is_attribute,)))
        statement = f'INSERT INTO XDB."X$QN{TOKEN_SET}" VALUES (?, ?, ?, ?)'  # noqa: S608
        update(statement, *values, bytes.fromhex(token))


def partition_name(number: int) -> str:
    """Return the name of a table's partition; `number` counts from 1."""
    return f"P{number}"


def insert_table(catalogue: Catalogue, table: Table, user: int, constraints: Iterator[int]) -> None:
    """Insert one table.

    Args:
        user: USER# of its owner.
        constraints: yields numbers for its constraints.
    """
    _TableRows(catalogue, table, user).insert(constraints)


def _segment(catalogue: Catalogue, dataobj: int | None) -> dict[str, int]:
    """Insert a segment into SEG$ and return the place of its header; zeros if `dataobj` is None."""
    place = {"TS": TABLESPACE, "FILE": SEGMENT_FILE if dataobj else 0, "BLOCK": dataobj or 0}
    if dataobj:
        catalogue.put("SEG$", **place, SPARE1=PLAIN_SEGMENT)
    return place


class _TableRows:
    """The rows that describe a table."""

    def __init__(self, catalogue: Catalogue, table: Table, user: int) -> None:
        self._catalogue, self._put = catalogue, catalogue.put
        self._table, self._user = table, user
        segments = list(zip(table.partitions, table.segments or table.partitions, strict=True))
        self._index_parts: list[tuple[int, int]] = []
        if table.index_organised:
            # If it is partitioned, the partitions of the index have segments, those of the table
            # have none.
            self._index_parts = [(obj, data) for obj, data in segments if data]
            segments = [(obj, data) for obj, data in segments if not data]
        self._parts = segments

    def insert(self, constraints: Iterator[int]) -> None:
        table, parts = self._table, self._parts
        names = [partition_name(number) for number in range(1, len(parts) + 1)]
        insert_logging(self._catalogue, table, names)
        self._object(table.obj, table.dataobj, table.name, sys_dictionary.TABLE)
        properties = sys_dictionary.HAS_PRIMARY_KEY | (sys_dictionary.PARTITIONED if parts else 0)
        properties |= sys_dictionary.ORGANISED if table.index_organised else 0
        properties |= USER_LOBS if any(column.lob for column in table.columns) else 0
        self._put(
            "TAB$", OBJ=table.obj, DATAOBJ=table.dataobj, FLAGS=0x40000001, PROPERTY=properties,
            CLUCOLS=table.cluster_columns or None,
            KERNELCOLS=max((column.segcol for column in table.columns), default=0),
            **_segment(self._catalogue, None if parts else table.dataobj),
        )  # fmt: skip
        for column in table.columns:
            self._column(column)
        if table.index_organised:
            self._rows_index()
        for number, ((obj, data), name) in enumerate(zip(parts, names, strict=True), 1):
            self._object(obj, data, table.name, sys_dictionary.TABLE_PARTITION, name)
            place = {"PART": 10 * number, **_segment(self._catalogue, data)}
            self._put("TABPART$", OBJ=obj, DATAOBJ=data or None, BO=table.obj, **place)
        if table.key_kind is KeyKind.PRIMARY:
            self._primary_key(next(constraints))
        elif table.key_kind is KeyKind.UNIQUE:
            self._index(table.obj + 1, table.obj + 1, f"{table.name}_UK", NORMAL_INDEX)
        for column in table.columns:
            if column.added is not None:
                added = {"BINARYDEFVAL": column.added.default, "GUARD_ID": column.added.guard_id}
                self._put("ECOL$", TABOBJ=table.obj, COLNUM=column.intcol, **added)
            if column.lob is not None:
                self._lob(column)

    def _object(
        self, obj: int, dataobj: int | None, name: str, kind: int, part: str | None = None
    ) -> None:
        """Insert a row of OBJ$; a partition has the name of the whole object, and its own name
        `part`.
        """
        own = {"OBJ": obj, "DATAOBJ": dataobj or None, "OWNER": self._user, "FLAGS": 0}
        self._put("OBJ$", **own, NAME=name, SUBNAME=part, TYPE=kind)

    def _column(self, column: Column) -> None:
        is_lob = column.stored_as_lob or column.type_code in (CLOB, BLOB)
        bits = {
            sys_tables.HIDDEN | sys_tables.SYSTEM_GENERATED: column.hidden,
            sys_tables.GUARD: column.guard,
            sys_dictionary.ADDED_WITH_DEFAULT: column.added is not None,
            sys_tables.LENGTH_IN_CHARS: column.char_length is not None,
            sys_tables.VIRTUAL: column.virtual,
            sys_tables.ENCRYPTED: column.encrypted,
            sys_tables.STORED_AS_LOB: is_lob,
        }
        self._put(
            "COL$", OBJ=self._table.obj, COL=column.col, SEGCOL=column.segcol, INTCOL=column.intcol,
            NAME=column.name, TYPE=column.type_code, LENGTH=column.length,
            PRECISION=column.precision, SCALE=column.scale, CHARSETFORM=column.charset_form,
            CHARSETID=column.charset_id, NULL=0 if column.nullable else 1,
            PROPERTY=sum(bit for bit, is_set in bits.items() if is_set),
        )  # fmt: skip

    def _primary_key(self, number: int) -> None:
        of = {"CON": number, "OBJ": self._table.obj}
        self._put("CDEF$", **of, TYPE=sys_dictionary.PRIMARY_KEY, ENABLED=1)
        for at, intcol in enumerate(self._table.key, 1):
            self._put("CCOL$", **of, INTCOL=intcol, POS=at, SPARE1=0)

    def _index(self, obj: int, dataobj: int, name: str, kind: int) -> None:
        """Insert a unique index on the table's key; `dataobj` is 0 if the index is partitioned."""
        self._object(obj, dataobj, name, sys_dictionary.INDEX)
        of = {"OBJ": obj, "BO": self._table.obj}
        properties = sys_dictionary.UNIQUE | (0 if dataobj else sys_dictionary.PARTITIONED_INDEX)
        place = {"DATAOBJ": dataobj or None, "TS": TABLESPACE if dataobj else None}
        self._put("IND$", **of, **place, TYPE=kind, FLAGS=0, PROPERTY=properties)
        for at, intcol in enumerate(self._table.key, 1):
            self._put("ICOL$", **of, INTCOL=intcol, POS=at)

    def _rows_index(self) -> None:
        """Insert the index that contains the rows, with its partitions."""
        name = f"{sys_dictionary.IOT_TOP}_{self._table.obj}"
        if not self._parts:
            self._index(*self._index_parts[0], name, sys_dictionary.ROWS_INDEX)
            return
        index = self._table.obj + PARTITIONED_ROWS_INDEX
        self._index(index, 0, name, sys_dictionary.ROWS_INDEX)
        for number, (obj, data) in enumerate(self._index_parts, 1):
            self._object(obj, data, name, sys_dictionary.INDEX_PARTITION, partition_name(number))
            place = {"PART": 10 * number, "TS": TABLESPACE}
            self._put("INDPART$", OBJ=obj, DATAOBJ=data, BO=index, **place)

    def _lob(self, column: Column) -> None:
        lob, table = column.lob, self._table
        assert lob is not None
        first, *fragments = lob.segments
        name = f"{table.obj:010d}C{column.intcol:05d}$$"
        self._lob_segment(first, name)
        properties = sys_dictionary.IN_ROW
        properties |= sys_dictionary.SECUREFILE if lob.securefile else 0
        properties |= sys_dictionary.PARTITIONED_LOB if fragments else 0
        self._put(
            "LOB$", OBJ=table.obj, COL=column.col, INTCOL=column.intcol, LOBJ=first.obj,
            IND=first.index_obj, TS=TABLESPACE, CHUNK=lob.chunk_blocks, PROPERTY=properties,
            FLAGS=sum(bit for field, bit in _LOB_FLAGS.items() if getattr(lob, field)),
        )  # fmt: skip
        for fragment, part in zip_longest(fragments, table.partitions):
            if fragment is None:  # The index of an index-organised table also has partitions.
                break
            self._lob_segment(fragment, name, is_part=True)
            of = {"FRAGOBJ": fragment.obj, "PARENTOBJ": first.obj, "TABFRAGOBJ": part}
            self._put("LOBFRAG$", **of, INDFRAGOBJ=fragment.index_obj, TS=TABLESPACE)

    def _lob_segment(self, own: LobSegment, name: str, *, is_part: bool = False) -> None:
        kind = sys_dictionary.LOB_PARTITION if is_part else sys_dictionary.LOB
        part = f"SYS_LOB_P{own.obj}" if is_part else None
        self._object(own.obj, own.dataobj, f"SYS_LOB{name}", kind, part)
        if own.index_obj is not None:
            kind = sys_dictionary.INDEX_PARTITION if is_part else sys_dictionary.INDEX
            part = f"SYS_IL_P{own.index_obj}" if is_part else None
            self._object(own.index_obj, own.index_dataobj, f"SYS_IL{name}", kind, part)


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
            self._object(schema_object)
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

    def _object(self, one: SchemaObject) -> None:
        name, part = one.name, ""
        if "PARTITION" in one.kind:  # other names can contain a dot, too
            name, _, part = name.partition(".")
        self._one("DBA_OBJECTS", one, OBJECT_NAME=name, SUBOBJECT_NAME=part or None)

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


FIRST_OBJECT: Final = 95_000
FIRST_STRUCTURE_CONSTRAINT: Final = 9_500
MAXVALUE: Final = 10**28 - 1
"""MAXVALUE of a sequence that was created without one."""

_TYPE_INDEX, _TYPE_SEQUENCE = 1, 6
_UNIQUE_KEY, _FOREIGN_KEY = 3, 4
_REFACT: Final = {"no action": None, "cascade": 1, "set null": 2}


def insert_structure(catalogue: Catalogue, snapshot: Snapshot, users: Mapping[str, int]) -> None:
    """Insert `snapshot.structure`; the tables must already be in the catalogue.

    Args:
        users: USER# by name.
    """
    _StructureWriter(catalogue, snapshot, users).write()


class _StructureWriter:
    def __init__(self, catalogue: Catalogue, snapshot: Snapshot, users: Mapping[str, int]) -> None:
        self._put = catalogue.put
        self._structure = snapshot.structure
        self._tables = {table.full_name: table for table in snapshot.tables}
        self._users = users
        self._objects = count(FIRST_OBJECT)
        self._constraints = count(FIRST_STRUCTURE_CONSTRAINT)
        self._keys = dict[tuple[str, tuple[str, ...]], int]()
        for con, obj in catalogue.rows('SELECT "CON#", "OBJ#" FROM SYS."CDEF$" WHERE "TYPE#" = 2'):
            table = next(t for t in snapshot.tables if t.obj == obj)
            names = {column.intcol: column.name for column in table.columns}
            self._keys[table.full_name, tuple(names[i] for i in table.key)] = int(str(con))

    def write(self) -> None:
        for key in self._structure.unique_keys:
            table = self._tables[key.full_name]
            index = self._index(table, key.name, key.columns, unique=True)
            con = self._constraint(table, key.name, key.columns, _UNIQUE_KEY, ENABLED=index)
            self._keys[key.full_name, key.columns] = con
        for one in self._structure.indexes:
            table = self._tables[one.full_name]
            self._index(table, one.name, one.columns, unique=one.unique)
        for foreign in self._structure.foreign_keys:
            parent = self._tables[foreign.parent_name]
            self._constraint(
                *(self._tables[foreign.full_name], foreign.name, foreign.columns, _FOREIGN_KEY),
                ENABLED=1,
                ROBJ=parent.obj,
                RCON=self._keys[foreign.parent_name, foreign.parent_columns],
                REFACT=_REFACT[foreign.on_delete],
            )
        for sequence in self._structure.sequences:
            obj = self._object(sequence.owner, sequence.name, _TYPE_SEQUENCE)
            self._put(
                "SEQ$", OBJ=obj, INCREMENT=sequence.increment, MINVALUE=sequence.minimum,
                MAXVALUE=MAXVALUE, CYCLE=int(sequence.cycle), CACHE=sequence.cache,
                HIGHWATER=sequence.next,
            )  # fmt: skip

    def _object(self, owner: str, name: str, kind: int) -> int:
        obj = next(self._objects)
        self._put("OBJ$", OBJ=obj, OWNER=self._users[owner], NAME=name, TYPE=kind, FLAGS=0)
        return obj

    def _index(self, table: Table, name: str, columns: Sequence[str], *, unique: bool) -> int:
        obj = self._object(table.owner, name, _TYPE_INDEX)
        of = {"OBJ": obj, "BO": table.obj}
        self._put("IND$", **of, DATAOBJ=obj, TYPE=1, FLAGS=0, PROPERTY=int(unique))
        for place in _places(table, columns):
            self._put("ICOL$", **of, **place)
        return obj

    def _constraint(
        self, table: Table, name: str, columns: Sequence[str], kind: int, **others: Any
    ) -> int:
        con = next(self._constraints)
        of = {"CON": con, "OBJ": table.obj}
        self._put("CON$", CON=con, OWNER=self._users[table.owner], NAME=name)
        self._put("CDEF$", **of, TYPE=kind, **others)
        for place in _places(table, columns):
            self._put("CCOL$", **of, **place)
        return con


def _places(table: Table, columns: Sequence[str]) -> list[dict[str, int]]:
    numbers = {column.name: column.intcol for column in table.columns}
    return [{"INTCOL": numbers[name], "POS": at} for at, name in enumerate(columns, 1)]
