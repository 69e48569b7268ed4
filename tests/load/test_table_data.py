"""Which tables a command is about."""

from __future__ import annotations

import pytest

from olr_pg.decoding.filters import NO_FILTERS
from olr_pg.dictionary.model import Column, Database, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.table_data import named_tables

TABLES = tuple(
    Table("S", name, place, place, (Column("ID", 1, 1, 1, 2, 22),))
    for place, name in enumerate(("A", "B", "c"), 1)
)


def named(*names: str) -> list[str]:
    chosen = named_tables(TABLES, names, NO_FILTERS, Database("DB"))
    return [table.full_name for table in chosen]


def test_without_names_it_is_about_all() -> None:
    assert named() == ["S.A", "S.B", "S.c"]


def test_names_are_taken_as_they_are_or_in_upper_case_in_the_order_of_the_list() -> None:
    assert named("s.b", "S.A") == ["S.A", "S.B"]
    assert named("S.c") == ["S.c"]


def test_a_name_that_is_not_replicated_is_refused() -> None:
    with pytest.raises(OlrPgError, match=r"`apply\.tables` does not contain S\.X") as caught:
        named("S.A", "S.X")
    assert caught.value.code == 3012


def test_a_name_that_is_misspelt_is_told_with_what_is_like_it() -> None:
    with pytest.raises(OlrPgError, match=r"contain S\.C; did you mean \"S\"\.\"c\"$"):
        named("S.A", "S.C")
