"""What a command says whose configuration lacks something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.model import Config
from olr_pg.config.reading import load_config, parse_config
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.parquet import SCN_KEY
from olr_pg.load.sources import apply_section, offline_source, open_tables, table_sources
from olr_pg.load.verification.verification import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.load.conftest import Project
    from tests.load.table_data import Source


LIVE = {"user": "u", "password": "p", "server": "db:1521/orcl"}


@pytest.fixture
def live(tmp_path: Path) -> Config:
    return parse_config({"source": LIVE}, folder=tmp_path)


def test_a_live_source_is_no_offline_one(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        offline_source(live)
    assert caught.value.code == Code.NOT_SUPPORTED


def test_there_is_no_target(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        apply_section(live)
    assert caught.value.code == Code.NO_TARGET


def test_a_live_source_takes_no_folder_of_rows(live: Config, tmp_path: Path) -> None:
    with pytest.raises(OlrPgError, match="--tables") as caught, open_tables(live, folder=tmp_path):
        pass
    assert caught.value.code == Code.NOT_SUPPORTED


def test_files_are_not_taken_for_rows_of_another_scn(tmp_path: Path) -> None:
    column = Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False)
    table = Table("S", "T", 80_000, 80_000, (column,))
    snapshot = Snapshot(5, Database("X", activation=1, resetlogs=(1,)), (table,))
    schema = pa.schema([("ID", pa.int64())], metadata={SCN_KEY: b"77"})
    pq.write_table(pa.table({"ID": [1]}, schema=schema), tmp_path / "S.T.parquet")
    source = {"kind": "offline", "dictionary": "d.json", "logs": ["logs"], "tables": str(tmp_path)}
    config = parse_config({"source": source}, folder=tmp_path)
    for scn in (None, 77):
        assert [one.scn for one in table_sources(config, snapshot, [table], scn=scn)] == [77]
    with pytest.raises(OlrPgError, match="as of SCN 77, not 78") as caught:
        table_sources(config, snapshot, [table], scn=78)
    assert caught.value.code == Code.TABLE_DATA_UNUSABLE


# Of the same meaning in Oracle's SQL and in PostgreSQL's.
CONDITIONS = {
    "SHOP.ORDERS": "lines > 5 AND (carrier IS NULL OR carrier IN (1, 2, 3)) OR status LIKE 'S%'",
    "SHOP.CUSTOMERS": "NOT balance < 0 AND since >= TIMESTAMP '2000-01-01 00:00:00'",
    "SHOP.WAREHOUSES": "name BETWEEN 'A' AND 'Z'",
}


def configured(project: Project, database: str, data: str, rows: dict[str, str]) -> Config:
    document: dict[str, Any] = json.loads(project.write().read_text("utf-8"))
    document["context"]["data"] = str(project.folder / data)
    document["apply"]["connect-string"] = database
    document["filter"] = {
        "rows": [{"table": table, "where": where} for table, where in rows.items()]
    }
    path = project.folder / f"{data}.json"
    path.write_text(json.dumps(document), "utf-8")
    return load_config(path)


def load(project: Project, config: Config, database: str, **options: Any) -> None:
    with sources.open_tables(config, for_load=True) as source:
        settings = sources.target_settings(config, source.snapshot, database)
        chosen = source.sources(source.choose(()))
        done = initial_load(settings, chosen, project.session, LoadOptions(**options))
    for failure in done.failures:
        raise failure


def differences(project: Project, config: Config, database: str, folder: Path) -> dict[str, int]:
    """By table, against the rows at the end of the logs."""
    with sources.open_tables(config, folder=folder) as source:
        settings = sources.target_settings(config, source.snapshot, database)
        found = verify(settings, source.sources(source.choose(())), project.session)
    assert not found.failures
    return {one.table.source.full_name: len(one.differences) for one in found.tables}


def rows_of(database: str, table: str, where: str = "true") -> list[Any]:
    with psycopg.connect(database) as connection:
        query = f"SELECT t::text FROM {table} t WHERE {where} ORDER BY 1"
        return connection.execute(query.encode()).fetchall()


def test_loaded_and_replicated_rows_are_those_that_fulfil_it(
    loads: Callable[[Source], Project], shop: Source, postgres_database: str, second_database: str
) -> None:
    """PostgreSQL evaluates the same conditions over a target that gets every row."""
    project = loads(shop)
    filtered = configured(project, postgres_database, "some", CONDITIONS)
    everything = configured(project, second_database, "all", {})
    for config, database in ((filtered, postgres_database), (everything, second_database)):
        load(project, config, database)
        assert run_appliance(config, once=True, apply=True) == 0
    for table in project.names:
        expected = rows_of(second_database, table, CONDITIONS.get(table, "true"))
        assert rows_of(postgres_database, table) == expected
        if table in CONDITIONS:
            assert 0 < len(expected) < len(rows_of(second_database, table))
    found = differences(project, filtered, postgres_database, shop.folder / "final")
    assert set(found.values()) == {0}
    # A row that should not be there is one too many.
    gone = CONDITIONS["SHOP.ORDERS"]
    with psycopg.connect(postgres_database) as connection:
        connection.execute("UPDATE shop.orders SET lines = 1, carrier = 9, status = 'N'"
                           f" WHERE order_id = (SELECT min(order_id) FROM shop.orders WHERE {gone})"
                           .encode())  # fmt: skip
    found = differences(project, filtered, postgres_database, shop.folder / "final")
    assert {table: count for table, count in found.items() if count} == {"SHOP.ORDERS": 1}


def test_a_load_does_not_go_on_with_another_condition(
    loads: Callable[[Source], Project], shop: Source, postgres_database: str
) -> None:
    """The identity of the data, by which an interrupted load knows it again, tells of it."""
    project = loads(shop)
    identities = []
    for rows in ({}, CONDITIONS, {**CONDITIONS, "SHOP.ORDERS": "lines > 6"}):
        config = configured(project, postgres_database, "data", rows)
        with sources.open_tables(config) as source:
            chosen = source.sources(source.choose(()))
        identities.append({one.table.full_name: one.data.identity for one in chosen})
    of_orders = {one["SHOP.ORDERS"] for one in identities}
    of_stock = {one["SHOP.STOCK"] for one in identities}
    assert (len(of_orders), len(of_stock)) == (3, 1)


def test_a_condition_that_does_not_fit_keeps_a_load_from_beginning(
    loads: Callable[[Source], Project], shop: Source, postgres_database: str
) -> None:
    project = loads(shop)
    config = configured(project, postgres_database, "data", {"SHOP.ORDERS": "lines = 'six'"})
    with sources.open_tables(config) as source, pytest.raises(OlrPgError) as caught:
        source.choose(())
    assert (caught.value.code, caught.value.where["column"]) == (1134, "LINES")
