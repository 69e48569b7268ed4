"""Builds tables from the rows of the SYS tables (dictionary §2).

A schema checkpoint lacks some information. With a schema checkpoint, the columns of a key are in
the order of INTCOL#, all constraints count as enabled, and there are no unique indexes.

`non_flag_values` finds the values that a column's check constraints allow, for a column that
becomes boolean.

`is_hidden` and similar functions interpret the bits of COL$.PROPERTY (dictionary §2.4,
values-and-lobs §15).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.binary_float import flag_numbers, flag_texts
from olr_pg.datatypes.charsets import bytes_per_character
from olr_pg.dictionary.evolution import renamed_columns
from olr_pg.dictionary.lob_delivery import BLOB, CLOB
from olr_pg.dictionary.model import AddedColumn, Column, KeyKind, Lob, LobSegment, Table
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.snapshot_file import column_fault, sort_columns
from olr_pg.dictionary.stored_segments import (
    NOT_TOLD,
    Compression,
    StoredSegments,
    index_obstacle,
    is_index_organised,
    row_segments,
    rows_index,
)
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.datatypes.policies import BooleanPairs
    from olr_pg.dictionary.structure import LeftOut
    from olr_pg.dictionary.sys_rows import (
        ColRow,
        EcolRow,
        IndexRow,
        LobFragmentRow,
        LobRow,
        ObjectRow,
        PartitionRow,
        SubPartitionRow,
        SysRows,
        TabRow,
    )

_PRIMARY_KEY: Final = 2
"""CDEF$.TYPE# of a primary key (dictionary §2.5)."""

_LOG_ALL: Final = 17
"""CDEF$.TYPE# of supplemental logging of ALL columns (dictionary §2.5)."""

_LOG_ALL_OF_USER: Final = 1 << 3
"""Bit of USER$.SPARE1: ALL columns of the owner's tables are logged supplementally (dictionary
§2.2).
"""

_ROW_DEPENDENCIES: Final = 0x00800000
"""Bit of TAB$.FLAGS (dictionary §2.3)."""

_OPAQUE: Final = 58

_INDEX: Final = 1
_INDEX_PARTITION: Final = 20
_INDEX_SUBPARTITION: Final = 35
"""OBJ$.TYPE# of an index, an index partition and an index sub-partition (dictionary §2.1)."""

_NORMAL_INDEX: Final = 1
_UNIQUE: Final = 0x1
_FUNCTIONAL: Final = 0x10
_UNUSABLE: Final = 0x1 | 0x400
"""A value of IND$.TYPE#, then bits of IND$: `_UNIQUE` and `_FUNCTIONAL` of PROPERTY, `_UNUSABLE` of
FLAGS (dictionary §2.6).
"""

_SECUREFILE: Final = 0x800
_LOB_NOLOGGING: Final = 0x2 | 0x10 | 0x100
_LOB_ENCRYPTED: Final = 0x1000
_LOB_COMPRESSED: Final = 0x2000 | 0x4000 | 0x8000
_LOB_DEDUPLICATED: Final = 0x10000 | 0x20000
"""Bits of LOB$: `_SECUREFILE` of PROPERTY, the others of FLAGS (dictionary §2.7)."""

_ABSENT_SCALES: Final = (-1, -127)
"""Scales that mean NULL: −1 is NULL in a dictionary file, and Oracle's clients show −127 for
FLOAT.
"""


_TEMPORARY: Final = "the table is a temporary table, so the redo does not contain its rows"
_EXTERNAL: Final = "the table is an external table, so the redo does not contain its rows"
WITHOUT_ROWS: Final = frozenset({_TEMPORARY, _EXTERNAL})
"""The reasons why patterns of `apply.tables` do not match a table (`table_list.WITH_REDO`)."""

# Reasons why a table cannot be replicated: bits of TAB$.PROPERTY, TAB$.FLAGS and OBJ$.FLAGS, and
# names (dictionary §2.1, §2.3, §13).
_TABLE_PROPERTIES: Final = (
    (0x1, "the table is an object table"),
    (0x200, "the table is the overflow segment of an index-organised table"),
    (0x2000, "the table is the storage table of a nested table"),
    (0xC00000, _TEMPORARY),
    (0x80000000, _EXTERNAL),
)
_TABLE_FLAGS: Final = ((0x20000000, "the table is the mapping table of an index-organised table"),)
_OBJECT_FLAGS: Final = (
    (0x22, _TEMPORARY),
    (0x80, "the table was dropped and is in the recycle bin"),
    (0x10, "the table is a secondary object of a domain index"),
)
_SHARING: Final = 0x10000 | 0x20000 | 0x100000000
"""Bits of OBJ$.FLAGS: how an application container shares the object (dictionary §2.1)."""

_SHARED_ROWS: Final = {
    0x20000: "the table's rows are in the application root (SHARING=DATA), and their redo belongs"
    " to that container",
    0x100010000: "a part of the table's rows is in the application root (SHARING=EXTENDED DATA),"
    " and their redo belongs to that container",
}
_AUXILIARY_NAMES: Final = (
    (r"BIN\$.*", "the table was dropped and is in the recycle bin"),
    (r"MLOG\$_.*", "the table is a materialized view log"),
    (r"RUPD\$_.*", "the table is the temporary log of an updatable materialized view"),
    (r"SYS_IOT_OVER_.*", "the table is the overflow segment of an index-organised table"),
    (r"DR\$.*\$.*", "the table is storage of a text index"),
    (r"AQ\$_.*", "the table is auxiliary storage of a queue table"),
)


def join_tables(
    rows: SysRows,
    path: str,
    *,
    all_columns_logged: bool = True,
    compression: Compression = NOT_TOLD,
) -> tuple[Table, ...]:
    """Build tables from the rows of SYS tables.

    Args:
        path: the path of the file with the rows, for errors.
        all_columns_logged: whether the database logs ALL columns of all tables supplementally; True
            if unknown.
        compression: the compression of existing segments, if known.

    Raises:
        OlrPgError: 3005, a row references a missing row.
    """
    return tuple(_TableReader(rows, path, all_columns_logged, compression).tables())


class _TableReader:
    """Builds tables from rows."""

    def __init__(
        self, rows: SysRows, path: str, all_columns_logged: bool, compression: Compression
    ) -> None:
        self._rows = rows
        self._path = path
        self._objects = {row.obj: row for row in rows.sys_obj}
        self._users = {row.user: row.name for row in rows.sys_user}
        self._columns: dict[int, list[ColRow]] = defaultdict(list)
        for column in rows.sys_col:
            self._columns[column.obj].append(column)
        self._keys = _primary_keys(rows)
        self._index_columns = _index_columns(rows)
        self._unique = _unique_keys(rows, self._index_columns)
        self._indexes: dict[int, list[IndexRow]] = defaultdict(list)
        for index in rows.sys_ind:
            self._indexes[index.bo].append(index)
        self._partitions = _partitions(rows)
        self._index_parts: dict[int, list[PartitionRow]] = defaultdict(list)
        for part in rows.sys_indpart:
            self._index_parts[part.bo].append(part)
        self._all_logged = all_columns_logged
        self._logged_tables = {row.obj for row in rows.sys_cdef if row.type == _LOG_ALL}
        self._logged_users = {row.user for row in rows.sys_user if row.spare1 & _LOG_ALL_OF_USER}
        self._added = {(row.tab_obj, row.col_num): _added(row) for row in rows.sys_ecol}
        self._stored = StoredSegments(rows, compression)
        self._lobs = _lobs(rows, self._objects, self._stored)

    def tables(self) -> Iterable[Table]:
        for i, tab in enumerate(self._rows.sys_tab):
            obj = self._objects.get(tab.obj)
            if obj is None:
                raise self._unrelated(f"sys-tab[{i}].obj", tab.obj, "sys-obj")
            owner = self._users.get(obj.owner)
            if owner is None:
                raise self._unrelated(f"owner of sys-obj {obj.name}", obj.owner, "sys-user")
            yield self._table(tab, obj, owner)

    def _table(self, tab: TabRow, obj: ObjectRow, owner: str) -> Table:
        key = self._keys.get(tab.obj, ())
        columns = sort_columns(
            _as_xml(
                _read_column(
                    row,
                    key,
                    self._lobs.get((tab.obj, row.int_col)),
                    self._added.get((tab.obj, row.int_col)),
                ),
                self._columns[tab.obj],
            )
            for row in self._columns[tab.obj]
        )
        organised = is_index_organised(tab)
        index = rows_index(self._indexes[tab.obj]) if organised else None
        index_key = self._index_columns[index.obj] if index else ()
        index_parts = self._index_parts[index.obj] if index else []
        parts: Sequence[IndexRow | PartitionRow | SubPartitionRow]
        parts = self._partitions.get(tab.obj, [])
        if index:
            parts = row_segments(tab, index, index_parts, parts)
        obstacle = None
        if organised:
            obstacle = index_obstacle(tab, index, index_parts, index_key, columns)
        obstacle = obstacle or self._stored.obstacle(
            tab.obj, owner, obj.name, all_columns_logged=self._logs_all_columns(obj)
        )
        refusal = table_refusal(owner, obj, tab, obstacle)
        fault = column_fault(columns)
        if refusal is None and fault is not None:
            refusal = f"the table's columns in the dictionary are incomplete: {fault}"
        any_told = any(part.data_obj for part in parts)
        kind = KeyKind.PRIMARY
        if not _is_usable_key(key, columns):
            kind, key = KeyKind.UNIQUE, self._unique_key(tab.obj, columns)
        if fault is not None or not key:
            kind, key = KeyKind.NONE, ()
        return Table(
            owner=owner,
            name=obj.name,
            obj=tab.obj,
            dataobj=tab.data_obj or None,
            columns=columns,
            partitions=tuple(part.obj for part in parts),
            segments=tuple(part.data_obj for part in parts) if any_told else (),
            cluster_columns=tab.clu_cols,
            key_kind=kind,
            key=key,
            refusal=refusal,
            index_organised=organised,
            row_dependencies=bool(tab.flags & _ROW_DEPENDENCIES),
        )

    def _logs_all_columns(self, table: ObjectRow) -> bool:
        logs = table.obj in self._logged_tables or table.owner in self._logged_users
        return self._all_logged or logs

    def _unique_key(self, obj: int, columns: Sequence[Column]) -> tuple[int, ...]:
        """Return the best unique key to identify rows: all its columns are NOT NULL, and it has the
        fewest columns.
        """
        filled = {column.intcol for column in columns if not column.nullable}
        usable = [
            key
            for key in self._unique.get(obj, ())
            if filled.issuperset(key) and _is_usable_key(key, columns)
        ]
        return min(usable, key=len, default=())

    def _unrelated(self, what: str, number: int, where: str) -> OlrPgError:
        return OlrPgError(
            Code.DICTIONARY_CONTRADICTS_ITSELF,
            f"{what} {number} has no row in {where}",
            file=self._path,
        )


def table_refusal(owner: str, obj: ObjectRow, tab: TabRow, obstacle: str | None) -> str | None:
    """Return why a table cannot be replicated; None if it can.

    Oracle's own clustered tables are not refused. Oracle's clustered tables contain the core of the
    dictionary, and must be decoded to follow DDL (dictionary §1.3, §10).

    Args:
        obstacle: the reason that its index or its segments give (`stored_segments.index_obstacle`,
            `StoredSegments.obstacle`).
    """
    bits = ((tab.property, _TABLE_PROPERTIES), (tab.flags, _TABLE_FLAGS))
    for value, reasons in (*bits, (obj.flags, _OBJECT_FLAGS)):
        for mask, reason in reasons:
            if value & mask:
                return reason
    if not is_oracle_schema(owner) and obj.flags & _SHARING in _SHARED_ROWS:
        return _SHARED_ROWS[obj.flags & _SHARING]
    for pattern, reason in _AUXILIARY_NAMES:
        if re.fullmatch(pattern, obj.name, re.DOTALL):
            return reason
    if obstacle is None and tab.clu_cols > 0 and not is_oracle_schema(owner):
        return "the table is stored in a cluster"
    return obstacle


def _added(row: EcolRow) -> AddedColumn:
    default = None if row.default is None else bytes.fromhex(row.default)
    return AddedColumn(default, None if row.guard_id < 0 else row.guard_id)


def _read_column(
    row: ColRow, key: Sequence[int], lob: Lob | None, added: AddedColumn | None
) -> Column:
    return Column(
        name=row.name,
        segcol=row.seg_col,
        intcol=row.int_col,
        col=row.col,
        type_code=row.type,
        length=row.length,
        precision=None if row.precision == -1 else row.precision,
        scale=None if row.scale in _ABSENT_SCALES else row.scale,
        charset_id=row.charset_id or None,
        charset_form=row.charset_form or None,
        nullable=row.null == 0 and row.int_col not in key,
        hidden=is_hidden(row.name, row.property),
        virtual=is_virtual(row.property),
        stored_as_lob=is_string_stored_as_lob(row.type, row.property),
        encrypted=is_encrypted(row.property),
        lob=lob,
        added=added,
        guard=is_guard(row.property),
        char_length=char_length(
            row.type, row.length, row.property, bytes_per_character(row.charset_id)
        ),
    )


def _as_xml(column: Column, rows: Sequence[ColRow]) -> Column:
    """Return the column; if it belongs to an XMLTYPE, with the name of the XMLTYPE's other column.

    An XMLTYPE has two columns. The visible column stores nothing; a hidden CLOB or BLOB with the
    same COL# contains the documents as text or as binary XML. This function exchanges the names of
    the two columns, so that the LOB is delivered under the name that the user gave (values-and-lobs
    §15.3).
    """
    if column.col == 0:
        return column
    family = [row for row in rows if row.col == column.col]
    visible = next((row for row in family if row.type == _OPAQUE and row.seg_col == 0), None)
    stored = next((row for row in family if row.type in (CLOB, BLOB) and row.seg_col > 0), None)
    if visible is None or stored is None or len(family) != 2:
        return column
    if column.intcol == visible.int_col:
        return replace(column, name=stored.name, hidden=True)
    return replace(column, name=visible.name, hidden=False, nullable=visible.null == 0, xml=True)


def _primary_keys(rows: SysRows) -> dict[int, tuple[int, ...]]:
    """Return INTCOL# of the primary key's columns by OBJ#."""
    columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for column in rows.sys_ccol:
        columns[column.con].append((column.pos, column.int_col))
    return {
        row.obj: tuple(intcol for _, intcol in sorted(columns[row.con]))
        for row in rows.sys_cdef
        if row.type == _PRIMARY_KEY and row.enabled and row.con in columns
    }


def _index_columns(rows: SysRows) -> dict[int, tuple[int, ...]]:
    """Return INTCOL# of the columns of each index in their order, by OBJ# of the index."""
    columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for column in rows.sys_icol:
        columns[column.obj].append((column.pos, column.int_col))
    ordered = {obj: tuple(intcol for _, intcol in sorted(found)) for obj, found in columns.items()}
    return defaultdict(tuple, ordered)


def _unique_keys(
    rows: SysRows, columns: dict[int, tuple[int, ...]]
) -> dict[int, list[tuple[int, ...]]]:
    """Return INTCOL# of the columns of each usable unique index, the oldest index first, by OBJ# of
    the table.
    """
    found: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for row in sorted(rows.sys_ind, key=lambda row: row.obj):
        is_plain = row.type == _NORMAL_INDEX and not row.property & _FUNCTIONAL
        if is_plain and row.property & _UNIQUE and not row.flags & _UNUSABLE:
            found[row.bo].append(columns[row.obj])
    return found


def _partitions(rows: SysRows) -> dict[int, list[PartitionRow | SubPartitionRow]]:
    """Group the partitions and sub-partitions with rows by OBJ# of the table."""
    table_of_composite = {row.obj: row.bo for row in rows.sys_tabcompart}
    found: dict[int, list[PartitionRow | SubPartitionRow]] = defaultdict(list)
    for row in rows.sys_tabpart:
        found[row.bo].append(row)
    for sub in rows.sys_tabsubpart:
        # If the partition of a sub-partition is not in the file, the table is not in the file
        # either.
        if sub.p_obj in table_of_composite:
            found[table_of_composite[sub.p_obj]].append(sub)
    return {bo: sorted(parts, key=lambda part: part.obj) for bo, parts in found.items()}


def _lobs(
    rows: SysRows, objects: dict[int, ObjectRow], stored: StoredSegments
) -> dict[tuple[int, int], Lob]:
    """Return LOBs by (OBJ#, INTCOL#).

    If the rows do not contain OBJ# of a LOB index, the index is found by its name. The partitions
    of the index have the name of the index, and their OBJ# are in the order of the LOB's
    partitions.
    """
    block_sizes = {row.ts: row.block_size for row in rows.sys_ts}
    indexes = {row.name: row for row in objects.values() if _is_lob_index(row, _INDEX)}
    index_parts: dict[str, list[ObjectRow]] = defaultdict(list)
    for part in sorted(objects.values(), key=lambda one: one.obj):
        if _is_lob_index(part, _INDEX_PARTITION, _INDEX_SUBPARTITION):
            index_parts[part.name].append(part)
    lob_of_part = {row.part_obj: row.l_obj for row in rows.sys_lob_comp_part}
    fragments: dict[int, list[LobFragmentRow]] = defaultdict(list)
    for fragment in rows.sys_lob_frag:
        fragments[lob_of_part.get(fragment.parent_obj, fragment.parent_obj)].append(fragment)

    def segment(obj: int, ts: int, index: ObjectRow | None) -> LobSegment:
        row = objects.get(obj)
        return LobSegment(
            obj,
            row.data_obj or None if row else None,
            index.obj if index else None,
            index.data_obj or None if index else None,
            block_sizes.get(ts),
        )

    found: dict[tuple[int, int], Lob] = {}
    for row in rows.sys_lob:
        name = f"SYS_IL{row.obj:010d}C{row.int_col:05d}$$"
        index = objects.get(row.ind, indexes.get(name))
        ordered = sorted(fragments[row.l_obj], key=lambda one: one.frag_obj)
        named: Sequence[ObjectRow | None] = index_parts[name]
        if len(named) != len(ordered):
            named = [None] * len(ordered)
        parts = [
            segment(one.frag_obj, one.ts, objects.get(one.ind, of_name))
            for one, of_name in zip(ordered, named, strict=True)
        ]
        segments = (segment(row.l_obj, row.ts, index), *parts)
        place = stored.lob_place(row.obj, row.int_col)
        found[row.obj, row.int_col] = _describe_lob(row, segments, place)
    return found


def _is_lob_index(row: ObjectRow, *kinds: int) -> bool:
    """Return whether an object has one of these types and is named like a LOB index."""
    return row.type in kinds and row.name.startswith("SYS_IL")


def _describe_lob(row: LobRow, segments: tuple[LobSegment, ...], encrypted_in: str) -> Lob:
    flags = row.flags or 0
    return Lob(
        segments,
        securefile=None if row.property is None else bool(row.property & _SECUREFILE),
        chunk_blocks=row.chunk or None,
        nologging=bool(flags & _LOB_NOLOGGING),
        compressed=bool(flags & _LOB_COMPRESSED),
        deduplicated=bool(flags & _LOB_DEDUPLICATED),
        encrypted=bool(flags & _LOB_ENCRYPTED),
        encrypted_in=encrypted_in,
    )


def carry_over(known: Table, before: Table, after: Table) -> Table:
    """Return the table `after`, with the known properties that the rows of SYS tables do not
    contain.

    Args:
        known: the table before the change, with all known properties.
        before, after: the table as built from its SYS rows before and after the change.
    """
    renamed = renamed_columns(before, after)
    told = {renamed.get(column.name, column.name): column for column in known.columns}
    joined = {renamed.get(column.name, column.name): column for column in before.columns}
    columns = sort_columns(
        _carry_column(told[column.name], joined[column.name], column)
        if column.name in told and column.name in joined
        else column
        for column in after.columns
    )
    key_kind, key = after.key_kind, after.key
    if before.key == key and known.key:
        names = {column.intcol: name for name, column in told.items()}
        numbers = {column.name: column.intcol for column in columns if not column.hidden}
        kept = tuple(numbers.get(names[intcol], 0) for intcol in known.key)
        key_kind, key = (known.key_kind, kept) if all(kept) else (KeyKind.NONE, ())
    return replace(after, columns=columns, key_kind=key_kind, key=key)


def _carry_column(known: Column, before: Column, after: Column) -> Column:
    place: dict[str, Any] = {
        name: getattr(after, name) for name in ("name", "segcol", "intcol", "col")
    }
    lob = after.lob
    if lob is not None and known.lob is not None:
        place_of_lob: dict[str, Any] = {"segments": lob.segments, "encrypted_in": lob.encrypted_in}
        lob = known.lob if before.lob == lob else replace(known.lob, **place_of_lob)
    if replace(before, **place, lob=None) == replace(after, lob=None):
        return replace(known, **place, lob=lob)
    return replace(after, lob=lob)


def _is_usable_key(key: Sequence[int], columns: Sequence[Column]) -> bool:
    """Return whether all columns of the key are delivered, so that clients can identify rows by the
    key.
    """
    delivered = {
        column.intcol
        for column in columns
        if column.segcol > 0 and not column.hidden and column.unsupported is None
    }
    return bool(key) and delivered.issuperset(key)


_LITERAL: Final = r"'(?:[^']|'')*'|[+-]?\d+"
_LIST: Final = re.compile(
    rf"""\(*\s*"?(?P<name>[^"\s(]+)"?\s*
        (?:IN\s*\(\s*(?P<list>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*\)
        |BETWEEN\s+(?P<low>[+-]?\d+)\s+AND\s+(?P<high>[+-]?\d+)
        |=\s*(?P<one>{_LITERAL}))\s*\)*""",
    re.IGNORECASE | re.VERBOSE,
)
_CHECK: Final = re.compile(r"\bCHECK\s*\((.*)\)[^)]*", re.IGNORECASE | re.DOTALL)
_WIDEST: Final = 100


def non_flag_values(
    conditions: Iterable[str], column: str, pairs: BooleanPairs, *, is_number: bool
) -> tuple[str, ...] | None:
    """Return the values that a column's check constraints allow although they represent neither
    true nor false; None if the allowed values are unknown.

    Only checks of one column against a list of literals, or a short range, are supported.

    Args:
        conditions: the conditions of the table's check constraints, in Oracle's SQL.
    """
    known = set(map(str, flag_numbers(pairs))) if is_number else set(flag_texts(pairs))
    found: tuple[str, ...] | None = None
    for condition in conditions:
        values = _allowed(condition.strip(), column)
        if values is not None:
            strays = tuple(value for value in values if value not in known)
            # A value must fulfil all checks, so the check that allows the fewest such values
            # decides.
            found = strays if found is None or len(strays) < len(found) else found
    return found


def check_conditions(parts: Iterable[LeftOut]) -> list[str]:
    """Return the conditions of the check constraints among a structure's left-out parts."""
    found = (_CHECK.search(part.definition) for part in parts if part.kind == "check constraint")
    return [one[1] for one in found if one is not None]


def _allowed(condition: str, column: str) -> list[str] | None:
    found = _LIST.fullmatch(condition)
    if found is None or found["name"] not in (column, column.lower()):
        return None
    if found["low"] is not None:
        low, high = int(found["low"]), int(found["high"])
        return [str(value) for value in range(low, high + 1)] if high - low < _WIDEST else None
    return [_value(one) for one in re.findall(_LITERAL, found["list"] or found["one"])]


def _value(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else str(int(text))


ATTRIBUTE: Final = 1 << 0
OID: Final = 1 << 1
NESTED_TABLE: Final = 1 << 2
VIRTUAL: Final = 1 << 3
NESTED_TABLE_SET: Final = 1 << 4
HIDDEN: Final = 1 << 5
PRIMARY_KEY_OID: Final = 1 << 6
STORED_AS_LOB: Final = 1 << 7
SYSTEM_GENERATED: Final = 1 << 8
ROW_INFO: Final = 1 << 9
NESTED_TABLE_SET_ID: Final = 1 << 10
DROPPED: Final = 1 << 14
UNUSED: Final = 1 << 15
VIRTUAL_ATTRIBUTE: Final = 1 << 16
SNAPSHOT_HIDDEN: Final = 1 << 20
REF_HIDDEN: Final = 1 << 21
RLS_HIDDEN: Final = 1 << 22
LENGTH_IN_CHARS: Final = 1 << 23
TYPE_ID: Final = 1 << 25
ENCRYPTED: Final = 1 << 26
GUARD: Final = 1 << 39

_GONE: Final = DROPPED | UNUSED | GUARD
_INTERNAL: Final = (
    ATTRIBUTE
    | OID
    | NESTED_TABLE_SET
    | PRIMARY_KEY_OID
    | SYSTEM_GENERATED
    | ROW_INFO
    | NESTED_TABLE_SET_ID
    | SNAPSHOT_HIDDEN
    | REF_HIDDEN
    | RLS_HIDDEN
    | TYPE_ID
)
_LENGTHS_MAX: Final = {1: 4000, 9: 4000, 96: 2000}
"""Maximum bytes by character type. A length in characters cannot exceed this number of bytes."""

_STRING_TYPES: Final = frozenset({1, 9, 23})
_ROW_ARCHIVAL: Final = "ORA_ARCHIVE_STATE"
_BLOCKCHAIN_PREFIX: Final = "ORABCTAB_"


def is_hidden(name: str, properties: int) -> bool:
    """Return whether the column belongs to Oracle and contains no user data, or is dropped or
    unused.

    A user's INVISIBLE column also has the bit HIDDEN, but an ordinary name and no bit of Oracle's
    internal columns. Such a column contains user data, so the result is False.
    """
    if properties & _GONE:
        return True
    if not properties & HIDDEN:
        return False
    return bool(properties & _INTERNAL) or name == _ROW_ARCHIVAL or _has_internal_name(name)


def is_row_archival(name: str, *, hidden: bool) -> bool:
    """Return whether the column says which rows are archived in the database (ROW ARCHIVAL)."""
    return hidden and name == _ROW_ARCHIVAL


def _has_internal_name(name: str) -> bool:
    return name.startswith(_BLOCKCHAIN_PREFIX) or (name.startswith("SYS_") and name.endswith("$"))


def is_virtual(properties: int) -> bool:
    """Return whether the column is computed and not stored."""
    return bool(properties & (VIRTUAL | VIRTUAL_ATTRIBUTE))


def is_encrypted(properties: int) -> bool:
    """Return whether the column's bytes are encrypted (TDE column encryption)."""
    return bool(properties & ENCRYPTED)


def is_guard(properties: int) -> bool:
    """Return whether the column is its table's guard column: a hidden column whose bits show which
    added columns a row stores (values-and-lobs §14).
    """
    return bool(properties & GUARD)


def char_length(type_code: int, length: int, properties: int, bytes_max: int | None) -> int | None:
    """Return the column's declared length in characters; None if it is declared in bytes, or cannot
    be computed.

    COL$.LENGTH is the number of characters times `bytes_max`, the maximum bytes per character in
    the column's character set. The length in bytes is limited to the type's maximum; at this
    maximum, the number of characters is unknown (values-and-lobs §1.1).
    """
    if not properties & LENGTH_IN_CHARS or type_code not in _LENGTHS_MAX or bytes_max is None:
        return None
    if length >= _LENGTHS_MAX[type_code] or length % bytes_max:
        return None
    return length // bytes_max


def is_string_stored_as_lob(type_code: int, properties: int) -> bool:
    """Return whether the column is an extended string or RAW, stored as a LOB (values-and-lobs
    §15.4).
    """
    return type_code in _STRING_TYPES and bool(properties & STORED_AS_LOB)
