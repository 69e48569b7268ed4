"""The stand-in, as python-oracledb sees it."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

import oracledb
import pytest

from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.errors import OlrPgError
from olr_pg.simulator.oracle_net.server import StandIn
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.oracle_net.state import OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator

DBID = 1_385_559_638


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    columns = (
        Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False),
        Column("NAME", 2, 2, 2, 1, 40, charset_id=873, charset_form=1),
    )
    table = Table("SHOP", "ORDERS", 72_000, 72_000, columns, (), 0, KeyKind.PRIMARY, (1,))
    database = Database("SIMDB", 3, "SIMPDB", 77, (1_000,), 55, big_endian=False)
    with StandIn(OracleState(Snapshot(5_000, database, (table,)), dbid=DBID)) as server:
        yield server
        assert server.malformed == []


@pytest.fixture
def connection(stand_in: StandIn) -> Iterator[oracledb.Connection]:
    with connect(stand_in) as opened:
        yield opened


def connect(server: StandIn, password: str = "olr") -> oracledb.Connection:
    return oracledb.connect(user="olr", password=password, dsn=server.connect_string)


def query(connection: oracledb.Connection, sql: str, *binds: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(binds))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def test_it_connects_and_tells_its_version(connection: oracledb.Connection) -> None:
    assert connection.version == "19.3.0.0.0"
    connection.ping()


def test_sys_tables_are_read_as_of_an_scn(connection: oracledb.Connection) -> None:
    sql = """SELECT o.NAME, c.NAME, c."LENGTH" FROM SYS.OBJ$ AS OF SCN :s o
        JOIN SYS.COL$ AS OF SCN :s c ON c.OBJ# = o.OBJ# -- comment: AS OF SCN
        WHERE o.OWNER# > :u AND c.NAME <> 'AS OF SCN :no' ORDER BY c.SEGCOL#"""
    assert query(connection, sql, 4_900, 4_900, 1) == [("ORDERS", "ID", 22), ("ORDERS", "NAME", 40)]


def test_values_of_every_kind_and_size_arrive(connection: oracledb.Connection) -> None:
    long = "é" * 3_000
    row = query(
        connection, "SELECT :a, :b, :c, :d, -7, 1.25, NULL FROM dual", long, 2**62, b"\1\xff", None
    )
    assert row == [(long, 2**62, b"\1\xff", None, -7, 1.25, None)]


def test_results_of_many_packets_and_fetches_arrive_whole(
    stand_in: StandIn, connection: oracledb.Connection
) -> None:
    rows = [{"OBJ#": n, "NAME": f"T{n}" * 20} for n in range(1_000, 3_500)]
    stand_in.state.catalogue.insert("OBJ$", rows)
    found = query(connection, "SELECT OBJ#, NAME FROM SYS.OBJ$ WHERE OBJ# < 4000 ORDER BY OBJ#")
    assert found == [(row["OBJ#"], row["NAME"]) for row in rows]


def test_a_long_statement_takes_several_packets(connection: oracledb.Connection) -> None:
    lists = [", ".join(f":n{first + n}" for n in range(1_000)) for first in (0, 1_000)]
    condition = " OR ".join(f"OBJ# IN ({names})" for names in lists)
    found = query(
        connection, f"SELECT NAME FROM SYS.OBJ$ WHERE {condition}", *range(72_000, 74_000)
    )
    assert found == [("ORDERS",)]


def test_a_list_has_at_most_a_thousand_values(connection: oracledb.Connection) -> None:
    names = ", ".join(f":n{number}" for number in range(1_001))
    with pytest.raises(oracledb.DatabaseError, match="ORA-01795"):
        query(connection, f"SELECT NAME FROM SYS.OBJ$ WHERE OBJ# IN ({names})", *range(1_001))


def test_a_cursor_runs_again_with_other_binds(connection: oracledb.Connection) -> None:
    with connection.cursor() as cursor:
        for number, expected in ((72_000, [("ORDERS",)]), (1, []), (72_000, [("ORDERS",)])):
            cursor.execute("SELECT NAME FROM SYS.OBJ$ WHERE OBJ# = :n", n=number)
            assert cursor.fetchall() == expected


def test_lobs_are_read_in_pieces(stand_in: StandIn, connection: oracledb.Connection) -> None:
    value = bytes(range(256)) * 400
    stand_in.state.catalogue.insert(
        "ECOL$", [{"TABOBJ#": 1, "BINARYDEFVAL": value}, {"TABOBJ#": 2}]
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT BINARYDEFVAL FROM SYS.ECOL$ ORDER BY TABOBJ#")
        (lob,), (nothing,) = cursor.fetchall()
        assert nothing is None
        assert lob.size() == len(value)
        assert lob.read() == value
        assert lob.read(1_001, 500) == value[1_000:1_500]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT 1 FROM NOWHERE", 942),
        ("SELECT nix FROM dual", 904),
        ("SELECT FROM WHERE", 900),
        ("SELECT 1 FROM dual; SELECT 2 FROM dual", 911),
        ("DELETE FROM dual", 900),
        ("SELECT 1 FROM SYS.OBJ$ AS OF SCN 5001", 8181),
        ("SELECT 1 FROM SYS.OBJ$ AS OF SCN 99", 1555),
        ("SELECT 1 FROM SYS.TAB$", 942),
        ("SELECT 1 FROM SYS.COL$ AS OF SCN 4999", 1031),
    ],
)
def test_errors_have_oracles_numbers(
    stand_in: StandIn, connection: oracledb.Connection, sql: str, code: int
) -> None:
    catalogue = stand_in.state.catalogue
    catalogue.undo_scn = 100
    catalogue.denied.add("TAB$")
    catalogue.no_flashback.add("COL$")
    with pytest.raises(oracledb.DatabaseError, match=f"ORA-{code:05d}"):
        query(connection, sql)
    assert query(connection, "SELECT 1 FROM dual") == [(1,)]


def test_a_grant_ends_the_lack_of_a_privilege(
    stand_in: StandIn, connection: oracledb.Connection
) -> None:
    stand_in.state.catalogue.denied.add("TAB$")
    stand_in.state.catalogue.no_flashback.add("TAB$")
    with connection.cursor() as cursor:
        cursor.execute("GRANT SELECT, FLASHBACK ON SYS.TAB$ TO olr")
    assert query(connection, "SELECT OBJ# FROM SYS.TAB$ AS OF SCN 4999") == [(72_000,)]


def test_a_wrong_password_is_refused(stand_in: StandIn) -> None:
    with pytest.raises(oracledb.DatabaseError, match="ORA-01017"):
        connect(stand_in, "wrong")


def test_another_service_is_refused(stand_in: StandIn) -> None:
    with pytest.raises(oracledb.DatabaseError, match="DPY-6001"):
        oracledb.connect(user="olr", password="olr", dsn=f"127.0.0.1:{stand_in.port}/OTHER")


def test_a_slow_call_can_be_interrupted(stand_in: StandIn, connection: oracledb.Connection) -> None:
    stand_in.faults.add(Fault("execute", "dual", delay=60))
    # The driver gives what recovers the connection as long.
    connection.call_timeout = 2_000
    start = time.monotonic()
    with pytest.raises(oracledb.DatabaseError, match="DPY-4024"):
        query(connection, "SELECT 1 FROM dual")
    assert time.monotonic() - start < 30
    connection.call_timeout = 0
    assert query(connection, "SELECT 1 FROM dual") == [(1,)]


@pytest.mark.parametrize("phase", ["execute", "fetch"])
def test_a_connection_can_be_cut(stand_in: StandIn, phase: str) -> None:
    rows = [{"OBJ#": n} for n in range(500)]
    stand_in.state.catalogue.insert("OBJ$", rows)
    stand_in.faults.add(Fault(phase, "OBJ$", drop=True))
    with pytest.raises(oracledb.DatabaseError, match="DPY-4011"), connect(stand_in) as connection:
        query(connection, "SELECT OBJ# FROM SYS.OBJ$")
    with connect(stand_in) as connection:
        assert len(query(connection, "SELECT OBJ# FROM SYS.OBJ$")) == 501


def test_a_fault_strikes_as_often_as_it_says(
    stand_in: StandIn, connection: oracledb.Connection
) -> None:
    stand_in.faults.add(Fault("execute", "dual", error=(1555, "snapshot too old"), times=2))
    for _ in range(2):
        with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
            query(connection, "SELECT 1 FROM dual")
    assert query(connection, "SELECT 1 FROM dual") == [(1,)]


def test_a_taken_port_is_a_coded_error(stand_in: StandIn) -> None:
    with pytest.raises(OlrPgError) as caught:
        StandIn(stand_in.state, port=stand_in.port)
    assert caught.value.code == 8010


def test_what_it_knows_is_closed_with_it() -> None:
    database = Database("SIMDB", 0, None, 77, (1_000,), 55, big_endian=False)
    one, other = (OracleState(Snapshot(5_000, database, ()), dbid=DBID) for _ in range(2))
    with StandIn(one) as server:
        server.containers = {"ONE": one, "OTHER": other}
    for state in (one, other):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            state.catalogue.rows("SELECT 1")
