"""Which pieces are one change of a row, as supplemental flags tell it."""

from __future__ import annotations

import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.format.opcodes import CMP, DRP, IRP, QMI, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_LAST
from olr_pg.transactions.piece_groups import add_piece
from olr_pg.transactions.row_job import INCOMPLETE, MOST_OPEN, OK, RowJob
from tests.transactions.hand_made_pieces import Entry, Piece, assembled_both_ways, job_of

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
