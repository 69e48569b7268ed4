"""Which SCNs of an incarnation belong to the current one."""

from __future__ import annotations

from olr_pg.transactions.ancestry import Ancestry, Incarnation

LINE = (Incarnation(300, 9_000), Incarnation(200, 5_000), Incarnation(100, 1))


def test_an_ancestor_ends_where_its_child_begins() -> None:
    for is_whole in (True, False):
        known = Ancestry(LINE, is_whole)
        assert known.current == (300, 9_000)
        assert [known.end_of(one) for one in (100, 200, 300)] == [5_000, 9_000, None]
        # A later incarnation was given up, or its logs are not here.
        assert known.end_of(400) == 0


def test_an_unknown_incarnation_may_only_lack_its_logs() -> None:
    assert Ancestry(LINE, is_whole=True).end_of(150) == 0
    assert Ancestry(LINE, is_whole=False).end_of(150) == 5_000
    assert Ancestry(LINE[:1], is_whole=False).end_of(100) == 9_000
