"""Tasks and the data source on a real cluster: a master and two workers, on the loopback address.

Executors are killed meanwhile.
"""

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

# Runs in a process of its own, because a process has one session. One for all that is tested here,
# since a session on a cluster is four starts of Java and Python.
PROGRAM = """
import os
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil

from olr_pg.datasource.parquet_writing import write_parquet
from olr_pg.errors import OlrPgError
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings
from tests.spark.held_session import spark_session
from tests.spark.standalone_cluster import java_options

master, source, said, stored, lake = sys.argv[1:]
folder = Path(said)

def grow(payload, common):
    return payload * 40_000_000 if payload == b"3" else common + payload

def die_once(payload, mark):
    if payload == b"2" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return payload

def fail(payload):
    if payload == b"4":
        raise OlrPgError(2006, "bad length", block=7)
    return payload

def do_tasks(spark):
    assert spark.sparkContext.defaultParallelism <= 2
    payloads = [b"%d" % number for number in range(9)]
    results = list(
        run_tasks(spark, payloads, lambda p, c: grow(p, c), broadcast=b"<", sizes=[1] * 9)
    )
    assert results == [(number, grow(b"%d" % number, b"<")) for number in range(9)]
    mark = folder / "mark"
    results = list(run_tasks(spark, payloads, lambda p: die_once(p, mark)))
    assert mark.exists()
    assert results == list(enumerate(payloads))
    results = run_tasks(spark, payloads, lambda p: fail(p))
    assert [next(results) for _ in range(4)] == list(enumerate(payloads))[:4]
    try:
        next(results)
    except OlrPgError as error:
        assert (error.code, error.where) == (2006, {"block": 7})
        print("tasks", "all was right")
    says = "decode thread 1, log 7, 3 MB"
    assert list(run_tasks(spark, [b"1"], lambda p: p, description=says)) == [(0, b"1")]
    page = urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/jobs/", timeout=60).read()
    assert says.encode() in page

def say_listening():
    listening = {
        one.laddr.ip.removeprefix("::ffff:")
        for process in psutil.Process().children(recursive=True)
        for one in process.net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    }
    print("listening", *sorted(listening))

def executors(port):
    return [one for one in psutil.process_iter(["cmdline"])
            if "CoarseGrainedExecutorBackend" in " ".join(one.info["cmdline"] or ())
            and port in " ".join(one.info["cmdline"])]

killed = []

def kill_one(port, is_time):
    while not is_time():
        time.sleep(0.02)
    victim = executors(port)[0]
    victim.kill()
    killed.append(victim.pid)

def while_one_dies(port, work, is_time):
    killer = threading.Thread(target=kill_one, args=[port, is_time], daemon=True)
    killer.start()
    work()
    killer.join()

def read_redo(spark):
    port = ":" + str(spark.conf.get("spark.driver.port"))
    options = {"dictionary": source + "/dictionary.json", "splitBytes": 12_000}
    changes = spark.read.format("olr_pg").options(**options).load(stored)
    assert changes.rdd.getNumPartitions() > 2
    while_one_dies(
        port,
        lambda: changes.write.parquet(str(folder / "rows")),
        lambda: list((folder / "rows").rglob("*.parquet")),
    )
    tasks = folder / "files" / "_temporary"
    while_one_dies(
        port,
        lambda: write_parquet(spark, stored, str(folder / "files"), **options),
        lambda: list(tasks.rglob("*.parquet")),
    )
    write_parquet(spark, stored, lake, table=sys.stdin.read(), **options)
    assert len(killed) == 2

settings = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.default.parallelism": "200",
    "spark.driver.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": java_options(),
}
settings |= {"spark.executorEnv." + name: value for name, value in os.environ.items()
             if name.startswith("AWS_")}
with spark_session(SparkSettings(master, settings)) as spark:
    do_tasks(spark)
    say_listening()
    read_redo(spark)
"""
NAMES = ("op", "commit_scn", "xid", "position", "scn", "rowid")


class Done(NamedTuple):
    """What the program has said, and written on the cluster, of logs behind a URL."""

    said: dict[str, str]
    folder: Path
    lake: str
    changes: list[dict[str, Any]]


@pytest.fixture(scope="module")
def done(cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("done")
    source = SimulatedSeed(1, 100_000).simulated(folder / "source")
    changes = true_changes(source)
    with S3Server().running() as server, patch.dict("os.environ", ENVIRONMENT):
        server.put(source.folder / "logs", "logs")
        stored, lake = server.url("logs"), server.url("lake")
        command = [*(sys.executable, "-W", "error", "-c", PROGRAM), cluster.url]
        ended = subprocess.run(
            [*command, str(source.folder), str(folder), stored, lake],
            cwd=ROOT,
            env=os.environ,
            input=changes[0]["table"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        said = dict(line.split(" ", 1) for line in ended.stdout.splitlines()[-2:])
        yield Done(said, folder, lake, changes)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(table.select(list(NAMES)).to_pylist(), key=order)


def wanted(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: one[name] for name in NAMES} for one in changes), key=order)


@pytest.mark.timeout(900)  # executors start, some of them twice
def test_tasks_on_a_cluster(done: Done) -> None:
    assert done.said["tasks"] == "all was right"


def test_the_page_of_a_session_on_a_cluster_is_on_the_loopback_address(done: Done) -> None:
    assert done.said["listening"] == "127.0.0.1"


def test_the_rows_are_those_of_the_truth_though_an_executor_dies(done: Done) -> None:
    assert rows_of(pq.read_table(done.folder / "rows")) == wanted(done.changes)


def test_files_of_an_executor_that_died_are_not_seen(done: Done) -> None:
    assert rows_of(pq.read_table(done.folder / "files")) == wanted(done.changes)
    assert not (done.folder / "files" / "_temporary").exists()


def test_executors_write_to_object_storage(done: Done) -> None:
    system, path = opened_url(done.lake)
    table = done.changes[0]["table"]
    mine = sorted((one for one in done.changes if one["table"] == table), key=order)
    places = [{name: one[name] for name in NAMES if name != "position"} for one in mine]
    found = rows_of(pq.read_table(path, filesystem=system))
    assert [{name: row[name] for name in row if name != "position"} for row in found] == places
