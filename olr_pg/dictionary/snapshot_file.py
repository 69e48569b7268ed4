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

The keys are the attributes of `Snapshot`, `Database`, `Table`, `Column`, `Lob` and `LobSegment`
(key ``lob`` of a column) in `olr_pg.dictionary.model`, with the same meaning. A key with the
default value can be omitted. Three things differ: ``key`` contains column names instead of INTCOL#,
the order of ``columns`` has no meaning, and `Snapshot.sys_rows` is the key ``sys`` (`sys_rows`).
Unknown keys are errors.
``docs/dictionary-snapshot.md`` is the page for users.

If a snapshot is written and read again, the result is equal to it.

`parse_object` and `validate` read a JSON file and validate it against a pydantic model, with coded
errors.

`write_inventory` and `read_inventory_file` write and read the file of an inventory. An inventory
file is next to the file of the dictionary that was exported with it.

`check_unique_tables` and `column_fault` check rules that every snapshot must fulfil.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.dictionary.inventory import Inventory
from olr_pg.dictionary.model import (
    AddedColumn,
    Column,
    Database,
    KeyKind,
    Lob,
    LobSegment,
    Snapshot,
    Table,
)
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.dictionary.true_charsets import with_true_charsets
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import sync_directory
from olr_pg.files.owned import written_whole
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO

    from pydantic_core import ErrorDetails


def sort_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns in the order of a `Table`: by SEGCOL#, then INTCOL#."""
    return tuple(sorted(columns, key=lambda column: (column.segcol, column.intcol)))


def column_fault(columns: Sequence[Column]) -> str | None:
    """Return a description of an error in the numbering of a table's columns, or None.

    SEGCOL# must be 1 … n without gaps and duplicates, because a gap means that a dictionary row is
    missing (dictionary §2.4). INTCOL# and names must be unique.
    """
    if not columns:
        return "it has no columns"
    stored = sorted(column.segcol for column in columns if column.segcol > 0)
    for expected, segcol in enumerate(stored, 1):
        if segcol != expected:
            what = "appears twice" if segcol < expected else "is missing"
            return f"SEGCOL# {min(segcol, expected)} {what}"
    for label, values in (
        ("INTCOL#", [str(column.intcol) for column in columns]),
        ("column", [column.name for column in columns]),
    ):
        repeated = _first_repeated(values)
        if repeated is not None:
            return f"{label} {repeated} appears twice"
    return None


def check_unique_tables(snapshot: Snapshot, path: str) -> None:
    """Check that the names and the object numbers of the tables are unique.

    Raises:
        OlrPgError: 3005, two tables have the same name or number; the error contains both.
    """
    names: set[tuple[str, str]] = set()
    objects: dict[int, str] = {}
    for table in snapshot.tables:
        if (table.owner, table.name) in names:
            raise OlrPgError(
                Code.DICTIONARY_CONTRADICTS_ITSELF,
                f"the table {table.full_name} appears twice",
                file=path,
            )
        names.add((table.owner, table.name))
        for obj in (table.obj, *table.partitions):
            if obj in objects:
                raise OlrPgError(
                    Code.DICTIONARY_CONTRADICTS_ITSELF,
                    f"object number {obj} belongs to {objects[obj]} and to {table.full_name}",
                    file=path,
                )
            objects[obj] = table.full_name


def _first_repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


_Model = TypeVar("_Model", bound=BaseModel)
_ERRORS_SHOWN: Final = 3
_VALUE_CHARS: Final = 60
_UTF8_BOM: Final = b"\xef\xbb\xbf"
_BEGIN_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 20
_BYTES_MAX: Final = 1 << 32
"""About 100 bytes describe a column, so this is enough for tens of millions of columns."""


def read_bytes(path: str) -> bytes:
    """Read the bytes of a dictionary file. If the file does not begin like a JSON object, return
    only its beginning: a device, or a huge file of another kind, must not fill the memory.

    Raises:
        OlrPgError: 3001, the file cannot be read, or is too large.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_BEGIN_BYTES)
            if data.removeprefix(_UTF8_BOM).lstrip()[:1] in (b"{", b""):
                data = _rest(file, data)
    except MemoryError as error:
        raise too_large(path) from error
    except (OSError, ValueError) as error:
        # A ValueError means that the path contains a NUL character.
        raise OlrPgError(Code.DICTIONARY_UNREADABLE, system_reason(error), file=path) from error
    if len(data) > _BYTES_MAX:
        raise too_large(path)
    return data


def _rest(file: IO[bytes], begin: bytes) -> bytes:
    """Return `begin` and the rest of the file, up to one byte more than `_BYTES_MAX`."""
    pieces, size = [begin], len(begin)
    # To read N bytes, Python first allocates N bytes. A limit of the address space (ulimit -v,
    # vm.overcommit_memory = 2) would not allow one read of `_BYTES_MAX`.
    while size <= _BYTES_MAX and (piece := file.read(min(_PIECE_BYTES, _BYTES_MAX + 1 - size))):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def too_large(path: str) -> OlrPgError:
    """Return the error that a dictionary file is too large."""
    return OlrPgError(
        Code.DICTIONARY_UNREADABLE,
        f"the file has more than {_BYTES_MAX >> 20} MiB, or does not fit in memory",
        action="check that the path names a dictionary. If the path names a dictionary, give the"
        " process more memory",
        file=path,
    )


def parse_object(data: bytes, path: str) -> dict[str, Any]:
    """Parse the JSON object in `data`.

    Raises:
        OlrPgError: 3002 the data is not JSON; 3003 the data is JSON, but not an object.
    """
    try:
        document = orjson.loads(data.removeprefix(_UTF8_BOM))
    except orjson.JSONDecodeError as error:
        raise OlrPgError(
            Code.DICTIONARY_NOT_JSON, error.msg, file=path, line=error.lineno, column=error.colno
        ) from error
    if not isinstance(document, dict):
        raise OlrPgError(
            Code.NOT_A_DICTIONARY, f"expected a JSON object, found {_describe(document)}", file=path
        )
    return document


def validate(model: type[_Model], document: dict[str, Any], path: str) -> _Model:
    """Validate `document`, and return it as a `model`.

    Raises:
        OlrPgError: 3004, with the JSON path of the problem and the expected value.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise invalid(error, path) from error


def invalid(error: ValidationError, path: str) -> OlrPgError:
    """Return error 3004, with the JSON path of the problem and the expected value."""
    problems = error.errors(include_url=False)
    shown = "; ".join(_explain(problem) for problem in problems[:_ERRORS_SHOWN])
    rest = len(problems) - _ERRORS_SHOWN
    return OlrPgError(
        Code.DICTIONARY_INVALID,
        shown + (f"; and {rest} more" if rest > 0 else ""),
        file=path,
        key=json_path(problems[0]["loc"]),
    )


def json_path(parts: tuple[int | str, ...]) -> str:
    """Return a JSON path such as ``tables[0].columns[2].name`` for a location given as keys and
    indexes.
    """
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "(top level)"


def _explain(problem: ErrorDetails) -> str:
    place = json_path(problem["loc"])
    if problem["type"] == "missing":
        return f"{place}: the key is missing"
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: there is no such key"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{place}: {message}, found {_describe(problem['input'])}"


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with the keys {', '.join(map(str, list(value)[:6])) or '(none)'}"
    if isinstance(value, list):
        return f"a list of {len(value)} elements"
    text = orjson.dumps(value).decode()
    return text if len(text) <= _VALUE_CHARS else text[:_VALUE_CHARS] + "…"


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


def _read_segment(segment: _LobSegment) -> LobSegment:
    return LobSegment(**vars(segment))


class _Lob(_Document):
    segments: list[Annotated[_LobSegment, AfterValidator(_read_segment)]] = []
    securefile: bool | None = None
    chunk_blocks: _U16 | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""


def _read_lob(lob: _Lob) -> Lob:
    return Lob(**{**vars(lob), "segments": tuple(lob.segments)})


class _Added(_Document):
    default: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] | None = None
    guard_id: _U16 | None = None


def _read_added(added: _Added) -> AddedColumn:
    default = None if added.default is None else bytes.fromhex(added.default)
    return AddedColumn(default, added.guard_id)


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
    lob: Annotated[_Lob, AfterValidator(_read_lob)] | None = None
    xml: bool = False
    char_length: _U32 | None = None
    added: Annotated[_Added, AfterValidator(_read_added)] | None = None
    guard: bool = False


def _read_column(column: _Column) -> Column:
    return Column(**vars(column))


# A dictionary can have millions of columns, and a model needs ten times the memory of a `Column`.
# So each model is replaced as soon as it is validated.
if TYPE_CHECKING:
    _ReadColumn = Column
else:
    _ReadColumn = Annotated[_Column, AfterValidator(_read_column)]


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
    columns: list[_ReadColumn]
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
    columns = sort_columns(table.columns)
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


def store_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write the snapshot to a file in `context.data`, durably. After a power failure, a load must
    not be without the dictionary that was stored for it.

    Raises:
        OlrPgError: 3007, the file cannot be written.
    """
    write_snapshot(snapshot, str(path), 0o600)  # the mode of all files in this directory
    try:
        sync_directory(path.parent)
    except OSError as error:
        raise OlrPgError(
            Code.DICTIONARY_UNWRITABLE, system_reason(error), file=str(path)
        ) from error


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


def inventory_path(dictionary: Path) -> Path:
    """Return the path of the inventory that belongs to a snapshot: ``x.inventory.json`` for
    ``x.json``.
    """
    return dictionary.with_suffix(".inventory.json")


def owners_of(snapshot: Snapshot) -> set[str]:
    """Return the schemas of the snapshot's tables, without Oracle's own schemas."""
    return {table.owner for table in snapshot.tables if not is_oracle_schema(table.source_owner)}


def write_inventory(inventory: Inventory, path: Path) -> None:
    """Write the inventory atomically. Default values are omitted.

    Raises:
        OlrPgError: 3007, the file cannot be written.
    """
    document = inventory.model_dump(exclude_defaults=True)
    written = orjson.dumps({"format": inventory.format, **document}, option=orjson.OPT_INDENT_2)
    write_whole(written + b"\n", str(path))


def read_inventory_file(path: Path) -> Inventory:
    """Read an inventory from its file.

    Raises:
        OlrPgError: 3001–3004 the file cannot be read, 3260 it does not exist.
    """
    if not path.exists():
        raise OlrPgError(Code.INVENTORY_MISSING, f"there is no {path}", file=str(path))
    data = read_bytes(str(path))
    try:
        # Parse the JSON directly into the model: Python objects of the file would take five times
        # its size.
        return Inventory.model_validate_json(data)
    except ValidationError as error:
        parse_object(data, str(path))  # rejects a file that is not a JSON object
        raise invalid(error, str(path)) from error
