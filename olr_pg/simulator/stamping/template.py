"""The template of copies, which the model writes once: redo, its marks, its truth, its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.scalars import decode_redo_time
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
    from olr_pg.simulator.stamping.marks import Marks
    from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog
    from olr_pg.transactions.finished_columns import DmlKind

    Rows = list[tuple[str, list[Cell | None]]]
    """Rows of a table, each with its ROWID."""

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
