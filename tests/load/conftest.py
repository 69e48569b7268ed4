"""A simulated source with table data, and loads of it into a real PostgreSQL."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.target.connection import connect
from olr_pg.config.reading import load_config
from olr_pg.load import copy_task, sources
from olr_pg.load.initial import LoadedTable, LoadOptions, initial_load
from olr_pg.load.parquet import find_table_data
from olr_pg.load.verification.differences import (
    difference_lines,
    read_differences,
    write_differences,
)
from olr_pg.load.verification.repair import RepairedTable, repair
from olr_pg.load.verification.verification import VerifiedTable, verify
from olr_pg.simulator.database_shape import DatabaseShape, demo_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.load.table_data import Source, simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config

SIZE = 150_000


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The order-entry workload."""
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=60))
    return simulated(11, tmp_path_factory.mktemp("load-source"), SIZE, shape)


class Loads:
    """A configuration of an offline source, and the commands that it is given to.

    Args:
        folder: for what belongs to this configuration.
        source_folder: with ``dictionary.json`` and ``logs``.
        names: ``OWNER.NAME`` of the tables.
        session: gives the Spark session.

    Attributes:
        tables: the directory of the table data.
        dictionaries: files of the source's folder, one for each container.
        apply: options of `apply` beside the usual ones.
    """

    def __init__(
        self,
        folder: Path,
        source_folder: Path,
        names: Sequence[str],
        database: str,
        session: Callable[[], SparkSession] | None = None,
    ) -> None:
        self.folder = folder
        self.source_folder = source_folder
        self.names = names
        self.database = database
        self._session = session
        self.tables: Path | None = None
        self.dictionaries = ["dictionary.json"]
        self.apply: dict[str, Any] = {}

    def session(self) -> SparkSession:
        assert self._session is not None
        return self._session()

    def write(self, **apply: Any) -> Path:
        document: dict[str, Any] = {
            "context": {"data": str(self.folder / "data")},
            "source": {
                "kind": "offline",
                "dictionary": [str(self.source_folder / one) for one in self.dictionaries],
                "logs": str(self.source_folder / "logs"),
            },
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": self.database,
                "tables": list(self.names),
                "create-tables": True,
                **self.apply,
                **apply,
            },
            "spark": {"master": "local[2,2]"},
        }
        if self.tables is not None:
            document["source"]["tables"] = str(self.tables)
        path = self.folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        return path

    def config(self, **apply: Any) -> Config:
        return load_config(self.write(**apply))

    def load(self, **options: Any) -> list[LoadedTable]:
        config = self.config()
        snapshot = sources.read_dictionary(config)
        tables = sources.choose_tables(config, snapshot, ())
        done = initial_load(
            sources.target_settings(config, snapshot, self.database),
            sources.table_sources(config, snapshot, tables),
            self.session,
            LoadOptions(**options),
        )
        for failure in done.failures:
            raise failure
        return done.tables

    def verify(self, **options: Any) -> list[VerifiedTable]:
        config = self.config()
        snapshot = sources.read_dictionary(config)
        tables = sources.choose_tables(config, snapshot, ())
        found = verify(
            sources.target_settings(config, snapshot, self.database),
            sources.table_sources(config, snapshot, tables),
            self.session,
            **options,
        )
        for failure in found.failures:
            raise failure
        return list(found.tables)

    def describe(self, results: list[VerifiedTable]) -> list[dict[str, Any]]:
        with connect(self.database) as connection:
            return list(difference_lines(connection, "olr_pg", results))

    def repair(self, results: list[VerifiedTable]) -> list[RepairedTable]:
        path = self.folder / "differences.jsonl"
        write_differences(path, self.describe(results))
        config = self.config()
        settings = sources.target_settings(config, sources.read_dictionary(config), self.database)
        return list(repair(settings, read_differences(path, "olr_pg")))

    def run(self) -> None:
        assert run_appliance(self.config(), once=True, apply=True) == 0


class Project(Loads):
    """The same of a simulated source."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        database: str,
        session: Callable[[], SparkSession] | None = None,
    ) -> None:
        names = [table.full_name for table in source.summary.tables]
        super().__init__(folder, source.folder, names, database, session)
        self.source = source

    def run_with_refusal(self, table: str) -> None:
        """Load while PostgreSQL refuses a row of the last partition of `table`."""
        config = self.config()
        snapshot = sources.read_dictionary(config)
        chosen = sources.choose_tables(config, snapshot, ())
        settings = sources.target_settings(config, snapshot, self.database)
        source = next(one for one in chosen if one.full_name == table)
        with psycopg.connect(self.database, autocommit=True) as connection:
            plan = plan_table(connection, settings, source, source)
            key = plan.target.key[0]
            column = next(c.name for c in source.delivered if plan.field(c.name) == 0)
            assert key == plan.target.columns[0].name
            place = [c.name for c in source.columns].index(column)
            rows = self.source.rows(self.scn_of(table))[table]
            refused = rows[max(rows)][place]
            assert refused is not None
            connection.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT refusal"
                f" CHECK ({key} <> {refused.json})".encode()
            )
        self.load()

    def allow(self, table: str) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT refusal".encode())

    def scn_of(self, table: str) -> int:
        assert self.tables is not None
        data = find_table_data(self.tables, table)
        assert data.scn is not None
        return data.scn


@pytest.fixture
def project(
    tmp_path: Path,
    source: Source,
    postgres_database: str,
    one_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """A project with a database of its own; all of its work is done in the tests' Spark session."""
    monkeypatch.setattr(copy_task, "HERE_BYTES", 0)
    return Project(tmp_path, source, postgres_database, one_session)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The order-entry workload, with rows before the first redo."""
    folder = tmp_path_factory.mktemp("shop")
    shape = replace(demo_shape(), pace=Pace(log_blocks=60))
    summary = simulate(7, folder, workload="orders", size=SIZE, shape=shape, prefilled=True)
    return Source(folder, summary, [])


@pytest.fixture
def loads(tmp_path: Path, postgres_database: str, one_session: Callable[[], SparkSession]) -> Any:
    """Makes a project of a source; its runs use the tests' Spark session."""

    def make(source: Source) -> Project:
        project = Project(tmp_path, source, postgres_database, one_session)
        project.tables = source.folder / "tables"
        return project

    return make
