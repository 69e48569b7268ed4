"""Makes rows of SYS tables from a dictionary snapshot.

This is the inverse of `olr_pg.dictionary.sys_rows`. Values that a snapshot does not contain get
plausible defaults.
"""

from __future__ import annotations

from itertools import count, zip_longest
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary import column_bits
from olr_pg.dictionary.lob_delivery import BLOB, CLOB
from olr_pg.dictionary.model import KeyKind
from olr_pg.dictionary.sys_columns import SYS_COLUMNS
from olr_pg.simulator.model.tables import ROWS_INDEX as PARTITIONED_ROWS_INDEX
from olr_pg.simulator.oracle_net.logging_rows import insert_logging
from olr_pg.simulator.oracle_net.structure_rows import insert_structure
from olr_pg.simulator.oracle_net.tablespace_rows import TABLESPACE, insert_tablespace
from olr_pg.simulator.sessions import sys_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.datatypes.binary_xml import XmlTokens
    from olr_pg.dictionary.lob import LobSegment
    from olr_pg.dictionary.model import Column, Snapshot, Table
    from olr_pg.dictionary.sys_rows import SysRows
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

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
"""Bits of LOB$.FLAGS, by the fields of `dictionary.lob.Lob`."""


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
            column_bits.HIDDEN | column_bits.SYSTEM_GENERATED: column.hidden,
            column_bits.GUARD: column.guard,
            sys_dictionary.ADDED_WITH_DEFAULT: column.added is not None,
            column_bits.LENGTH_IN_CHARS: column.char_length is not None,
            column_bits.VIRTUAL: column.virtual,
            column_bits.ENCRYPTED: column.encrypted,
            column_bits.STORED_AS_LOB: is_lob,
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
