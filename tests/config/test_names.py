"""Table names, and the TableList query made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.names import TableName, configured_table_name, table_list_query
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import OlrPgError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop.orders", ("SHOP", "ORDERS")),
        ('shop."Orders"', ("SHOP", "Orders")),
        ('"my.owner"."a b"', ("my.owner", "a b")),
        ("SYS$X.T#1", ("SYS$X", "T#1")),
    ],
)
def test_unquoted_parts_are_folded_to_upper_case(text: str, expected: tuple[str, str]) -> None:
    assert expected == configured_table_name(text)


@pytest.mark.parametrize("text", ["", "ORDERS", "A.B.C.D", ".B", "A.", 'A."B', '""."B"'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        configured_table_name(text)


def _snapshot(names: list[TableName]) -> Snapshot:
    columns = (Column("ID", 1, 1, 1, 2, 22),)
    tables = tuple(Table(owner, name, i, i, columns) for i, (owner, name) in enumerate(names, 1))
    return Snapshot(1, Database("TEST"), tables)


_NAME = st.text(st.characters(codec="ascii", exclude_characters='"\0'), min_size=1, max_size=12)


@given(st.lists(st.builds(TableName, _NAME, _NAME), min_size=1, max_size=20, unique=True))
def test_the_query_gives_exactly_the_names_in_their_order(names: list[TableName]) -> None:
    found = query_tables(_snapshot(names[::-1]), table_list_query(names))
    assert names == [(table.owner, table.name) for table in found]


@pytest.mark.parametrize("count", [1, 200, 201, 2000])
def test_the_query_holds_any_number_of_tables(count: int) -> None:
    names = [TableName("SHOP", f"T{i}") for i in range(count)]
    found = query_tables(_snapshot(names), table_list_query(names))
    assert names == [(table.owner, table.name) for table in found]


def test_a_table_that_does_not_exist_is_refused_by_name() -> None:
    names = [TableName("SHOP", "ORDERS"), TableName("SHOP", "ORDRES")]
    with pytest.raises(OlrPgError, match=r"SHOP\.ORDRES"):
        query_tables(_snapshot(names[:1]), table_list_query(names))
