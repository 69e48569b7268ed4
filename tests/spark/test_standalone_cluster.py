"""Load, catch-up, verify and the data source on a cluster whose parts are killed meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.writer.instance import Pace
from tests.load.table_data import Source, simulated
from tests.replicator.test_simulated import check_tables

if TYPE_CHECKING:
    from tests.spark.standalone_cluster import StandaloneCluster

ROOT = Path(__file__).resolve().parents[2]
PART_ROWS = 6
"""Few: each worker has many tasks."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=60))
    return simulated(11, tmp_path_factory.mktemp("cluster-source"), 150_000, shape)


class Driver(NamedTuple):
    """Starts drivers of the same work."""

    said: dict[str, Any]
    folder: Path

    def start(self, step: str, **other: Any) -> subprocess.Popen[str]:
        said = self.said | other
        command = [sys.executable, "-m", "tests.spark.cluster_driver", step, json.dumps(said)]
        with (self.folder / "stderr.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def words(self) -> str:
        return (self.folder / "stderr.log").read_text()


@pytest.mark.timeout(900)  # nine starts of Java, one after the other in part
def test_killed_workers_and_drivers_lose_and_double_nothing(
    cluster: StandaloneCluster, source: Source, tmp_path: Path, postgres_database: str
) -> None:
    scn, last = source.scn(0.4), source.transactions[-1].commit_scn
    first, final = tmp_path / "first", tmp_path / "final"
    driver = Driver(
        {
            "master": cluster.url,
            "folder": str(tmp_path),
            "source": str(source.folder),
            "names": [table.full_name for table in source.summary.tables],
            "database": postgres_database,
            "rows": sum(map(len, source.rows(scn).values())),
        },
        tmp_path,
    )
    with driver.start("first", tables=str(source.write_tables(first, scn, PART_ROWS))) as process:
        process.communicate()
        assert process.returncode == -signal.SIGKILL, driver.words()
    assert (tmp_path / "driver-killed").exists()

    with driver.start("again", tables=str(source.write_tables(final, last, PART_ROWS))) as process:
        cluster.lost_worker()
        (tmp_path / "joined").write_text(str(cluster.add_worker()))
        answer, _ = process.communicate()
        assert process.returncode == 0, driver.words()
    said = json.loads(answer.splitlines()[-1])
    check_tables(source.summary, postgres_database)
    assert said["identical"] == [True] * len(source.summary.tables)
    assert said["changes"] == sum(len(one.changes) for one in source.transactions)
    lacking = said["lacking"]
    assert {what: code for what, (code, _) in lacking.items()} == dict.fromkeys(
        ("python", "package", "version"), 6008
    )
    assert "Python is missing on that machine" in lacking["python"][1]
    assert "package" in lacking["package"][1]
    assert "version" in lacking["version"][1]
