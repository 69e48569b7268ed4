"""Row pieces of one table made by hand, and their assembly, compiled and interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import (
    ChangeBatch,
    EventKind,
    Role,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.redo.format.opcodes import IRP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_LAST
from olr_pg.transactions.row_job import RowJob, assembled, row_job
from olr_pg.transactions.rows import assemble_rows
from tests.redo.chain import clear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.transactions.finished_columns import DmlColumns

BLOCK: Final = 0x0180_0105
ALONE: Final = FB_FIRST | FB_LAST
COLUMNS: Final = 3


class Entry(NamedTuple):
    """A column value of a piece; `part` as `redo.batch.CutFlag`."""

    segcol: int
    value: bytes | None
    role: int = Role.AFTER
    part: int = 0


class Piece(NamedTuple):
    """A row piece, in an event of its own.

    Attributes:
        group: the supplemental flags; None without supplemental data.
        head: slot of the row's head.
        statement: what the supplemental header says of it.
        changed: the bitmap of columns that were really changed.
    """

    entries: Sequence[Entry] = ()
    op: int = IRP
    group: int | None = ALONE
    head: int = 0
    head_bdba: int = BLOCK
    statement: int = 0
    changed: bytes = b""


def plan() -> RowPlan:
    """A table of three RAW columns, whose values are put into images one by one."""
    columns = tuple(Column(f"C{at}", at, at, at, 23, 100) for at in range(1, COLUMNS + 1))
    made = build_row_plan([Table("S", "T", 100, 100, columns)], 0)
    return made._replace(as_stored=np.zeros(1, np.uint8))


def batch_of(*pieces: Piece) -> ChangeBatch:
    """The pieces as changes of one transaction."""
    entries = [entry for piece in pieces for entry in piece.entries]
    events, rows, values = (
        empty_events(len(pieces)), empty_pieces(len(pieces)), empty_entries(len(entries)),
    )  # fmt: skip
    for table in (events, rows, values):
        clear(table)
    data = bytearray()
    events.kind[:], events.piece_count[:] = EventKind.CHANGE, 1
    for at, piece in enumerate(pieces):
        row = rows[at]
        row.op, row.entry_count = piece.op, len(piece.entries)
        row.supplemental, row.sup_flags = piece.group is not None, piece.group or 0
        row.sup_type = piece.statement
        row.bdba = row.head_bdba = piece.head_bdba
        row.slot = row.head_slot = piece.head
        row.changed_offset, row.changed_length = len(data), len(piece.changed)
        data += piece.changed
    for at, entry in enumerate(entries):
        value = values[at]
        value.role, value.part, value.segcol = entry.role, entry.part, entry.segcol
        value.offset, value.length = len(data), -1 if entry.value is None else len(entry.value)
        data += entry.value or b""
    return ChangeBatch(events, rows, values, np.frombuffer(bytes(data), np.uint8).copy())


def job_of(*pieces: Piece, room: int = 100) -> RowJob:
    """An assembly of the pieces that has not begun; everything that a kernel reads is cleared."""
    job = row_job(batch_of(*pieces), plan(), room)
    for table in (job.links, job.groups):
        clear(table)
    job.merge.following[:], job.links.next_piece[:] = -1, -1
    return job


def assembled_both_ways(*pieces: Piece) -> DmlColumns:
    """The row changes of the pieces; compiled and interpreted kernels agree about them."""
    found = []
    for kernel in (assemble_rows, interpreted(assemble_rows)):
        job = job_of(*pieces)
        count = len(pieces)
        live, undoable = np.empty((2, count), np.int64)
        kernel(
            job, np.arange(count), np.zeros(1, np.int64), np.array([count]), np.zeros(2, np.int64),
            live, undoable,
        )  # fmt: skip
        found.append(assembled(job))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, plain)
    return found[0]
