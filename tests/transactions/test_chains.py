"""Rows of several pieces without supplemental data: what belongs together, what nobody tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.format.opcodes import CFA, DRP, IRP, ORP, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST, FB_NEXT, FB_PREVIOUS
from olr_pg.simulator.model.tables import Logging
from olr_pg.transactions.row_job import INCOMPLETE, MOST_OPEN, MULTI_PIECE, OK
from olr_pg.transactions.rows import add_piece
from tests.transactions.hand_made_pieces import BLOCK, Entry, Piece, job_of
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.transactions.row_job import RowJob


def unlogged_chain(folder: Path) -> SmallDatabase:
    """A committed row of three pieces in a table without supplemental logging."""
    base = SmallDatabase(folder, Shape(Logging.NONE))
    assert base.session.insert(base.table, base.row(1, 1000, 1000, 1000, 10))
    base.session.commit()
    return base


def test_a_later_piece_of_an_older_row_is_refused(tmp_path: Path) -> None:
    base = unlogged_chain(tmp_path)
    (row,) = base.table.live
    # The model takes the row for one that this transaction wrote.
    base.session.begin_empty()
    row.chain_owner = base.session.transaction
    assert base.session.update(row, {4: wide(11)})
    base.close()
    with pytest.raises(OlrPgError) as caught:
        base.decoded()
    assert caught.value.code == 2061
    assert "SUPPLEMENTAL LOG" in caught.value.action


def test_a_later_piece_of_an_own_row_is_told(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(Logging.NONE))
    row = base.session.insert(base.table, base.row(1, 1000, 1000, 1000, 10))
    assert row
    assert base.session.update(row, {4: wide(11)})
    assert base.session.update(row, {1: wide(990)})
    base.close()
    base.check()


def test_a_chain_whose_head_does_not_follow_is_refused(tmp_path: Path) -> None:
    base = unlogged_chain(tmp_path)
    (row,) = base.table.live
    row.chain = row.chain[:-1]
    assert base.session.delete(row)
    base.close()
    with pytest.raises(OlrPgError) as caught:
        base.decoded()
    assert caught.value.code == 2061


# --- piece by piece ---

Address = tuple[int, int]

NOWHERE: Final = (0, 0)
A, B, C, D = ((BLOCK + at, at) for at in range(1, 5))
HEAD_FIRST: Final = FB_HEAD | FB_FIRST
WHOLE: Final = HEAD_FIRST | FB_LAST
KEPT, ALONE, CLOSES, REFUSED = "kept", "alone", "closes", "refused"


class Part(NamedTuple):
    """A piece without supplemental data: its place and links, before and after the change."""

    op: int
    at: Address
    flags: int = 0
    leads_to: Address = NOWHERE
    width: int = 1
    old_flags: int = 0
    led_to: Address = NOWHERE
    old_width: int = 1
    row: Address = NOWHERE
    is_cut: bool = False
    table: int = 0


def inserted(at: Address, flags: int = 0, leads_to: Address = NOWHERE, **more: Any) -> Part:
    return Part(IRP, at, flags, leads_to, **more)


def deleted(at: Address, flags: int = 0, led_to: Address = NOWHERE, **more: Any) -> Part:
    return Part(DRP, at, flags, old_flags=flags, led_to=led_to, **more)


def overwritten(at: Address, old: int, new: int, leads_to: Address = NOWHERE, **more: Any) -> Part:
    return Part(ORP, at, new, leads_to, old_flags=old, **more)


def updated(at: Address, flags: int, **more: Any) -> Part:
    return Part(URP, at, flags, **more)


def job_of_parts(parts: Sequence[Part]) -> RowJob:
    pieces = [
        Piece([Entry(1, b"a"), Entry(2, b"b", part=int(part.is_cut))], part.op, group=None)
        for part in parts
    ]
    job = job_of(*pieces)
    rows = job.batch.pieces
    for at, part in enumerate(parts):
        row: Any = rows[at]
        job.batch.events.table[at] = part.table
        row.bdba, row.slot = part.at
        row.head_bdba, row.head_slot = part.row
        row.row_flags, row.old_flags = part.flags, part.old_flags
        row.width, row.old_width = part.width, part.old_width
        row.next_bdba, row.next_slot = part.leads_to
        row.old_next_bdba, row.old_next_slot = part.led_to
    return job


class Placed(NamedTuple):
    """What became of each piece; of each the columns in front of it, and the rows' addresses."""

    outcomes: list[str]
    shifts: list[int]
    rows: list[Address]


def placed(*parts: Part) -> Placed:
    """Place the pieces one after the other, and number what is complete."""
    job = job_of_parts(parts)
    add = interpreted(add_piece)
    outcomes, rows, groups = [], [], 0
    for at in range(len(parts)):
        status, groups, head = add(job, at, at, groups)
        if status != OK:
            assert status == MULTI_PIECE
            outcomes.append(REFUSED)
            continue
        outcomes.append(KEPT if head < 0 else ALONE if head == at else CLOSES)
        if head >= 0 and job.links.bdba[head]:
            rows.append((int(job.links.bdba[head]), int(job.links.slot[head])))
    return Placed(outcomes, job.links.shift.tolist(), rows)


OWN_ROW: Final = (
    inserted(C, FB_LAST, width=2), inserted(B, 0, C, width=3), inserted(A, HEAD_FIRST, B, width=4),
)  # fmt: skip
"""A row of three pieces that the transaction itself writes, the last piece first."""

TOLD: Final = {
    "inserted": (OWN_ROW, "kept kept closes", [7, 4, 0], [A]),
    "inserted, a value cut in two": (
        (
            inserted(C, FB_LAST | FB_PREVIOUS, width=2),
            inserted(B, FB_NEXT, C, width=3),
            inserted(A, HEAD_FIRST, B, width=4),
        ),
        "kept kept closes", [6, 4, 0], [A],
    ),
    "two rows at once": (
        (
            inserted(B, FB_LAST), inserted(D, FB_LAST, table=1),
            inserted(A, HEAD_FIRST, B, width=2), inserted(C, HEAD_FIRST, D, width=3, table=1),
        ),
        "kept kept closes closes", [2, 3, 0, 0], [A, C],
    ),
    "deleted": (
        (
            deleted(A, HEAD_FIRST, B, old_width=4), deleted(B, 0, C, old_width=3),
            deleted(C, FB_LAST, old_width=2),
        ),
        "kept kept closes", [0, 4, 7], [A],
    ),
    "deleted, a value cut in two": (
        (deleted(A, HEAD_FIRST | FB_NEXT, B, old_width=4), deleted(B, FB_LAST | FB_PREVIOUS)),
        "kept closes", [0, 3], [A],
    ),
    "moved": (
        (inserted(B, FB_FIRST | FB_LAST, row=A), overwritten(A, WHOLE, FB_HEAD, B, width=0)),
        "kept closes", [0, 0], [A],
    ),
    "moved back": (
        (overwritten(A, FB_HEAD, WHOLE, led_to=B, old_width=0), deleted(B, FB_FIRST | FB_LAST)),
        "kept closes", [0, 0], [A],
    ),
    "moved once more": (
        (
            inserted(C, FB_LAST, width=2), inserted(B, FB_FIRST, C, row=A, width=3),
            deleted(D, FB_FIRST | FB_LAST, row=A, old_width=5), Part(CFA, A, leads_to=B),
        ),
        "kept kept kept closes", [3, 0, 0, 0], [A],
    ),
    "grown out of its head": (
        (inserted(B, FB_LAST, width=2), overwritten(A, WHOLE, HEAD_FIRST, B, width=3)),
        "kept closes", [3, 0], [A],
    ),
    "a first piece that splits": (
        (
            inserted(B, 0, C, width=2),
            overwritten(A, HEAD_FIRST, HEAD_FIRST, B, width=3, led_to=C, old_width=5),
        ),
        "kept closes", [3, 0], [A],
    ),
    "a piece of an own row updated": (
        (*OWN_ROW, updated(B, 0, width=3, old_width=3), updated(C, FB_LAST, width=3, old_width=2)),
        "kept kept closes alone alone", [7, 4, 0, 4, 7], [A, A, A],
    ),
    "an address without new pieces": ((Part(CFA, A, leads_to=B),), "kept", [0], []),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "outcomes", "shifts", "rows"), TOLD.values(), ids=list(TOLD))
def test_pieces_that_lead_to_each_other_are_one_change(
    parts: tuple[Part, ...], outcomes: str, shifts: list[int], rows: list[Address]
) -> None:
    assert placed(*parts) == (outcomes.split(), shifts, rows)


GROWING_HEAD: Final = overwritten(
    A, HEAD_FIRST, HEAD_FIRST, B, width=3, led_to=C, old_width=5
)  # fmt: skip
IN_PLACE: Final = overwritten(A, HEAD_FIRST, HEAD_FIRST, B, led_to=B)

LAST_ONES: Final = {
    "a whole row inserted": ((), inserted(A, WHOLE), ALONE),
    "a whole row deleted": ((), deleted(A, WHOLE), ALONE),
    "a whole row overwritten": ((), overwritten(A, WHOLE, WHOLE), ALONE),
    "a whole row updated": ((), updated(A, WHOLE, width=3, old_width=2), ALONE),
    "a stub inserted": ((), inserted(A, FB_HEAD), REFUSED),
    "a head without the pieces behind it": ((), inserted(A, HEAD_FIRST, B), REFUSED),
    "a head in front of a row's middle": (
        (inserted(B, 0, C),), inserted(A, HEAD_FIRST, B), REFUSED,
    ),
    "a head that leads elsewhere": ((inserted(B, FB_LAST),), inserted(A, HEAD_FIRST, C), REFUSED),
    "a head of another table": (
        (inserted(B, FB_LAST, table=1),), inserted(A, HEAD_FIRST, B), REFUSED,
    ),
    "a later piece deleted": ((), deleted(B, FB_LAST), REFUSED),
    "a moved row's piece deleted, the row unseen": ((), deleted(B, FB_FIRST | FB_LAST), REFUSED),
    "a moved row's piece deleted, another row moves": (
        (inserted(C, FB_FIRST | FB_LAST, row=D),), deleted(B, FB_FIRST | FB_LAST, row=A), REFUSED,
    ),
    "a piece deleted that does not follow": (
        (deleted(A, HEAD_FIRST, B),), deleted(C, FB_LAST), REFUSED,
    ),
    "a head deleted that is the last": ((), deleted(A, FB_HEAD | FB_LAST), REFUSED),
    "a later piece made a whole row": ((), overwritten(A, FB_FIRST, WHOLE), REFUSED),
    "a stub over a row that moved elsewhere": (
        (inserted(B, FB_FIRST | FB_LAST, row=D),), overwritten(A, WHOLE, FB_HEAD, B), REFUSED,
    ),
    "a first piece in front of a moved row's": (
        (inserted(B, FB_FIRST | FB_LAST, row=A),), overwritten(A, WHOLE, HEAD_FIRST, B), REFUSED,
    ),
    "a first piece that splits, columns missing": (
        (inserted(B, 0, C, width=1),), GROWING_HEAD, REFUSED,
    ),
    "a first piece that splits, another one behind it": (
        (inserted(B, 0, D, width=2),), GROWING_HEAD, REFUSED,
    ),
    "a first piece that splits in a value": (
        (inserted(B, FB_PREVIOUS, C, width=2),), GROWING_HEAD, REFUSED,
    ),
    "a first piece that splits, its end lost": (
        (inserted(B, FB_LAST, C, width=2),), GROWING_HEAD, REFUSED,
    ),
    "a first piece that stays in place": ((), IN_PLACE, ALONE),
    "… with another width": ((), IN_PLACE._replace(old_width=2), REFUSED),
    "… with another block behind it": ((), IN_PLACE._replace(led_to=(B[0] + 1, B[1])), REFUSED),
    "… with another slot behind it": ((), IN_PLACE._replace(led_to=(B[0], B[1] + 1)), REFUSED),
    "… with a value cut": ((), IN_PLACE._replace(is_cut=True), REFUSED),
    "… that was not the first": ((), IN_PLACE._replace(old_flags=FB_HEAD), REFUSED),
    "… that is the last": ((), IN_PLACE._replace(flags=FB_HEAD | FB_LAST), REFUSED),
    "a first piece updated": ((), updated(A, HEAD_FIRST), ALONE),
    "a first piece that grows": ((), updated(A, HEAD_FIRST, width=2), REFUSED),
    "a first piece with a value cut": ((), updated(A, HEAD_FIRST, is_cut=True), REFUSED),
    "a value cut in the piece before": (
        (updated(B, WHOLE, is_cut=True),), updated(A, HEAD_FIRST), ALONE,
    ),
    "a value cut in the piece behind": (
        (updated(B, WHOLE),), updated(A, HEAD_FIRST, is_cut=True), REFUSED,
    ),
    "a moving row's piece deleted that is not its last": (
        (inserted(C, FB_FIRST | FB_LAST, row=A),), deleted(B, FB_FIRST, row=A), REFUSED,
    ),
    "a moving row's piece deleted that is not its first": (
        (inserted(C, FB_FIRST | FB_LAST, row=A),), deleted(B, FB_LAST, row=A), REFUSED,
    ),
    "a stub over a row that moved from another slot": (
        (inserted(B, FB_FIRST | FB_LAST, row=(A[0], A[1] + 1)),),
        overwritten(A, WHOLE, FB_HEAD, B), REFUSED,
    ),
    "a first piece that splits, cut before": (
        (inserted(B, 0, C, width=2),), GROWING_HEAD._replace(old_flags=HEAD_FIRST | FB_NEXT),
        REFUSED,
    ),
    "a first piece that splits, cut afterwards": (
        (inserted(B, 0, C, width=2),), GROWING_HEAD._replace(flags=HEAD_FIRST | FB_NEXT), REFUSED,
    ),
    "an address of another slot": (
        (inserted(B, FB_FIRST | FB_LAST, row=A), deleted(C, FB_FIRST | FB_LAST, row=A)),
        Part(CFA, (A[0], A[1] + 1), leads_to=B), REFUSED,
    ),
    "an address of another block": (
        (inserted(B, FB_FIRST | FB_LAST, row=A), deleted(C, FB_FIRST | FB_LAST, row=A)),
        Part(CFA, (A[0] + 1, A[1]), leads_to=B), REFUSED,
    ),
    "an older row's later piece updated": ((), updated(B, 0), REFUSED),
    "an own row's piece of another table": (OWN_ROW, updated(B, 0, table=1), REFUSED),
    "an own row's piece that grows": (OWN_ROW, updated(B, 0, width=4), REFUSED),
    "an address, the old piece not deleted": (
        (inserted(B, FB_FIRST | FB_LAST, row=A),), Part(CFA, A, leads_to=B), REFUSED,
    ),
    "an address of another row": (
        (inserted(B, FB_FIRST | FB_LAST, row=A), deleted(C, FB_FIRST | FB_LAST, row=A)),
        Part(CFA, D, leads_to=B), REFUSED,
    ),
    "an address, the row's end unseen": (
        (inserted(B, FB_FIRST, C, row=A), deleted(D, FB_FIRST | FB_LAST, row=A)),
        Part(CFA, A, leads_to=B), REFUSED,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "last", "outcome"), LAST_ONES.values(), ids=list(LAST_ONES))
def test_what_nobody_tells_is_refused(before: tuple[Part, ...], last: Part, outcome: str) -> None:
    assert placed(*before, last).outcomes[-1] == outcome


@pytest.mark.parametrize("part", [inserted(B, FB_LAST), deleted(A, HEAD_FIRST, B)])
def test_no_more_groups_are_opened_than_there_is_room_for(part: Part) -> None:
    job = job_of_parts([part])
    add = interpreted(add_piece)
    assert add(job, 0, 0, MOST_OPEN) == (INCOMPLETE, MOST_OPEN, -1)
    assert add(job, 0, 0, MOST_OPEN - 1) == (OK, MOST_OPEN, -1)
