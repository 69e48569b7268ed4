"""The template of copies, which the model writes once: redo, its marks, its truth, its rows.

It also makes copies of the truth; each copy has its own SCNs, transaction ids, ROWIDs and keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.scalars import decode_redo_time, parse_rowid
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation
from olr_pg.simulator.simulated_files import first_rows, last_rows
from olr_pg.simulator.stamping.marks import IndexKeys, Steps, find_marks
from olr_pg.simulator.truth import truth_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timezone

    import numpy.typing as npt

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.storage import UndoSegment
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.row_shape import KeyForm
    from olr_pg.simulator.stamping.marks import Marks
    from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog
    from olr_pg.transactions.finished_columns import DmlKind

    Rows = list[tuple[str, list[Cell | None]]]
    """Rows of a table, each with its ROWID."""
    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

TEMPLATE_BYTES: Final = 4_000_000
"""Bytes of redo that the model writes for copying."""

PART_BYTES: Final = 500_000
"""Bytes of redo between two places where a log may end. Sessions are described again after such a
place.
"""


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """The LWNs of a thread from one place where a log may end to the next.

    Attributes:
        stream: the records, without block headers.
        first_offsets: for each block, the offset of the first record that begins in it.
        largest_lwn: blocks of the largest LWN.
        first_scn, next_scn: the SCNs of a log that contains only this part.
        next_time: the redo time of its end.
    """

    stream: npt.NDArray[np.uint8]
    first_offsets: npt.NDArray[np.uint16]
    largest_lwn: int
    first_scn: int
    next_scn: int
    first_time: int
    next_time: int

    @classmethod
    def of(cls, log: OpenLog, next_scn: int, time: int) -> TemplatePart:
        """Return a log that ends as a part."""
        stream = np.frombuffer(b"".join(log.payloads), np.uint8)
        offsets = np.concatenate([np.zeros(0, np.uint16), *log.first_offsets])
        return cls(
            *(stream, offsets, log.largest_lwn, log.first_scn, next_scn),
            *(log.first_time, time),
        )


@dataclass(slots=True)
class Contents:
    """Redo that is written only once, or redo that will be copied.

    Attributes:
        parts: the parts of the redo, by thread from 0.
        truth: the lines of the truth.
        transactions, changes: number of delivered transactions, and of changes by kind.
        first, last: the rows before and after this redo, by table name.
    """

    parts: list[list[TemplatePart]]
    truth: bytes = b""
    transactions: int = 0
    changes: dict[DmlKind, int] = field(default_factory=dict)
    first: dict[str, Rows] = field(default_factory=dict)
    last: dict[str, Rows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Template:
    """Everything that is needed to make copies.

    Attributes:
        once: redo that is not copied; it comes before the first copy.
        copied: the first copy.
        marks: the values that differ between copies, for each part by thread.
        undo: the undo segments after the first copy, by number.
        sequences: the sequence of each thread's first log.
        zone: the time zone of the host.
        start, end: the dictionary before the first redo, and after the first copy.
    """

    seed: int
    shape: DatabaseShape
    identity: LogIdentity
    once: Contents
    copied: Contents
    steps: Steps
    marks: list[list[Marks]]
    undo: Mapping[int, UndoSegment]
    sequences: Sequence[int]
    zone: timezone
    tables: tuple[SimTable, ...]
    start: Snapshot
    end: Snapshot


def make_template(
    seed: int,
    workload: str,
    shape: DatabaseShape,
    *,
    prefilled: bool,
    size: int = TEMPLATE_BYTES,
) -> Template:
    """Let the model write a template.

    Args:
        shape: the shape of the database, with the size of the final logs.
        size: approximate bytes of the redo that will be copied.
    """
    blocks = max(1, min(shape.pace.log_blocks, PART_BYTES // shape.redo.block_size))
    pace = replace(shape.pace, log_blocks=blocks)
    collected: list[tuple[OpenLog, int, int]] = []
    simulation = NamedSimulation(
        *(seed, workload, replace(shape, pace=pace), size),
        lambda log, next_scn, time: collected.append((log, next_scn, time)),
        prefilled=prefilled,
        in_copies=True,
    )
    sequences = [thread.sequence for thread in simulation.threads]
    start = simulation.snapshot()
    simulation.load_once()
    once = _take(simulation, collected)
    once.first, once.last = _rows(simulation, first_rows), _rows(simulation, last_rows)
    before = _counters(simulation)
    simulation.begin_copy()
    simulation.work(size)
    simulation.end_copy()
    copied = _take(simulation, collected)
    copied.first, copied.last = _rows(simulation, first_rows), _rows(simulation, last_rows)
    for name in once.last:  # these rows are not in copies
        copied.first[name], copied.last[name] = [], []
    steps = _steps(simulation, workload, copied, before)
    marks = [
        [find_marks(shape.redo, part.stream.tobytes(), steps) for part in parts]
        for parts in copied.parts
    ]
    segments = simulation.container.every_segment()
    return Template(
        *(seed, shape, simulation.instance.identity, once, copied, steps, marks),
        {segment.usn: segment for segment in segments},
        *(sequences, simulation.instance.zone, simulation.tables, start, simulation.snapshot()),
    )


def _take(simulation: NamedSimulation, collected: list[tuple[OpenLog, int, int]]) -> Contents:
    """Return the redo, and its truth, that was written since the last call."""
    parts: list[list[TemplatePart]] = [[] for _ in simulation.threads]
    for log, next_scn, time in collected:
        parts[log.identity.thread - 1].append(TemplatePart.of(log, next_scn, time))
    collected.clear()
    transactions = simulation.take_committed()
    truth = "".join(line + "\n" for line in truth_lines(transactions)).encode()
    contents = Contents(parts, truth, simulation.transactions, dict(simulation.changes))
    simulation.transactions = 0
    simulation.changes = dict.fromkeys(simulation.changes, 0)
    return contents


def _rows(simulation: NamedSimulation, of: Callable[[SimTable], Rows]) -> dict[str, Rows]:
    return {table.name: rows for table in simulation.tables if (rows := of(table))}


def _counters(simulation: NamedSimulation) -> dict[tuple[int, int], int]:
    """Return the sequence of each (undo segment, slot); for slot −1, the segment's incarnation."""
    found = dict[tuple[int, int], int]()
    for segment in simulation.container.every_segment():
        found[segment.usn, -1] = segment.incarnation
        for number, slot in enumerate(segment.slots):
            found[segment.usn, number] = slot.sequence
    return found


def _steps(
    simulation: NamedSimulation,
    workload: str,
    copied: Contents,
    before: Mapping[tuple[int, int], int],
) -> Steps:
    after = _counters(simulation)
    grown = {key: count - before[key] for key, count in after.items()}
    parts, tables = copied.parts[0], simulation.tables
    lasted = decode_redo_time(parts[-1].next_time) - decode_redo_time(parts[0].first_time)
    blocks = {
        table.dataobj: len(table.segments[0].blocks) - table.segments[0].open_from
        for table in tables
    }
    indexes = dict[int, IndexKeys]()
    for table in tables:
        for index in table.indexes:
            blocks[index.obj] = len(index.blocks)
            indexes[index.obj] = IndexKeys(table.dataobj, index.columns, index.unique)
    named = NAMED[workload].keys
    return Steps(
        first_scn=min(own[0].first_scn for own in copied.parts),
        scn=parts[-1].next_scn - parts[0].first_scn,
        seconds=int(lasted.total_seconds()) + 1,
        blocks=blocks,
        slots={key: count for key, count in grown.items() if key[1] >= 0},
        incarnations={usn: count for (usn, slot), count in grown.items() if slot < 0},
        keys={table.dataobj: named.get(table.name, {}) for table in tables},
        indexes=indexes,
    )


WIDTH: Final = 15
"""Digits that are reserved for numbers whose length may change."""

KEY_DIGITS: Final = 4
"""Number of digits of the copy's number in a key."""

ROWID_BLOCK: Final = 9
ROWID_DIGITS: Final = 6
"""Position of the block number in a ROWID, and its number of characters."""

_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_HEAD: Final = re.compile(
    rb'\{"op":"\w+","scn":(\d+),"commit_scn":(\d+),"xid":"(\d+)\.(\d+)\.(\d+)"'
    rb'(?:,"table":"\w+\.(\w+)","rowid":"([^"]*)")?'
)


def put_digits(target: Bytes, at: Ints, values: Ints, width: int) -> None:
    """Write decimal numbers into fields of `width` bytes, with NUL bytes before the first digit."""
    for place in range(width):
        rest = values // 10 ** (width - 1 - place)
        target[at + place] = np.where(rest > 0, rest % 10 + ord("0"), 0)


def put_rowid_blocks(target: Bytes, at: Ints, blocks: Ints) -> None:
    """Write block numbers in the form of ROWIDs."""
    for place in range(ROWID_DIGITS):
        target[at + place] = _ALPHABET[blocks >> 6 * (ROWID_DIGITS - 1 - place) & 63]


class TextCopies:
    """Makes copies of the lines of a truth.

    Args:
        text: the lines of the first copy.
        steps: the differences between copies.
        keys: the forms of key columns, by table and column name.
        tables: the data object number of each table.
    """

    def __init__(
        self,
        text: bytes,
        steps: Steps,
        keys: Mapping[str, Mapping[str, KeyForm]],
        tables: Mapping[str, int],
    ) -> None:
        self._steps, self._tables = steps, tables
        self._keys = {table.encode(): own for table, own in keys.items()}
        self._names = {
            table: re.compile(rb'"(%s)":(\d+)' % b"|".join(name.encode() for name in own))
            for table, own in ((table, own) for table, own in self._keys.items() if own)
        }
        self._pieces, self._size = list[bytes](), 0
        self._found: dict[str, list[tuple[int, int, int]]] = {"number": [], "key": [], "block": []}
        for line in text.splitlines(keepends=True):
            self._read(line)
        self._text = np.frombuffer(b"".join(self._pieces), np.uint8)
        self._numbers, self._key_digits, self._blocks = (
            np.array(self._found[kind], np.int64).reshape(-1, 3).T
            for kind in ("number", "key", "block")
        )

    def _read(self, line: bytes) -> None:
        head = _HEAD.match(line)
        assert head is not None
        first = self._steps.first_scn
        done = 0
        for group, step in (
            *((1, self._steps.scn), (2, self._steps.scn)),
            (5, self._steps.slots[int(head[3]), int(head[4])]),
        ):
            assert group == 5 or int(head[group]) >= first
            self._add(line[done : head.start(group)])
            self._found["number"].append((self._size, int(head[group]), step))
            self._add(bytes(WIDTH))
            done = head.end(group)
        start = self._size - done
        self._add(line[done:])
        if not head[6]:
            return
        if head[7]:
            _, dba, _ = parse_rowid(head[7].decode())
            step = self._steps.blocks[self._tables[head[6].decode()]]
            place = start + head.start(7) + ROWID_BLOCK
            self._found["block"].append((place, dba & 0x3FFFFF, step))
        if head[6] in self._names:
            forms = self._keys[head[6]]
            for match in self._names[head[6]].finditer(line, head.end()):
                place = match.start(2) + forms[match[1].decode()].digits_at
                number = int(line[place : place + KEY_DIGITS])
                self._found["key"].append((start + place, number, 1))

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)

    def text(self, copy: int) -> Bytes:
        """Return the lines of the copy with this number, from 0."""
        text = self._text.copy()
        at, value, step = self._numbers
        put_digits(text, at, value + copy * step, WIDTH)
        at, value, step = self._blocks
        put_rowid_blocks(text, at, value + copy * step)
        at, value, step = self._key_digits
        for place in range(KEY_DIGITS):
            digits = (value + copy * step) // 10 ** (KEY_DIGITS - 1 - place) % 10
            text[at + place] = digits + ord("0")
        copied: Bytes = text[text != 0]
        return copied
