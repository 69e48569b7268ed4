"""A view leaves out the tables of other targets, beside what filters leave out."""

from __future__ import annotations

from olr_pg.decoding.target_view import EVERYTHING, TargetView
from olr_pg.dictionary.model import Column, Table

TABLES = tuple(
    Table("SHOP", name, obj, obj, (Column("N", 1, 1, 1, 2, 22),))
    for name, obj in (("A", 10), ("B", 20))
)


def test_nothing_is_left_out_of_everything() -> None:
    assert EVERYTHING.of(TABLES).dropped is None


def test_tables_of_others_are_dropped_in_every_version() -> None:
    view = TargetView(big_endian=True, objects=frozenset({20})).of((*TABLES, *TABLES))
    assert view.big_endian
    assert view.dropped is not None
    assert view.dropped.tolist() == [[True] * 3, [False] * 3] * 2
