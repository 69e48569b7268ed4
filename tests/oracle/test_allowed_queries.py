"""What the account may read is asked for together, and told one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy.exc
from sqlalchemy import select

from olr_pg.oracle import allowed_queries, tables
from olr_pg.oracle.allowed_queries import forbidden, rows_if_allowed
from olr_pg.oracle.flashback import as_of
from tests.oracle.conftest import SCN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import FromClause

    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.serve import StandIn
    from olr_pg.simulator.oracle_net.state import OracleState

NOW = {table.name: table for table in tables.SYS_TABLES}


def told(oracle: OracleDatabase, sources: Mapping[str, FromClause]) -> set[str]:
    return set(oracle.read("asking", lambda connection: forbidden(connection, sources)))


def asked(stand_in: StandIn) -> list[str]:
    return [sql for sql, _ in stand_in.heard if "0 = 1" in sql]


def test_one_statement_asks_where_all_may_be_read(
    oracle: OracleDatabase, stand_in: StandIn
) -> None:
    assert told(oracle, dict(NOW)) == set()
    (sql,) = asked(stand_in)
    assert sql.count("UNION ALL") == len(NOW) - 1


@pytest.mark.parametrize(
    "denied", [{"USER$"}, {"DEFERRED_STG$"}, {"COL$", "LOB$", "TS$"}, set(NOW)]
)
def test_each_that_may_not_be_read_is_named(
    oracle: OracleDatabase, state: OracleState, denied: set[str]
) -> None:
    state.catalogue.denied |= denied
    assert told(oracle, dict(NOW)) == denied


def test_what_may_not_be_read_as_of_an_scn_is_named(
    oracle: OracleDatabase, state: OracleState
) -> None:
    state.catalogue.no_flashback |= {"LOBFRAG$", "IND$"}
    old = {name: as_of(table, SCN, "t") for name, table in NOW.items()}
    assert told(oracle, old) == {"LOBFRAG$", "IND$"}
    assert told(oracle, dict(NOW)) == set()


def test_many_are_asked_for_in_several_statements(
    oracle: OracleDatabase,
    state: OracleState,
    stand_in: StandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allowed_queries, "TOGETHER_MAX", 7)
    assert told(oracle, dict(NOW)) == set()
    assert len(asked(stand_in)) == -(-len(NOW) // 7)
    state.catalogue.denied |= {"USER$", "DEFERRED_STG$"}
    assert told(oracle, dict(NOW)) == {"USER$", "DEFERRED_STG$"}


def test_rows_are_read_where_that_is_allowed(oracle: OracleDatabase, state: OracleState) -> None:
    query = select(tables.DATABASE.c.NAME)
    found = oracle.read("asking", lambda connection: rows_if_allowed(connection, query))
    assert [name for (name,) in found or ()] == ["SIMDB"]
    state.catalogue.denied.add("V$DATABASE")
    assert oracle.read("asking", lambda connection: rows_if_allowed(connection, query)) is None


def test_another_error_is_not_taken_for_a_no(oracle: OracleDatabase) -> None:
    old: dict[str, FromClause] = {"USER$": as_of(tables.USER, SCN + 10**9, "t")}
    with oracle._engine.connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError) as info:
        forbidden(connection, old)
    assert "ORA-08181" in str(info.value)
