"""The data source on a real cluster: a master and two workers, an executor killed meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.datasource.source_rows import order, true_changes
from tests.replicator.decoded_seeds import SimulatedSeed
from tests.spark.test_cluster import deployed

if TYPE_CHECKING:
    from pathlib import Path

# Runs in a process of its own, because a process has one session.
PROGRAM = """
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil

from olr_pg.spark.session import SparkSettings, spark_session

master, source, folder = sys.argv[1:]
ours = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
ours |= {"spark.executor.memory": "512m", "spark.executor.cores": "1"}

def executors():
    return [one for one in psutil.process_iter(["cmdline"])
            if "CoarseGrainedExecutorBackend" in " ".join(one.info["cmdline"] or ())
            and master_port in " ".join(one.info["cmdline"])]

def kill_one():
    while not list(Path(folder, "rows").rglob("*.parquet")):
        time.sleep(0.02)
    executors()[0].kill()

with spark_session(SparkSettings(master, ours)) as spark:
    master_port = ":" + str(spark.conf.get("spark.driver.port"))
    reader = spark.read.format("olr_pg").option("dictionary", source + "/dictionary.json")
    changes = reader.option("splitBytes", 20_000).load(source + "/logs")
    assert changes.rdd.getNumPartitions() > 4
    killer = threading.Thread(target=kill_one)
    killer.start()
    changes.write.parquet(folder + "/rows")
    killer.join()
    spark.read.parquet(folder + "/rows").write.json(folder + "/lines")
"""


def test_the_rows_are_those_of_the_truth_though_an_executor_dies(tmp_path: Path) -> None:
    source = SimulatedSeed(1, 400_000).simulated(tmp_path / "source")
    here = ("--host", "127.0.0.1", "--webui-port", "0")

    def worker(name: str) -> tuple[str, ...]:
        folder = str(tmp_path / name)
        return (*here, "--cores", "1", "--memory", "1g", "--work-dir", folder)

    registered = r"(Successfully registered)"
    with (
        deployed("master.Master", r"Starting Spark master at (\S+)", *here, "--port", "0") as url,
        deployed("worker.Worker", registered, *worker("one"), url),
        deployed("worker.Worker", registered, *worker("two"), url),
    ):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, url, str(source.folder), str(tmp_path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = [
        line for file in tmp_path.glob("lines/*.json") for line in file.read_text().splitlines()
    ]
    names = ("op", "commit_scn", "xid", "position", "scn", "rowid")
    rows = [{name: row[name] for name in names} for row in map(json.loads, lines)]
    wanted = [{name: change[name] for name in names} for change in true_changes(source)]
    assert sorted(rows, key=order) == sorted(wanted, key=order)
