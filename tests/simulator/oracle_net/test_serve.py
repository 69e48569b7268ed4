"""``olr-pg simulate --serve``: a database for everybody who has none."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pyarrow as pa
import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.errors import OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.verification import AT_POSITION, verify
from olr_pg.oracle.archive import map_path
from olr_pg.oracle.dictionary_queries import read_dictionary
from olr_pg.oracle.key_cuts import LargeRow
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.table_query import query_schema, read_rows
from olr_pg.simulator.database_shape import choose_shape, demo_shape
from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.live import LiveOptions, simulate_live
from olr_pg.simulator.oracle_net.serve import LiveServer, SqlServer, StandIn, read_header, served
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.truth import read_table
from tests.simulator.oracle_net.shop_client import TABLES, Journal, Shop, differing_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.redo.header import LogHeader


NEXT_ORDER = """
SELECT s."HIGHWATER" FROM SYS."SEQ$" s JOIN SYS."OBJ$" o ON o."OBJ#" = s."OBJ#"
WHERE o."NAME" = 'ORDERS_SEQ'
"""
CURRENT = "SELECT GROUP#, SEQUENCE#, FIRST_CHANGE# FROM V$LOG WHERE STATUS = 'CURRENT'"
FILES = "SELECT MEMBER, STATUS FROM V$LOGFILE WHERE GROUP# = :1 ORDER BY MEMBER"
EXACT = (1, 23, 96, 100, 101)
"""COL$.TYPE# of what both write alike: a load reads times and some numbers as text of its own."""

LOGS = "SELECT COUNT(*) FROM V$ARCHIVED_LOG"


def test_a_simulation_is_served_until_interrupted(tmp_path: Path) -> None:
    command = ["simulate", "--seed", "4", "--size", "60KB", "--out", str(tmp_path / "sim")]
    entry = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from olr_pg.cli.main import run; run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", entry, *command, "--workload", "orders", "--serve", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            server = next(
                line.split()[1] for line in process.stdout if line.startswith("serving: ")
            )
            with oracledb.connect(user="olr", password="olr", dsn=server) as connection:
                ((count,),) = connection.cursor().execute(LOGS)
            assert count == len(list((tmp_path / "sim" / "logs").iterdir()))
            # The configuration that comes with it is right, but for the time it takes to run it.
            assert diagnose(load_config(tmp_path / "sim" / "olr-pg.json")) == []
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()


def test_tables_in_encrypted_tablespaces_are_refused(tmp_path: Path) -> None:
    """Of every kind that the simulator has: with partitions, index-organised, with LOBs."""
    kinds: set[tuple[bool, bool, bool]] = set()
    for seed in range(12):
        folder = tmp_path / str(seed)
        modes = {SourceMode.ENCRYPTED}
        shape = choose_shape(seed, "random", version=0x13000000, modes=modes)
        made = simulate(seed, folder, size=2_000, shape=shape, truth=False)
        encrypted = {table.full_name for table in made.tables if table.encrypted}
        kinds |= {
            (table.is_partitioned, table.index_organised, bool(table.lobs))
            for table in made.tables
            if table.encrypted
        }
        with served(made, folder, port=0, every=0) as server:
            document = {"user": "olr", "password": "olr", "server": server.connect_string}
            oracle = OracleDatabase(OracleSource.model_validate(document))
            names = [(table.owner, table.name) for table in made.tables]
            read = read_dictionary(oracle, names)
            oracle.close()
        refused = {table.full_name for table in read.tables if table.refusal is not None}
        assert refused == encrypted
    assert len(kinds) > 3


def test_logs_are_archived_one_after_the_other(tmp_path: Path) -> None:
    summary = simulate(4, tmp_path, workload="orders", size=60_000)

    def wait_for(count: int, every: float) -> None:
        with (
            served(summary, tmp_path, port=0, every=every) as server,
            oracledb.connect(user="olr", password="olr", dsn=server.connect_string) as connection,
        ):
            while connection.cursor().execute(LOGS).fetchall() != [(count,)]:
                time.sleep(0.01)

    wait_for(0, 3_600.0)
    wait_for(len(summary.logs), 0.01)


# What they have: a computed value with a column's name as its alias; index-organised tables with
# rows from before the first log; TRUNCATE.
@pytest.mark.parametrize("seed", [2, 4, 7])
def test_the_rows_of_random_tables_are_read_as_they_are(tmp_path: Path, seed: int) -> None:
    summary = simulate(seed, tmp_path, size=30_000, prefilled=True)
    with (
        served(summary, tmp_path, port=0, every=0.0) as server,
        oracledb.connect(user="olr", password="olr", dsn=server.connect_string) as connection,
    ):
        ((scn,),) = connection.cursor().execute("SELECT CURRENT_SCN FROM V$DATABASE")
        for table in summary.snapshot.tables:
            if table.owner != "SYS" and table.refusal is None:
                wanted = read_table(tmp_path / "final", table.full_name)
                rows = list(read_rows(connection, table, scn, None, 500))
                found = pa.Table.from_batches(
                    [one.batch if isinstance(one, LargeRow) else one for one in rows],
                    query_schema(table),
                )
                assert found.num_rows == wanted.num_rows
                for name in (one.name for one in table.delivered if one.type_code in EXACT):
                    values = (sorted(map(str, one[name].to_pylist())) for one in (found, wanted))
                    assert len(set(map(tuple, values))) == 1, (table.full_name, name)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_cannot_be(tmp_path: Path, port: int) -> None:
    from typer.testing import CliRunner

    from olr_pg.cli.main import app

    command = ["simulate", "--seed", "4", "--out", str(tmp_path / "sim"), "--serve", str(port)]
    assert CliRunner().invoke(app, command).exit_code == 2


class NoWaiting(threading.Event):
    """What waits for it goes on at once."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


def test_rows_older_than_the_undo_retention_are_forgotten(tmp_path: Path) -> None:
    servers: list[StandIn] = []
    live = LiveServer(tmp_path, 0, servers.append, undo_seconds=0.0)
    options, shape = LiveOptions(100_000, switch_seconds=0.5, seconds=8.0), demo_shape()
    summary = simulate_live(
        *(4, tmp_path, NoWaiting(), options),
        workload="orders",
        shape=shape,
        prefilled=True,
        watch=live,
    )
    try:
        truth = (tmp_path / "truth.jsonl").read_bytes()
        catalogue = servers[0].state.catalogue
        held = sum(
            int(str(catalogue.rows(f'SELECT COUNT(*) FROM "SHOP"."{t.name}/versions"')[0][0]))
            for t in summary.tables
        )
        # The rows that there are, and what they were before the last redo that was made.
        rows = sum(summary.rows.values())
        assert rows <= held < rows + truth.count(b'"rowid"') / 4
        with oracledb.connect(
            user="olr", password="olr", dsn=servers[0].connect_string
        ) as connection:
            cursor = connection.cursor()
            assert orders(cursor, servers[0].state.scn) == summary.rows["SHOP.ORDERS"]
            with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
                orders(cursor, summary.snapshot.scn)
    finally:
        live.close()


@pytest.mark.timeout(300)
def test_a_database_that_works_on_is_served_meanwhile(tmp_path: Path) -> None:
    servers: list[StandIn] = []
    live = LiveServer(tmp_path, 0, servers.append)
    stop = threading.Event()
    options = LiveOptions(rate=50_000, switch_seconds=0.5)
    working = threading.Thread(
        target=simulate_live,
        args=(4, tmp_path, stop, options),
        kwargs={"workload": "orders", "shape": demo_shape(), "prefilled": True, "watch": live},
    )
    working.start()
    try:
        while not servers:
            assert working.is_alive()
            time.sleep(0.005)
        scns: list[int] = []
        counts: list[int] = []
        with oracledb.connect(
            user="olr", password="olr", dsn=servers[0].connect_string
        ) as connection:
            cursor = connection.cursor()
            while len(scns) < 3:
                ((logs,),) = cursor.execute(LOGS)
                if logs > len(scns):
                    ((scn,),) = cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
                    scns.append(scn)
                    counts.append(orders(cursor, scn))
            check_online_logs(cursor, tmp_path / "online")
            # A transaction is seen while it is open, and what it did is not.
            opened = cursor.execute("SELECT START_SCN FROM GV$TRANSACTION").fetchall()
            stop.set()
            working.join()
            assert [orders(cursor, scn) for scn in scns] == counts
            assert counts[-1] > counts[0]
            assert opened
            ((now,),) = cursor.execute('SELECT COUNT(*) FROM "SHOP"."ORDERS"')
            ((following,),) = cursor.execute(NEXT_ORDER)
            ((last,),) = cursor.execute('SELECT MAX("ORDER_ID") FROM "SHOP"."ORDERS"')
            assert int(following) > int(last) > 1
        assert now == read_table(tmp_path / "final", "SHOP.ORDERS").num_rows
    finally:
        stop.set()
        working.join()
        live.close()


def orders(cursor: oracledb.Cursor, scn: int) -> int:
    ((count,),) = cursor.execute('SELECT COUNT(*) FROM "SHOP"."ORDERS" AS OF SCN :1', [scn])
    return int(count)


def check_online_logs(cursor: oracledb.Cursor, folder: Path) -> None:
    """The current group's files are where the configuration maps them to, and have its log."""
    ((group, sequence, first_scn),) = cursor.execute(CURRENT).fetchall()
    files = cursor.execute(FILES, [group]).fetchall()
    assert [status for _, status in files] == [None, None]
    source = load_config(folder.parent / "olr-pg.json").source
    assert isinstance(source, OracleSource)
    paths = [Path(map_path(name, source.path_mapping)) for name, _ in files]
    assert {path.parent for path in paths} == {folder}
    headers = [whole_header(path) for path in paths]
    # By now the thread may have switched.
    assert all(header.sequence >= sequence for header in headers)
    assert all(header.first_scn >= first_scn for header in headers)


def whole_header(path: Path) -> LogHeader:
    """The header of an online log, which may be torn for a moment."""
    while True:
        try:
            return read_header(path)
        except OlrPgError:
            assert path.exists()


@pytest.fixture
def sql_served(tmp_path: Path) -> Iterator[SqlServer]:
    with SqlServer(4, tmp_path / "source", demo_shape(), switch_seconds=0.5) as made:
        yield made
    assert made.server.malformed == []


def config_of(sql_served: SqlServer, folder: Path, database: str) -> Config:
    path = folder / "source" / "olr-pg.json"
    document = json.loads(path.read_text())
    document["apply"]["connect-string"] = database
    document["context"]["data"] = str(folder / "data")
    own = folder / "olr-pg.json"
    own.write_text(json.dumps(document))
    return load_config(own)


def current_scn(connection: oracledb.Connection) -> int:
    ((scn,),) = connection.cursor().execute("SELECT CURRENT_SCN FROM V$DATABASE").fetchall()
    return int(scn)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_what_clients_write_is_loaded_replicated_and_identical(
    sql_served: SqlServer, tmp_path: Path, postgres_database: str,
    shared_session: Callable[[], SparkSession],
) -> None:  # fmt: skip
    journal = Journal()
    first = Shop(sql_served.server.connect_string, 0, journal)
    first.define()
    first.customers(1, 20)
    first.work(20)
    config = config_of(sql_served, tmp_path, postgres_database)
    shops = [Shop(sql_served.server.connect_string, seed, journal) for seed in (1, 2, 3)]
    threads = [threading.Thread(target=shop.work, args=(60,)) for shop in shops]
    for thread in threads:
        thread.start()
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, postgres_database)
        done = initial_load(
            settings, source.sources(source.choose(())), shared_session,
            LoadOptions(undo_retention=source.undo_retention),
        )  # fmt: skip
    assert not done.failures
    for thread in threads:
        thread.join()
    for shop in (first, *shops):
        shop.close()
    sql_served.database.switch_logs()
    assert run_appliance(config, once=True, apply=True) == 0
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, postgres_database)
        found = verify(settings, source.sources(source.choose(())), shared_session,
                       AT_POSITION)  # fmt: skip
    assert not found.failures
    assert [one.identical for one in found.tables] == [True] * len(TABLES)
    journal.carry_out(postgres_database, "reference")
    assert differing_rows(postgres_database, "app", "reference") == {}
    with psycopg.connect(postgres_database) as connection:
        rows = {name: connection.execute(f"SELECT count(*) FROM app.{name}".encode()).fetchone()
                for name in TABLES}  # fmt: skip
    expected: dict[str, Any] = {
        name: (sum(1 for _ in sql_served.database.table(name.upper()).scan(None)),)
        for name in TABLES
    }
    assert rows == expected
    assert expected["orders"][0] > 20


def test_without_a_table_its_configuration_is_one(sql_served: SqlServer, tmp_path: Path) -> None:
    config = load_config(tmp_path / "source" / "olr-pg.json")
    assert config.apply is None
    assert config.prove is not None


def test_flashback_queries_have_no_rows_of_a_partition_that_was_emptied(
    sql_served: SqlServer,
) -> None:
    with oracledb.connect(
        user="app", password="olr", dsn=sql_served.server.connect_string
    ) as owner, oracledb.connect(
        user="olr", password="olr", dsn=sql_served.server.connect_string
    ) as reader:  # fmt: skip
        cursor = owner.cursor()
        cursor.execute(
            "CREATE TABLE p (id NUMBER(4)) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN"
            " (10), PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN (MAXVALUE))"
        )
        cursor.execute("INSERT INTO p SELECT LEVEL * 8 FROM dual CONNECT BY LEVEL <= 4")
        owner.commit()
        before = current_scn(reader)
        cursor.execute("ALTER TABLE p TRUNCATE PARTITION a")
        cursor.execute("ALTER TABLE p DROP PARTITION b")
        for scn, count in ((before, 4), (current_scn(reader), 2)):
            query = f'SELECT COUNT(*) FROM "APP"."P" AS OF SCN {scn}'
            assert reader.cursor().execute(query).fetchone() == (count,)


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("statement", ["TRUNCATE TABLE t", "ALTER TABLE t MOVE"])
def test_a_load_that_begins_again_behind_a_ddl_loses_no_row(
    sql_served: SqlServer, tmp_path: Path, postgres_database: str, statement: str,
    shared_session: Callable[[], SparkSession],
) -> None:  # fmt: skip
    dsn = sql_served.server.connect_string
    with oracledb.connect(user="app", password="olr", dsn=dsn) as owner:
        cursor = owner.cursor()

        def insert(first: int) -> None:
            rows = [(number,) for number in range(first, first + 10)]
            cursor.executemany("INSERT INTO t VALUES (:1)", rows)
            owner.commit()

        cursor.execute("CREATE TABLE t (id NUMBER(4) PRIMARY KEY)")
        insert(0)
        config = config_of(sql_served, tmp_path, postgres_database)
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, postgres_database)
            works = source.sources(source.choose(()))
            cursor.execute(statement)
            insert(10)
            sql_served.server.faults.add(Fault("execute", '"T" AS OF SCN', error=(1555, "too old")))
            options = LoadOptions(later=source.later, undo_retention=source.undo_retention)
            done = initial_load(settings, works, shared_session, options)
        assert not done.failures
        insert(20)
    sql_served.database.switch_logs()
    assert run_appliance(config, once=True, apply=True) == 0
    with psycopg.connect(postgres_database) as connection:
        found = [number for (number,) in connection.execute("SELECT id FROM app.t ORDER BY id")]
    assert found == [*range(10 if statement.startswith("TRUNCATE") else 0, 30)]


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
