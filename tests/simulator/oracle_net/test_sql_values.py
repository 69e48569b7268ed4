"""SQL from python-oracledb: binds and results of every type, arrays, RETURNING, transactions."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import oracledb
import pytest

from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.sql.database import SqlDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator

MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)  # noqa: DTZ001 - as the driver wants it
WHOLE = MOMENT.replace(microsecond=0)
TYPES: tuple[tuple[str, Any], ...] = (
    ("NUMBER(38)", 12345678901234567890123456789012345678),
    ("NUMBER(10,3)", Decimal("-1234.567")),
    ("VARCHAR2(40)", "zażółć 😀"),
    ("VARCHAR2(4000)", "x" * 4000),
    ("NVARCHAR2(20)", "ñandú"),
    ("CHAR(4)", "ab  "),
    ("RAW(8)", b"\x00\x01\xff"),
    ("DATE", WHOLE),
    ("TIMESTAMP(6)", MOMENT),
    ("BINARY_DOUBLE", -0.1),
    ("BINARY_FLOAT", 0.5),
    ("INTERVAL DAY(5) TO SECOND(6)", datetime.timedelta(days=-3, seconds=5, microseconds=7)),
    ("INTERVAL YEAR(4) TO MONTH", oracledb.IntervalYM(-3, -2)),
    ("CLOB", "short"),
    ("CLOB", "długi " * 9000),
    ("BLOB", b"\x00\xff" * 30000),
)


@pytest.fixture
def server() -> Iterator[StandIn]:
    database = SqlDatabase(1, demo_shape(), lambda *_: None)
    state = OracleState(database.snapshot(database.current_scn()), dbid=1)
    with StandIn(state) as made:
        made.sql = database
        yield made
        database.shut_down()
    assert made.malformed == []


@pytest.fixture
def cursor(server: StandIn) -> Iterator[oracledb.Cursor]:
    with connect(server) as connection, connection.cursor() as made:
        yield made


def connect(server: StandIn) -> oracledb.Connection:
    return oracledb.connect(user="app", password="olr", dsn=server.connect_string)


def value_of(found: Any) -> Any:
    return found.read() if isinstance(found, oracledb.LOB) else found


@pytest.mark.parametrize(("declared", "value"), TYPES)
def test_a_value_comes_back_as_it_was_bound(
    cursor: oracledb.Cursor, declared: str, value: Any
) -> None:
    cursor.execute(f"CREATE TABLE t (id NUMBER(4), v {declared})")
    if declared.startswith("TIMESTAMP"):  # the driver binds a datetime as a DATE
        cursor.setinputsizes(None, oracledb.DB_TYPE_TIMESTAMP)
    cursor.execute("INSERT INTO t VALUES (:1, :2)", [1, value])
    cursor.execute("INSERT INTO t VALUES (:1, :2)", [2, None])
    previous = oracledb.defaults.fetch_decimals
    oracledb.defaults.fetch_decimals = isinstance(value, Decimal)
    try:
        cursor.execute("SELECT v FROM t ORDER BY id")
        assert [value_of(row[0]) for row in cursor] == [value, None]
    finally:
        oracledb.defaults.fetch_decimals = previous


def test_a_time_zone_is_kept_in_the_database(cursor: oracledb.Cursor) -> None:
    cursor.execute("CREATE TABLE t (v TIMESTAMP(3) WITH TIME ZONE)")
    cursor.execute("INSERT INTO t VALUES (TIMESTAMP '2024-01-01 10:00:00.5 +02:00')")
    cursor.execute("SELECT TO_CHAR(v, 'YYYY-MM-DD HH24:MI:SS.FF3 TZH:TZM') FROM t")
    assert cursor.fetchall() == [("2024-01-01 10:00:00.500 +02:00",)]


def test_arrays_of_binds_and_fetches_in_parts(cursor: oracledb.Cursor) -> None:
    cursor.execute("CREATE TABLE t (id NUMBER(9) PRIMARY KEY, v VARCHAR2(30))")
    for first in (1, 501):  # the second one reuses the cursor
        rows = [(number, f"v{number}") for number in range(first, first + 500)]
        cursor.executemany("INSERT INTO t VALUES (:1, :2)", rows)
        assert cursor.rowcount == 500
    cursor.execute("SELECT * FROM t ORDER BY id")
    assert cursor.fetchall() == [(number, f"v{number}") for number in range(1, 1001)]
    cursor.execute("UPDATE t SET v = :v WHERE id <= :n", v="new", n=10)
    assert cursor.rowcount == 10
    cursor.execute("SELECT COUNT(*) FROM t WHERE v = :w OR v = :w", w="new")
    assert cursor.fetchone() == (10,)


def test_returning(cursor: oracledb.Cursor) -> None:
    cursor.execute("CREATE TABLE t (id NUMBER(9) PRIMARY KEY, v VARCHAR2(30))")
    cursor.execute("CREATE SEQUENCE s")
    one, two = cursor.var(int), cursor.var(str)
    for number in (1, 2):
        cursor.execute("INSERT INTO t VALUES (s.NEXTVAL, :v) RETURNING id, v INTO :one, :two",
                       v=f"w{number}", one=one, two=two)  # fmt: skip
        assert (one.getvalue(), two.getvalue()) == ([number], [f"w{number}"])
    cursor.execute("UPDATE t SET v = v || '!' RETURNING v INTO :two", two=two)
    assert sorted(two.getvalue()) == ["w1!", "w2!"]
    many = cursor.var(str, arraysize=2)
    cursor.setinputsizes(None, many)
    cursor.executemany("DELETE FROM t WHERE id = :1 RETURNING v INTO :2", [(1,), (7,)])
    assert many.values == [["w1!"], []]


def test_sessions_do_not_see_what_is_not_committed(server: StandIn) -> None:
    with connect(server) as one, connect(server) as two:
        mine, theirs = one.cursor(), two.cursor()
        mine.execute("CREATE TABLE t (id NUMBER(9) PRIMARY KEY)")
        mine.execute("INSERT INTO t VALUES (1)")
        theirs.execute("SELECT * FROM t")
        assert theirs.fetchall() == []
        one.commit()
        theirs.execute("SELECT * FROM t")
        assert theirs.fetchall() == [(1,)]
        mine.execute("DELETE FROM t")
        one.rollback()
        mine.execute("SELECT * FROM t FOR UPDATE")
        with pytest.raises(oracledb.DatabaseError, match="ORA-00054"):
            theirs.execute("SELECT * FROM t FOR UPDATE NOWAIT")
    with connect(server) as three:  # what a session leaves open is rolled back with its end
        three.autocommit = True
        three.cursor().execute("DELETE FROM t")
        with connect(server) as four:
            found = four.cursor()
            found.execute("SELECT COUNT(*) FROM t")
            assert found.fetchone() == (0,)


def test_errors_have_oracles_numbers_and_classes(cursor: oracledb.Cursor) -> None:
    cursor.execute("CREATE TABLE t (id NUMBER(4) PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
        cursor.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(oracledb.DatabaseError, match="ORA-00942"):
        cursor.execute("SELECT * FROM nothing")
    with pytest.raises(oracledb.DatabaseError, match="does not support AUDIT"):
        cursor.execute("AUDIT SELECT ON t")
    cursor.execute("SELECT COUNT(*) FROM t")
    assert cursor.fetchone() == (1,)
