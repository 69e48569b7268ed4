"""Loads and runs that are killed at any moment: the tables end as the source's.

By hand: ``OLR_PG_KILL_SEEDS=10 pytest -n 0 tests/load/test_kills.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.simulator.instance import Pace
from olr_pg.simulator.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.simulate import DatabaseShape
from tests.load.conftest import Project
from tests.load.table_data import simulated

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEDS = int(os.environ.get("OLR_PG_KILL_SEEDS", "0"))
ROOT = Path(__file__).resolve().parents[2]
DONE, KILLED = 0, -9


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "olr_pg", *arguments, "--config", str(project.write())]
    log = (project.folder / "stderr.log").open("ab")
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)


def run_until(process: subprocess.Popen[bytes], project: Project, query: str) -> int:
    """Kill the process once the query gives true, if it has not ended before; its exit code."""
    while process.poll() is None:
        try:
            with psycopg.connect(project.database, autocommit=True) as connection:
                if connection.execute(query.encode()).fetchone() == (True,):
                    process.kill()
                    break
        except psycopg.errors.UndefinedTable:
            pass
        time.sleep(0.002)
    process.communicate()
    return process.returncode


def finish(project: Project, *arguments: str) -> bytes:
    process = start(project, *arguments)
    output, _ = process.communicate()
    assert process.returncode == DONE, (project.folder / "stderr.log").read_text()
    return output


def kills(rng: Random, query: str, highest: int) -> Sequence[str]:
    return [query.format(rng.randint(0, highest)) for _ in range(2)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_killed_loads_and_runs(tmp_path: Path, postgres_database: str, seed: int) -> None:
    rng = Random(seed)
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=100))
    source = simulated(seed, tmp_path / "source", "random", 200_000, shape)
    project = Project(tmp_path, source, postgres_database)
    scn = source.scn(rng.uniform(0.2, 0.8))
    project.tables = source.write_tables(tmp_path / "tables", scn, row_group=3)
    parts = sum(-(-len(rows) // 3) for rows in source.rows(scn).values())
    codes = list[int]()
    for query in kills(rng, "SELECT count(*) >= {} FROM olr_pg.load_part", parts):
        resume = ["--resume"] if codes else []
        codes.append(run_until(start(project, "initial-load", *resume), project, query))
    loaded = json.loads(finish(project, "initial-load", "--resume", "--json"))
    expected = {name: len(rows) for name, rows in source.rows(scn).items()}
    assert {one["table"]: one["rows"] for one in loaded["tables"]} == expected
    changes = "SELECT coalesce(sum(inserted + updated + deleted), 0) >= {} FROM olr_pg.ledger"
    codes += [
        run_until(start(project, "run", "--once"), project, query)
        for query in kills(rng, changes, 40)
    ]
    finish(project, "run", "--once")
    last = source.transactions[-1].commit_scn
    final = source.write_tables(tmp_path / "final", last)
    result = json.loads(finish(project, "verify", "--json", "--tables", str(final)))
    assert result["identical"]
    assert set(codes) <= {DONE, KILLED}
    sys.stdout.write(f"seed {seed}: {codes.count(KILLED)} kills, {sum(expected.values())} rows\n")
