"""Patterns in `apply.tables`: they find what `filter` would, here and in Oracle's words.

Table names, and the TableList query made of them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.table_patterns import (
    TableName,
    TablePattern,
    configured_table_name,
    parse_pattern,
    table_list_query,
)
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.table_list import query_tables, would_name
from olr_pg.errors import OlrPgError
from olr_pg.oracle.table_list_query import check_plain

NAMES = [
    *("SHOP.ORDERS", "SHOP.ORDER_LINES", "SHOP.ORD%X", "SHOP.STOCK", "SHOP.LOG_1", "SHOP.LOG_2"),
    *("SHOP.LOGX3", "HR.PEOPLE", "SYS.ORDERS", "SHOP.BIN$abc", "SHOP.DR$IDX$I"),
    *("SHOP.OLR_PG_FALLBACK", "SHOP.OLR_PG_FALLBACK_RECORD"),
]


OF_ORACLE: Final = (
    *("AQ$_ORDERS_QT_H", "SYS_EXPORT_SCHEMA_01", "SYS_IMPORT_TABLE_02"),
    *("SYS_JOURNAL_74002", "SYS_FBA_HIST_74001", "SYS_MFBA_NHIST_74001", "CMP3$74001"),
    *("DBMS_TABCOMP_TEMP_CMP", "MDRT_12A3B$", "MDXT_12A3B$_BKTS"),
    *("VECTOR$IDX$1_2_0$IVF_FLAT_CENTROIDS", "MLOG$_ORDERS", "SYS_IOT_OVER_74003"),
    *("DR#NOTES_TEXT0001$I", "SYS_RESERVJRNL_74004"),
)
OF_USERS: Final = (
    *("SYS_EXPORT_LOG", "SYSTEM_EXPORT_JOB_01", "JOURNAL_1", "CMPX", "CMP12$A", "MDR_TABLE"),
    *("ET_X", "AWX", "VECTORS", "DMX", "AQ_X", "SYS_EXPORTS", "DR#", "SYS_RESERVES"),
    *("DM$CUSTOMERS", "AW$PRICES", "ET$INVOICES", "CMPX$A", "AQ$T", "DR$LOG", "VECTOR$X"),
)


def test_patterns_leave_out_what_oracle_creates_itself() -> None:
    tables = [f"SHOP.{name}" for name in (*OF_ORACLE, *OF_USERS)]
    query = table_list_query(listed("SHOP.*"))
    assert [one.full_name for one in query_tables(snapshot(tables), query)] == [
        f"SHOP.{name}" for name in OF_USERS
    ]
    assert not any(would_name(query, "SHOP", name) for name in OF_ORACLE)
    named = table_list_query(listed("SHOP.SYS_EXPORT_SCHEMA_01"))
    assert len(query_tables(snapshot(tables), named)) == 1


def snapshot(names: list[str]) -> Snapshot:
    columns = (Column("ID", 1, 1, 1, 2, 22),)
    pairs = [name.split(".", 1) for name in names]
    tables = tuple(Table(pair[0], pair[1], i, i, columns) for i, pair in enumerate(pairs, 1))
    return Snapshot(1, Database("TEST"), tables)


def listed(*entries: str) -> list[TableName | TablePattern]:
    return [parse_pattern(entry) or configured_table_name(entry) for entry in entries]


def found(*entries: str) -> list[str]:
    query = table_list_query(listed(*entries))
    check_plain(query)
    return [table.full_name for table in query_tables(snapshot(NAMES), query)]


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        (["shop.ord*"], ["SHOP.ORDERS", "SHOP.ORDER_LINES", "SHOP.ORD%X"]),
        (["SHOP.LOG_?"], ["SHOP.LOG_1", "SHOP.LOG_2"]),
        (["SHOP.LOG_[2-9]"], ["SHOP.LOG_2"]),
        (["SHOP.ORD%*"], ["SHOP.ORD%X"]),
        (["*.ORDERS"], ["SHOP.ORDERS"]),
        (["SYS.ORD*"], ["SYS.ORDERS"]),
        (["HR.PEOPLE", "SHOP.*", "!SHOP.L*", "!shop.stock"], [
            *("HR.PEOPLE", "SHOP.ORDERS", "SHOP.ORDER_LINES", "SHOP.ORD%X"),
        ]),
        (["SHOP.ST*", "SHOP.STOCK"], ["SHOP.STOCK"]),
        (["[HS]*.[PS]*"], ["SHOP.STOCK", "HR.PEOPLE"]),
    ],
)  # fmt: skip
def test_what_is_found(entries: list[str], names: list[str]) -> None:
    assert found(*entries) == names


@pytest.mark.parametrize(
    ("entry", "near"),
    [
        ("shop.ordrs*", "shop.ordrs* as of SCN 1; did you mean SHOP.ORDERS"),
        ("SHOP.STOK", "SHOP.STOK as of SCN 1; did you mean SHOP.STOCK"),
        ("NOBODY.X*", "NOBODY.X*"),
    ],
)
def test_what_finds_nothing_is_named_with_what_is_like_it(entry: str, near: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        found("HR.PEOPLE", entry)
    assert caught.value.code == 3012
    assert caught.value.detail.startswith(f"there is no {near}")


def test_a_table_that_is_made_later_is_found_too() -> None:
    query = table_list_query(listed("SHOP.O*", "!SHOP.OLD*"))
    assert would_name(query, "SHOP", "OFFERS")
    assert not would_name(query, "SHOP", "OLD_1")
    assert not would_name(query, "HR", "OFFERS")


@pytest.mark.parametrize("text", ["shop.orders", '"Shop"."Ord*"', '"a?"."b[c]"'])
def test_a_plain_name_is_no_pattern(text: str) -> None:
    assert parse_pattern(text) is None


@pytest.mark.parametrize(
    "text", ["*", "SHOP*", "!", "A.B.C.D*", "A.[", "A.[]", "A.[!B]", "A.[z-a]", "A.[0-9][0-9][0-9]"]
)
def test_other_patterns_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|spellings|set|character"):
        parse_pattern(text)


PARTS = st.text("AB_%*?", min_size=1, max_size=6)


@given(PARTS, PARTS, st.text("AB_%X", min_size=1, max_size=6))
def test_a_pattern_means_what_the_filter_means(owner: str, name: str, other: str) -> None:
    entry = f"{owner}.{name}"
    pattern = parse_pattern(entry)
    tables = [("AB", "A_B"), ("A", other), ("B_", other), (other, "BA")]
    known = snapshot([".".join(table) for table in dict.fromkeys(tables)])
    wanted = [t.full_name for t in known.tables if fnmatchcase(t.owner, owner)
              and fnmatchcase(t.name, name)]  # fmt: skip
    if pattern is None or not wanted:
        return
    query = table_list_query([pattern])
    assert [table.full_name for table in query_tables(known, query)] == wanted


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
