from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.selection import as_known, parse_table_name, select_tables, user_tables
from olr_pg.errors import OlrPgError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("APP.ORDERS", ("APP", "ORDERS")),
        ("app.orders", ("APP", "ORDERS")),
        (' app . "Orders" ', ("APP", "Orders")),
        ('"a.b"."c d"', ("a.b", "c d")),
        ("SYS.TAB$", ("SYS", "TAB$")),
    ],
)
def test_table_names(text: str, expected: tuple[str, str]) -> None:
    assert parse_table_name(text) == expected


@pytest.mark.parametrize(
    "text", ["", "ORDERS", "A.B.C.D", "A.", ".B", '"A.B', "A B.C", 'A."', '"".A']
)
def test_what_is_no_qualified_name(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_table_name(text)

    assert caught.value.code == 3018
    assert repr(text) in caught.value.detail


def test_names_are_found_as_they_are_known_or_as_oracle_reads_them() -> None:
    known = ["SHOP.ORDERS", "SHOP.Or ders", "PDB1.SHOP.X", 'A."']
    for typed, name in (
        ("shop.orders", "SHOP.ORDERS"),
        ("SHOP.Or ders", "SHOP.Or ders"),
        ('shop."Or ders"', "SHOP.Or ders"),
        ('"SHOP"."ORDERS"', "SHOP.ORDERS"),
        ('pdb1.shop."X"', "PDB1.SHOP.X"),
        ('A."', 'A."'),
        ("no name", "NO NAME"),
    ):
        assert as_known([typed], known) == [name]


def test_tables_come_in_the_given_order_once(shop: Snapshot) -> None:
    tables = select_tables(shop, ["APP.ORDER_LINES", "app.orders", "APP.ORDER_LINES"])

    assert [table.name for table in tables] == ["ORDER_LINES", "ORDERS"]


def test_quoted_names_are_exact(shop: Snapshot) -> None:
    assert select_tables(shop, ['"App"."Größe"'])[0].obj == 103


def test_an_unknown_table_gets_a_hint(shop: Snapshot) -> None:
    with pytest.raises(OlrPgError) as caught:
        select_tables(shop, ["app.größe"])

    assert caught.value.code == 3012
    assert caught.value.detail == (
        f'there is no APP.GRÖSSE as of SCN {shop.scn}; did you mean "App"."Größe"'
    )


def test_an_unknown_table_is_named(shop: Snapshot) -> None:
    with pytest.raises(OlrPgError) as caught:
        select_tables(shop, ["APP.ORDERS", "APP.NONE"])

    assert (caught.value.code, caught.value.where) == (3012, {"table": "APP.NONE"})
    assert "did you mean" not in caught.value.detail


def test_a_refused_table_says_why(shop: Snapshot) -> None:
    with pytest.raises(OlrPgError) as caught:
        select_tables(shop, ["APP.ORDERS", "APP.LOOKUP"])

    assert caught.value.code == 3013
    assert caught.value.detail == "APP.LOOKUP: the table is index-organised"


def test_many_refused_tables_are_counted(shop: Snapshot) -> None:
    lookup = shop.tables[3]
    tables = tuple(replace(lookup, name=f"T{i}", obj=i) for i in range(1, 13))
    with pytest.raises(OlrPgError) as caught:
        select_tables(replace(shop, tables=tables), [f"APP.T{i}" for i in range(1, 13)])

    assert caught.value.detail.count("index-organised") == 10
    assert caught.value.detail.endswith("and 2 more")


def test_user_tables_leave_oracles_own_out_and_report_the_refused(shop: Snapshot) -> None:
    selection = user_tables(shop)

    assert [table.obj for table in selection.tables] == [101, 102, 103]
    assert [table.obj for table in selection.refused] == [104]


def test_user_tables_of_the_real_dictionary(real_snapshot: Snapshot) -> None:
    selection = user_tables(real_snapshot)

    assert [table.full_name for table in selection.tables] == ["OLR_TEST.TEST_CDC"]
    assert selection.refused == ()


def test_a_table_without_a_column_to_deliver_is_refused_by_name() -> None:
    columns = (Column("FILE_NAME", 1, 1, 1, 114, 4000), Column("SHAPE", 2, 2, 2, 121, 1))
    table = Table("APP", "FILES", 7, 7, columns)
    snapshot = Snapshot(1, Database("X"), (table,))
    with pytest.raises(OlrPgError, match="OLR-03013") as caught:
        select_tables(snapshot, ["APP.FILES"])
    assert "FILE_NAME: BFILE columns are not supported" in str(caught.value)
    assert "SHAPE: object types are not supported" in str(caught.value)
    assert user_tables(snapshot).refused == (table,)
