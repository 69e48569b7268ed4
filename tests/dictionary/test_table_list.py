from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.table_patterns import parse_pattern, pattern_query
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.table_list import query_tables, would_name
from olr_pg.errors import OlrPgError

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
PRODUCT = ", ".join(f"ALL_TABLES {alias}" for alias in "abcdefghijkl")
LONG = "x" * 1_000


def names(snapshot: Snapshot, query: str) -> list[str]:
    return [table.name for table in query_tables(snapshot, query)]


def error_of(snapshot: Snapshot, query: str, *, steps_max: int = 1_000_000) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        query_tables(snapshot, query, steps_max=steps_max)
    return caught.value


def test_the_query_of_the_issue_on_the_real_dictionary(real_snapshot: Snapshot) -> None:
    query = "select OWNER, NAME from ALL_TABLES where OWNER = 'OLR_TEST'"

    assert names(real_snapshot, query) == ["TEST_CDC"]


@pytest.mark.parametrize("view", ["ALL_TABLES", "DBA_TABLES", "USER_TABLES"])
@pytest.mark.parametrize("prefix", ["", "SYS.", "sys."])
@pytest.mark.parametrize("column", ["TABLE_NAME", "NAME"])
def test_the_views_and_their_columns(shop: Snapshot, view: str, prefix: str, column: str) -> None:
    query = f"SELECT owner, {column} FROM {prefix}{view} WHERE {column} = 'ORDERS'"

    assert names(shop, query) == ["ORDERS"]


def test_user_tables_hold_none_of_oracles(shop: Snapshot) -> None:
    assert error_of(shop, "SELECT OWNER, NAME FROM USER_TABLES WHERE OWNER = 'SYS'").code == 3014


@pytest.mark.parametrize(
    "condition",
    [
        "UPPER(t.TABLE_NAME) = 'ORDERS'",
        "LOWER(OWNER) || '.' || LOWER(NAME) = 'app.orders'",
        "TABLE_NAME IN ('ORDERS', 'NONE') AND OWNER <> 'SYS'",
        "NVL(NULL, TABLE_NAME) LIKE 'ORD__S'",
        r"TABLE_NAME LIKE 'O____S' AND NAME NOT LIKE '%\_%' ESCAPE '\'",
        "SUBSTR(TABLE_NAME, 1, 6) = 'ORDERS' AND LENGTH(NAME) = 6",
        "EXISTS (SELECT 1 FROM DUAL WHERE t.NAME = 'ORDERS')",
    ],
)
def test_what_oracle_queries_commonly_use(shop: Snapshot, condition: str) -> None:
    query = f"SELECT t.OWNER, t.TABLE_NAME FROM ALL_TABLES t WHERE {condition}; "

    assert names(shop, query) == ["ORDERS"]


def test_upper_knows_more_than_ascii(shop: Snapshot) -> None:
    query = "SELECT owner, name FROM all_tables WHERE LOWER(UPPER(name)) = 'grösse'"

    assert names(shop, query) == ["Größe"]


def test_like_is_case_sensitive_as_in_oracle(shop: Snapshot) -> None:
    assert (
        error_of(shop, "SELECT OWNER, NAME FROM ALL_TABLES WHERE NAME LIKE 'orders'").code == 3014
    )


def test_names_from_dual_come_in_the_order_of_the_query_once(shop: Snapshot) -> None:
    query = """
        SELECT 'APP', 'ORDER_LINES' FROM DUAL UNION ALL -- the lines first
        SELECT 'APP', 'ORDERS' FROM SYS.DUAL UNION ALL
        SELECT 'APP', 'ORDER_LINES' FROM DUAL
    """

    assert names(shop, query) == ["ORDER_LINES", "ORDERS"]


def test_an_order_by_is_kept(shop: Snapshot) -> None:
    query = "SELECT OWNER, NAME FROM ALL_TABLES WHERE NAME LIKE 'ORDER%' ORDER BY NAME DESC"

    assert names(shop, query) == ["ORDER_LINES", "ORDERS"]


# --- errors ---


@pytest.mark.parametrize(
    "query",
    [
        "SELEKT 1, 2",
        "SELECT OWNER, NAME FROM ALL_TABLEZ",
        "SELECT OWNER, WRONG FROM ALL_TABLES",
        "SELECT OWNER, NAME FROM ALL_TABLES WHERE OWNER = :owner",
        "SELECT OWNER, NAME FROM ALL_TABLES; SELECT 1, 2",
        "SELECT OWNER, NAME FROM ALL_TABLES WHERE OWNER = 'A\0'",
        "SELECT OWNER, NAME FROM ALL_TABLES WHERE OWNER = '\ud800'",
        "SELECT 'APP', CAST(X'FF' AS TEXT)",
        "SELECT OWNER, NAME FROM ALL_TABLES WHERE " + "(" * 3000 + "1" + ")" * 3000,
    ],
)
def test_invalid_sql(shop: Snapshot, query: str) -> None:
    assert error_of(shop, query).code == 3010


@pytest.mark.parametrize(
    "condition",
    ["TABLESPACE_NAME = 'USERS'", "PARTITIONED = 'NO'", "TEMPORARY = 'N'", "IOT_TYPE IS NULL"],
)
def test_a_column_whose_values_a_snapshot_lacks_selects_nothing(
    shop: Snapshot, condition: str
) -> None:
    query = f"SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE {condition}"

    error = error_of(shop, query)

    assert error.code == 3010
    assert condition.split()[0] in error.detail
    assert would_name(query, "APP", "ORDERS") is None


def test_the_query_of_a_pattern_runs_here_as_in_oracle(shop: Snapshot) -> None:
    pattern = parse_pattern("APP.ORDER*")
    assert pattern is not None
    query = pattern_query(pattern, ())

    assert sorted(names(shop, query)) == ["ORDERS", "ORDER_LINES"]
    assert not would_name(query, "APP", "CUSTOMERS")


def test_an_invalid_query_says_what_there_is(shop: Snapshot) -> None:
    detail = error_of(shop, "SELECT OWNER, NAME FROM V$TABLES").detail

    assert "V$TABLES" in detail
    assert "ALL_TABLES, DBA_TABLES and USER_TABLES with OWNER, TABLE_NAME and NAME" in detail


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("SELECT OWNER FROM ALL_TABLES", "the query returns 1 columns"),
        ("SELECT * FROM ALL_TABLES", "the query returns 3 columns"),
        ("", "the text is not a query"),
        ("-- nothing", "the text is not a query"),
    ],
)
def test_other_than_two_columns(shop: Snapshot, query: str, detail: str) -> None:
    error = error_of(shop, query)

    assert (error.code, error.detail) == (3011, detail)


def test_an_unknown_table(shop: Snapshot) -> None:
    error = error_of(shop, "SELECT 'APP', 'orders' FROM DUAL")

    assert error.code == 3012
    assert error.detail == (
        f'there is no APP.orders as of SCN {shop.scn}; did you mean "APP"."ORDERS"'
    )


def test_a_refused_table(shop: Snapshot) -> None:
    error = error_of(shop, "SELECT OWNER, NAME FROM ALL_TABLES WHERE OWNER = 'APP'")

    assert error.code == 3013
    assert error.detail == "APP.LOOKUP: the table is index-organised"


def test_no_rows(shop: Snapshot) -> None:
    assert error_of(shop, "SELECT OWNER, NAME FROM ALL_TABLES WHERE 1 = 2").code == 3014


@pytest.mark.parametrize("value", ["NULL", "1", "X'41'", "1.5"])
def test_values_that_are_no_names(shop: Snapshot, value: str) -> None:
    error = error_of(shop, f"SELECT 'APP', 'ORDERS' UNION ALL SELECT 'APP', {value}")

    assert (error.code, error.where["row"]) == (3017, 2)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE ALL_TABLES",
        "INSERT INTO SYS.DUAL VALUES ('Y')",
        "DELETE FROM SYS.ALL_TABLES RETURNING OWNER, NAME",
        "CREATE TABLE T (A)",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA page_size",
        "VACUUM INTO '/tmp/x.db'",
        "BEGIN",
    ],
)
def test_only_reading_is_allowed(shop: Snapshot, query: str) -> None:
    assert error_of(shop, query).code == 3016


@pytest.mark.parametrize(
    "query",
    [
        f"{ENDLESS} SELECT 'APP', 'ORDERS' FROM r",
        f"{ENDLESS} SELECT OWNER, NAME FROM ALL_TABLES, r WHERE n < 0",
        f"SELECT a.OWNER, a.NAME FROM {PRODUCT} ORDER BY l.NAME || a.NAME",
    ],
)
def test_a_query_without_end_is_stopped(shop: Snapshot, query: str) -> None:
    assert error_of(shop, query).code == 3015


def test_rows_without_end_are_not_gathered(shop: Snapshot) -> None:
    query = f"{ENDLESS} SELECT 'APP', '{'0' * 1900}' || n FROM r"

    assert error_of(shop, query).code == 3012


def test_a_query_is_stopped_at_its_deadline(shop: Snapshot) -> None:
    with pytest.raises(OlrPgError) as caught:
        query_tables(shop, f"{ENDLESS} SELECT 'APP', 'ORDERS' FROM r", seconds_max=0)

    assert caught.value.code == 3015


def test_values_are_of_bounded_size(shop: Snapshot) -> None:
    doubled = "'aa'"
    for _ in range(12):
        doubled = f"replace({doubled}, 'a', 'aa')"

    assert error_of(shop, f"SELECT 'APP', {doubled}").code == 3010


@pytest.mark.parametrize(
    "call",
    [
        "printf('%.900000000c', 'x')",
        " || ".join(["printf('%.900000000c', 'x')"] * 8),
        "format('%.900000000c', 'x')",
        "zeroblob(1000000000)",
        "hex(randomblob(1000000000))",
        "json_array(1)",
        "'{}' -> '$'",
        "char(65)",
        "load_extension('/tmp/x.so')",
        "group_concat('x')",
        "'a' GLOB '*'",
        "sqlite_version()",
    ],
)
def test_only_listed_functions_may_be_called(shop: Snapshot, call: str) -> None:
    assert error_of(shop, f"SELECT 'APP', {call}").code == 3016


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.OWNER, a.NAME FROM {PRODUCT} ORDER BY l.NAME || '{LONG}'",
        f"{ENDLESS} SELECT 'APP', '{LONG}' || n FROM r ORDER BY 2",
        f"{ENDLESS} SELECT DISTINCT 'APP', '{LONG}' || n FROM r LIMIT 1 OFFSET 9999999",
    ],
)
def test_what_a_query_keeps_is_bounded(shop: Snapshot, query: str) -> None:
    error = error_of(shop, query, steps_max=1_000_000_000)

    assert (error.code, error.detail) == (3015, "the query has taken more than 256 MiB of memory")


def test_a_query_that_explodes_while_it_is_compiled_is_refused(shop: Snapshot) -> None:
    doubled = ["a0 AS (SELECT OWNER, NAME FROM ALL_TABLES)"] + [
        f"a{n} AS (SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1})" for n in range(1, 50)
    ]

    assert error_of(shop, f"WITH {', '.join(doubled)} SELECT * FROM a49").code == 3010


def test_an_abandoned_query_is_stopped(shop: Snapshot) -> None:
    questions = iter([False] * 50)
    with pytest.raises(OlrPgError) as caught:
        query_tables(
            shop,
            f"{ENDLESS} SELECT 'APP', 'ORDERS' FROM r",
            is_abandoned=lambda: next(questions, True),
            steps_max=1_000_000_000,
            seconds_max=600,
        )

    assert (caught.value.code, caught.value.detail) == (3015, "the client has disconnected")


@given(st.text())
def test_any_text_gives_tables_or_a_coded_error(query: str) -> None:
    table = Table("A", "T", 1, 1, (Column("C", 1, 1, 1, 2, 22),))
    snapshot = Snapshot(1, Database("D"), (table,))
    try:
        tables = query_tables(snapshot, query)
    except OlrPgError as error:
        documented = error.code in range(3010, 3018)
    else:
        documented = tables == (table,)

    assert documented


def test_a_large_dictionary_stays_within_the_limit() -> None:
    columns = (Column("C", 1, 1, 1, 2, 22),)
    tables = tuple(Table("APP", f"T{i:06}", i, i, columns) for i in range(1, 100_001))
    snapshot = Snapshot(1, Database("D"), tables)
    query = "SELECT OWNER, NAME FROM ALL_TABLES WHERE UPPER(NAME) LIKE 'T%' ORDER BY NAME DESC"

    assert query_tables(snapshot, query, seconds_max=600)[0] is tables[-1]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT owner, table_name FROM all_tables WHERE owner = 'APP'", True),
        ("SELECT owner, table_name FROM all_tables WHERE table_name LIKE 'ORD%'", False),
        ("SELECT 'APP', 'LATER' FROM DUAL", True),
        ("SELECT 'APP', 'OTHER' FROM DUAL", False),
        ("SELECT owner, table_name FROM dba_tab_privs WHERE REGEXP_LIKE(owner, 'X')", None),
    ],
)
def test_whether_a_query_would_name_a_table(query: str, named: bool | None) -> None:
    assert would_name(query, "APP", "LATER") is named
