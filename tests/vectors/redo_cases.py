"""Real redo records of the shared vectors, run through the decoder.

The records of a case become a log, one to an LWN group, so that a change's block number tells
which record it came from. Transactions are closed by hand where the case has no 5.2/5.4.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.redo.batch import ChangeBatch, EventKind, empty_batch
from olr_pg.redo.column_tables import take
from olr_pg.redo.walk import Objects
from olr_pg.redo.window import Log
from olr_pg.scalars import Rba, format_rowid
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Finished
from olr_pg.transactions.finished_columns import DmlKind, Image
from olr_pg.transactions.left_out import spelled_out
from olr_pg.transactions.select import concatenate
from tests.redo.chain import whole_log
from tests.redo.log_builder import LogBuilder, open_log, without_lwn

VERSIONS = {"11.2": 0x0B200400, "12.1": 0x0C100200, "12.2": 0x0C200100, "19.0": 0x13000000}

Case = dict[str, Any]


def vectors_dir() -> Path:
    """The folder with the vectors: OLR_PG_VECTORS, by default OLR_PG_SHARED/vectors."""
    root = Path(__file__).resolve().parents[2]
    shared = Path(os.environ.get("OLR_PG_SHARED", root.parent / "shared"))
    return Path(os.environ.get("OLR_PG_VECTORS", shared / "vectors"))


def load_cases() -> list[tuple[str, Case]]:
    """(name, case) of every case of redo records in the folder."""
    cases: list[tuple[str, Case]] = []
    for path in sorted(vectors_dir().glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        if document.get("schema") == "oracle-redo-vectors/1":
            cases.extend((f"{path.stem}-{case['case']}", case) for case in document["cases"])
    return cases


@dataclass(frozen=True)
class Change:
    """One decoded change; columns by SEGCOL#, NULL as None."""

    operation: str
    object_id: int
    rowid: str
    record: str
    scn: int
    before: dict[int, str | None]
    after: dict[int, str | None]


def log_of(case: Case) -> tuple[Log, dict[int, Case]]:
    """The case's records as a log, an LWN group each in the order of their SCNs, and the record
    that begins in each block."""
    by_id = {record["id"]: record for record in case["records"]}
    fed = [by_id[key] for key in case.get("transaction", {}).get("feed_order", list(by_id))]
    fed += case.get("extra_records", [])
    big = case["format"]["endian"] == "big"
    builder = LogBuilder(compat=VERSIONS[case["format"]["oracle_version"]], big=big)
    places = {}
    for record in sorted(fed, key=lambda one: (one["scn"], one["subscn"])):
        places[builder.blocks] = record
        data = without_lwn(bytes.fromhex(record["hex"]), big=big)
        builder.add_group([[data]], record["scn"])
    return open_log(builder.build()), places


def tables_of(case: Case) -> tuple[list[Table], int]:
    """A table for every object of the case, wide enough for its columns; the container."""
    objects: set[int] = set()
    width = 1
    containers: set[int] = set()
    for record in case["records"] + case.get("extra_records", []):
        decoded = record.get("decoded", {})
        objects.add(decoded.get("object_id") or 0)
        images = [*decoded.get("columns", {}).values(), *decoded.get("iot_columns", {}).values()]
        for columns in images:
            width = max([width, *(int(number) for number in columns if str(number).isdecimal())])
        containers.update(vector.get("con_id") or 0 for vector in record["vectors"])
    columns = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, width + 1))
    tables = [Table("T", f"T{obj}", obj, obj, columns) for obj in sorted(objects - {0})]
    assert len(containers) == 1
    return tables, containers.pop()


def closed(batch: ChangeBatch) -> ChangeBatch:
    """The batch as one committed transaction from its first to its last event."""
    kind = batch.events.kind
    kinds = (EventKind.CHANGE, EventKind.UNDECODED, EventKind.UNDONE, EventKind.SESSION)
    inner = np.flatnonzero(np.isin(kind, kinds))
    if inner.size == 0:
        return empty_batch()
    begin, end = (take(batch.events, inner[[index]]) for index in (0, -1))
    whole = int(batch.events.xid.max())
    for events, what in ((begin, EventKind.BEGIN), (end, EventKind.COMMIT)):
        events.kind[:] = what
        events.xid[:] = whole
        events.piece_count[:] = 0
    nothing = empty_batch()
    return concatenate(
        [
            nothing._replace(events=begin),
            batch._replace(events=take(batch.events, inner)),
            nothing._replace(events=end),
        ]
    )


def assemble_case(
    case: Case,
) -> tuple[Finished | None, Assembler, list[Table], dict[int, Case]]:
    """What the case's records become, and by what; its tables, its records by block."""
    log, places = log_of(case)
    tables, con_id = tables_of(case)
    plan = build_row_plan(tables, con_id)
    objects = Objects(plan.object_key, plan.object_table, plan.cluster_columns)
    batch, _ = whole_log(log, objects)
    assembler = Assembler(plan, tables, is_split=False)
    finished = assembler.feed(closed(batch))
    if finished is not None:
        finished = finished._replace(dml=spelled_out(finished.dml, plan.column_first))
    return finished, assembler, tables, places


def decode_case(case: Case) -> tuple[list[Change], Assembler]:
    """The changes that the case's records make, in order of delivery."""
    finished, assembler, tables, places = assemble_case(case)
    assert finished is None or not finished.faults
    return ([] if finished is None else _changes(finished, tables, places)), assembler


def _changes(finished: Finished, tables: list[Table], places: dict[int, Case]) -> list[Change]:
    dml = finished.dml
    changes = []
    for row in range(dml.kind.size):
        images: dict[int, dict[int, str | None]] = {Image.BEFORE: {}, Image.AFTER: {}}
        for entry in range(int(dml.entry_first[row]), int(dml.entry_first[row + 1])):
            image = images[int(dml.values.image[entry])]
            image[int(dml.values.column[entry]) + 1] = _value(finished, entry)
        table = tables[int(dml.table[row])]
        changes.append(
            Change(
                DmlKind(int(dml.kind[row])).name,
                table.obj,
                _rowid(finished, row),
                places[int(dml.block[row])]["id"],
                int(dml.scn[row]),
                images[Image.BEFORE],
                images[Image.AFTER],
            )
        )
    return changes


def _rowid(finished: Finished, row: int) -> str:
    dml = finished.dml
    if dml.dataobj[row] == 0:
        return ""
    return format_rowid(int(dml.dataobj[row]), int(dml.bdba[row]), int(dml.slot[row]))


def _value(finished: Finished, entry: int) -> str | None:
    dml = finished.dml
    if dml.values.length[entry] < 0:
        return None
    parts = []
    while entry >= 0:
        at = int(dml.values.offset[entry])
        parts.append(dml.data[at : at + int(dml.values.length[entry])].tobytes())
        entry = int(dml.values.next[entry])
    return b"".join(parts).hex()


def parse_rba(text: str) -> Rba:
    """The RBA of LogMiner's text."""
    sequence, block, offset = (int(part.removeprefix("0x"), 16) for part in text.split("."))
    return Rba(sequence, block, offset)
