"""Which queries from outside are plain ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.oracle.table_list_query import check_plain


def test_oracles_own_ways_of_writing_are_plain() -> None:
    check_plain("SELECT t.owner, v.name FROM all_tables t, shop.v WHERE t.table_name = v.id(+)")
    check_plain("SELECT q'[it's (f(1)]', NQ'!a'b;!' FROM dual")
    check_plain("SELECT owner, table_name FROM all_tables WHERE REGEXP_LIKE(table_name, '^A')")
    check_plain(
        "SELECT owner, CAST(LISTAGG(table_name, ',') WITHIN GROUP (ORDER BY 1) AS VARCHAR2(30))"
        " OVER (PARTITION BY owner) FROM all_tables"
    )


@given(st.text(alphabet="aq'\"()[];,.@-/* \n", max_size=80))
def test_any_text_is_plain_or_a_coded_error(query: str) -> None:
    try:
        check_plain(f"SELECT {query}")
    except OlrPgError as error:
        documented = error.code in (3010, 3016)
    else:
        documented = True
    assert documented
