"""Simulated logs through the whole appliance: PostgreSQL ends with the rows of the source."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest
from psycopg import sql

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import discover_logs
from olr_pg.config.reading import load_config
from olr_pg.simulator.database_shape import DatabaseShape, demo_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.truth import ROWID
from olr_pg.simulator.writer.instance import Pace
from tests.simulator.table_rows import read_rows
from tests.target_rows import differing_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]

SIZE: Final = 120_000
LOG_BYTES: Final = 20_000


class Case(NamedTuple):
    """A source to replicate."""

    workload: str
    seed: int
    shape: DatabaseShape


def random_case(seed: int, redo: RedoFormat, **shape: Any) -> Case:
    pace = Pace(log_blocks=LOG_BYTES // redo.block_size)
    return Case("random", seed, DatabaseShape(redo, pace=pace, **shape))


CASES: Final = (
    Case("orders", 1, replace(demo_shape(), pace=Pace(log_blocks=LOG_BYTES // 512))),
    random_case(12, RedoFormat(COMPATIBLE["23"]), con_id=3, neighbour=True, ddl=DdlUse.FOLLOWED),
    # With an index-organised table of several partitions.
    random_case(21, RedoFormat(COMPATIBLE["12.2"], True, 1024), threads=2, ddl=DdlUse.FOLLOWED),
    random_case(
        14, RedoFormat(COMPATIBLE["11.2"]), logging=(Logging.ALL, Logging.PRIMARY_KEY), sessions=1
    ),
)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case.workload}-{case.seed}")
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    case: Case = request.param
    folder = tmp_path_factory.mktemp("source")
    summary = simulate(case.seed, folder, workload=case.workload, size=SIZE, shape=case.shape)
    assert summary.transactions > 10
    assert len(summary.logs) > 2 * case.shape.threads
    parted = any(table.index_organised and table.has_partitions for table in summary.tables)
    assert parted or case.seed != 21
    return summary


def folder_of(source: Summary) -> Path:
    return source.logs[0].parent.parent


def run_once(folder: Path, source: Summary, logs: Path, database: str) -> None:
    document = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(folder_of(source) / "dictionary.json"),
            "logs": str(logs),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": database,
            "tables": [table.full_name for table in source.tables],
            "create-tables": True,
        },
        "spark": {"master": "local[2,2]"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    assert run_appliance(load_config(path), once=True, apply=True) == 0


def expected_rows(source: Summary) -> dict[str, list[dict[str, Any]]]:
    folder = folder_of(source) / "final"
    rows = {table.full_name: read_rows(folder, table.full_name) for table in source.tables}
    for row in itertools.chain.from_iterable(rows.values()):
        del row[ROWID]
    return rows


def target_name(table: str) -> sql.Composable:
    return sql.Identifier(*table.lower().split("."))


def check_tables(source: Summary, database: str) -> None:
    with psycopg.connect(database) as connection:
        for table, rows in expected_rows(source).items():
            assert differing_from(connection, table, rows) == []


def versions(source: Summary, database: str) -> Iterator[tuple[Any, ...]]:
    """Place and writing transaction of every row."""
    with psycopg.connect(database) as connection:
        for table in source.tables:
            query = sql.SQL("SELECT tableoid, ctid::text, xmin::text FROM {} ORDER BY ctid")
            yield from connection.execute(query.format(target_name(table.full_name)))


@pytest.mark.usefixtures("one_session")
def test_the_target_holds_the_final_rows_and_a_second_run_applies_nothing(
    tmp_path: Path, source: Summary, postgres_database: str
) -> None:
    logs = folder_of(source) / "logs"
    run_once(tmp_path, source, logs, postgres_database)
    check_tables(source, postgres_database)
    before = list(versions(source, postgres_database))
    assert before
    run_once(tmp_path, source, logs, postgres_database)
    assert list(versions(source, postgres_database)) == before


def in_two_steps(source: Summary) -> tuple[list[Path], list[Path]]:
    """The first half of every redo thread's logs, and the rest."""
    threads = dict[int, list[Path]]()
    for log in discover_logs([str(folder_of(source) / "logs")]):
        threads.setdefault(log.header.thread, []).append(Path(log.path))
    halves = [(paths, len(paths) // 2) for paths in threads.values()]
    assert all(half for _, half in halves)
    return (
        [path for paths, half in halves for path in paths[:half]],
        [path for paths, half in halves for path in paths[half:]],
    )


@pytest.mark.usefixtures("one_session")
def test_logs_that_come_in_two_steps_give_the_same(
    tmp_path: Path, source: Summary, postgres_database: str
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    counts = []
    for part in in_two_steps(source):
        for path in part:
            shutil.copy(path, logs)
        run_once(tmp_path, source, logs, postgres_database)
        counts.append(len(list(versions(source, postgres_database))))
    assert counts[0] > 0
    check_tables(source, postgres_database)
