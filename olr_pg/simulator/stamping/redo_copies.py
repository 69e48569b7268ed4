"""A named workload of any size: redo that the model wrote once, and its copies.

The model writes a template: redo, its marks, its truth, its rows. Each copy of it has its own SCNs,
times, transaction ids, addresses, ROWIDs and keys, in the redo as in the truth and the rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.redo.format import file_fields as file
from olr_pg.redo.format import undo_fields as undo
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.scalars import decode_redo_time, parse_rowid
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation
from olr_pg.simulator.sessions.row_shape import COPIES_MAX, IDENTITY
from olr_pg.simulator.simulated_files import Summary, first_rows, last_rows
from olr_pg.simulator.stamping.marks import NUMBER_DIGITS, IndexKeys, Steps, find_marks
from olr_pg.simulator.truth import row_arrays, truth_lines, write_batches
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK, OpenLog, seal_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timezone
    from pathlib import Path
    from typing import BinaryIO

    import numpy.typing as npt

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.storage import UndoSegment
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.row_shape import KeyForm
    from olr_pg.simulator.stamping.marks import Carried, Marks
    from olr_pg.simulator.writer.log_file import LogIdentity
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
        once: redo that is not copied, and that comes before the first copy.
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


_MONTHS_TO_1988: Final = 18 * 12
_DAY: Final = 86_400
_INCARNATIONS: Final = 0xFFFF


def put(target: Bytes, at: Ints, values: Ints, width: int, *, big: bool) -> None:
    """Write numbers of `width` bytes to the places `at` of `target`."""
    for place in range(width):
        shift = 8 * (width - 1 - place if big else place)
        target[at + place] = values >> shift & 0xFF


def later_times(redo_times: Ints, seconds: Ints) -> Ints:
    """Return redo times plus a number of seconds (redo-format §0.3)."""
    days, second = np.divmod(redo_times, _DAY)
    months, day = np.divmod(days, 31)
    first = (months + _MONTHS_TO_1988).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days, second = np.divmod((first + day) * _DAY + second + seconds, _DAY)
    date = days.astype("M8[D]")
    month = date.astype("M8[M]")
    day = (date - month.astype("M8[D]")).astype(np.int64)
    later: Ints = ((month.astype(np.int64) - _MONTHS_TO_1988) * 31 + day) * _DAY + second
    return later


class RedoCopies:
    """Makes copies of a part of redo.

    Args:
        part: the first copy.
        marks: the values that differ between copies.
    """

    def __init__(self, template: Template, part: TemplatePart, marks: Marks) -> None:
        self._template, self._redo, self._part = template, template.shape.redo, part
        self._carried = marks.carried
        self._at = {
            one.name: np.array(getattr(marks, one.name), np.int64).reshape(-1, 3).T
            for one in fields(marks)
            if one.name != "carried"
        }

    def part(self, copy: int) -> TemplatePart:
        """Return the copy with this number, from 0."""
        part, steps = self._part, self._template.steps
        scn, seconds = copy * steps.scn, np.array([copy * steps.seconds], np.int64)
        first, last = later_times(np.array([part.first_time, part.next_time]), seconds).tolist()
        return replace(
            part,
            stream=self._stream(copy),
            first_scn=part.first_scn + scn,
            next_scn=part.next_scn + scn,
            first_time=first,
            next_time=last,
        )

    def _stream(self, copy: int) -> Bytes:
        stream, big = self._part.stream.copy(), self._redo.big_endian
        low, high, value = self._at["scns"]
        value = value + copy * self._template.steps.scn
        put(stream, low, value, 4, big=big)
        put(stream, high, value >> 32, 2, big=big)
        self._put_short_scns(stream, copy)
        for (at, value, step), width, order in (
            (self._at["words"], 4, big),
            (self._at["halves"], 2, big),
            (self._at["rowid_words"], 4, True),
        ):
            put(stream, at, value + copy * step, width, big=order)
        at, value, step = self._at["incarnations"]
        put(stream, at, (value - 1 + copy * step) % _INCARNATIONS + 1, 2, big=big)
        at, value, step = self._at["pairs"]
        high, low = np.divmod(value + copy * step, NUMBER_DIGITS)
        stream[at], stream[at + 1] = high + 1, low + 1
        at, value, step = self._at["times"]
        put(stream, at, later_times(value, copy * step), 4, big=big)
        if copy:
            for one in self._carried:
                self._carry(stream, one, copy - 1)
        return stream

    def _put_short_scns(self, stream: Bytes, copy: int) -> None:
        """Write SCNs of six bytes, in the form of `RedoFormat.scn6r`."""
        low, high, value = self._at["short_scns"]
        value = value + copy * self._template.steps.scn
        wrap = value >> 32 & 0x7FFF
        if self._redo.long_scn:
            wrap = np.where(wrap == 0, 0x8000, wrap)
        put(stream, low, value, 4, big=self._redo.big_endian)
        put(stream, high, wrap, 2, big=self._redo.big_endian)

    def _carry(self, stream: Bytes, one: Carried, copy: int) -> None:
        """Write the state that an undo header has after copy number `copy`, which is the previous
        copy.
        """
        redo, segment = self._redo, self._template.undo[one.usn]

        def write(at: int, data: bytes) -> None:
            stream[at : at + len(data)] = np.frombuffer(data, np.uint8)

        if one.what == "header":
            header = segment.header
            write(one.at + file.VECTOR_SCN, redo.scn8(self._later(header.scn, copy)))
            write(one.at + file.VECTOR_SEQ, bytes((header.seq,)))
        elif one.what == "commit":
            at = one.at + undo.KTUB_LONG.at("prev ctl max cmt scn")
            write(at, redo.scn8(self._later(segment.max_commit_scn, copy)))
        else:
            slot = segment.slots[one.slot]
            block, incarnation, record, _ = redo.unpack("IHBB", slot.last_uba)
            step = self._template.steps.incarnations[one.usn]
            incarnation = (incarnation - 1 + copy * step) % _INCARNATIONS + 1
            uba = redo.uba(block, incarnation, record)
            write(one.at + undo.KTUB_LONG.at("prev ctl uba"), uba)
            scn8 = redo.scn8(self._later(slot.commit_scn, copy))
            write(one.at + undo.KTUB_LONG.at("prev tx cmt scn"), scn8)
            write(one.at + undo.KTUB_LONG.at("prev brb"), redo.pack("I", slot.last_dba))

    def _later(self, scn: int, copy: int) -> int:
        """Return the SCN that corresponds, in another copy, to an SCN of the first copy."""
        steps = self._template.steps
        return scn + copy * steps.scn if scn >= steps.first_scn else scn


class ThreadLogs:
    """Writes the archived logs of a thread, part by part.

    Args:
        thread: its number from 0.
        folder: the folder of the logs.
        written: a list to which the path of each log is appended.
    """

    def __init__(self, template: Template, thread: int, folder: Path, written: list[Path]) -> None:
        self._redo, self._blocks = template.shape.redo, template.shape.pace.log_blocks
        self._identity = replace(template.identity, thread=thread + 1)
        self._sequence = template.sequences[thread]
        self._folder, self._written = folder, written
        self._log: OpenLog | None = None
        self._file: BinaryIO
        self._last: TemplatePart
        self._time: int | None = None

    def add(self, part: TemplatePart) -> None:
        """Write a part; if the log is full then, end it."""
        if self._log is None:
            self._open(part)
        log, redo = self._log, self._redo
        assert log is not None
        if len(part.first_offsets):
            block = FIRST_DATA_BLOCK + log.blocks
            blocks = seal_blocks(redo, part.stream, part.first_offsets, log.sequence, block)
            self._file.write(blocks.data)
        log.blocks += len(part.first_offsets)
        log.largest_lwn = max(log.largest_lwn, part.largest_lwn)
        self._last = part
        if log.blocks >= self._blocks:
            self.end()

    def end(self) -> None:
        """End the open log, if there is one."""
        if self._log is None:
            return
        self._file.seek(0)
        self._file.write(self._log.headers(self._last.next_scn, self._last.next_time))
        self._file.close()
        self._time, self._log = self._last.next_time, None
        self._sequence += 1

    def _open(self, part: TemplatePart) -> None:
        time = part.first_time if self._time is None else self._time
        log = OpenLog(self._redo, self._identity, self._sequence, part.first_scn, time)
        path = self._folder / log.name
        self._file = path.open("wb")
        self._file.write(bytes(FIRST_DATA_BLOCK * self._redo.block_size))
        self._written.append(path)
        self._log = log


def write_logs(template: Template, copies: int, folder: Path) -> list[Path]:
    """Write the archived logs of all copies; return their paths."""
    written: list[Path] = []
    threads = range(len(template.once.parts))
    logs = [ThreadLogs(template, thread, folder, written) for thread in threads]
    for thread, parts in enumerate(template.once.parts):
        for part in parts:
            logs[thread].add(part)
    made = [
        [
            RedoCopies(template, part, marks)
            for part, marks in zip(
                template.copied.parts[thread], template.marks[thread], strict=True
            )
        ]
        for thread in threads
    ]
    for copy in range(copies):
        for thread in threads:
            for copies_of in made[thread]:
                logs[thread].add(copies_of.part(copy))
    for log in logs:
        log.end()
    return written


ROWID_SIZE: Final = 18


class TableCopies:
    """Makes copies of a table's rows.

    Args:
        rows: the rows of the first copy.
        blocks: distance from the blocks of a copy to those of the next copy.
        keys: the forms of key columns, by 0-based column.
    """

    def __init__(
        self, table: SimTable, rows: Rows, blocks: int, keys: Mapping[int, KeyForm]
    ) -> None:
        self._step, self._arrays, self._count = blocks, row_arrays(table, rows), len(rows)
        rowids = "".join(rowid for rowid, _ in rows).encode()
        self._rowids = np.frombuffer(rowids, np.uint8)
        self._blocks = np.array([parse_rowid(rowid)[1] & 0x3FFFFF for rowid, _ in rows], np.int64)
        self._ends = _buffer(np.arange(len(rows) + 1, dtype=np.int32) * ROWID_SIZE)
        self._numbers = {
            at: np.array([int(cell.json) for _, cells in rows if (cell := cells[at])], np.int64)
            for at in keys
        }
        self._keys = keys
        self._types = {at: arrow_type(table.columns[at].type) for at in keys}

    def arrays(self, copy: int) -> list[pa.Array[Any]]:
        """Return the columns of the copy with this number, from 0; ROWID is the first column."""
        arrays = list(self._arrays)
        rowids = self._rowids.copy()
        places = np.arange(self._count) * ROWID_SIZE + ROWID_BLOCK
        put_rowid_blocks(rowids, places, self._blocks + copy * self._step)
        buffers = [None, self._ends, _buffer(rowids)]
        arrays[0] = pa.Array.from_buffers(pa.string(), self._count, buffers)
        for at, form in self._keys.items():
            numbers = self._numbers[at] + copy * form.stride
            arrays[1 + at] = _decimals(numbers, self._types[at])
        return arrays


def _decimals(numbers: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array[Any]:
    """Return integers as decimal128 values: 16 bytes in two's complement."""
    halves = np.zeros((len(numbers), 2), np.int64)
    halves[:, 0] = numbers
    return pa.Array.from_buffers(kind, len(numbers), [None, _buffer(halves)])


def _buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(array.data)


COPIED_FROM: Final = 2 * TEMPLATE_BYTES
"""Bytes of redo from which on copies are made; the model writes smaller amounts row by row."""


def template_for(
    seed: int, workload: str, shape: DatabaseShape, size: int, *, prefilled: bool
) -> Template:
    """Let the model write a template for `size` bytes of redo."""
    own = max(TEMPLATE_BYTES, size // COPIES_MAX)
    return make_template(seed, workload, shape, prefilled=prefilled, size=own)


def copy_template(
    template: Template, size: int, directory: Path, *, truth: bool, logs: Path
) -> Summary:
    """Write copies of a template: about `size` bytes of redo.

    Args:
        directory: output: ``dictionary.json``, ``truth.jsonl``, ``tables/`` and ``final/``.
        logs: the folder of the logs.
    """
    blocks = sum(len(one.first_offsets) for parts in template.copied.parts for one in parts)
    copies = max(1, round(size / (blocks * template.shape.redo.block_size)))
    copies = min(copies, COPIES_MAX)
    written = write_logs(template, copies, logs)
    if truth:
        _write_truth(template, copies, directory / "truth.jsonl")
    start, once, copied = template.start, template.once, template.copied
    _write_tables(template, copies, directory / "tables", start.scn, first=True)
    end = _end(template, copies)
    rows = _write_tables(template, copies, directory / "final", end.scn, first=False)
    write_dictionary(start, directory)
    write_snapshot(end, str(directory / "final" / "dictionary.json"))
    return Summary(
        *(template.seed, template.shape, start),
        once.transactions + copies * copied.transactions,
        {kind: once.changes[kind] + copies * count for kind, count in copied.changes.items()},
        *(rows, template.tables),
    ).with_logs(written)


def _write_truth(template: Template, copies: int, path: Path) -> None:
    keys = {
        table.name: {
            table.columns[at].name: form for at, form in template.steps.keys[table.dataobj].items()
        }
        for table in template.tables
    }
    objects = {table.name: table.dataobj for table in template.tables}
    text = TextCopies(template.copied.truth, template.steps, keys, objects)
    with path.open("wb") as file:
        file.write(template.once.truth)
        for copy in range(copies):
            file.write(text.text(copy).data)


def _write_tables(
    template: Template, copies: int, folder: Path, scn: int, *, first: bool
) -> dict[str, int]:
    """Write the rows at the start (`first`) or at the end; return their number for each table."""
    rows = dict[str, int]()
    for table in template.tables:
        once, copied = (
            (one.first if first else one.last).get(table.name, [])
            for one in (template.once, template.copied)
        )
        blocks, keys = template.steps.blocks[table.dataobj], template.steps.keys[table.dataobj]
        made = TableCopies(table, copied, blocks, keys) if copied else None
        batches = [row_arrays(table, once)] if once else []
        more = (made.arrays(copy) for copy in range(copies)) if made else ()
        rows[table.full_name] = write_batches(folder, table, chain(batches, more), scn)
    return rows


def _end(template: Template, copies: int) -> Snapshot:
    """Return the dictionary after the last copy."""
    end, more = template.end, copies - 1
    structure = end.structure
    assert structure is not None
    sequences = tuple(
        one.model_copy(update={"next": one.next + more * IDENTITY.stride})
        for one in structure.sequences
    )
    scn = end.scn + more * template.steps.scn
    return replace(end, scn=scn, structure=structure.model_copy(update={"sequences": sequences}))
