"""Values of a row change: which of those that were logged counts, and where it goes."""

from __future__ import annotations

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import CutFlag, Role
from olr_pg.redo.format.opcodes import URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_LAST
from olr_pg.transactions.finished_columns import DmlColumns, Image
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    CAPACITY,
    OK,
    PARTS,
    UNKNOWN_COLUMN,
    VALUES,
    RowJob,
    row_job,
)
from olr_pg.transactions.row_values import (
    NOT_PLAIN,
    gather_piece,
    push_full_image,
    push_plain_insert,
    push_update,
)
from tests.redo.chain import clear
from tests.transactions.hand_made_pieces import (
    Entry,
    Piece,
    assembled_both_ways,
    batch_of,
    job_of,
)

gather, full_image = interpreted(gather_piece), interpreted(push_full_image)
update, plain_insert = interpreted(push_update), interpreted(push_plain_insert)
BEFORE_LOGGED, AFTER_LOGGED = Role.BEFORE_SUPPLEMENTAL, Role.AFTER_SUPPLEMENTAL
STAMP = 1
Shown = tuple[int, int, bytes | None]


def written(job: RowJob) -> list[Shown]:
    """(image, column, bytes) of every value that was appended, with its further parts."""
    found: list[Shown] = []
    for value in job.values[: int(job.counts[VALUES])]:
        raw = None
        if value.length >= 0:
            raw = job.batch.data[value.offset :][: value.length].tobytes()
        part = -2 - int(value.next) if value.next < -1 else -1
        while part >= 0:
            offset, length, part = job.parts[:, part].tolist()
            raw = (raw or b"") + job.batch.data[offset:][:length].tobytes()
        found.append((int(value.image), int(value.column), raw))
    return found


def gathered(*pieces: Piece) -> RowJob:
    """A job whose pieces are gathered as one change."""
    job = job_of(*pieces)
    for piece in range(len(pieces)):
        assert gather(job, piece, 0, STAMP) == OK
        job.links.next_piece[piece] = piece + 1 if piece + 1 < len(pieces) else -1
    return job


def test_a_plain_insert_has_a_value_for_every_column() -> None:
    job = job_of(Piece([Entry(2, b"two")]))
    assert plain_insert(job, 0, 0) == OK
    assert written(job) == [
        (Image.AFTER, 0, None),
        (Image.AFTER, 1, b"two"),
        (Image.AFTER, 2, None),
    ]


@pytest.mark.parametrize(
    ("entry", "room", "status"),
    [
        (Entry(1, b"x", Role.BEFORE), 100, NOT_PLAIN),
        (Entry(1, b"x", part=CutFlag.TO_NEXT), 100, NOT_PLAIN),
        (Entry(4, b"x"), 100, UNKNOWN_COLUMN),
        (Entry(0, b"x"), 100, UNKNOWN_COLUMN),
        (Entry(1, b"x"), 2, CAPACITY),
    ],
)
def test_an_insert_that_is_not_plain_appends_nothing(entry: Entry, room: int, status: int) -> None:
    job = job_of(Piece([entry]), room=room)
    assert plain_insert(job, 0, 0) == status
    assert job.counts[VALUES] == 0


def test_the_supplemental_value_counts_where_nothing_else_was_logged() -> None:
    both = [Entry(1, b"logged"), Entry(1, b"beside", AFTER_LOGGED)]
    rest = [Entry(2, None), Entry(2, b"beside", AFTER_LOGGED), Entry(3, b"beside", AFTER_LOGGED)]
    job = gathered(Piece([*both, *rest]))
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
    assert [raw for _, _, raw in written(job)] == [b"logged", b"beside", b"beside"]


def test_values_of_another_change_are_not_seen() -> None:
    job = gathered(Piece([Entry(1, b"x")]))
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP + 1)
    assert [raw for _, _, raw in written(job)] == [None, None, None]


def test_the_newest_after_value_and_the_first_before_value_count() -> None:
    job = gathered(
        Piece([Entry(1, b"old", Role.BEFORE), Entry(1, b"between")], URP),
        Piece([Entry(1, b"between", Role.BEFORE), Entry(1, b"new")], URP),
    )
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [(Image.BEFORE, 0, b"old"), (Image.AFTER, 0, b"new")]


def test_a_supplemental_null_gives_way_to_the_value_behind_it() -> None:
    job = gathered(
        Piece([Entry(2, None, BEFORE_LOGGED)], URP), Piece([Entry(2, b"key", BEFORE_LOGGED)], URP)
    )
    assert update(job, 0, 0, STAMP) == (True, 0)
    assert written(job) == [(Image.BEFORE, 1, b"key")]


def test_an_update_sets_what_its_bitmap_names() -> None:
    entries = [Entry(at, b"old", Role.BEFORE) for at in (1, 2, 3)]
    entries += [Entry(at, b"new") for at in (1, 2)]
    job = gathered(Piece(entries, URP, changed=b"\x06"))
    assert update(job, 0, 0, STAMP) == (True, 2)
    after = [(column, raw) for image, column, raw in written(job) if image == Image.AFTER]
    # Column 3 was there and is logged no more: it becomes NULL.
    assert after == [(1, b"new"), (2, None)]


def test_the_parts_of_a_value_follow_each_other_in_either_order() -> None:
    parts = [
        Entry(2, b"abc", part=CutFlag.TO_NEXT),
        Entry(2, b"de", part=CutFlag.FROM_PREVIOUS | CutFlag.TO_NEXT),
        Entry(2, b"f", part=CutFlag.FROM_PREVIOUS),
    ]
    for order in (parts, parts[::-1]):
        job = gathered(*(Piece([one]) for one in order))
        assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
        assert written(job)[1] == (Image.AFTER, 1, b"abcdef")
        assert job.counts[PARTS] == 2


def test_no_more_is_appended_than_there_is_room() -> None:
    job = job_of(Piece([Entry(1, b"x"), Entry(1, b"y", Role.BEFORE)], URP), room=1)
    assert gather(job, 0, 0, STAMP) == OK
    assert update(job, 0, 0, STAMP)[0] is False
    assert not full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
    assert job.counts[VALUES] == 1


def shown(dml: DmlColumns) -> list[bytes]:
    """Every value with its further parts."""
    found = []
    for at in range(int(dml.entry_first[-1])):
        raw, following = b"", at
        while following >= 0:
            value = dml.values[following]
            raw += dml.data[value.offset :][: max(value.length, 0)].tobytes()
            following = int(value.next)
        found.append(raw)
    return found


def test_compiled_and_interpreted_kernels_agree() -> None:
    dml = assembled_both_ways(
        Piece([Entry(1, b"a", part=CutFlag.TO_NEXT), Entry(3, b"c")], group=FB_FIRST),
        Piece([Entry(1, b"b", part=CutFlag.FROM_PREVIOUS)], group=FB_LAST),
        Piece([Entry(1, b"d"), Entry(2, b"e")], head=1),
    )
    assert shown(dml) == [b"ab", b"", b"c", b"d", b"e", b""]


# --- tables whose columns are not stored one after the other from the first on ---


def job_in_two_tables(*pieces: Piece, room: int = 100) -> RowJob:
    """A job of the second table: ten columns, in the row as 1, 2, 4 … 11; 3 was dropped."""
    numbers = [1, 2, *range(4, 12)]
    columns = [Column(f"C{at}", number, number, number, 23, 100)
               for at, number in enumerate(numbers, 1)]  # fmt: skip
    tables = [Table("S", "ONE", 99, 99, (columns[0],)), Table("S", "T", 100, 100, tuple(columns))]
    plan = build_row_plan(tables, 0)._replace(as_stored=np.zeros(2, np.uint8))
    job = row_job(batch_of(*pieces), plan, room)
    clear(job.links)
    job.merge.following[:], job.links.next_piece[:] = 7, -1
    return job


def test_a_value_goes_to_the_column_that_its_number_is_in_its_table() -> None:
    entries = [Entry(1, b"a"), Entry(3, b"gone"), Entry(4, b"c"), Entry(11, b"j")]
    expected = [b"a", None, b"c", *(None,) * 6, b"j"]
    job = job_in_two_tables(Piece(entries), room=10)
    assert plain_insert(job, 0, 1) == OK
    assert written(job) == [(Image.AFTER, at, raw) for at, raw in enumerate(expected)]
    job = job_in_two_tables(Piece(entries), room=10)
    assert gather(job, 0, 1, STAMP) == OK
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
    assert [raw for _, _, raw in written(job)] == expected
    for number in (0, 12):
        for at in (plain_insert, lambda job, piece, table: gather(job, piece, table, STAMP)):
            assert at(job_in_two_tables(Piece([Entry(number, b"x")])), 0, 1) == UNKNOWN_COLUMN


def test_columns_that_stand_before_a_piece_count() -> None:
    job = job_in_two_tables(Piece([Entry(1, b"d"), Entry(8, b"k")]))
    job.links.shift[0] = 3
    assert plain_insert(job, 0, 1) == OK
    assert [(column, raw) for _, column, raw in written(job) if raw] == [(2, b"d"), (9, b"k")]
    assert gather(job, 0, 1, STAMP) == OK
    job.links.shift[0] = 4
    assert gather(job, 0, 1, STAMP) == plain_insert(job, 0, 1) == UNKNOWN_COLUMN


def test_the_bits_of_a_bitmap_are_columns_of_the_row() -> None:
    """Bit n of byte m is column 8 m + n + 1 of the row (redo-format §4.3); past its end is none."""
    entries = [Entry(at, b"x") for at in (1, 2, 4, 8, 9, 10, 11)]
    bitmaps = {b"\x81\x05": [0, 6, 7, 9], b"\x08": [2], b"\x00\x02": [8], b"": list(range(10))}
    for bitmap, columns in bitmaps.items():
        # The bitmap of the piece before it does not matter, but that it has one.
        first = Piece([], URP, changed=b"\0\0" if bitmap else b"")
        job = job_in_two_tables(first, Piece(entries, URP, changed=bitmap))
        job.links.next_piece[0] = 1
        assert gather(job, 1, 1, STAMP) == OK
        named = [column for column in columns if column in (0, 1, 2, 6, 7, 8, 9)]
        assert update(job, 0, 1, STAMP) == (True, len(named))
        assert [column for _, column, _ in written(job)] == named


def test_a_cut_value_takes_the_place_of_a_whole_one_and_the_other_way_round() -> None:
    cut = [Entry(2, b"ab", part=CutFlag.TO_NEXT), Entry(2, b"c", part=CutFlag.FROM_PREVIOUS)]
    whole = Entry(2, b"whole")
    for entries, expected in (([whole, *cut], b"abc"), ([*cut, whole], b"whole"),
                              ([cut[1], whole], b"whole"), ([whole, cut[1]], b"c"),
                              ([cut[0], cut[0]], b"ab")):  # fmt: skip
        job = job_in_two_tables(Piece(entries))
        assert gather(job, 0, 1, STAMP) == OK
        assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
        assert written(job)[1] == (Image.AFTER, 1, expected)


def test_several_values_may_be_cut() -> None:
    entries = [
        Entry(at, bytes([64 + at]) * size, part=part)
        for size, part in ((2, CutFlag.TO_NEXT), (1, CutFlag.FROM_PREVIOUS))
        for at in (1, 2)
    ]
    job = job_in_two_tables(Piece(entries))
    assert gather(job, 0, 1, STAMP) == OK
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
    assert [raw for _, _, raw in written(job)][:2] == [b"AAA", b"BBB"]


def test_the_first_before_value_counts_be_it_null() -> None:
    job = gathered(
        Piece([Entry(1, None, Role.BEFORE), Entry(2, b"k", BEFORE_LOGGED)], URP),
        Piece([Entry(1, b"x", Role.BEFORE), Entry(2, b"l", BEFORE_LOGGED)], URP),
    )
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [
        (Image.BEFORE, 0, None), (Image.BEFORE, 1, b"k"), (Image.AFTER, 0, None),
    ]  # fmt: skip


def test_a_supplemental_after_value_is_the_before_value_of_what_is_not_set() -> None:
    """Supplemental columns that are unchanged are also the after values (redo-format §4.3)."""
    job = gathered(
        Piece(
            [
                Entry(1, b"same", AFTER_LOGGED),
                Entry(2, b"new"), Entry(2, b"new", AFTER_LOGGED),
                Entry(3, b"old", BEFORE_LOGGED), Entry(3, b"other", AFTER_LOGGED),
            ],
            URP,
        )
    )  # fmt: skip
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [
        (Image.BEFORE, 0, b"same"), (Image.BEFORE, 2, b"old"), (Image.AFTER, 1, b"new"),
    ]  # fmt: skip


def test_no_update_is_whole_without_room_for_its_before_values() -> None:
    job = job_of(Piece([Entry(1, b"y", Role.BEFORE), Entry(2, b"z", Role.BEFORE)], URP), room=1)
    assert gather(job, 0, 0, STAMP) == OK
    assert update(job, 0, 0, STAMP) == (False, 0)
