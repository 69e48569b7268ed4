from __future__ import annotations

import sqlite3

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.sql import is_query, translate


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT 1 FROM dual", True),
        (" WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_queries_are_told_from_statements(sql: str, *, answer: bool) -> None:
    assert is_query(sql) is answer


def test_the_scn_of_a_table_is_taken_out_of_the_query() -> None:
    query = translate("SELECT OBJ# FROM SYS.OBJ$ AS OF SCN :1 WHERE NAME = 'AS OF SCN 5'")
    assert query.scns([4_711]) == [("OBJ$", 4_711)]
    assert "'AS OF SCN 5'" in query.sql
    assert translate("SELECT OBJ# FROM SYS.OBJ$ AS OF SCN 99").scns([]) == [("OBJ$", 99)]


def test_names_with_a_hash_run_in_sqlite() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute('CREATE TABLE "OBJ$" ("OBJ#")')
        database.execute('INSERT INTO "OBJ$" VALUES (7)')
        sql = translate("select obj# from obj$ where obj# = :1").sql
        assert database.execute(sql, [7]).fetchall() == [(7,)]


def test_a_word_of_the_language_names_nothing() -> None:
    for alias in ('"FILE"', "FILES", "TYPE"):
        translate(f"SELECT file# AS {alias} FROM v$datafile")
    translate("SELECT CAST(file# AS VARCHAR2(10)) AS x FROM v$datafile")
    for alias in ("file", "ROW", "level"):
        with pytest.raises(OraError, match="ORA-00923"):
            translate(f"SELECT file# AS {alias} FROM v$datafile")


def test_a_list_of_more_than_a_thousand_values_is_refused() -> None:
    for count in (1_000, 1_001):
        sql = f"SELECT 1 FROM dual WHERE 1 IN ({', '.join(['1'] * count)})"
        if count == 1_000:
            translate(sql)
            continue
        with pytest.raises(OraError, match="ORA-01795"):
            translate(sql)
