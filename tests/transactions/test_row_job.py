"""The tables that assembly works on: their sizes, and the output that is made of them."""

from __future__ import annotations

import numpy as np

from olr_pg.transactions.finished_columns import Image
from olr_pg.transactions.row_job import (
    CHANGES,
    KNOWN_BEFORE,
    KNOWN_MAX,
    MORE,
    PARTS,
    VALUES,
    Before,
    assembled,
    nothing_before,
    row_job,
)
from tests.transactions.hand_made_pieces import Entry, Piece, batch_of, job_of, plan


def test_a_job_knows_where_the_pieces_and_entries_begin() -> None:
    job = job_of(Piece([Entry(1, b"a"), Entry(2, b"b")]), Piece(), Piece([Entry(3, b"c")]), room=7)
    assert job.piece_first.tolist() == [0, 1, 2, 3]
    assert job.entry_first.tolist() == [0, 2, 2, 3]
    assert job.values.size == 7
    assert not job.counts.any()


def test_a_part_of_a_transaction_goes_on_from_what_is_known() -> None:
    known = nothing_before().known
    known.shift[:2] = 3, 4
    job = row_job(batch_of(Piece()), plan(), 10, Before(known, 2), more=True)
    assert (job.counts[KNOWN_BEFORE], job.counts[MORE]) == (2, 1)
    assert job.known.shift[:2].tolist() == [3, 4]
    assert job.known.size == KNOWN_MAX


def test_the_output_is_what_was_filled() -> None:
    job = job_of(Piece([Entry(1, b"abc")]))
    change = job.changes[0]
    filled = {name: at + 1 for at, name in enumerate(job.changes.dtype.names or ())}
    for name, number in filled.items():
        setattr(change, name, number)
    job.entry_start[:2] = 0, 2
    for at in range(2):
        value = job.values[at]
        value.offset, value.length, value.next = at, 1, -1
        value.column, value.image = at, Image.AFTER
    job.counts[CHANGES], job.counts[VALUES] = 1, 2
    dml = assembled(job)
    assert {name: getattr(dml, name).tolist() for name in filled} == {
        name: [number] for name, number in filled.items()
    }
    assert dml.entry_first.tolist() == [0, 2]
    assert dml.entries.column.tolist() == [0, 1]
    assert dml.data is job.batch.data


def test_further_parts_of_values_stand_behind_the_values() -> None:
    job = job_of(Piece([Entry(1, b"abcdef")]))
    for at, following in enumerate((-1, -2)):
        value = job.values[at]
        value.offset, value.length, value.next = 10 + at, 1, following
        value.column, value.image = at, Image.AFTER
    job.parts[:, :2] = np.array([[20, 21], [5, 6], [1, -1]])
    job.counts[VALUES], job.counts[PARTS] = 2, 2
    dml = assembled(job)
    assert dml.values.next.tolist() == [-1, 2, 3, -1]
    assert dml.values.offset.tolist() == [10, 11, 20, 21]
    assert dml.values.length.tolist() == [1, 1, 5, 6]
