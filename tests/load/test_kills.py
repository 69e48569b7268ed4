"""Loads and runs that are killed at any moment: the tables end as the source's.

One seed here; more by hand: ``OLR_PG_KILL_SEEDS=10 pytest -n 0 -s tests/load/test_kills.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.writer.instance import Pace
from tests.load.conftest import Loads, Project
from tests.load.table_data import simulated
from tests.waiting import kill_when

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

SEEDS = int(os.environ.get("OLR_PG_KILL_SEEDS", "0"))
ROOT = Path(__file__).resolve().parents[2]
DONE, KILLED = 0, -9
ON_SPARK = """
from olr_pg.cli.entry import run
from olr_pg.load import copy_task
copy_task.HERE_BYTES = 0
run()
"""
"""The command, which would do so few rows by itself: more can be lost with Spark's processes."""
PART_ROWS = 6
"""Few: a load has many moments at which it is killed."""
PARTS = "SELECT count(*) >= {} FROM olr_pg.load_part"
FINISHED = "SELECT count(*) >= {} FROM olr_pg.load WHERE finished_at IS NOT NULL"
TAKEN_OVER = "SELECT count(*) >= {} FROM pg_stat_activity WHERE application_name LIKE 'olr_pg%%'"
LOCKED = """
SELECT count(*) > 0 FROM pg_locks JOIN pg_database ON oid = database
WHERE locktype = 'advisory' AND datname = current_database()
"""
CHANGES = "SELECT coalesce(sum(inserted + updated + deleted), 0) >= {} FROM olr_pg.ledger"


def start(project: Loads, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ON_SPARK, *arguments, "--config", str(project.write())]
    with (project.folder / "stderr.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)


def killed_at(project: Loads, query: str, *arguments: str) -> int:
    """The exit code of a command that is killed once the query gives true."""
    with (
        psycopg.connect(project.database, autocommit=True) as connection,
        start(project, *arguments) as process,
    ):
        kill_when(process, connection, query)
        # The backends of a killed process hold its locks until they see that it is gone.
        while connection.execute(LOCKED).fetchone() == (True,):
            time.sleep(0.002)
    assert process.returncode in (DONE, KILLED), (project.folder / "stderr.log").read_text()
    return process.returncode


def finish(project: Loads, *arguments: str) -> bytes:
    with start(project, *arguments) as process:
        output, _ = process.communicate()
    assert process.returncode == DONE, (project.folder / "stderr.log").read_text()
    return output


def many_kills(rng: Random, parts: int) -> tuple[list[str], list[str]]:
    """When loads and when runs are killed: among the rows, between the tables, at the hand-over."""
    loads = [PARTS.format(rng.randint(0, parts)) for _ in range(2)]
    loads.append(FINISHED.format(rng.randint(1, 3)))
    runs = [TAKEN_OVER.format(rng.randint(1, 3))]
    runs += [CHANGES.format(rng.randint(1, 400)) for _ in range(2)]
    return loads, runs


def few_kills(rng: Random, parts: int) -> tuple[list[str], list[str]]:
    """One of each."""
    return [PARTS.format(rng.randint(1, parts - 1))], [CHANGES.format(rng.randint(1, 40))]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, max(SEEDS, 1) + 1))
def test_killed_loads_and_runs(
    tmp_path: Path,
    postgres_database: str,
    one_session: Callable[[], SparkSession],
    seed: int,
) -> None:
    """What is killed are commands of their own; what goes on in their place is in this process,
    whose Spark is there already."""
    rng = Random(seed)
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=100))
    source = simulated(seed, tmp_path / "source", 200_000, shape)
    project = Project(tmp_path, source, postgres_database, one_session)
    scn = source.scn(rng.uniform(0.2, 0.8))
    project.tables = source.write_tables(tmp_path / "tables", scn, PART_ROWS)
    parts = sum(-(-len(rows) // PART_ROWS) for rows in source.rows(scn).values())
    loads, runs = (many_kills if SEEDS else few_kills)(rng, parts)
    codes = list[int]()
    for query in loads:
        resume = ["--resume"] if codes else []
        codes.append(killed_at(project, query, "initial-load", *resume))
    expected = {name: len(rows) for name, rows in source.rows(scn).items()}
    assert {one.table: one.rows for one in project.load(resume=True)} == expected
    codes += [killed_at(project, query, "run", "--once") for query in runs]
    project.run()
    project.tables = source.write_tables(tmp_path / "final", source.transactions[-1].commit_scn)
    assert all(one.identical for one in project.verify())
    assert KILLED in codes
    sys.stdout.write(f"seed {seed}: {codes.count(KILLED)} kills, {sum(expected.values())} rows\n")
