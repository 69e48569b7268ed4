"""Which pieces are one change of a row, as supplemental flags tell it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.format.opcodes import CMP, DRP, IRP, QMI, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST
from olr_pg.transactions.piece_groups import _close_group, add_piece
from olr_pg.transactions.row_job import (
    CONTRADICTS,
    GROUP,
    INCOMPLETE,
    MOST_OPEN,
    MULTI_PIECE,
    OK,
    RowJob,
)
from tests.transactions.hand_made_pieces import Entry, Piece, assembled_both_ways, job_of
from tests.transactions.test_chains import (
    A,
    B,
    D,
    Part,
    deleted,
    inserted,
    job_of_parts,
    updated,
)

add = interpreted(add_piece)


def added(job: RowJob) -> list[tuple[int, int, list[int]]]:
    """(status, open groups, pieces of the change that is complete) after each piece."""
    found, groups = [], 0
    for piece in range(job.batch.pieces.size):
        status, groups, complete = add(job, piece, piece, groups)
        members = []
        while complete >= 0:
            members.append(complete)
            complete = int(job.links.next_piece[complete])
        found.append((status, groups, members))
    return found


@pytest.mark.parametrize("piece", [Piece(), Piece(op=QMI, group=None), Piece(op=QMI, group=0)])
def test_a_whole_row_is_a_change_by_itself(piece: Piece) -> None:
    assert added(job_of(piece)) == [(OK, 0, [0])]


def test_pieces_between_first_and_last_are_one_change() -> None:
    pieces = [Piece(op=URP, group=flags) for flags in (FB_FIRST, 0, FB_LAST)]
    assert added(job_of(*pieces)) == [(OK, 1, []), (OK, 1, []), (OK, 0, [0, 1, 2])]


def test_rows_may_be_half_seen_side_by_side() -> None:
    job = job_of(
        Piece(op=URP, group=FB_FIRST, head=1),
        Piece(op=DRP, group=FB_FIRST, head=2),
        Piece(op=URP, group=FB_LAST, head=1),
        Piece(op=IRP, group=FB_FIRST, head=1),
        Piece(op=DRP, group=FB_LAST, head=2),
        Piece(op=IRP, group=FB_LAST, head=1),
    )
    members = [change for _, _, change in added(job) if change]
    assert members == [[0, 2], [1, 4], [3, 5]]


def test_slots_of_other_blocks_are_other_rows() -> None:
    job = job_of(Piece(group=FB_FIRST, head=1), Piece(group=FB_LAST, head=1, head_bdba=7))
    assert added(job) == [(OK, 1, []), (INCOMPLETE, 1, [])]


@pytest.mark.parametrize("others", list(itertools.permutations((1, 2, 4), 2)))
@pytest.mark.parametrize("at", range(3))
def test_records_of_one_change_are_of_one_statement(others: tuple[int, int], at: int) -> None:
    statement, damaged = others
    pieces = [Piece(op=URP, group=f, statement=statement) for f in (FB_FIRST, 0, FB_LAST)]
    assert added(job_of(*pieces))[-1] == (OK, 0, [0, 1, 2])
    pieces[at] = pieces[at]._replace(statement=damaged)
    assert (CONTRADICTS, 1, []) in added(job_of(*pieces))


@pytest.mark.parametrize(("op", "statement"), [(URP, 1), (IRP, 2), (DRP, 4)])
def test_a_whole_piece_without_flags_is_by_its_statement(op: int, statement: int) -> None:
    for named in (1, 2, 4):
        job = job_of(Piece(op=op, group=0, statement=named))
        job.batch.pieces.row_flags[:] = FB_FIRST | FB_LAST
        expected = (OK, 0, [0]) if named == statement else (CONTRADICTS, 0, [])
        assert added(job) == [expected]


def test_a_row_whose_beginning_was_not_seen_is_incomplete() -> None:
    assert added(job_of(Piece(group=FB_LAST))) == [(INCOMPLETE, 0, [])]


def test_a_cmp_without_a_row_is_passed_unless_a_row_is_half_seen() -> None:
    block = Piece(op=CMP, group=0, head_bdba=0)
    assert added(job_of(block)) == [(OK, 0, [])]
    assert added(job_of(Piece(group=FB_FIRST), block))[1] == (INCOMPLETE, 1, [])


def test_the_number_of_open_rows_is_bounded() -> None:
    job = job_of(Piece(group=FB_FIRST))
    assert add(job, 0, 0, MOST_OPEN - 1)[:2] == (OK, MOST_OPEN)
    assert add(job, 0, 0, MOST_OPEN)[:2] == (INCOMPLETE, MOST_OPEN)


def test_the_change_of_a_group_has_the_values_of_all_its_pieces() -> None:
    dml = assembled_both_ways(
        Piece([Entry(1, b"a")], group=FB_FIRST, head=1),
        Piece([Entry(1, b"x"), Entry(2, b"y"), Entry(3, b"z")], head=2),
        Piece([Entry(2, b"b"), Entry(3, None)], group=FB_LAST, head=1),
    )
    values = [
        None if value.length < 0 else dml.data[value.offset :][: value.length].tobytes()
        for value in dml.values
    ]
    assert dml.slot.tolist() == [2, 1]
    assert values == [b"x", b"y", b"z", b"a", b"b", None]


def test_a_row_is_of_its_table_and_the_last_that_began_goes_on() -> None:
    first, last = Piece(group=FB_FIRST, head=1), Piece(group=FB_LAST, head=1)
    job = job_of(first, first, last)
    assert added(job)[2] == (OK, 1, [1, 2])
    job = job_of(first, last)
    job.batch.events.table[1] = 1
    assert added(job) == [(OK, 1, []), (INCOMPLETE, 1, [])]


def test_a_cmp_is_passed_where_only_rows_of_other_tables_are_half_seen() -> None:
    job = job_of(Piece(group=FB_FIRST), Piece(op=CMP, group=0, head_bdba=0))
    job.batch.events.table[1] = 1
    assert added(job) == [(OK, 1, []), (OK, 1, [])]
    for cmp in (Piece(op=CMP, group=0), Piece(op=CMP, group=FB_LAST, head_bdba=0)):
        assert added(job_of(cmp)) == [(INCOMPLETE, 0, [])]
    growing = job_of_parts([inserted(B, FB_LAST), Part(CMP, (0, 0), row=(0, 0))])
    growing.batch.pieces.supplemental[1] = 1
    assert added(growing) == [(OK, 1, []), (OK, 1, [])]


def test_what_stands_behind_a_closed_group_moves_up() -> None:
    job = job_of(Piece())
    for number, name in enumerate(GROUP.names or ()):
        job.groups[name][:4] = 10 * number + np.arange(4)
    before = job.groups[:4].tolist()
    assert interpreted(_close_group)(job, 4, 1) == 10 * (GROUP.names or ()).index("head") + 1
    assert job.groups[:3].tolist() == [before[0], before[2], before[3]]


def test_a_piece_is_linked_to_its_event_and_its_row() -> None:
    job = job_of(Piece(head=4, head_bdba=77), Piece())
    job.links.view(np.uint8)[:] = 0x5A
    add(job, 1, 0, 0)
    assert job.links[0].tolist() == (-1, 1, 0, 77, 4)


# --- without supplemental data: `chains` says what becomes of a piece, its tests all of that ---


def test_what_becomes_of_pieces_without_supplemental_data() -> None:
    whole = FB_HEAD | FB_FIRST | FB_LAST
    assert added(job_of_parts([inserted(A, whole)])) == [(OK, 0, [0])]
    assert added(job_of_parts([updated(B, 0)])) == [(MULTI_PIECE, 0, [])]
    job = job_of_parts([inserted(B, FB_LAST)])
    assert add(job, 0, 0, job.groups.size - 1) == (INCOMPLETE, job.groups.size - 1, -1)


def test_a_chain_that_closes_is_a_change_at_the_address_of_its_row() -> None:
    """Written last to first, the row is at the last piece that came; deleted, at the first."""
    open_one = inserted(D, FB_LAST)
    written = [open_one, inserted(B, FB_LAST), inserted(A, FB_HEAD | FB_FIRST, B)]
    job = job_of_parts(written)
    assert added(job) == [(OK, 1, []), (OK, 2, []), (OK, 1, [1, 2])]
    assert (job.links.bdba[1], job.links.slot[1]) == A
    gone = [open_one, deleted(A, FB_HEAD | FB_FIRST, B), deleted(B, FB_LAST)]
    job = job_of_parts(gone)
    assert added(job) == [(OK, 1, []), (OK, 2, []), (OK, 1, [1, 2])]
    assert (job.links.bdba[1], job.links.slot[1]) == A
