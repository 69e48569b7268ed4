"""A stranger's client works in SQL on the stand-in, while its tables are loaded and replicated."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.verification import AT_POSITION, verify
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer
from olr_pg.simulator.oracle_net.session import Fault
from tests.simulator.oracle_net.shop_client import TABLES, Journal, Shop, differing_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SqlServer]:
    with SqlServer(4, tmp_path / "source", demo_shape(), switch_seconds=0.5) as made:
        yield made
    assert made.server.malformed == []


def config_of(served: SqlServer, folder: Path, database: str) -> Config:
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
    served: SqlServer, tmp_path: Path, postgres_database: str,
    shared_session: Callable[[], SparkSession],
) -> None:  # fmt: skip
    journal = Journal()
    first = Shop(served.server.connect_string, 0, journal)
    first.define()
    first.customers(1, 20)
    first.work(20)
    config = config_of(served, tmp_path, postgres_database)
    shops = [Shop(served.server.connect_string, seed, journal) for seed in (1, 2, 3)]
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
    served.database.switch_logs()
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
        name: (sum(1 for _ in served.database.table(name.upper()).scan(None)),) for name in TABLES
    }
    assert rows == expected
    assert expected["orders"][0] > 20


def test_without_a_table_its_configuration_is_one(served: SqlServer, tmp_path: Path) -> None:
    config = load_config(tmp_path / "source" / "olr-pg.json")
    assert config.apply is None
    assert config.prove is not None


def test_flashback_queries_have_no_rows_of_a_partition_that_was_emptied(served: SqlServer) -> None:
    with oracledb.connect(
        user="app", password="olr", dsn=served.server.connect_string
    ) as owner, oracledb.connect(
        user="olr", password="olr", dsn=served.server.connect_string
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
    served: SqlServer, tmp_path: Path, postgres_database: str, statement: str,
    shared_session: Callable[[], SparkSession],
) -> None:  # fmt: skip
    dsn = served.server.connect_string
    with oracledb.connect(user="app", password="olr", dsn=dsn) as owner:
        cursor = owner.cursor()

        def insert(first: int) -> None:
            rows = [(number,) for number in range(first, first + 10)]
            cursor.executemany("INSERT INTO t VALUES (:1)", rows)
            owner.commit()

        cursor.execute("CREATE TABLE t (id NUMBER(4) PRIMARY KEY)")
        insert(0)
        config = config_of(served, tmp_path, postgres_database)
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, postgres_database)
            works = source.sources(source.choose(()))
            cursor.execute(statement)
            insert(10)
            served.server.faults.add(Fault("execute", '"T" AS OF SCN', error=(1555, "too old")))
            options = LoadOptions(later=source.later, undo_retention=source.undo_retention)
            done = initial_load(settings, works, shared_session, options)
        assert not done.failures
        insert(20)
    served.database.switch_logs()
    assert run_appliance(config, once=True, apply=True) == 0
    with psycopg.connect(postgres_database) as connection:
        found = [number for (number,) in connection.execute("SELECT id FROM app.t ORDER BY id")]
    assert found == [*range(10 if statement.startswith("TRUNCATE") else 0, 30)]
