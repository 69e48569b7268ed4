"""Connections to the source: bounded calls, read-only work, another try where that may help."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import oracledb
import pytest
from sqlalchemy import Connection, Label, bindparam, select, text
from sqlalchemy.engine.interfaces import CacheStats
from structlog.testing import capture_logs

from olr_pg.errors import OlrPgError
from olr_pg.oracle.oracle_connection import ATTEMPTS, OracleDatabase, open_connection
from olr_pg.simulator.oracle_net.session import Fault

if TYPE_CHECKING:
    from olr_pg.config.source_section import OracleSource
    from olr_pg.simulator.oracle_net.serve import StandIn


def lost() -> oracledb.Error:
    return oracledb.DatabaseError("ORA-03113: end-of-file on communication channel")


def test_one_call_of_the_driver_is_bounded(source: OracleSource, oracle: OracleDatabase) -> None:
    with open_connection(source) as connection:
        assert connection.call_timeout == source.query_timeout * 1000

    def bound(connection: Any) -> int:
        own = connection.connection.driver_connection
        return int(own.call_timeout)

    assert oracle.read("testing", bound) == source.query_timeout * 1000
    assert oracle.query_seconds == source.query_timeout


def test_a_lost_connection_is_tried_again_with_another(oracle: OracleDatabase) -> None:
    seen: list[Any] = []

    def work(connection: Any) -> str:
        seen.append(connection)
        if len(seen) < 3:
            raise lost()
        return str(connection.execute(text("SELECT 'x' FROM DUAL")).scalar())

    with capture_logs() as logs:
        assert oracle.read("testing", work) == "x"
    assert len({id(one) for one in seen}) == len(seen) == 3
    assert [entry["event"] for entry in logs] == [
        "a query to Oracle failed; retrying",
        "Oracle can be reached again",
    ]


def test_an_outage_is_told_of_once(oracle: OracleDatabase) -> None:
    def work(_connection: Any) -> None:
        raise lost()

    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(OlrPgError):
                oracle.read("testing", work)
        assert oracle.read("testing", lambda _: "x") == "x"
        assert oracle.read("testing", lambda _: "x") == "x"
    assert [entry["event"] for entry in logs] == [
        "a query to Oracle failed; retrying",
        "Oracle can be reached again",
    ]


def test_in_the_end_the_error_says_what_was_done(oracle: OracleDatabase) -> None:
    tried: list[None] = []

    def work(_connection: Any) -> None:
        tried.append(None)
        raise lost()

    with pytest.raises(OlrPgError) as caught:
        oracle.read("reading X", work, action="look at Y")
    assert len(tried) == ATTEMPTS
    assert caught.value.detail.startswith("reading X: ")
    assert caught.value.action == "look at Y"


def test_what_does_not_pass_is_not_tried_again(oracle: OracleDatabase) -> None:
    tried: list[None] = []

    def work(connection: Any) -> None:
        tried.append(None)
        connection.execute(text("SELECT * FROM SYS.NOTHING"))

    with pytest.raises(OlrPgError):
        oracle.read("testing", work)
    assert len(tried) == 1


def test_a_session_changes_nothing_and_answers_as_every_other(
    oracle: OracleDatabase, stand_in: StandIn, source: OracleSource
) -> None:
    oracle.read("testing", lambda one: one.execute(text("SELECT 'x' FROM DUAL")).all())
    heard = [sql.strip() for sql, _ in stand_in.heard]
    assert heard[0] == (
        "ALTER SESSION SET NLS_CALENDAR = 'GREGORIAN' NLS_COMP = 'BINARY'"
        " QUERY_REWRITE_ENABLED = FALSE"
    )
    assert heard[1] == "ALTER SESSION SET ROW ARCHIVAL VISIBILITY = ALL"
    # Nothing that begins a transaction but the one that is read-only.
    others = [sql for sql in heard[2:] if not sql.upper().startswith("SELECT")]
    assert others == ["SET TRANSACTION READ ONLY"]
    stand_in.heard.clear()
    with open_connection(source):
        assert [sql for sql, _ in stand_in.heard] == heard[:2]


@pytest.mark.parametrize("version", ["11.2.0.4.0", "12.1.0.2.0"])
def test_archived_rows_are_shown_since_the_release_that_has_them(
    source: OracleSource, stand_in: StandIn, version: str
) -> None:
    stand_in.state.version = version
    stand_in.faults.add(Fault("execute", "ROW ARCHIVAL", error=(406, "COMPATIBLE is too low")))
    with open_connection(source):
        pass
    asked = any("ROW ARCHIVAL" in sql for sql, _ in stand_in.heard)
    assert asked == version.startswith("12")


def test_a_statement_is_compiled_once_for_all_databases_of_a_version(
    source: OracleSource, stand_in: StandIn
) -> None:
    value: Label[str] = bindparam("value_of_this_test", "x").label("found")

    def ask(connection: Connection) -> CacheStats:
        found = connection.execute(select(value))
        assert found.scalar_one() == "x"
        context: Any = found.context
        return CacheStats(context.cache_hit)

    def connect() -> CacheStats:
        with closing(OracleDatabase(source)) as database:
            return database.read("asking", ask)

    assert [connect() for _ in range(3)] == [CacheStats.CACHE_MISS, *[CacheStats.CACHE_HIT] * 2]
    stand_in.state.version = "12.1.0.2.0"  # its statements can have another text
    assert [connect() for _ in range(2)] == [CacheStats.CACHE_MISS, CacheStats.CACHE_HIT]
