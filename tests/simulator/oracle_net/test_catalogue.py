"""Queries in Oracle's words against the stand-in's tables, and what Oracle would refuse."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from typing import Any

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import (
    Catalogue,
    insert_tablespace,
    is_query,
    move_segment,
    translate,
)
from olr_pg.simulator.oracle_net.dictionary_rows import (
    alter_logging,
    insert_dictionary,
    insert_logging,
    note_unrecoverable,
)
from tests.oracle.conftest import NOTES, ORDERS, make_snapshot

SCN = 500


@pytest.fixture
def catalogue() -> Catalogue:
    made = Catalogue(lambda: SCN)
    made.insert("USER$", [{"USER#": 7, "NAME": "APP", "SPARE1": 1 << 70}, {"USER#": 8}])
    made.insert("V$DATABASE", [{"NAME": "X"}])
    return made


def rows(catalogue: Catalogue, sql: str, *binds: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in catalogue.query(sql, binds).rows]


def test_rows_have_their_columns_and_numbers_of_any_size(catalogue: Catalogue) -> None:
    query = 'SELECT u."NAME", u."SPARE1" FROM "SYS"."USER$" u WHERE u."USER#" = :1'
    assert rows(catalogue, query, 7) == [("APP", 1 << 70)]
    assert rows(catalogue, query, 8) == [(None, None)]
    names = [column.name for column in catalogue.query(query, (7,)).columns]
    assert names == ["NAME", "SPARE1"]


def test_rowids_are_made_up_and_differ(catalogue: Catalogue) -> None:
    found = rows(catalogue, 'SELECT ROWID FROM "SYS"."USER$"')
    assert len({rowid for (rowid,) in found}) == 2
    assert all(len(rowid) == 18 for (rowid,) in found)


def test_functions_of_oracle(catalogue: Catalogue) -> None:
    catalogue.context["CON_NAME"] = "PDB"
    query = (
        "SELECT NVL(NULL, 3), BITAND(6, 3), MOD(7, 4), UPPER('a'),"
        " SYS_CONTEXT('USERENV', 'con_name') FROM DUAL"
    )
    assert rows(catalogue, query) == [(3, 2, 3, "A", "PDB")]


def test_the_current_scn_is_that_of_the_query(catalogue: Catalogue) -> None:
    assert rows(catalogue, 'SELECT "CURRENT_SCN" FROM "SYS"."V$DATABASE"') == [(SCN,)]


@pytest.mark.parametrize(
    ("change", "scn", "number"),
    [
        (lambda one: one.denied.add("USER$"), SCN, 942),
        (lambda one: one.no_flashback.add("USER$"), SCN, 1031),
        (lambda one: setattr(one, "undo_scn", SCN - 10), SCN - 11, 1555),
        (lambda _: None, SCN + 1, 8181),
    ],
    ids=["no privilege", "no flashback", "undo is gone", "the future"],
)
def test_what_oracle_refuses(catalogue: Catalogue, change: Any, scn: int, number: int) -> None:
    change(catalogue)
    with pytest.raises(OraError) as caught:
        rows(catalogue, 'SELECT "NAME" FROM "SYS"."USER$" AS OF SCN :1', scn)
    assert caught.value.code == number


def test_what_is_there_is_read_as_of_an_scn(catalogue: Catalogue) -> None:
    assert len(rows(catalogue, 'SELECT "NAME" FROM "SYS"."USER$" AS OF SCN :1', SCN)) == 2


def test_a_view_may_be_made_whenever_it_is_asked(catalogue: Catalogue) -> None:
    made: list[int] = []

    def answer() -> list[dict[str, object]]:
        made.append(len(made))
        return [{"NAME": "compatible", "VALUE": str(len(made))}]

    catalogue.made_when_asked["V$PARAMETER"] = answer
    query = 'SELECT "VALUE" FROM "SYS"."V$PARAMETER"'
    assert [rows(catalogue, query) for _ in range(2)] == [[("1",)], [("2",)]]


def test_what_nobody_holds_is_closed() -> None:
    """SQLite calls functions of the catalogue, which must not keep it, and its database, alive."""
    made = Catalogue(lambda: SCN)
    assert rows(made, "SELECT NVL(NULL, 1) AS X FROM DUAL") == [(1,)]
    known = weakref.ref(made)
    del made
    gc.collect()
    assert known() is None


@pytest.fixture
def logged() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_logging(made, ORDERS, ())
    insert_logging(made, NOTES, ("P1", "P2"))
    return made


def told(logged: Catalogue, view: str, name: str) -> list[str | None]:
    query = f'SELECT "LOGGING" FROM SYS."{view}" WHERE "TABLE_NAME" = ? ORDER BY ROWID'
    return [str(value) if value else None for (value,) in logged.rows(query, name)]


def test_a_partitioned_table_tells_by_partition(logged: Catalogue) -> None:
    assert told(logged, "DBA_TABLES", "ORDERS") == ["YES"]
    assert told(logged, "DBA_TABLES", "Notes") == [None]
    assert told(logged, "DBA_TAB_PARTITIONS", "Notes") == ["YES", "YES"]
    assert told(logged, "DBA_LOBS", "Notes") == ["NONE"]
    assert told(logged, "DBA_LOB_PARTITIONS", "Notes") == ["YES", "YES"]


@pytest.mark.parametrize(
    ("sql", "view", "name", "found"),
    [
        ("ALTER TABLE SHOP.ORDERS NOLOGGING", "DBA_TABLES", "ORDERS", ["NO"]),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION "P2" NOLOGGING',
            *("DBA_TAB_PARTITIONS", "Notes", ["YES", "NO"]),
        ),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION "P1" LOB (BODY) (NOCACHE NOLOGGING)',
            *("DBA_LOB_PARTITIONS", "Notes", ["NO", "YES"]),
        ),
        (
            'ALTER TABLE "SHOP"."Notes" MODIFY LOB (BODY) (NOCACHE LOGGING)',
            *("DBA_LOBS", "Notes", ["YES"]),
        ),
    ],
)
def test_a_statement_changes_just_what_it_names(
    logged: Catalogue, sql: str, view: str, name: str, found: list[str]
) -> None:
    assert alter_logging(logged, sql)
    assert told(logged, view, name) == found


def test_other_statements_are_for_others_and_unknown_names_an_error(logged: Catalogue) -> None:
    assert not alter_logging(logged, "ALTER TABLE SHOP.ORDERS ADD (X NUMBER)")
    with pytest.raises(OraError) as caught:
        alter_logging(logged, "ALTER TABLE SHOP.NOTHING LOGGING")
    assert caught.value.code == 942
    with pytest.raises(OraError) as caught:
        alter_logging(logged, 'ALTER TABLE "SHOP"."Notes" MODIFY PARTITION P9 LOGGING')
    assert caught.value.code == 2149


def test_a_file_keeps_the_last_work_without_redo(logged: Catalogue) -> None:
    note_unrecoverable(logged, 4, 100, 0)
    note_unrecoverable(logged, 4, 200, 86_400)
    query = 'SELECT "UNRECOVERABLE_CHANGE#", "UNRECOVERABLE_TIME" FROM SYS."V$DATAFILE"'
    assert logged.rows(query) == [(200, "1970-01-02 00:00:00")]


@pytest.fixture
def tablespaces() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_dictionary(made, make_snapshot())
    insert_tablespace(made, 7, "SECURE", encrypted=True)
    return made


def test_both_places_tell_of_encryption(tablespaces: Catalogue) -> None:
    flags = 'SELECT "NAME" FROM SYS."TS$" WHERE "FLAGS" & 16384'
    assert tablespaces.rows(flags) == [("SECURE",)]
    files = 'SELECT "TS#", "ENCRYPTEDTS" FROM SYS."V$ENCRYPTED_TABLESPACES"'
    assert tablespaces.rows(files) == [(7, "YES")]


@pytest.mark.parametrize(
    ("sql", "query", "number"),
    [
        ("SHOP.ORDERS MOVE TABLESPACE SECURE", '"TAB$" WHERE "OBJ#" = ?', ORDERS.obj),
        ("SHOP.ORDERS MOVE TABLESPACE SECURE", '"SEG$" WHERE "BLOCK#" = ?', ORDERS.dataobj),
        (
            'SHOP."Notes" MOVE PARTITION P2 TABLESPACE "SECURE"',
            '"TABPART$" WHERE "OBJ#" = ?',
            NOTES.partitions[1],
        ),
        (
            'SHOP."Notes" MOVE PARTITION P1 LOB (BODY) STORE AS (TABLESPACE SECURE)',
            '"LOBFRAG$" WHERE "TABFRAGOBJ#" = ?',
            NOTES.partitions[0],
        ),
        (
            'SHOP."Notes" MOVE LOB (BODY) STORE AS (TABLESPACE SECURE)',
            '"LOB$" WHERE "OBJ#" = ?',
            NOTES.obj,
        ),
    ],
)
def test_a_segment_moves_and_the_others_stay(
    tablespaces: Catalogue, sql: str, query: str, number: int
) -> None:
    table = query.partition(" ")[0]
    before = tablespaces.rows(f'SELECT count(*) FROM SYS.{table} WHERE "TS#" = 7')
    assert move_segment(tablespaces, f"ALTER TABLE {sql}")
    assert tablespaces.rows(f'SELECT "TS#" FROM SYS.{query}', number) == [(7,)]
    assert before == [(0,)]
    assert tablespaces.rows(f'SELECT count(*) FROM SYS.{table} WHERE "TS#" = 7') == [(1,)]


def test_what_is_not_there_cannot_move(tablespaces: Catalogue) -> None:
    assert not move_segment(tablespaces, "ALTER TABLE SHOP.ORDERS LOGGING")
    for sql, code in (
        ("SHOP.NOTHING MOVE TABLESPACE SECURE", 942),
        ("SHOP.ORDERS MOVE TABLESPACE NOWHERE", 959),
        ("SHOP.ORDERS MOVE PARTITION P9 TABLESPACE SECURE", 2149),
    ):
        with pytest.raises(OraError) as caught:
            move_segment(tablespaces, f"ALTER TABLE {sql}")
        assert caught.value.code == code


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
        assert database.execute(sql, {"b1": 7}).fetchall() == [(7,)]


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
