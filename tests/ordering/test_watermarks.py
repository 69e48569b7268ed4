"""The watermarks of redo threads: the lowest decides, whatever happens to the threads."""

from __future__ import annotations

from olr_pg.ordering.merger import Watermarks


def test_the_lowest_thread_decides() -> None:
    marks = Watermarks({1: 100, 2: 50})
    assert marks.lowest == 50
    marks.advance(2, 120)
    assert (marks.lowest, marks.of(2)) == (100, 120)
    marks.close(1)
    assert (marks.lowest, marks.threads) == (120, frozenset({2}))


def test_no_thread_is_taken_back_but_by_a_limit() -> None:
    marks = Watermarks({1: 100, 2: 200})
    marks.advance(1, 90)
    marks.add(2, 7)
    marks.pass_scn(150)
    assert marks.saved() == {1: 150, 2: 200}
    marks.limit(160)
    assert marks.saved() == {1: 150, 2: 160}


def test_threads_that_are_behind() -> None:
    marks = Watermarks({1: 100, 2: 200})
    assert marks.before(200) == {1}
    assert marks.before(201) == {1, 2}


def test_what_was_saved_does_not_move_on() -> None:
    marks = Watermarks({1: 100})
    saved = marks.saved()
    marks.advance(1, 300)
    assert saved == {1: 100}


def test_without_a_thread_nothing_is_known() -> None:
    assert Watermarks({}).lowest == 0
