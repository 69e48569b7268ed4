"""Every field of the vectors of subscribed tables, corrupted: ``python -m tests.corrupted_fields``.

A simulated database is decoded again and again, each time with one field of one change vector
replaced by other bytes (and block checksums that are right). What comes out must be the same, or
something must be said: an error, a table that stops, an account that does not close, redo that is
not whole. Changes that are lost or made up without a word are what this looks for. Wrong values and
addresses without a word are counted: bytes of a row that still fit say nothing of themselves.

    uv run python -m tests.corrupted_fields --count 1000 --seeds 4

prints what each field led to, and the command that repeats a failure.

What redo repeats nowhere is silent; docs/internals/architecture.md lists it, below "Accounting".
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from olr_pg.decoding.split import Subscription, subscribe
from olr_pg.errors import OlrPgError
from olr_pg.ordering.accounting import Accounting
from olr_pg.redo.batch import ChangeBatch
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
from olr_pg.redo.log_extraction import Extract, read_changes
from olr_pg.redo.record_view import Vector, read_vector, undo_of, vector_xids
from olr_pg.redo.vectors import vectors_of
from olr_pg.redo.walk import Tally
from olr_pg.redo.window import Log, Window, read_windows
from olr_pg.scalars import MAX_SCN
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Finished
from olr_pg.transactions.left_out import spelled_out
from olr_pg.transactions.lobs.page_claims import is_unowned
from olr_pg.transactions.select import count_changes
from tests.redo.log_builder import open_log, seal
from tests.replicator.decoded_seeds import simulated

SIZE = 40_000
UNDO, BEGIN, END, LOAD = 0x0501, 0x0502, 0x0504, 0x1301
APPLIED = (0x0506, 0x050B)
SUPPLEMENTED = SUPPLEMENTAL_SIZES


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


@dataclass
class _State:
    """How far decoding is."""

    assembler: Assembler
    tally: Tally
    said: Counter[str]
    changes: list[Any]

    def copy(self) -> _State:
        assembler = self.assembler.saved()
        assembler.account.add(self.assembler.account)
        return _State(assembler, self.tally, Counter(self.said), list(self.changes))


class Database:
    """A simulated database whose logs can be decoded with other bytes."""

    def __init__(
        self, seed: int, folder: Path, modes: tuple[SourceMode, ...] | None = None
    ) -> None:
        shape = choose_shape(seed, "random", size=SIZE, modes=modes)
        # In few logs: each corruption costs the decoding of one log and of those behind it.
        pace = replace(shape.pace, log_blocks=4 * SIZE // shape.redo.block_size)
        shape = replace(shape, ddl=DdlUse.NONE, pace=pace)
        source = simulated(folder, seed, "random", SIZE, shape)
        self.subscription: Subscription = subscribe(
            source.snapshot.tables, source.snapshot.database.con_id
        )
        self.raw = [np.fromfile(log.path, np.uint8) for log in source.logs]
        self.logs = [open_log(raw, f"log{n}") for n, raw in enumerate(self.raw)]
        objects = self.subscription.objects
        self._extracted = {log.path: tuple(read_changes(log, objects)) for log in self.logs}
        self._rows = dict[bytes, tuple[Any, ...]]()
        self._is_first = True
        plan, tables = self.subscription.row_plan, self.subscription.tables
        begin = _State(Assembler(plan, tables, is_split=False), Tally(), Counter(), [])
        self.seen, self._states = self._decode(self.logs, begin)
        self._is_first = False

    def _decode(self, logs: list[Log], before: _State) -> tuple[Seen, list[_State]]:
        """Decode logs behind what was decoded, as `olr-pg decode` does, in one process.

        Returns:
            What was seen of all, and the states before each of the logs.
        """
        state, states = before.copy(), list[_State]()
        try:
            for log in logs:
                states.append(state.copy())
                for extract in self._extracts(log):
                    state.tally = state.tally.plus(extract.tally)
                    state.said["passed"] += len(extract.passed.noted)
                    state.assembler.account.events += _changes(extract.batch)
                    self._take(state.assembler.feed(extract.batch), state)
            self._take(state.assembler.tell_unseen_ends(MAX_SCN), state)
        except OlrPgError as error:
            state.said[f"error {int(error.code)}"] += 1
        account, said = state.assembler.account, state.said
        opened = sum(one.changes for one in state.assembler.open_transactions)
        said["account"] += sum(map(abs, Accounting(state.tally, account, opened, {}).missing))
        said["not whole"] += account.lost + account.unmatched
        said["lob"] += account.lob_unavailable + account.lob_unclaimed
        return Seen(tuple(state.changes), said, opened), states

    def _extracts(self, log: Log) -> Iterable[Extract]:
        """Read the changes of a log; of one without other bytes once."""
        if log.path in self._extracted:
            return self._extracted[log.path]
        return read_changes(log, self.subscription.objects)

    def _take(self, finished: Finished | None, state: _State) -> None:
        """Take what the assembler finished."""
        if finished is None:
            return
        state.said["fault"] += len(finished.faults)
        # Most of it is as it was without other bytes.
        key = _same_rows_as(finished)
        rows = self._rows.get(key)
        if rows is None:
            rows = tuple(_rows(finished, self.subscription.row_plan))
            if self._is_first:
                self._rows[key] = rows
        state.changes.extend(rows)

    def with_bytes(self, place: Place, data: bytes) -> Seen:
        """Decode the logs with other bytes at a place."""
        raw = self.raw[place.log].copy()
        raw[list(place.bytes)] = np.frombuffer(data, np.uint8)
        log = self.logs[place.log]
        seal(raw, log.header.block_size)
        other = open_log(raw, f"{log.path} with other bytes")
        if self._reads_the_same(other, log):
            return self.seen
        logs = [other, *self.logs[place.log + 1 :]]
        return self._decode(logs, self._states[place.log])[0]

    def _reads_the_same(self, other: Log, log: Log) -> bool:
        """Tell whether nothing that is read of a log has changed: then all behind it is the same.

        That is so of half of all corruptions, and spares most of their time.
        """
        try:
            found = tuple(read_changes(other, self.subscription.objects))
        except OlrPgError:
            return False
        known = self._extracted[log.path]
        return len(found) == len(known) and all(map(_is_same, found, known))

    def fields(self) -> dict[str, list[Place]]:
        """The fields of vectors that concern subscribed tables, by name."""
        found: dict[str, list[Place]] = defaultdict(list)
        xids = {change[1] for change in self.seen.changes}
        for number, log in enumerate(self.logs):
            for window in read_windows(log):
                for name, at, size in _fields_of(window, self.subscription, xids):
                    block = window.first + (at + np.arange(size)) // _width(log)
                    place = block * log.header.block_size + BLOCK_HEADER
                    place += (at + np.arange(size)) % _width(log)
                    found[name].append(Place(number, tuple(place.tolist())))
        return dict(found)


def _is_same(one: Extract, other: Extract) -> bool:
    a, b = one.batch, other.batch
    tables = ((a.events, b.events), (a.pieces, b.pieces), (a.entries, b.entries))
    if one._replace(batch=b) != other or any(x.tobytes() != y.tobytes() for x, y in tables):
        return False
    starts = np.concatenate([a.entries.offset, a.pieces.changed_offset])
    sizes = np.concatenate([a.entries.length, a.pieces.changed_length])
    changed = np.flatnonzero(a.data != b.data)
    return not any(((starts <= at) & (at < starts + sizes)).any() for at in changed.tolist())


def _same_rows_as(finished: Finished) -> bytes:
    """Return bytes that are the same where rows and transactions are."""
    dml, of = finished.dml, finished.transactions
    columns = (of.xid, of.dml_first, of.commit_scn, dml.table, dml.kind, dml.dataobj, dml.bdba,
               dml.slot, dml.entry_first, dml.values.column, dml.values.image, dml.values.offset,
               dml.values.length, dml.data)  # fmt: skip
    return b"".join(column.tobytes() for column in columns)


def _changes(batch: ChangeBatch) -> int:
    return count_changes(batch.events) - int(is_unowned(batch).sum())


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
    parser.add_argument(
        "--mode", action="append", choices=tuple(SourceMode), help="of writing redo"
    )
    arguments = parser.parse_args()
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        with tempfile.TemporaryDirectory() as folder:
            modes = None if arguments.mode is None else tuple(map(SourceMode, arguments.mode))
            database = Database(seed, Path(folder), modes)
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
