"""``olr-pg simulate --serve``: a database for everybody who has none."""

from __future__ import annotations

import json
import signal
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
from olr_pg.simulator.oracle_net.serve import LiveServer, SqlServer, read_header, served
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.table_files import read_table
from tests.simulator.oracle_net.shop_client import TABLES, Journal, Shop, differing_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.redo.header import LogHeader
    from olr_pg.simulator.oracle_net.server import StandIn

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
