"""A dictionary snapshot as the rows of SYS tables that it could have been read from.

The way back of `olr_pg.dictionary.sys_rows`; what a snapshot does not hold gets ordinary values.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.dictionary import column_bits
from olr_pg.dictionary.lob_delivery import BLOB, CLOB
from olr_pg.dictionary.model import KeyKind
from olr_pg.simulator.model.tables import ROWS_INDEX as PARTITIONED_ROWS_INDEX
from olr_pg.simulator.oracle_net.logging_rows import insert_logging
from olr_pg.simulator.oracle_net.structure_rows import insert_structure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.datatypes.binary_xml import XmlTokens
    from olr_pg.dictionary.lob import LobSegment
    from olr_pg.dictionary.model import Column, Snapshot, Table
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

TABLESPACE: Final = 6
BLOCK_SIZE: Final = 8192
SEGMENT_FILE: Final = 12
PLAIN_SEGMENT: Final = 0x400001
PLAIN_TABLE: Final = 0x20000000
PARTITIONED: Final = 0x20
INDEX_ORGANISED: Final = 0x40
NORMAL_INDEX: Final = 1
ROWS_INDEX: Final = 4
USER_LOBS: Final = 0x40800
TOKEN_SET: Final = "28IKF5O20KT14E0OPPJDF68MK2"  # noqa: S105 - a suffix of table names
FIRST_USER: Final = 136
FIRST_CONSTRAINT: Final = 8_500
UNIQUE: Final = 1
PARTITIONED_INDEX: Final = 2
ADDED: Final = 1 << 30

_TYPE_INDEX, _TYPE_TABLE, _TYPE_PARTITION, _TYPE_INDEX_PARTITION = 1, 2, 19, 20
_TYPE_LOB, _TYPE_LOB_PARTITION = 21, 40
_LOB_IN_ROW, _LOB_SECUREFILE, _LOB_PARTITIONED = 0x2, 0x800, 0x4
_LOB_NOLOGGING, _LOB_ENCRYPTED, _LOB_COMPRESSED, _LOB_DEDUPLICATED = 0x2, 0x1000, 0x2000, 0x10000

Row = dict[str, Any]


def insert_dictionary(catalogue: Catalogue, snapshot: Snapshot) -> None:
    """Put the tables of `snapshot` into the catalogue, with the views of table names."""
    owners = sorted({table.owner for table in snapshot.tables})
    users = {owner: FIRST_USER + number for number, owner in enumerate(owners)}
    catalogue.insert(
        "USER$", ({"USER#": n, "NAME": name, "TYPE#": 1, "SPARE1": 0} for name, n in users.items())
    )
    catalogue.insert("TS$", [{"TS#": TABLESPACE, "NAME": "USERS", "BLOCKSIZE": BLOCK_SIZE}])
    insert_xml_tokens(catalogue, snapshot.xml_tokens)
    constraints = count(FIRST_CONSTRAINT)
    for table in snapshot.tables:
        insert_table(catalogue, table, users[table.owner], constraints)
    insert_structure(catalogue, snapshot, users)


def insert_xml_tokens(catalogue: Catalogue, tokens: XmlTokens) -> None:
    """Put the names of binary XML in, as the default token set."""
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
    """Put one table in."""
    segments = list(zip(table.partitions, table.segments or table.partitions, strict=True))
    index_parts: list[tuple[int, int]] = []
    if table.index_organised:
        # Of a partitioned one those of the index have segments, those of the table have none.
        index_parts = [(obj, data) for obj, data in segments if data]
        segments = [(obj, data) for obj, data in segments if not data]
    parts = [obj for obj, _ in segments]
    names = [partition_name(number) for number in range(1, len(parts) + 1)]
    insert_logging(catalogue, table, names)
    properties = PLAIN_TABLE | (PARTITIONED if parts else 0)
    properties |= INDEX_ORGANISED if table.index_organised else 0
    if any(column.lob for column in table.columns):
        properties |= USER_LOBS
    catalogue.insert("OBJ$", [_object(table.obj, table.dataobj, user, table.name, _TYPE_TABLE)])
    catalogue.insert(
        "TAB$",
        [
            {
                "OBJ#": table.obj,
                "DATAOBJ#": table.dataobj,
                **_segment(catalogue, None if parts else table.dataobj),
                "CLUCOLS": table.cluster_columns or None,
                "KERNELCOLS": max((column.segcol for column in table.columns), default=0),
                "FLAGS": 0x40000001,
                "PROPERTY": properties,
            }
        ],
    )
    catalogue.insert("COL$", (_column(table.obj, column) for column in table.columns))
    if table.index_organised:
        _insert_rows_index(catalogue, table, user, index_parts, is_partitioned=bool(parts))
    for number, (obj, data) in enumerate(segments, 1):
        row = _object(obj, data or None, user, table.name, _TYPE_PARTITION)
        catalogue.insert("OBJ$", [row | {"SUBNAME": partition_name(number)}])
    catalogue.insert(
        "TABPART$",
        [
            {"OBJ#": obj, "DATAOBJ#": data or None, "BO#": table.obj, **_segment(catalogue, data)}
            for obj, data in segments
        ],
    )
    if table.key_kind is KeyKind.PRIMARY:
        _insert_constraint(catalogue, table, next(constraints), 2, table.key)
    elif table.key_kind is KeyKind.UNIQUE:
        obj = table.obj + 1
        index = _Index(obj, obj, f"{table.name}_UK", NORMAL_INDEX)
        _insert_index(catalogue, table, user, index)
    for column in table.columns:
        if column.added is not None:
            added: Row = {"TABOBJ#": table.obj, "COLNUM": column.intcol}
            added["BINARYDEFVAL"], added["GUARD_ID"] = column.added.default, column.added.guard_id
            catalogue.insert("ECOL$", [added])
        if column.lob is not None:
            _insert_lob(catalogue, table, column, user)


def _segment(catalogue: Catalogue, dataobj: int | None) -> Row:
    """Put a segment's header into SEG$ and return where it is; nowhere for None."""
    place = {"TS#": TABLESPACE, "FILE#": SEGMENT_FILE if dataobj else 0, "BLOCK#": dataobj or 0}
    if dataobj:
        catalogue.insert("SEG$", [{**place, "SPARE1": PLAIN_SEGMENT}])
    return place


def _object(obj: int, dataobj: int | None, user: int, name: str, kind: int) -> Row:
    return {
        "OBJ#": obj,
        "DATAOBJ#": dataobj,
        "OWNER#": user,
        "NAME": name,
        "TYPE#": kind,
        "FLAGS": 0,
    }


def _column(obj: int, column: Column) -> Row:
    properties = 0
    if column.hidden:
        properties |= column_bits.HIDDEN | column_bits.SYSTEM_GENERATED
    if column.guard:
        properties |= column_bits.GUARD
    if column.added is not None:
        properties |= ADDED
    if column.char_length is not None:
        properties |= column_bits.LENGTH_IN_CHARS
    if column.virtual:
        properties |= column_bits.VIRTUAL
    if column.encrypted:
        properties |= column_bits.ENCRYPTED
    if column.stored_as_lob or column.type_code in (CLOB, BLOB):
        properties |= column_bits.STORED_AS_LOB
    return {
        "OBJ#": obj,
        "COL#": column.col,
        "SEGCOL#": column.segcol,
        "INTCOL#": column.intcol,
        "NAME": column.name,
        "TYPE#": column.type_code,
        "LENGTH": column.length,
        "PRECISION#": column.precision,
        "SCALE": column.scale,
        "CHARSETFORM": column.charset_form,
        "CHARSETID": column.charset_id,
        "NULL$": 0 if column.nullable else 1,
        "PROPERTY": properties,
    }


def _insert_constraint(
    catalogue: Catalogue, table: Table, number: int, kind: int, intcols: tuple[int, ...]
) -> None:
    catalogue.insert("CDEF$", [{"CON#": number, "OBJ#": table.obj, "TYPE#": kind, "ENABLED": 1}])
    catalogue.insert(
        "CCOL$",
        (
            {"CON#": number, "OBJ#": table.obj, "INTCOL#": intcol, "POS#": at, "SPARE1": 0}
            for at, intcol in enumerate(intcols, 1)
        ),
    )


class _Index(NamedTuple):
    """A unique index over a table's key; `kind` is IND$.TYPE#, `dataobj` 0 where partitioned."""

    obj: int
    dataobj: int
    name: str
    kind: int


def _insert_index(catalogue: Catalogue, table: Table, user: int, index: _Index) -> None:
    obj = index.obj
    catalogue.insert("OBJ$", [_object(obj, index.dataobj or None, user, index.name, _TYPE_INDEX)])
    catalogue.insert(
        "IND$",
        [
            {
                "OBJ#": obj,
                "DATAOBJ#": index.dataobj or None,
                "BO#": table.obj,
                "TYPE#": index.kind,
                "FLAGS": 0,
                "PROPERTY": UNIQUE if index.dataobj else UNIQUE | PARTITIONED_INDEX,
            }
        ],
    )
    catalogue.insert(
        "ICOL$",
        (
            {"OBJ#": obj, "BO#": table.obj, "INTCOL#": intcol, "POS#": at}
            for at, intcol in enumerate(table.key, 1)
        ),
    )


def _insert_rows_index(
    catalogue: Catalogue,
    table: Table,
    user: int,
    parts: list[tuple[int, int]],
    *,
    is_partitioned: bool,
) -> None:
    """Put the index in that holds the rows, with its partitions (OBJ# and DATAOBJ#) if it has."""
    name = f"SYS_IOT_TOP_{table.obj}"
    if not is_partitioned:
        _insert_index(catalogue, table, user, _Index(*parts[0], name, ROWS_INDEX))
        return
    index = _Index(table.obj + PARTITIONED_ROWS_INDEX, 0, name, ROWS_INDEX)
    _insert_index(catalogue, table, user, index)
    for number, (obj, data) in enumerate(parts, 1):
        row = _object(obj, data, user, name, _TYPE_INDEX_PARTITION)
        catalogue.insert("OBJ$", [row | {"SUBNAME": partition_name(number)}])
        catalogue.insert("INDPART$", [{"OBJ#": obj, "DATAOBJ#": data, "BO#": index.obj}])


def _insert_lob(catalogue: Catalogue, table: Table, column: Column, user: int) -> None:
    lob = column.lob
    assert lob is not None
    first, *fragments = lob.segments
    name = f"{table.obj:010d}C{column.intcol:05d}$$"
    catalogue.insert("OBJ$", [_object(first.obj, first.dataobj, user, f"SYS_LOB{name}", _TYPE_LOB)])
    _insert_lob_index(catalogue, first, user, f"SYS_IL{name}")
    flags = (
        (_LOB_NOLOGGING if lob.nologging else 0)
        | (_LOB_ENCRYPTED if lob.encrypted else 0)
        | (_LOB_COMPRESSED if lob.compressed else 0)
        | (_LOB_DEDUPLICATED if lob.deduplicated else 0)
    )
    catalogue.insert(
        "LOB$",
        [
            {
                "OBJ#": table.obj,
                "COL#": column.col,
                "INTCOL#": column.intcol,
                "LOBJ#": first.obj,
                "IND#": first.index_obj,
                "TS#": TABLESPACE,
                "CHUNK": lob.chunk_blocks,
                "FLAGS": flags,
                "PROPERTY": _LOB_IN_ROW
                | (_LOB_SECUREFILE if lob.securefile else 0)
                | (_LOB_PARTITIONED if fragments else 0),
            }
        ],
    )
    for at, fragment in enumerate(fragments):
        row = _object(fragment.obj, fragment.dataobj, user, f"SYS_LOB{name}", _TYPE_LOB_PARTITION)
        catalogue.insert("OBJ$", [row | {"SUBNAME": f"SYS_LOB_P{fragment.obj}"}])
        _insert_lob_index(
            catalogue, fragment, user, f"SYS_IL{name}", f"SYS_IL_P{fragment.index_obj}"
        )
        catalogue.insert(
            "LOBFRAG$",
            [
                {
                    "FRAGOBJ#": fragment.obj,
                    "PARENTOBJ#": first.obj,
                    "TABFRAGOBJ#": table.partitions[at] if at < len(table.partitions) else None,
                    "INDFRAGOBJ#": fragment.index_obj,
                    "TS#": TABLESPACE,
                }
            ],
        )


def _insert_lob_index(
    catalogue: Catalogue, segment: LobSegment, user: int, name: str, partition: str | None = None
) -> None:
    if segment.index_obj is not None:
        kind = _TYPE_INDEX if partition is None else _TYPE_INDEX_PARTITION
        row = _object(segment.index_obj, segment.index_dataobj, user, name, kind)
        catalogue.insert("OBJ$", [row | {"SUBNAME": partition}])
