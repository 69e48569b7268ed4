"""Conditions on rows: what is loaded, replicated, verified and repaired has the same rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.verification import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.config.model import Config
    from tests.load.conftest import Project
    from tests.load.table_data import Source

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
