"""A model of transactions as event streams: what the assembler must make of them is known."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from olr_pg.redo.batch import (
    ChangeBatch,
    EventKind,
    Role,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.scalars import pack_xid
from tests.redo.chain import clear

CON_ID = 3
OBJ = 1000
BLOCK_RECORDS = 5
"""Undo records of a transaction that stand in one undo block of the model."""


@dataclass(frozen=True)
class Event:
    """One event; a CHANGE inserts `value` as the only column of a row."""

    kind: EventKind
    xid: int
    scn: int
    number: int
    value: int = 0
    undo_dba: int = 0
    prev_dba: int = 0
    rci: int = 0
    wrp: int = 0
    slot_head: int = 0
    serial: int = 0
    session: int = 0
    thread: int = 1


@dataclass(frozen=True)
class Committed:
    """A transaction that must come out: its values in order."""

    xid: int
    begin_scn: int
    commit_scn: int
    session: tuple[int, int]
    values: tuple[int, ...]


def batch_of(events: list[Event]) -> ChangeBatch:
    """The events as columns."""
    count = len(events)
    changes = [event for event in events if event.kind == EventKind.CHANGE]
    rows, pieces, entries = (
        empty_events(count),
        empty_pieces(len(changes)),
        empty_entries(len(changes)),
    )
    for columns in (rows, pieces, entries):
        clear(columns)
    rows.con_id[:] = CON_ID
    rows.sequence[:] = 7
    rows.dataobj[:] = OBJ
    rows.table[:] = -1
    for row, event in enumerate(events):
        for name in (
            "kind", "xid", "scn", "undo_dba", "prev_dba", "rci", "wrp", "slot_head", "serial",
            "session", "thread",
        ):  # fmt: skip
            getattr(rows, name)[row] = int(getattr(event, name))
        rows.block[row] = 2 + event.number
        rows.offset[row] = 16
        if event.kind in (EventKind.CHANGE, EventKind.UNDONE):
            rows.table[row] = 0
        rows.piece_count[row] = event.kind == EventKind.CHANGE
    pieces.op[:] = 2
    pieces.supplemental[:] = 1
    pieces.sup_type[:] = 2
    pieces.sup_flags[:] = 0x0C
    pieces.row_flags[:] = 0x2C
    pieces.entry_count[:] = 1
    entries.role[:] = int(Role.AFTER)
    entries.segcol[:] = 1
    entries.offset[:] = np.arange(len(changes)) * 4
    entries.length[:] = 4
    data = b"".join(event.value.to_bytes(4, "big") for event in changes)
    return ChangeBatch(rows, pieces, entries, np.frombuffer(bytearray(data), np.uint8))


@dataclass
class _Open:
    xid: int
    begin_scn: int | None
    undo: list[Event] = field(default_factory=list)
    written: int = 0
    session: tuple[int, int] = (0, 0)


class Workload:
    """Makes a stream: interleaved transactions on few slots, savepoints, lost and missing ends.

    Attributes:
        events: the stream, in redo order.
        committed: what must come out, in commit order.
    """

    def __init__(self, seed: int, steps: int) -> None:
        self._rng = random.Random(seed)
        self._slots: dict[tuple[int, int], int] = {}
        self._open: dict[tuple[int, int], _Open] = {}
        self._scn = 1000
        self._value = 0
        self.events: list[Event] = []
        self.committed: list[Committed] = []
        self.unbegun = self.lost = self.rolled_back = 0
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        # Ties: several records share an SCN.
        self._scn += self._rng.choice((0, 0, 1, 2))
        key = (self._rng.randrange(1, 3), self._rng.randrange(2))
        one = self._open.get(key)
        roll = self._rng.random()
        if one is None:
            self._begin(key, seen=self._slots.get(key, 0) > 0 or roll < 0.8)
        elif roll < 0.5:
            self._change(one)
        elif roll < 0.6 and one.undo:
            for _ in range(self._rng.randrange(1, len(one.undo) + 1)):
                self._undo(one)
        elif roll < 0.65:
            one.session = one.session if any(one.session) else (7, self._scn)
            self._add(EventKind.SESSION, one, serial=7, session=self._scn)
        elif roll < 0.9:
            self._end(key, one)
        elif roll < 0.94:
            # The end stands in redo that is not read.
            self.lost += one.begin_scn is not None
            del self._open[key]

    def _add(self, kind: EventKind, one: _Open, **values: int) -> Event:
        event = Event(kind, one.xid, self._scn, len(self.events), **values)
        self.events.append(event)
        return event

    def _begin(self, key: tuple[int, int], *, seen: bool) -> None:
        self._slots[key] = self._slots.get(key, 0) + 1
        one = _Open(pack_xid(*key, self._slots[key]), self._scn if seen else None)
        self._open[key] = one
        if seen:
            self._add(EventKind.BEGIN, one)

    def _change(self, one: _Open) -> None:
        self._value += 1
        number = one.written
        one.written += 1
        block, record = divmod(number, BLOCK_RECORDS)
        base = (one.xid >> 48) << 20 | (one.xid >> 32 & 0xFF) << 16 | (one.xid & 0xFF) << 8
        one.undo.append(
            self._add(
                EventKind.CHANGE,
                one,
                value=self._value,
                undo_dba=base + block,
                prev_dba=base + block - 1 if record == 0 and block else 0,
                rci=record,
                wrp=one.xid & 0xFFFF,
            )
        )

    def _undo(self, one: _Open) -> None:
        """Undo runs newest first; the first record of an undo block by 5.11."""
        undone = one.undo.pop()
        slot_only = one.xid & ~0xFFFFFFFF
        self.events.append(
            Event(
                EventKind.UNDONE,
                slot_only,
                self._scn,
                len(self.events),
                undo_dba=0 if undone.rci == 0 else undone.undo_dba,
                prev_dba=undone.prev_dba,
                rci=undone.rci,
                wrp=undone.wrp,
                slot_head=int(undone.rci == 0),
            )
        )

    def _end(self, key: tuple[int, int], one: _Open) -> None:
        del self._open[key]
        if self._rng.random() < 0.25:
            while one.undo:
                self._undo(one)
            self._add(EventKind.ROLLBACK, one)
            self.rolled_back += one.begin_scn is not None
            self.unbegun += one.begin_scn is None
            return
        self._add(EventKind.COMMIT, one)
        if one.begin_scn is None:
            self.unbegun += 1
        elif one.undo:
            self.committed.append(
                Committed(
                    one.xid,
                    one.begin_scn,
                    self._scn,
                    one.session,
                    tuple(event.value for event in one.undo),
                )
            )
