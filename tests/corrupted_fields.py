"""Every field of the vectors of subscribed tables, corrupted: ``python -m tests.corrupted_fields``.

A simulated database is decoded again and again, each time with one field of one change vector
replaced by other bytes (and block checksums that are right). What comes out must be the same, or
something must be said: an error, a table that stops, an account that does not close, redo that is
not whole. Changes that are lost or made up without a word are what this looks for. Wrong values and
addresses without a word are counted: bytes of a row that still fit say nothing of themselves.

    uv run python -m tests.corrupted_fields --count 1000 --seeds 4

prints what each field led to, and the command that repeats a failure.

One field is left out: with shared undo the container in the header of a row vector. Its undo is the
root's, other containers may have the same objects, and no other vector repeats the number. What is
damaged there is a change of another container as far as redo tells.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.decoding.split import Subscription, subscribe
from olr_pg.errors import OlrPgError
from olr_pg.ordering.accounting import Accounting
from olr_pg.redo.format.file_fields import BLOCK_HEADER, VECTOR, VECTOR_LONG
from olr_pg.redo.format.lob_fields import (
    BLOCK_ASSM,
    BLOCK_ASSM_BYTES,
    BLOCK_FLG,
    BLOCK_IMAGE,
    BLOCK_ITC,
    BLOCK_ITL,
    BLOCK_ITL_ENTRY,
    KDBH,
)
from olr_pg.redo.format.row_fields import (
    KDO,
    KDO_OP,
    KDO_OPERATION,
    KDO_OPERATIONS,
    KTB,
    SUPPLEMENTAL,
    SUPPLEMENTAL_SIZES,
)
from olr_pg.redo.format.structure import WIDTHS, RedoStructure
from olr_pg.redo.format.undo_fields import KTUB, KTUB_LONG, KTUCM, KTUDB, KTUDH
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.record_view import Vector, read_vector, undo_of, vector_xids
from olr_pg.redo.vectors import vectors_of
from olr_pg.redo.walk import Tally
from olr_pg.redo.window import Log, Window, read_windows
from olr_pg.scalars import MAX_SCN
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.model.source_modes import SourceMode
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Finished
from olr_pg.transactions.stored_values import spelled_out
from tests.redo.log_builder import open_log, seal
from tests.replicator.decoded_seeds import simulated

SIZE = 60_000
UNDO, BEGIN, END, LOAD = 0x0501, 0x0502, 0x0504, 0x1301
APPLIED = (0x0506, 0x050B)
SUPPLEMENTED = SUPPLEMENTAL_SIZES
CONTAINER = "con id"


class Place(NamedTuple):
    """A field of a vector: bytes of a log."""

    log: int
    bytes: tuple[int, ...]


class Seen(NamedTuple):
    """What decoding gave.

    Attributes:
        changes: each change with its values, in the order of delivery.
        said: what anybody would be told of, and how often.
        open: changes of transactions whose end was not read.
    """

    changes: tuple[Any, ...]
    said: Counter[str]
    open: int

    @property
    def outline(self) -> Counter[Any]:
        """Which changes there are, without their values and addresses."""
        return Counter(change[:4] for change in self.changes)


class Database:
    """A simulated database whose logs can be decoded with other bytes."""

    def __init__(self, seed: int, folder: Path, modes: tuple[SourceMode, ...] = ()) -> None:
        shape = replace(choose_shape(seed, "random", size=SIZE, modes=modes), ddl=DdlUse.NONE)
        source = simulated(folder, seed, "random", SIZE, shape)
        self.shares_undo = shape.shares_undo
        self.subscription: Subscription = subscribe(
            source.snapshot.tables, source.snapshot.database.con_id
        )
        self.raw = [np.fromfile(log.path, np.uint8) for log in source.logs]
        self.logs = [open_log(raw, f"log{n}") for n, raw in enumerate(self.raw)]
        self.seen = self.decode(self.logs)

    def decode(self, logs: list[Log]) -> Seen:
        """Decode the logs as `olr-pg decode` does, in one process."""
        plan, tables = self.subscription.row_plan, self.subscription.tables
        assembler = Assembler(plan, tables, is_split=False)

        def take(finished: Finished | None) -> None:
            if finished is not None:
                changes.extend(_rows(finished, plan))
                said["fault"] += len(finished.faults)

        changes: list[Any] = []
        said: Counter[str] = Counter()
        tally = Tally()
        events = 0
        try:
            for log in logs:
                for extract in read_changes(log, self.subscription.objects):
                    tally = tally.plus(extract.tally)
                    said["passed"] += len(extract.passed.noted)
                    assembler.account.events += _changes(extract.batch.events.kind)
                    events += 1
                    take(assembler.feed(extract.batch))
            take(assembler.tell_unseen_ends(MAX_SCN))
        except OlrPgError as error:
            said[f"error {int(error.code)}"] += 1
        opened = sum(one.changes for one in assembler.open_transactions)
        accounting = Accounting(tally, assembler.account, opened, {})
        said["account"] += sum(map(abs, accounting.missing))
        said["not whole"] += assembler.account.lost + assembler.account.unmatched
        said["lob"] += assembler.account.lob_unavailable + assembler.account.lob_unclaimed
        return Seen(tuple(changes), said, opened)

    def with_bytes(self, place: Place, data: bytes) -> Seen:
        """Decode the logs with other bytes at a place."""
        raw = self.raw[place.log].copy()
        raw[list(place.bytes)] = np.frombuffer(data, np.uint8)
        log = self.logs[place.log]
        seal(raw, log.header.block_size)
        logs = list(self.logs)
        logs[place.log] = open_log(raw, log.path)
        return self.decode(logs)

    def fields(self) -> dict[str, list[Place]]:
        """The fields of vectors that concern subscribed tables, by name."""
        found: dict[str, list[Place]] = defaultdict(list)
        xids = {change[1] for change in self.seen.changes}
        for number, log in enumerate(self.logs):
            for window in read_windows(log):
                for name, at, size in _fields_of(window, self.subscription, xids):
                    if self.shares_undo and name.startswith("11.") and name.endswith(CONTAINER):
                        continue
                    block = window.first + (at + np.arange(size)) // _width(log)
                    place = block * log.header.block_size + BLOCK_HEADER
                    place += (at + np.arange(size)) % _width(log)
                    found[name].append(Place(number, tuple(place.tolist())))
        return dict(found)


def _changes(kinds: npt.NDArray[np.uint8]) -> int:
    return int(np.isin(kinds, (4, 7, 10, 11)).sum())


def _width(log: Log) -> int:
    return log.header.block_size - BLOCK_HEADER


def _rows(finished: Any, plan: Any) -> Iterator[Any]:
    """(table, XID, kind, commit SCN, address, values) of each row change."""
    dml = spelled_out(finished.dml, plan.column_first)
    transactions = finished.transactions
    owner = np.repeat(np.arange(transactions.xid.size), np.diff(transactions.dml_first))
    for at in range(dml.kind.size):
        values = tuple(
            (int(dml.values.column[k]), int(dml.values.image[k]), _bytes(dml, k))
            for k in range(int(dml.entry_first[at]), int(dml.entry_first[at + 1]))
        )
        yield (
            int(dml.table[at]), int(transactions.xid[owner[at]]), int(dml.kind[at]),
            int(transactions.commit_scn[owner[at]]),
            (int(dml.dataobj[at]), int(dml.bdba[at]), int(dml.slot[at])), values,
        )  # fmt: skip


def _bytes(dml: Any, entry: int) -> bytes | None:
    offset, length = int(dml.values.offset[entry]), int(dml.values.length[entry])
    return None if length < 0 else dml.data[offset : offset + length].tobytes()


def _fields_of(
    window: Window, subscription: Subscription, xids: set[int]
) -> Iterator[tuple[str, int, int]]:
    """(name, payload position, bytes) of the fields of a window's vectors that matter."""
    layout = window.log.header.layout
    header, big = layout.vector_header, layout.big_endian
    columns = vectors_of(window)
    data = window.payload.tobytes()
    objects = {int(key) & 0xFFFFFFFF for key in subscription.row_plan.object_key}
    segments = {int(key) & 0xFFFFFFFF for key in subscription.row_plan.data_key}
    before: Vector | None = None
    for row in range(columns.position.size):
        start, end = int(columns.position[row]), int(columns.end[row])
        vector = read_vector(data, start, end, header, big=big)
        op = vector.opcode
        pairs = (
            before is not None
            and before.opcode == UNDO
            and row
            and (columns.record[row] == columns.record[row - 1])
        )
        wanted = (
            (op == UNDO and undo_of(vector.fields) == 0x0B01
             and vector.fields.number(2, 0, 4) in objects)
            or (op in (BEGIN, END) and bool(vector_xids(vector) & xids))
            or (op >> 8 == 11 and pairs and before is not None
                and before.fields.number(2, 0, 4) in objects)
            or (op == LOAD and vector.obj in segments)
            or (op in APPLIED and vector.fields.number(1, 0, 4) in objects)
        )  # fmt: skip
        before = vector
        if wanted:
            yield from _members(vector, start, header)


def _members(vector: Vector, start: int, header: int) -> Iterator[tuple[str, int, int]]:
    name, fields = vector.name, vector.fields

    def of(structure: RedoStructure, at: int, room: int) -> Iterator[tuple[str, int, int]]:
        for member in structure.members:
            if member.kind in WIDTHS and WIDTHS[member.kind] and member.end <= room:
                yield f"{name} {structure.name} {member.name}", at + member.at, WIDTHS[member.kind]

    yield from of(VECTOR, start, header)
    if header == VECTOR_LONG.size:
        yield from of(VECTOR_LONG, start, header)
    yield f"{name} list size", start + header, 2
    for number in range(1, fields.count + 1):
        yield f"{name} size of field {min(number, 6)}", start + header + 2 * number, 2

    def field(number: int) -> tuple[int, int]:
        return fields.offset[number - 1], fields.length[number - 1]

    if vector.opcode == BEGIN:
        yield from of(KTUDH, *field(1))
    elif vector.opcode == END:
        yield from of(KTUCM, *field(1))
    elif vector.opcode in APPLIED:
        yield from of(KTUB, *field(1))
    elif vector.opcode == LOAD:
        at, room = field(1)
        yield from of(BLOCK_IMAGE, at, room)
        data = fields.bytes(1)
        begin = BLOCK_ITL + BLOCK_ITL_ENTRY * data[BLOCK_ITC]
        begin += BLOCK_ASSM_BYTES if data[BLOCK_FLG] & BLOCK_ASSM else 0
        yield from of(KDBH, at + begin, room - begin)
    else:
        first = 1
        if vector.opcode == UNDO:
            yield from of(KTUDB, *field(1))
            yield from of(KTUB, *field(2))
            yield from of(KTUB_LONG, *field(2))
            first = 3
        if fields.count > first:
            yield from of(KTB, *field(first))
            at, room = field(first + 1)
            yield from of(KDO, at, room)
            operation = fields.bytes(first + 1)[KDO_OP] & KDO_OPERATION
            if operation in KDO_OPERATIONS:
                yield from of(KDO_OPERATIONS[operation], at, room)  # type: ignore[index]
        for number in range(first + 2, fields.count + 1):
            if vector.opcode == UNDO and field(number)[1] in SUPPLEMENTED:
                yield from of(SUPPLEMENTAL, *field(number))


def other_bytes(rng: random.Random, old: bytes) -> bytes:
    """Other bytes for a field: one bit, a small number, its neighbour, or anything."""
    number, size = int.from_bytes(old, "little"), 8 * len(old)
    while True:
        new = rng.choice(
            (
                number ^ 1 << rng.randrange(size),
                rng.choice((0, 1, 2, 3, 4, 8, 0x10, 0xFF)),
                number + rng.choice((-1, 1)),
                rng.getrandbits(size),
            )
        ) % (1 << size)
        if new != number:
            return new.to_bytes(len(old), "little")


def verdict(before: Seen, now: Seen) -> str:
    """How decoding ended: ``same``, ``said``, ``open``, ``values``, ``lost`` or ``made up``."""
    if now.changes == before.changes:
        return "same"
    if any(now.said[what] > before.said[what] for what in now.said):
        return "said"
    if now.open > before.open:
        return "open"
    if now.outline == before.outline:
        return "values"
    return "lost" if before.outline - now.outline else "made up"


class Tried(NamedTuple):
    """A corruption and what it led to."""

    name: str
    verdict: str
    repeat: str


def tried(
    database: Database, fields: dict[str, list[Place]], seed: int, count: int, only: str = ""
) -> Iterator[Tried]:
    """Corrupt each field `count` times."""
    for name in sorted(fields):
        if only and only != name:
            continue
        for turn in range(count):
            rng = random.Random(f"{seed} {name} {turn}")
            place = rng.choice(fields[name])
            old = database.raw[place.log][list(place.bytes)].tobytes()
            new = other_bytes(rng, old)
            found = verdict(database.seen, database.with_bytes(place, new))
            yield Tried(name, found, f"seed {seed}, turn {turn}: {old.hex()} -> {new.hex()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="corruptions of each field")
    parser.add_argument("--seeds", type=int, default=2, help="how many databases")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--field", default="", help="only this one")
    parser.add_argument("--mode", action="append", choices=tuple(SourceMode), default=[])
    arguments = parser.parse_args()
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        with tempfile.TemporaryDirectory() as folder:
            database = Database(seed, Path(folder), tuple(map(SourceMode, arguments.mode)))
        for one in tried(database, database.fields(), seed, arguments.count, arguments.field):
            totals[one.name][one.verdict] += 1
            if one.verdict in ("lost", "made up"):
                sys.stdout.write(f"{one.verdict}: {one.name} ({one.repeat})\n")
    for name in sorted(totals):
        counts = ", ".join(f"{count} {what}" for what, count in sorted(totals[name].items()))
        sys.stdout.write(f"{name}: {counts}\n")
    silent = sum(counts["lost"] + counts["made up"] for counts in totals.values())
    sys.stdout.write(f"{sum(map(Counter.total, totals.values()))} corruptions, {silent} silent\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
