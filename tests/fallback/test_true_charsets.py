"""Text goes back to Oracle as the bytes that the application there expects, whatever character set
the database declares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.config.reading import parse_config
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.fallback.oracle_values import ValueSettings
from olr_pg.fallback.value_report import report_values
from olr_pg.load import sources
from olr_pg.load.fallback_way import open_ways_back
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.proving.whole_way import SmallPartition
from olr_pg.simulator.database_shape import demo_shape
from tests.fallback.made_way import way_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config
    from tests.proving.served import Served

SETS = {"APP.NAMES.RU": "CL8MSWIN1251", "*": "WE8MSWIN1252"}


@pytest.fixture
def ascii_served(tmp_path: Path) -> Iterator[Served]:
    shape = replace(demo_shape(), charset="US7ASCII")
    with served_source(tmp_path / "source", shape=shape) as found:
        yield found


def config_of(served: Served, folder: Path, target: str, table: str) -> Config:
    document = way_document(served, folder / "data", target, table, **{"create-tables": True})
    document["status"] = {"enabled": False}
    document["target"] = {"address": "127.0.0.1:0"}
    document["source"]["character-sets"] = SETS
    return parse_config(document, served.folder)


def load(config: Config, target: str) -> None:
    with sources.open_tables(config, for_load=True) as source:
        settings = sources.target_settings(config, source.snapshot, target)
        found = source.sources(source.choose(()))
        work = [one._replace(data=in_this_process(one.data)) for one in found]
        done = initial_load(settings, work, no_session, LoadOptions())
    for failure in done.failures:
        raise failure


def in_this_process(data: Any) -> Any:
    return replace(data, partitions=tuple(map(SmallPartition, data.partitions)))


def no_session() -> Any:
    raise AssertionError("so few rows are loaded in this process")


def stored(served: Served, query: str) -> list[tuple[Any, ...]]:
    with oracledb.connect(user="app", password="olr", dsn=served.dsn) as connection:
        found: list[tuple[Any, ...]] = connection.cursor().execute(query).fetchall()
        return found


def test_text_is_written_back_in_its_set(
    ascii_served: Served, tmp_path: Path, logical_database: str
) -> None:
    ascii_served.execute(
        "CREATE TABLE names (id CHAR(6) PRIMARY KEY, name VARCHAR2(40), ru VARCHAR2(40),"
        " small NUMBER(5))"
    )
    ascii_served.execute(
        "INSERT INTO names (id, name) VALUES (UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('E961')), 'old')"
    )
    config = config_of(ascii_served, tmp_path, logical_database, "names")
    load(config, logical_database)
    with open_ways_back(config) as (way,):
        prepare(way)
        with psycopg.connect(logical_database) as connection:
            connection.execute("UPDATE app.names SET name = 'Žofie €', ru = 'Мир' WHERE id = 'éa'")
            connection.execute("INSERT INTO app.names VALUES ('ü', 'Öl', 'Да', 7)")
        run(way, once=True)
        found = status(way).ledger
        assert found is not None
        assert not found.stops
        end(way)
    query = (
        "SELECT UTL_RAW.CAST_TO_RAW(id), UTL_RAW.CAST_TO_RAW(name), UTL_RAW.CAST_TO_RAW(ru)"
        " FROM names ORDER BY small DESC"
    )
    assert sorted(stored(ascii_served, query)) == [
        (b"\xe9a    ", "Žofie €".encode("cp1252"), "Мир".encode("cp1251")),
        (b"\xfc     ", "Öl".encode("cp1252"), "Да".encode("cp1251")),
    ]


def test_what_cannot_be_written_is_reported_before_the_cut_over(
    ascii_served: Served, tmp_path: Path, logical_database: str
) -> None:
    ascii_served.execute(
        "CREATE TABLE texts (id NUMBER(5) PRIMARY KEY, name VARCHAR2(40), long_text VARCHAR2(3000),"
        " big CLOB)"
    )
    config = config_of(ascii_served, tmp_path, logical_database, "texts")
    load(config, logical_database)
    with psycopg.connect(logical_database, autocommit=True) as connection:
        connection.execute("INSERT INTO app.texts (id, name) VALUES (1, 'Ж'), (2, 'é')")
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, logical_database)
        tables = source.choose(())
    assert config.fallback is not None
    assert config.apply is not None
    values = ValueSettings.of(config.fallback.policies, config.apply, source.snapshot.database)
    with psycopg.connect(logical_database) as connection:
        (report,) = report_values(connection, tables, settings, values)
    told = {one.name: one.error for one in report.columns}
    reason = "only VARCHAR2 and CHAR of at most 2000 bytes can be written"
    assert reason in told["BIG"]
    assert reason in told["LONG_TEXT"]
    (name,) = (one for one in report.columns if one.name == "NAME")
    assert name.refused == 1  # Ж is not in the configured set
