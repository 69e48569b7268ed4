"""Held events as documents: an event of a table's definition, and the definition itself."""

from __future__ import annotations

from dataclasses import replace

import orjson

from olr_pg.applier.statements.lost_value_documents import lob_document, read_lob
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.evolution import Evolution, Verdict
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot, parse_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.transactions.schema_event import LaterFaults, SchemaEvent


def event_document(event: SchemaEvent, facts: DatabaseFacts) -> bytes:
    """Write an event as JSON."""
    evolution, error = event.evolution, event.evolution.error
    document = {
        "begin_scn": event.begin_scn,
        "verdict": evolution.verdict.value,
        "columns": [column.name for column in evolution.columns],
        "retyped": _retyped_document(event, facts),
        "error": None if error is None else [error.code, error.detail, error.action, error.where],
        "definition": source_document(event.definition, facts, event.commit_scn),
        "statement": event.statement,
        "is_fault": event.is_fault,
        "later": None if event.later is None else list(event.later),
        "lobs": list(map(lob_document, event.lobs)),
    }
    return orjson.dumps(document)


def _retyped_document(event: SchemaEvent, facts: DatabaseFacts) -> str | None:
    """Write the definition with the columns as they were that have another type now."""
    if event.definition is None or not event.evolution.retyped:
        return None
    before = {one.name: one for one, _ in event.evolution.retyped}
    columns = tuple(before.get(column.name, column) for column in event.definition.columns)
    return source_document(replace(event.definition, columns=columns), facts, event.commit_scn)


def _read_retyped(
    document: str | None, definition: Table | None
) -> tuple[tuple[Column, Column], ...]:
    before = None if document is None else read_source(document)[0]
    if before is None or definition is None:
        return ()
    both = zip(before.columns, definition.columns, strict=True)
    return tuple((one, other) for one, other in both if one != other)


def source_document(table: Table | None, facts: DatabaseFacts, scn: int) -> str:
    """Write a table's definition and what is known of its database, as a dictionary snapshot."""
    database = Database(
        "source", charset=facts.charset, ncharset=facts.ncharset, timezone=facts.timezone
    )
    tables = () if table is None else (table,)
    return dump_snapshot(Snapshot(scn, database, tables)).decode()


def read_source(document: str) -> tuple[Table | None, DatabaseFacts]:
    """Read what `source_document` wrote.

    Raises:
        OlrPgError: 3003, 3004, it is not what this release writes.
    """
    snapshot = parse_snapshot(orjson.loads(document), "olr_pg.ledger")
    database = snapshot.database
    return (
        snapshot.tables[0] if snapshot.tables else None,
        DatabaseFacts(database.charset, database.ncharset, database.timezone),
    )


def read_event(table: str, commit_scn: int, xid: int, data: bytes) -> SchemaEvent:
    """Read what `event_document` wrote.

    Raises:
        OlrPgError, ValueError, KeyError, TypeError: it is not what this release writes.
    """
    document = orjson.loads(data)
    definition, _ = read_source(document["definition"])
    columns = {column.name: column for column in definition.columns} if definition else {}
    error, later = document["error"], document["later"]
    if error is not None:
        code, detail, action, where = error
        error = OlrPgError(code, detail, action=action, **where)
    evolution = Evolution(
        Verdict(document["verdict"]),
        tuple(columns[name] for name in document["columns"]),
        error,
        _read_retyped(document["retyped"], definition),
    )
    return SchemaEvent(
        table,
        commit_scn,
        xid,
        document["begin_scn"],
        evolution,
        definition,
        statement=document["statement"],
        is_fault=document["is_fault"],
        later=None if later is None else LaterFaults(*later),
        lobs=tuple(map(read_lob, document["lobs"])),
    )
