"""Reads a dictionary from a file in any of the supported formats.

`snapshot_file` defines the appliance's own format. OpenLogReplicator's schema checkpoint JSON
(dictionary §11) contains rows of SYS tables (`sys_rows`). The checkpoint does not contain the order
of key columns, unique indexes, the state of constraints (enabled or disabled), and the defaults of
added columns. The checkpoint's key ``context`` is DB_NAME; ``database`` is only a label from
OpenLogReplicator's configuration. In a CDB, ``db-id`` is the DBID of the PDB, but log headers
contain the DBID of the CDB (seen in a real log).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.dictionary.containers import join_containers
from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.dictionary.snapshot_file import (
    FORMAT,
    check_unique_tables,
    parse_object,
    parse_snapshot,
    read_bytes,
    too_large,
    validate,
)
from olr_pg.dictionary.sys_rows import Number, SysDocument, SysRows
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Incarnation(SysDocument):
    incarnation: Number
    resetlogs: Number
    prior_incarnation: Number


class _TokenSet(SysDocument):
    toksuf: str
    flags: Number


class _TokenNamespace(SysDocument):
    nmspcuri: str
    id: Annotated[str, Field(pattern="^([0-9A-F]{2})+$")]


class _TokenName(SysDocument):
    nmspcid: str
    localname: str
    flags: Annotated[str, Field(pattern="^[0-9A-Fa-f]*$")]
    id: Annotated[str, Field(pattern="^([0-9A-F]{2})+$")]


_NAMESPACES: Final = TypeAdapter(list[_TokenNamespace])
_NAMES: Final = TypeAdapter(list[_TokenName])


class _Checkpoint(SysRows):
    scn: Annotated[int, Field(ge=0, le=MAX_SCN)]
    schema_scn: Annotated[int, Field(ge=0, le=MAX_SCN)] | None = None
    resetlogs: Number
    activation: Number | None = None
    big_endian: Annotated[int, Field(ge=0, le=1)]
    context: Annotated[str, Field(min_length=1)]
    con_id: int
    con_name: str | None = None
    db_id: Number | None = None
    db_timezone: str = "+00:00"
    nls_character_set: Annotated[str, Field(min_length=1)]
    nls_nchar_character_set: Annotated[str, Field(min_length=1)]
    incarnations: list[_Incarnation] = Field(default_factory=list)
    xdb_ttset: list[_TokenSet] = Field(default_factory=list)


def is_schema_checkpoint(document: dict[str, Any]) -> bool:
    """Return whether a JSON object has the form of a checkpoint file, with or without a schema."""
    return any(key in document for key in ("sys-obj", "sys-tab", "schema-ref-scn", "incarnations"))


def parse_schema_checkpoint(document: dict[str, Any], path: str) -> Snapshot:
    """Parse the snapshot in a schema checkpoint.

    Args:
        document: the parsed JSON.
        path: the path of the file, for errors.

    Raises:
        OlrPgError: 3004 a key is missing or wrong, 3005 a row references a missing row, 3006 the
            checkpoint contains no schema.
    """
    if "sys-obj" not in document and "schema-ref-scn" in document:
        raise OlrPgError(
            Code.SCHEMA_CHECKPOINT_EMPTY,
            f"the schema is in the checkpoint of SCN {document['schema-ref-scn']}",
            file=path,
        )
    parsed = validate(_Checkpoint, document, path)
    snapshot = Snapshot(
        scn=parsed.scn if parsed.schema_scn is None else parsed.schema_scn,
        database=_read_database(parsed),
        tables=join_tables(parsed, path, all_columns_logged=parsed.supp_log_db_all != 0),
        sys_rows=SysRows.model_construct(
            **{name: getattr(parsed, name) for name in SysRows.model_fields}
        ),
        xml_tokens=_read_xml_tokens(document, parsed),
    )
    check_unique_tables(snapshot, path)
    return snapshot


def _read_xml_tokens(document: dict[str, Any], checkpoint: _Checkpoint) -> XmlTokens:
    """Read the token tables of the default token set (dictionary §2.10, §11)."""
    sets = [row for row in checkpoint.xdb_ttset if row.flags == 0]
    if not sets:
        return NO_TOKENS
    suffix = sets[0].toksuf
    try:
        namespaces = _NAMESPACES.validate_python(document.get(f"xdb-xnm{suffix}", []))
        names = _NAMES.validate_python(document.get(f"xdb-xqn{suffix}", []))
    except ValidationError as error:
        raise OlrPgError(
            Code.DICTIONARY_INVALID, f"xdb-…{suffix}: {error.errors()[0]['msg']}"
        ) from None
    return XmlTokens(
        {row.id: row.nmspcuri for row in namespaces},
        {
            row.id: QualifiedName(row.nmspcid, row.localname, int(row.flags or "0", 16) & 1 != 0)
            for row in names
        },
    )


def _read_database(checkpoint: _Checkpoint) -> Database:
    return Database(
        name=checkpoint.context,
        # Some versions write −1 for a database that is not a CDB.
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
    """Return the resetlogs ids of the current incarnation and its ancestors, without orphaned
    incarnations.
    """
    by_number = {row.incarnation: row for row in checkpoint.incarnations}
    current = [row for row in checkpoint.incarnations if row.resetlogs == checkpoint.resetlogs]
    ids = [checkpoint.resetlogs]
    number = current[-1].prior_incarnation if current else 0
    # `pop` removes each row, so the loop ends even if the rows form a cycle.
    while (row := by_number.pop(number, None)) is not None:
        if row.resetlogs not in ids:
            ids.append(row.resetlogs)
        number = row.prior_incarnation
    return tuple(ids)


_KEYS_SHOWN = 5


def load_dictionary(paths: Iterable[str]) -> Snapshot:
    """Load the dictionary of one container or of several containers, with one file for each
    container.

    Raises:
        OlrPgError: as for `load_snapshot`; 3020, 3021, the containers do not belong together.
    """
    return join_containers([load_snapshot(path) for path in paths])


def load_snapshot(path: str) -> Snapshot:
    """Load the dictionary in the file at `path`: our own format, or a schema checkpoint.

    The format is detected from the content, not from the name.

    Raises:
        OlrPgError: 3001 unreadable, 3002 not JSON, 3003 an unknown format, 3004 a key is missing or
            wrong, 3005 contradictions, 3006 a checkpoint without its schema.
    """
    try:
        return _load(path)
    except MemoryError as error:
        raise too_large(path) from error


def _load(path: str) -> Snapshot:
    document = parse_object(read_bytes(path), path)
    if "format" in document:
        return parse_snapshot(document, path)
    if is_schema_checkpoint(document):
        return parse_schema_checkpoint(document, path)
    keys = ", ".join(list(document)[:_KEYS_SHOWN]) or "none"
    raise OlrPgError(
        Code.NOT_A_DICTIONARY,
        f'expected the key "format" with {FORMAT!r}, or the keys of a schema checkpoint'
        f" (sys-obj, sys-tab, …); found the keys {keys}",
        file=path,
    )
