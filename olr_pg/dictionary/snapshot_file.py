"""Reads and writes our own snapshot format, ``olr-pg-dictionary/1``: a dictionary as one JSON file
(UTF-8).

::

    {"format": "olr-pg-dictionary/1",
     "scn": 2266634,
     "database": {"name": "FREE", "con_id": 3, "con_name": "FREEPDB1", "dbid": 1385559638,
                  "resetlogs": [1224959854, 1222743579], "activation": 1496992686,
                  "big_endian": false, "charset": "AL32UTF8", "ncharset": "AL16UTF16",
                  "timezone": "+00:00"},
     "tables": [
       {"owner": "OLR_TEST", "name": "TEST_CDC", "obj": 72726, "dataobj": 72726,
        "row_dependencies": false,
        "columns": [
          {"name": "ID", "type_code": 2, "length": 22, "segcol": 1, "intcol": 1, "col": 1,
           "nullable": false},
          {"name": "NAME", "type_code": 1, "length": 100, "segcol": 2, "intcol": 2, "col": 2,
           "charset_id": 873, "charset_form": 1}],
        "key": {"kind": "primary key", "columns": ["ID"]}}]}

The keys are the attributes of `Snapshot`, `Database`, `Table` and `Column` in
`olr_pg.dictionary.model`, and of `Lob` and `LobSegment` in `olr_pg.dictionary.lob` (key ``lob`` of
a column), with the same meaning. A key with the default value can be omitted. Three things differ:
``key`` contains column names instead of INTCOL#, the order of ``columns`` has no meaning, and
`Snapshot.sys_rows` is the key ``sys`` (`sys_rows`). Unknown keys are errors.
``docs/dictionary-snapshot.md`` is the page for users.

If a snapshot is written and read again, the result is equal to it.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.dictionary.consistency import check_unique_tables, column_fault, sort_columns
from olr_pg.dictionary.json_document import validate
from olr_pg.dictionary.lob import Lob, LobSegment
from olr_pg.dictionary.model import AddedColumn, Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.dictionary.true_charsets import with_true_charsets
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import written_whole
from olr_pg.scalars import MAX_SCN

FORMAT_PREFIX: Final = "olr-pg-dictionary/"
FORMAT: Final = FORMAT_PREFIX + "1"

_NAME_BYTES_MAX: Final = 255
"""The protocol has one byte for the size of a name (protocol, “Elements”)."""


def _check_name(name: str) -> str:
    if len(name.encode()) > _NAME_BYTES_MAX:
        raise ValueError(f"should have at most {_NAME_BYTES_MAX} bytes in UTF-8")
    if '"' in name or "\0" in name:
        raise ValueError('should hold neither " nor NUL')
    return name


_Name = Annotated[str, Field(min_length=1), AfterValidator(_check_name)]
_U16 = Annotated[int, Field(ge=0, le=0xFFFF)]
_U32 = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
_Hex = Annotated[str, Field(pattern="^([0-9A-F]{2})+$")]
_Int32 = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _LobSegment(_Document):
    obj: _U32
    dataobj: _U32 | None = None
    index_obj: _U32 | None = None
    index_dataobj: _U32 | None = None
    block_size: _U32 | None = None


class _Lob(_Document):
    segments: list[_LobSegment] = []
    securefile: bool | None = None
    chunk_blocks: _U16 | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""


class _Added(_Document):
    default: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] | None = None
    guard_id: _U16 | None = None


class _Column(_Document):
    name: _Name
    segcol: _U16
    intcol: _U16
    col: _U16
    type_code: _U16
    length: _U32
    precision: _Int32 | None = None
    scale: _Int32 | None = None
    charset_id: _U16 | None = None
    charset_form: Annotated[int, Field(ge=1, le=4)] | None = None
    nullable: bool = True
    hidden: bool = False
    virtual: bool = False
    stored_as_lob: bool = False
    encrypted: bool = False
    lob: _Lob | None = None
    xml: bool = False
    char_length: _U32 | None = None
    added: _Added | None = None
    guard: bool = False


class _XmlName(_Document):
    id: _Hex
    namespace: _Hex
    local: Annotated[str, Field(min_length=1)]
    attribute: bool = False


class _XmlTokens(_Document):
    namespaces: dict[_Hex, str] = {}
    names: list[_XmlName] = []


class _Key(_Document):
    kind: Literal["primary key", "unique key"]
    columns: Annotated[list[_Name], Field(min_length=1)]


class _Table(_Document):
    owner: _Name
    name: _Name
    obj: Annotated[int, Field(ge=1, le=0xFFFFFFFF)]
    dataobj: _U32 | None = None
    columns: list[_Column]
    partitions: list[_U32] = []
    segments: list[_U32] = []
    index_organised: bool = False
    cluster_columns: _U16 = 0
    row_dependencies: bool | None = None
    key: _Key | None = None
    refusal: str | None = None


class _Database(_Document):
    name: _Name
    con_id: _U16 = 0
    con_name: _Name | None = None
    dbid: _U32 | None = None
    resetlogs: list[_U32] = []
    activation: _U32 | None = None
    big_endian: bool | None = None
    charset: _Name = "AL32UTF8"
    ncharset: _Name = "AL16UTF16"
    timezone: _Name = "+00:00"
    true_charsets: dict[_Name, _Name] = {}


class _Snapshot(_Document):
    format: Literal["olr-pg-dictionary/1"]
    scn: Annotated[int, Field(ge=0, le=MAX_SCN)]
    database: _Database
    tables: list[_Table]
    sys: SysRows | None = None
    xml_tokens: _XmlTokens | None = None
    structure: Structure = NO_STRUCTURE


def parse_snapshot(document: dict[str, Any], path: str) -> Snapshot:
    """Parse the snapshot in a JSON object of our own format.

    Args:
        document: the parsed JSON.
        path: the path of the file, for errors.

    Raises:
        OlrPgError: 3003 the format has another version, 3004 a key is missing, unknown or wrong,
            3005 two tables have the same name or object number.
    """
    found = document.get("format")
    if found != FORMAT:
        raise OlrPgError(
            Code.NOT_A_DICTIONARY, f"expected format {FORMAT!r}, found {found!r}", file=path
        )
    parsed = validate(_Snapshot, document, path)
    database = parsed.database.model_dump(exclude={"resetlogs", "true_charsets"})
    snapshot = Snapshot(
        scn=parsed.scn,
        database=Database(**database, resetlogs=tuple(parsed.database.resetlogs)),
        tables=tuple(
            _read_table(table, f"tables[{i}]", path) for i, table in enumerate(parsed.tables)
        ),
        sys_rows=parsed.sys,
        xml_tokens=_read_xml_tokens(parsed.xml_tokens),
        structure=parsed.structure,
    )
    check_unique_tables(snapshot, path)
    return with_true_charsets(snapshot, tuple(parsed.database.true_charsets.items()))


def _read_xml_tokens(tokens: _XmlTokens | None) -> XmlTokens:
    if tokens is None:
        return NO_TOKENS
    names = {
        name.id: QualifiedName(name.namespace, name.local, name.attribute) for name in tokens.names
    }
    return XmlTokens(tokens.namespaces, names)


def _read_table(table: _Table, place: str, path: str) -> Table:
    columns = sort_columns(_read_column(column) for column in table.columns)
    fault = column_fault(columns)
    if fault is not None and table.refusal is None:
        raise OlrPgError(
            Code.DICTIONARY_INVALID,
            f"{table.owner}.{table.name}: {fault}",
            file=path,
            key=f"{place}.columns",
        )
    intcols = {column.name: column.intcol for column in columns}
    key = table.key.columns if table.key else []
    for i, name in enumerate(key):
        if name not in intcols or name in key[:i]:
            raise OlrPgError(
                Code.DICTIONARY_INVALID,
                f"expected the names of different columns of {table.owner}.{table.name},"
                f" found {name!r}",
                file=path,
                key=f"{place}.key.columns[{i}]",
            )
    return Table(
        owner=table.owner,
        name=table.name,
        obj=table.obj,
        dataobj=table.dataobj,
        columns=columns,
        partitions=tuple(table.partitions),
        segments=tuple(table.segments),
        index_organised=table.index_organised,
        cluster_columns=table.cluster_columns,
        row_dependencies=table.row_dependencies,
        key_kind=KeyKind(table.key.kind) if table.key else KeyKind.NONE,
        key=tuple(intcols[name] for name in key),
        refusal=table.refusal,
    )


def _read_column(column: _Column) -> Column:
    values = column.model_dump(exclude={"lob", "added"})
    return Column(
        **values,
        lob=None if column.lob is None else _read_lob(column.lob),
        added=None if column.added is None else _read_added(column.added),
    )


def _read_added(added: _Added) -> AddedColumn:
    default = None if added.default is None else bytes.fromhex(added.default)
    return AddedColumn(default, added.guard_id)


def _read_lob(lob: _Lob) -> Lob:
    segments = tuple(LobSegment(**segment.model_dump()) for segment in lob.segments)
    return Lob(segments, **lob.model_dump(exclude={"segments"}))


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Return the content of the snapshot's file: one line for the head, then one line per table."""
    head = orjson.dumps(
        {
            "format": FORMAT,
            "scn": snapshot.scn,
            "database": _write_database(snapshot.database),
        }
    )
    lines = b",\n".join(orjson.dumps(_write_table(table)) for table in snapshot.tables)
    head = head[:-1] + _write_sys_rows(snapshot.sys_rows) + _write_xml_tokens(snapshot.xml_tokens)
    head += _write_structure(snapshot.structure)
    return head + b',"tables":[\n' + lines + b"\n]}\n"


def _write_database(database: Database) -> dict[str, Any]:
    written = asdict(database)
    del written["containers"]
    if not written.pop("true_charsets"):
        return written
    return {**written, "true_charsets": dict(database.true_charsets)}


def _write_sys_rows(rows: SysRows | None) -> bytes:
    if rows is None:
        return b""
    parts = (
        orjson.dumps(name) + b":[\n" + b",\n".join(map(orjson.dumps, found)) + b"]"
        for name, found in rows.as_json().items()
    )
    levels = orjson.dumps(rows.levels_as_json())[1:-1]
    return b',"sys":{' + b",\n".join([*parts, *([levels] if levels else [])]) + b"}"


def _write_xml_tokens(tokens: XmlTokens) -> bytes:
    if tokens == NO_TOKENS:
        return b""
    names = [
        {
            "id": key,
            "namespace": name.namespace,
            "local": name.local,
            "attribute": name.is_attribute,
        }
        for key, name in tokens.names.items()
    ]
    written = {"namespaces": dict(tokens.namespaces), "names": names}
    return b',"xml_tokens":' + orjson.dumps(written)


def _write_structure(structure: Structure) -> bytes:
    if structure == NO_STRUCTURE:
        return b""
    return b',"structure":' + orjson.dumps(structure.model_dump(exclude_defaults=True))


def write_snapshot(snapshot: Snapshot, path: str, mode: int = 0o644) -> None:
    """Write the snapshot to `path` atomically.

    Args:
        mode: the permissions of the file.

    Raises:
        OlrPgError: 3007, the file cannot be written.
    """
    write_whole(dump_snapshot(snapshot), path, mode)


def write_whole(written: bytes, path: str, mode: int = 0o644) -> None:
    """Write a file of the dictionary atomically.

    Raises:
        OlrPgError: 3007, the file cannot be written.
    """
    try:
        with written_whole(Path(path), mode) as file:
            file.write(written)
    except OSError as error:
        raise OlrPgError(Code.DICTIONARY_UNWRITABLE, system_reason(error), file=path) from error


def _write_table(table: Table) -> dict[str, Any]:
    names = {column.intcol: column.name for column in table.columns}
    written = _set_attributes(table)
    for key in ("key", "key_kind", "con_id", "container"):
        written.pop(key, None)
    written["columns"] = [_write_column(column) for column in table.columns]
    if table.key_kind is not KeyKind.NONE:
        written["key"] = {
            "kind": table.key_kind.value,
            "columns": [names[intcol] for intcol in table.key],
        }
    return written


def _write_column(column: Column) -> dict[str, Any]:
    written = _set_attributes(column)
    if column.added is not None:
        default = column.added.default
        written["added"] = {
            "default": None if default is None else default.hex(),
            "guard_id": column.added.guard_id,
        }
    if column.lob is not None:
        written["lob"] = _set_attributes(column.lob)
        written["lob"]["segments"] = [_set_attributes(segment) for segment in column.lob.segments]
    return written


def _set_attributes(value: Column | Table | Lob | LobSegment) -> dict[str, Any]:
    """Return the attributes that differ from their default."""
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.default is MISSING or getattr(value, field.name) != field.default
    }
