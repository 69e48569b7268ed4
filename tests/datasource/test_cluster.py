"""The data source on a real cluster: a master and two workers, an executor killed meanwhile."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.datasource.source_rows import order, true_changes
from tests.replicator.decoded_seeds import SimulatedSeed
from tests.spark.standalone_cluster import StandaloneCluster

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

killed = []

def kill_one():
    while not list(Path(folder, "rows").rglob("*.parquet")):
        time.sleep(0.02)
    victim = executors()[0]
    victim.kill()
    killed.append(victim.pid)

with spark_session(SparkSettings(master, ours)) as spark:
    master_port = ":" + str(spark.conf.get("spark.driver.port"))
    reader = spark.read.format("olr_pg").option("dictionary", source + "/dictionary.json")
    changes = reader.option("splitBytes", 12_000).load(source + "/logs")
    assert changes.rdd.getNumPartitions() > 2
    killer = threading.Thread(target=kill_one)
    killer.start()
    changes.write.parquet(folder + "/rows")
    killer.join()
    assert killed
"""


@pytest.mark.timeout(900)  # executors start, one of them twice
def test_the_rows_are_those_of_the_truth_though_an_executor_dies(tmp_path: Path) -> None:
    source = SimulatedSeed(1, 200_000).simulated(tmp_path / "source")
    with StandaloneCluster(tmp_path) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        done = subprocess.run(
            [
                *(sys.executable, "-W", "error", "-c", PROGRAM),
                *(cluster.url, str(source.folder), str(tmp_path)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    names = ("op", "commit_scn", "xid", "position", "scn", "rowid")
    rows = pq.read_table(tmp_path / "rows", columns=list(names)).to_pylist()
    wanted = [{name: change[name] for name in names} for change in true_changes(source)]
    assert sorted(rows, key=order) == sorted(wanted, key=order)
