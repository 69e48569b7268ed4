"""The data source on a real cluster: a master and two workers, executors killed meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from olr_pg.capture.object_storage import opened_url
from tests.capture.s3_server import ENVIRONMENT, S3Server
from tests.datasource.source_rows import order, true_changes
from tests.replicator.decoded_seeds import SimulatedSeed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.spark.standalone_cluster import StandaloneCluster

ROOT = Path(__file__).resolve().parents[2]

# Runs in a process of its own, because a process has one session.
PROGRAM = """
import os
import sys
import threading
import time
from pathlib import Path

import psutil

from olr_pg.datasource.parquet_writing import write_parquet
from olr_pg.spark.session import SparkSettings
from tests.spark.held_session import spark_session
from tests.spark.standalone_cluster import conf

master, source, folder, stored, lake = sys.argv[1:]
ours = conf() | {"spark.executor.cores": "1"}
ours |= {"spark.executorEnv." + name: value for name, value in os.environ.items()
         if name.startswith("AWS_")}

def executors():
    return [one for one in psutil.process_iter(["cmdline"])
            if "CoarseGrainedExecutorBackend" in " ".join(one.info["cmdline"] or ())
            and master_port in " ".join(one.info["cmdline"])]

killed = []

def kill_one(is_time):
    while not is_time():
        time.sleep(0.02)
    victim = executors()[0]
    victim.kill()
    killed.append(victim.pid)

def while_one_dies(work, is_time):
    killer = threading.Thread(target=kill_one, args=[is_time], daemon=True)
    killer.start()
    work()
    killer.join()

with spark_session(SparkSettings(master, ours)) as spark:
    master_port = ":" + str(spark.conf.get("spark.driver.port"))
    options = {"dictionary": source + "/dictionary.json", "splitBytes": 12_000}
    changes = spark.read.format("olr_pg").options(**options).load(stored)
    assert changes.rdd.getNumPartitions() > 2
    while_one_dies(
        lambda: changes.write.parquet(folder + "/rows"),
        lambda: list(Path(folder, "rows").rglob("*.parquet")),
    )
    tasks = Path(folder, "files", "_temporary")
    while_one_dies(
        lambda: write_parquet(spark, stored, folder + "/files", **options),
        lambda: list(tasks.rglob("*.parquet")),
    )
    write_parquet(spark, stored, lake, table=sys.stdin.read(), **options)
    assert len(killed) == 2
"""
NAMES = ("op", "commit_scn", "xid", "position", "scn", "rowid")


class Written(NamedTuple):
    """What a cluster has written, of logs behind a URL."""

    folder: Path
    lake: str
    changes: list[dict[str, Any]]


@pytest.fixture(scope="module")
def written(
    cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("cluster")
    source = SimulatedSeed(1, 100_000).simulated(folder / "source")
    changes = true_changes(source)
    with S3Server().running() as server, patch.dict("os.environ", ENVIRONMENT):
        server.put(source.folder / "logs", "logs")
        stored, lake = server.url("logs"), server.url("lake")
        command = [*(sys.executable, "-W", "error", "-c", PROGRAM), cluster.url]
        done = subprocess.run(
            [*command, str(source.folder), str(folder), stored, lake],
            cwd=ROOT,
            env=os.environ,
            input=changes[0]["table"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        yield Written(folder, lake, changes)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(table.select(list(NAMES)).to_pylist(), key=order)


def wanted(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: one[name] for name in NAMES} for one in changes), key=order)


@pytest.mark.timeout(900)  # executors start, some of them twice
def test_the_rows_are_those_of_the_truth_though_an_executor_dies(written: Written) -> None:
    assert rows_of(pq.read_table(written.folder / "rows")) == wanted(written.changes)


def test_files_of_an_executor_that_died_are_not_seen(written: Written) -> None:
    assert rows_of(pq.read_table(written.folder / "files")) == wanted(written.changes)
    assert not (written.folder / "files" / "_temporary").exists()


def test_executors_write_to_object_storage(written: Written) -> None:
    system, path = opened_url(written.lake)
    table = written.changes[0]["table"]
    mine = sorted((one for one in written.changes if one["table"] == table), key=order)
    places = [{name: one[name] for name in NAMES if name != "position"} for one in mine]
    found = rows_of(pq.read_table(path, filesystem=system))
    assert [{name: row[name] for name in row if name != "position"} for row in found] == places
