"""Converts held events and definitions of tables to JSON documents, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import orjson
from pydantic import TypeAdapter

from olr_pg.applier.statements.lost_value_documents import lob_document, read_lob
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.inventory import Constraint, InventoryIndex
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot, parse_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.transactions.schema_event import LaterFaults, SchemaEvent


def event_document(event: SchemaEvent, facts: DatabaseFacts) -> bytes:
    """Return an event as JSON."""
    evolution, error = event.evolution, event.evolution.error
    document = {
        "begin_scn": event.begin_scn,
        "steps": [_step_document(step, event, facts) for step in evolution.steps],
        "error": None if error is None else [error.code, error.detail, error.action, error.where],
        "definition": source_document(event.definition, facts, event.commit_scn),
        "statement": event.statement,
        "is_fault": event.is_fault,
        "later": None if event.later is None else list(event.later),
        "lobs": list(map(lob_document, event.lobs)),
    }
    return orjson.dumps(document)


def _step_document(step: Step, event: SchemaEvent, facts: DatabaseFacts) -> list[Any]:
    """Return a step as data for JSON."""

    def written(column: Column | None) -> list[Any] | None:
        """Return a column as data for JSON: its number, and a table that contains only this
        column.
        """
        if column is None or event.definition is None:
            return None
        only = replace(column, segcol=1)
        table = replace(event.definition, columns=(only,), key=(), key_kind=KeyKind.NONE)
        return [column.segcol, source_document(table, facts, event.commit_scn)]

    structure = None if step.structure is None else asdict(step.structure)
    columns = written(step.before), written(step.after)
    return [
        step.kind.value,
        *columns,
        step.partition,
        step.table,
        step.text,
        step.verb,
        structure,
        step.is_first,
        step.sources,
        step.others,
    ]


def _read_step(document: list[Any]) -> Step:
    def read(written: list[Any] | None) -> Column | None:
        table = None if written is None else read_source(written[1])[0]
        if written is None or table is None:
            return None
        return replace(table.columns[0], segcol=written[0])

    kind, before, after, *names = document  # an older release stored fewer values
    names, more = names[:2], names[2:] or ["", "", None, False]
    text, verb, structure, is_first, *lists = more
    step = Step(DdlKind(kind), read(before), read(after), *names)
    step = step._replace(text=text, verb=verb, is_first=is_first)
    sources, others = (*lists, (), ())[:2]
    step = step._replace(sources=tuple(sources), others=tuple(others))
    if structure is None:
        return step
    told = orjson.dumps(structure)
    if step.kind is DdlKind.INDEX:
        return step._replace(structure=TypeAdapter(InventoryIndex).validate_json(told))
    return step._replace(structure=TypeAdapter(Constraint).validate_json(told))


def source_document(table: Table | None, facts: DatabaseFacts, scn: int) -> str:
    """Return a table's definition and the properties of its database as a dictionary snapshot in
    JSON.
    """
    database = Database(
        "source", charset=facts.charset, ncharset=facts.ncharset, timezone=facts.timezone
    )
    tables = () if table is None else (table,)
    return dump_snapshot(Snapshot(scn, database, tables)).decode()


def read_source(document: str) -> tuple[Table | None, DatabaseFacts]:
    """Return the table's definition (None if there is none) and the properties of its database from
    a document that `source_document` made.

    Raises:
        OlrPgError: 3003 or 3004: the document is not in this release's format.
    """
    snapshot = parse_snapshot(orjson.loads(document), "olr_pg.ledger")
    database = snapshot.database
    return (
        snapshot.tables[0] if snapshot.tables else None,
        DatabaseFacts(database.charset, database.ncharset, database.timezone),
    )


def read_event(table: str, commit_scn: int, xid: int, data: bytes) -> SchemaEvent:
    """Return the event that a document of `event_document` contains.

    Raises:
        OlrPgError, ValueError, KeyError, TypeError: the document is not in this release's format.
    """
    document = orjson.loads(data)
    definition, _ = read_source(document["definition"])
    error, later = document["error"], document["later"]
    if error is not None:
        code, detail, action, where = error
        error = OlrPgError(code, detail, action=action, **where)
    evolution = Evolution(tuple(map(_read_step, document["steps"])), error)
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
