"""OpenLogReplicator's schema checkpoint JSON as a dictionary snapshot (dictionary §11).

The file holds rows of SYS tables, its numbers as Oracle has them, NULL numbers as −1 or 0, numbers
of 128 bits as ``[low, high]``. What it does not hold: the order of key columns (CCOL$.POS#; the
key is taken in INTCOL# order), unique indexes, whether a constraint is enabled, the defaults of
added columns.

``context`` is DB_NAME; ``database`` is only a label of that tool's configuration. ``db-id`` is the
PDB's DBID in a CDB, log headers have the CDB's (real log).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from olr_pg.dictionary import column_bits
from olr_pg.dictionary.consistency import check_unique_tables, column_fault, sort_columns
from olr_pg.dictionary.json_document import validate
from olr_pg.dictionary.lob import CLOB, Lob, LobSegment
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.refusal import table_refusal
from olr_pg.errors import OlrPgError
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PRIMARY_KEY: Final = 2
"""CDEF$.TYPE# of a primary key (dictionary §2.5)."""

_OPAQUE: Final = 58

_ABSENT_SCALES: Final = (-1, -127)
"""-1 is the file's NULL; −127 is how clients of Oracle print the scale of FLOAT."""


def _join_halves(value: object) -> object:
    if not isinstance(value, list):
        return value
    if len(value) != 2 or not all(isinstance(half, int) and half >= 0 for half in value):
        raise ValueError("should be a number or [low 64 bits, high 64 bits]")
    return value[0] | value[1] << 64


_Bits = Annotated[int, BeforeValidator(_join_halves), Field(ge=0)]
_Number = Annotated[int, Field(ge=0)]


class _Document(BaseModel):
    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"), extra="ignore", strict=True
    )


class _User(_Document):
    user: _Number
    name: str


class _Object(_Document):
    owner: _Number
    obj: _Number
    data_obj: _Number = 0
    name: str
    type: _Number
    flags: _Bits


class _Tab(_Document):
    obj: _Number
    data_obj: _Number
    clu_cols: _Number
    flags: _Bits
    property: _Bits


class _Col(_Document):
    obj: _Number
    col: _Number
    seg_col: _Number
    int_col: _Number
    name: str
    type: _Number
    length: _Number
    precision: int
    scale: int
    charset_form: _Number
    charset_id: _Number
    null: _Number
    property: _Bits


class _Constraint(_Document):
    con: _Number
    obj: _Number
    type: _Number


class _ConstraintColumn(_Document):
    con: _Number
    obj: _Number
    int_col: _Number


class _Partition(_Document):
    obj: _Number
    bo: _Number


class _SubPartition(_Document):
    obj: _Number
    p_obj: _Number


class _LobRow(_Document):
    obj: _Number
    int_col: _Number
    l_obj: _Number
    ts: _Number = 0


class _LobCompositePart(_Document):
    part_obj: _Number
    l_obj: _Number


class _LobFragment(_Document):
    frag_obj: _Number
    parent_obj: _Number
    ts: _Number = 0


class _Tablespace(_Document):
    ts: _Number
    block_size: _Number


class _Incarnation(_Document):
    incarnation: _Number
    resetlogs: _Number
    prior_incarnation: _Number


class _Checkpoint(_Document):
    scn: Annotated[int, Field(ge=0, le=MAX_SCN)]
    schema_scn: Annotated[int, Field(ge=0, le=MAX_SCN)] | None = None
    resetlogs: _Number
    activation: _Number | None = None
    big_endian: Annotated[int, Field(ge=0, le=1)]
    context: Annotated[str, Field(min_length=1)]
    con_id: int
    con_name: str | None = None
    db_id: _Number | None = None
    db_timezone: str = "+00:00"
    nls_character_set: Annotated[str, Field(min_length=1)]
    nls_nchar_character_set: Annotated[str, Field(min_length=1)]
    incarnations: list[_Incarnation] = []
    sys_user: list[_User]
    sys_obj: list[_Object]
    sys_tab: list[_Tab]
    sys_col: list[_Col]
    sys_cdef: list[_Constraint]
    sys_ccol: list[_ConstraintColumn]
    sys_tabpart: list[_Partition]
    sys_tabcompart: list[_Partition]
    sys_tabsubpart: list[_SubPartition]
    sys_lob: list[_LobRow] = []
    sys_lob_comp_part: list[_LobCompositePart] = []
    sys_lob_frag: list[_LobFragment] = []
    sys_ts: list[_Tablespace] = []


def is_schema_checkpoint(document: dict[str, Any]) -> bool:
    """Whether a JSON object looks like a checkpoint file, with a schema or without."""
    return any(key in document for key in ("sys-obj", "sys-tab", "schema-ref-scn", "incarnations"))


def parse_schema_checkpoint(document: dict[str, Any], path: str) -> Snapshot:
    """The snapshot that a schema checkpoint holds.

    Args:
        document: the parsed JSON.
        path: of the file, named in errors.

    Raises:
        OlrPgError: 3004 a key is missing or wrong, 3005 a row refers to a row that is not there,
            3006 the checkpoint has no schema of its own.
    """
    if "sys-obj" not in document and "schema-ref-scn" in document:
        raise OlrPgError(3006, f"its schema is that of SCN {document['schema-ref-scn']}", file=path)
    parsed = validate(_Checkpoint, document, path)
    snapshot = Snapshot(
        scn=parsed.scn if parsed.schema_scn is None else parsed.schema_scn,
        database=_read_database(parsed),
        tables=tuple(_TableReader(parsed, path).tables()),
    )
    check_unique_tables(snapshot, path)
    return snapshot


def _read_database(checkpoint: _Checkpoint) -> Database:
    return Database(
        name=checkpoint.context,
        # Some versions write −1 for a database that is no CDB.
        con_id=max(checkpoint.con_id, 0),
        con_name=checkpoint.con_name or None,
        dbid=checkpoint.db_id or None,
        resetlogs=_lineage(checkpoint),
        activation=checkpoint.activation or None,
        big_endian=bool(checkpoint.big_endian),
        charset=checkpoint.nls_character_set,
        ncharset=checkpoint.nls_nchar_character_set,
        timezone=checkpoint.db_timezone,
    )


def _lineage(checkpoint: _Checkpoint) -> tuple[int, ...]:
    """The resetlogs ids of the current incarnation and its ancestors; orphans are none of them."""
    by_number = {row.incarnation: row for row in checkpoint.incarnations}
    current = [row for row in checkpoint.incarnations if row.resetlogs == checkpoint.resetlogs]
    ids = [checkpoint.resetlogs]
    number = current[-1].prior_incarnation if current else 0
    # Taking rows out as they are visited ends the walk even if the rows form a circle.
    while (row := by_number.pop(number, None)) is not None:
        if row.resetlogs not in ids:
            ids.append(row.resetlogs)
        number = row.prior_incarnation
    return tuple(ids)


class _TableReader:
    """Joins the rows of one checkpoint into tables."""

    def __init__(self, checkpoint: _Checkpoint, path: str) -> None:
        self._checkpoint = checkpoint
        self._path = path
        self._objects = {row.obj: row for row in checkpoint.sys_obj}
        self._users = {row.user: row.name for row in checkpoint.sys_user}
        self._columns: dict[int, list[_Col]] = defaultdict(list)
        for column in checkpoint.sys_col:
            self._columns[column.obj].append(column)
        self._keys = _primary_keys(checkpoint)
        self._partitions = _partitions(checkpoint)
        self._lobs = _lobs(checkpoint, self._objects)

    def tables(self) -> Iterable[Table]:
        for i, tab in enumerate(self._checkpoint.sys_tab):
            obj = self._objects.get(tab.obj)
            if obj is None:
                raise self._unrelated(f"sys-tab[{i}].obj", tab.obj, "sys-obj")
            owner = self._users.get(obj.owner)
            if owner is None:
                raise self._unrelated(f"owner of sys-obj {obj.name}", obj.owner, "sys-user")
            yield self._table(tab, obj, owner)

    def _table(self, tab: _Tab, obj: _Object, owner: str) -> Table:
        key = self._keys.get(tab.obj, ())
        columns = sort_columns(
            _as_xml_text(
                _read_column(row, key, self._lobs.get((tab.obj, row.int_col))),
                self._columns[tab.obj],
            )
            for row in self._columns[tab.obj]
        )
        refusal = table_refusal(
            owner,
            obj.name,
            table_properties=tab.property,
            table_flags=tab.flags,
            object_flags=obj.flags,
            cluster_columns=tab.clu_cols,
        )
        fault = column_fault(columns)
        if refusal is None and fault is not None:
            refusal = f"its columns in the dictionary file are incomplete: {fault}"
        if fault is not None or not _is_usable_key(key, columns):
            key = ()
        return Table(
            owner=owner,
            name=obj.name,
            obj=tab.obj,
            dataobj=tab.data_obj or None,
            columns=columns,
            partitions=tuple(self._partitions.get(tab.obj, ())),
            cluster_columns=tab.clu_cols,
            key_kind=KeyKind.PRIMARY if key else KeyKind.NONE,
            key=key,
            refusal=refusal,
        )

    def _unrelated(self, what: str, number: int, where: str) -> OlrPgError:
        return OlrPgError(3005, f"{what} {number} has no row in {where}", file=self._path)


def _read_column(row: _Col, key: Sequence[int], lob: Lob | None) -> Column:
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
        hidden=column_bits.is_hidden(row.name, row.property),
        virtual=column_bits.is_virtual(row.property),
        stored_as_lob=column_bits.is_string_stored_as_lob(row.type, row.property),
        encrypted=column_bits.is_encrypted(row.property),
        lob=lob,
    )


def _as_xml_text(column: Column, rows: Sequence[_Col]) -> Column:
    """The two columns of an XMLTYPE that is stored as CLOB, with their names changed over.

    The visible column stores nothing; a hidden CLOB of the same COL# has the text and is delivered
    in its place (values-and-lobs §15.3). Binary XML stays as it is: not decoded.
    """
    if column.col == 0:
        return column
    family = [row for row in rows if row.col == column.col]
    visible = next((row for row in family if row.type == _OPAQUE and row.seg_col == 0), None)
    stored = next((row for row in family if row.type == CLOB and row.seg_col > 0), None)
    if visible is None or stored is None or len(family) != 2:
        return column
    if column.intcol == visible.int_col:
        return replace(column, name=stored.name, hidden=True)
    return replace(column, name=visible.name, hidden=False, nullable=visible.null == 0)


def _primary_keys(checkpoint: _Checkpoint) -> dict[int, tuple[int, ...]]:
    """INTCOL# of the primary key's columns by OBJ#."""
    columns: dict[int, list[int]] = defaultdict(list)
    for column in checkpoint.sys_ccol:
        columns[column.con].append(column.int_col)
    return {
        row.obj: tuple(sorted(columns[row.con]))
        for row in checkpoint.sys_cdef
        if row.type == _PRIMARY_KEY and row.con in columns
    }


def _partitions(checkpoint: _Checkpoint) -> dict[int, list[int]]:
    """OBJ# of the partitions and sub-partitions with rows, by OBJ# of the table."""
    table_of_composite = {row.obj: row.bo for row in checkpoint.sys_tabcompart}
    found: dict[int, list[int]] = defaultdict(list)
    for row in checkpoint.sys_tabpart:
        found[row.bo].append(row.obj)
    for sub in checkpoint.sys_tabsubpart:
        # A sub-partition whose partition is not in the file belongs to a table that is not either.
        if sub.p_obj in table_of_composite:
            found[table_of_composite[sub.p_obj]].append(sub.obj)
    return found


def _lobs(checkpoint: _Checkpoint, objects: dict[int, _Object]) -> dict[tuple[int, int], Lob]:
    """LOBs by (OBJ#, INTCOL#). LOB indexes are known by their names only, fragments' not at all."""
    block_sizes = {row.ts: row.block_size for row in checkpoint.sys_ts}
    indexes = {row.name: row for row in objects.values() if row.name.startswith("SYS_IL")}
    lob_of_part = {row.part_obj: row.l_obj for row in checkpoint.sys_lob_comp_part}
    fragments: dict[int, list[_LobFragment]] = defaultdict(list)
    for fragment in checkpoint.sys_lob_frag:
        fragments[lob_of_part.get(fragment.parent_obj, fragment.parent_obj)].append(fragment)

    def segment(obj: int, ts: int, index: _Object | None) -> LobSegment:
        row = objects.get(obj)
        return LobSegment(
            obj,
            row.data_obj or None if row else None,
            index.obj if index else None,
            index.data_obj or None if index else None,
            block_sizes.get(ts),
        )

    found: dict[tuple[int, int], Lob] = {}
    for row in checkpoint.sys_lob:
        index = indexes.get(f"SYS_IL{row.obj:010d}C{row.int_col:05d}$$")
        parts = [segment(part.frag_obj, part.ts, None) for part in fragments[row.l_obj]]
        found[row.obj, row.int_col] = Lob((segment(row.l_obj, row.ts, index), *parts))
    return found


def _is_usable_key(key: Sequence[int], columns: Sequence[Column]) -> bool:
    """Whether every column of the key is delivered, so that clients can find the row by it."""
    delivered = {
        column.intcol
        for column in columns
        if column.segcol > 0 and not column.hidden and column.unsupported is None
    }
    return bool(key) and delivered.issuperset(key)
