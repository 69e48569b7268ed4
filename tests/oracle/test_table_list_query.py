"""TableList against a live database: what a client may ask, and what it is told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.config.table_patterns import TableName, parse_pattern, pattern_query, table_list_query
from olr_pg.errors import OlrPgError
from olr_pg.oracle import table_list_query as table_list
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.table_list_query import run_table_list
from olr_pg.simulator.oracle_net.session import Fault

if TYPE_CHECKING:
    from olr_pg.simulator.oracle_net.serve import StandIn
    from olr_pg.simulator.oracle_net.state import OracleState

# The driver drops the socket of a failed log-on without closing it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT owner, table_name FROM all_tables ORDER BY table_name",
        " -- a comment\n/* and one more */ (select owner, table_name from dba_tables) ; ",
        "WITH t AS (SELECT owner, table_name FROM all_tables) SELECT * FROM t -- the end",
        table_list_query([TableName("SHOP", n) for n in ("LOOSE", "Notes", "ORDERS")]),
        "SELECT 'SHOP', table_name FROM all_tables WHERE table_name <> ':no bind'",
        (
            "WITH a(x, y) AS (SELECT owner, table_name FROM all_tables),"
            " b (x, y) AS (SELECT x, y FROM a)"
            " SELECT x, y FROM b WHERE UPPER(x) = 'SHOP' AND y <> '; FOR UPDATE (f(1)@x'"
        ),
    ],
)
def test_names_come_back(oracle: OracleDatabase, query: str) -> None:
    names = [("SHOP", "LOOSE"), ("SHOP", "Notes"), ("SHOP", "ORDERS")]
    assert sorted(run_table_list(oracle, query)) == names


def test_a_pattern_finds_tables_whose_rows_may_not_be_read(
    oracle: OracleDatabase, state: OracleState
) -> None:
    """The grants for replication let nobody read a row: ALL_TABLES then has none of the tables."""
    state.catalogue.denied |= {"LOOSE", "Notes", "ORDERS"}
    pattern = parse_pattern("SHOP.*")
    assert pattern is not None
    query = pattern_query(pattern, ())
    assert sorted(run_table_list(oracle, query)) == [
        ("SHOP", "LOOSE"),
        ("SHOP", "Notes"),
        ("SHOP", "ORDERS"),
    ]
    with pytest.raises(OlrPgError) as caught:
        run_table_list(oracle, "SELECT owner, table_name FROM all_tables")
    assert caught.value.code == 3014


def test_a_pattern_leaves_out_tables_whose_rows_are_in_no_redo(
    oracle: OracleDatabase, state: OracleState
) -> None:
    """DBA_TABLES tells them: TABLESPACE_NAME is NULL, but the table is of no kind that has none."""
    put = state.catalogue.put
    put("DBA_TABLES", OWNER="SHOP", TABLE_NAME="A_TEMPORARY", TEMPORARY="Y", PARTITIONED="NO")
    put("DBA_TABLES", OWNER="SHOP", TABLE_NAME="AN_EXTERNAL", TEMPORARY="N", PARTITIONED="NO")
    put("DBA_TABLES", OWNER="SHOP", TABLE_NAME="A_PARTED", TEMPORARY="N", PARTITIONED="YES")
    put("DBA_TABLES", OWNER="SHOP", TABLE_NAME="AN_INDEX", TEMPORARY="N", IOT_TYPE="IOT")
    pattern = parse_pattern("SHOP.A*")
    assert pattern is not None
    found = run_table_list(oracle, pattern_query(pattern, ()))
    assert sorted(found) == [("SHOP", "AN_INDEX"), ("SHOP", "A_PARTED")]


def test_a_name_that_is_given_twice_counts_once(oracle: OracleDatabase) -> None:
    query = "SELECT 'A', 'B' FROM dual UNION ALL SELECT 'A', 'B' FROM dual"
    assert run_table_list(oracle, query) == [("A", "B")]


@pytest.mark.parametrize(
    ("query", "code", "word"),
    [
        ("SELECT owner, table_name, 1 FROM all_tables", 3011, "3 columns"),
        ("SELECT owner FROM all_tables", 3011, "1 columns"),
        ("SELEC owner, table_name FROM all_tables", 3016, "SELECT"),
        ("DROP TABLE shop.orders", 3016, "SELECT"),
        ("BEGIN NULL; END;", 3016, "SELECT"),
        ("SELECT owner, nix FROM all_tables", 3010, "ORA-00904"),
        ("SELECT owner, table_name FROM nowhere", 3010, "ORA-00942"),
        ("SELECT owner,, table_name FROM all_tables", 3010, "ORA-00900"),
        ("SELECT owner, table_name FROM all_tables WHERE owner = :owner", 3010, "bind"),
        ("SELECT 1, 2 FROM dual) x; DROP TABLE t --", 3016, "brackets"),
        ("SELECT 1, 2 FROM dual) CROSS JOIN (SELECT 1, 2 FROM dual", 3016, "brackets"),
        ("SELECT (1, 2 FROM dual", 3016, "brackets"),
        ("SELECT 1, 2 FROM dual; DROP TABLE t", 3016, "more than one statement"),
        ("SELECT owner, table_name FROM all_tables FOR UPDATE", 3016, "FOR UPDATE"),
        ("SELECT owner, table_name FROM all_tables for /* */ update of x", 3016, "FOR UPDATE"),
        ("WITH FUNCTION f RETURN NUMBER IS BEGIN RETURN 1; END; SELECT f, 1", 3016, "FUNCTION"),
        ("with procedure p is begin null; end; select 1, 2 from dual", 3016, "PROCEDURE"),
        ("SELECT DBMS_PIPE.RECEIVE_MESSAGE('x', 60), 'T' FROM dual", 3016, "RECEIVE_MESSAGE"),
        ("SELECT 'A', UTL_HTTP.REQUEST('http://x/') FROM dual", 3016, "REQUEST"),
        ("SELECT shop.upper('x'), 'T' FROM dual", 3016, "upper"),
        ("SELECT \"f\"('x'), 'T' FROM dual", 3016, '"f"'),
        ("SELECT 'A', DBMS_XMLGEN.GETXML('SELECT 1 FROM dual') FROM dual", 3016, "GETXML"),
        ("SELECT column_value, 'T' FROM TABLE(shop.pieces(1))", 3016, "TABLE"),
        ("SELECT owner, table_name FROM all_tables, shop.f(1)", 3016, "f"),
        ("SELECT 'A', 'B' FROM dual WHERE 1 = shop.s.NEXTVAL", 3016, "sequence"),
        ("SELECT owner, table_name FROM all_tables@elsewhere", 3016, "link"),
        ("SELECT 'A, 'B' FROM dual", 3010, "does not end"),
        ("SELECT q'[A, 'B' FROM dual", 3010, "does not end"),
        ("SELECT 'A', 'B' /* FROM dual", 3010, "does not end"),
        ("SELECT owner, table_name FROM all_tables WHERE 0 = 1", 3014, "no row"),
        ("SELECT 1, table_name FROM all_tables", 3017, "1"),
        ("SELECT NULL, table_name FROM all_tables", 3017, "None"),
        ("SELECT 'a\0b', 'c' FROM dual", 3010, "NUL"),
    ],
)
def test_what_is_wrong_is_said(oracle: OracleDatabase, query: str, code: int, word: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        run_table_list(oracle, query)
    assert caught.value.code == code
    assert word in caught.value.detail
    assert caught.value.exit_code == 4


def test_what_is_not_plain_never_reaches_the_database(
    stand_in: StandIn, oracle: OracleDatabase
) -> None:
    with pytest.raises(OlrPgError):
        run_table_list(oracle, "SELECT shop.empty_all('x'), 'T' FROM dual")
    assert not stand_in.heard


def test_the_query_runs_in_a_transaction_that_only_reads(
    stand_in: StandIn, oracle: OracleDatabase
) -> None:
    run_table_list(oracle, "SELECT owner, table_name FROM all_tables")
    query = next(said for said in stand_in.heard if "all_tables" in said[0])
    assert query == ("SELECT * FROM (\nSELECT owner, table_name FROM all_tables\n)", True)
    with pytest.raises(OlrPgError) as caught:
        oracle.read(
            "changing",
            lambda connection: connection.exec_driver_sql("GRANT SELECT ON SYS.OBJ$ TO olr"),
        )
    assert "ORA-01456" in caught.value.detail


def test_a_query_of_too_many_rows_is_stopped(
    oracle: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_list, "ROWS_MAX", 2)
    with pytest.raises(OlrPgError) as caught:
        run_table_list(oracle, "SELECT owner, table_name FROM all_tables")
    assert (caught.value.code, caught.value.detail) == (3015, "the query returns more than 2 rows")


def test_a_value_longer_than_a_name_is_refused(oracle: OracleDatabase) -> None:
    with pytest.raises(OlrPgError) as caught:
        run_table_list(oracle, f"SELECT '{'x' * 129}', 'T' FROM dual")
    assert caught.value.code == 3017


def test_a_query_that_nobody_waits_for_is_cancelled(
    stand_in: StandIn, source: OracleSource
) -> None:
    fault = stand_in.faults.add(Fault("execute", "all_tables", delay=600))
    database = OracleDatabase(source.model_copy(update={"query_timeout": 3600}))
    with pytest.raises(OlrPgError) as caught:
        run_table_list(database, "SELECT owner, table_name FROM all_tables", lambda: fault.hits > 0)
    assert (caught.value.code, caught.value.detail) == (3015, "the client has disconnected")
    # The connection that was cancelled on is not used again.
    assert run_table_list(database, "SELECT 'A', 'B' FROM dual") == [("A", "B")]
    database.close()


def test_a_query_that_takes_too_long_is_stopped(stand_in: StandIn, source: OracleSource) -> None:
    stand_in.faults.add(Fault("execute", "all_tables", delay=60))
    database = OracleDatabase(source.model_copy(update={"query_timeout": 3}))
    with pytest.raises(OlrPgError) as caught:
        run_table_list(database, "SELECT owner, table_name FROM all_tables")
    assert caught.value.code == 3015
    assert run_table_list(database, "SELECT 'A', 'B' FROM dual") == [("A", "B")]
    database.close()


def test_a_wrong_password(stand_in: StandIn, source: OracleSource) -> None:
    stand_in.password = "other"
    assert failure(source).code == 7002


def test_a_host_that_is_not_there(stand_in: StandIn, source: OracleSource) -> None:
    stand_in.close()
    found = failure(source)
    assert found.code == 7001
    assert "source.server" in found.action


def test_another_service(stand_in: StandIn, source: OracleSource) -> None:
    stand_in.service = "OTHER"
    assert failure(source).code == 7003


@pytest.mark.parametrize("server", ["nowhere", "h 1/S", "http://h/S", "(A=1)", "ldap://h/S"])
def test_a_server_of_no_usable_form(source: OracleSource, server: str) -> None:
    assert failure(source.model_copy(update={"server": server})).code == 7013


def test_a_database_that_cuts_every_connection(stand_in: StandIn, source: OracleSource) -> None:
    fault = stand_in.faults.add(Fault("execute", drop=True, times=0))
    assert failure(source).code == 7007
    assert fault.hits > 1


def test_an_error_that_nobody_foresaw(stand_in: StandIn, source: OracleSource) -> None:
    stand_in.faults.add(Fault("execute", "PDB", error=(4031, "no shared memory"), times=0))
    database = OracleDatabase(source)
    with pytest.raises(OlrPgError) as caught:
        database.read("testing", lambda connection: connection.exec_driver_sql("SELECT 'PDB'"))
    assert caught.value.code == 7009
    assert "testing: ORA-04031: no shared memory" in str(caught.value)
    database.close()


def failure(source: OracleSource) -> OlrPgError:
    database = OracleDatabase(source)
    with pytest.raises(OlrPgError) as caught:
        run_table_list(database, "SELECT owner, table_name FROM all_tables")
    database.close()
    assert caught.value.exit_code == 8
    assert "olr" not in caught.value.detail.replace("olr_pg", "")
    return caught.value


def test_the_state_is_not_changed(state: OracleState, oracle: OracleDatabase) -> None:
    with pytest.raises(OlrPgError):
        run_table_list(oracle, "SELECT owner, table_name FROM all_tables; DELETE FROM all_tables")
    assert len(state.catalogue.rows("SELECT * FROM SYS.ALL_TABLES")) == 3
