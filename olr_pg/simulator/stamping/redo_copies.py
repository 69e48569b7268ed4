"""Makes copies of redo; each has its own SCNs, times, transaction ids, addresses and keys.

It also makes copies of rows; each copy has its own ROWIDs and keys.

It also contains a named workload of any size: redo that the model wrote once, and its copies.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.redo.format import file_fields as file
from olr_pg.redo.format import undo_fields as undo
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.scalars import parse_rowid
from olr_pg.simulator.fields.block_layout import FIRST_DATA_BLOCK, seal_blocks
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.sessions.row_shape import COPIES_MAX, IDENTITY
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.stamping.marks import NUMBER_DIGITS
from olr_pg.simulator.stamping.template import (
    ROWID_BLOCK,
    TEMPLATE_BYTES,
    TextCopies,
    make_template,
    put_rowid_blocks,
)
from olr_pg.simulator.table_files import row_arrays, write_batches
from olr_pg.simulator.writer.log_file import OpenLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

    import numpy.typing as npt

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.row_shape import KeyForm
    from olr_pg.simulator.stamping.marks import Carried, Marks
    from olr_pg.simulator.stamping.template import Rows, Template, TemplatePart

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

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
