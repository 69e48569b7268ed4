"""A real cluster of Spark's own: a master and workers, on the loopback address."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.spark.standalone_cluster import StandaloneCluster

ROOT = Path(__file__).resolve().parents[2]

# Runs in a process of its own, because a process has one session.
PROGRAM = """
import os
import signal
import sys
import urllib.request
from pathlib import Path

import psutil

from olr_pg.errors import OlrPgError
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings
from tests.spark.held_session import spark_session
from tests.spark.standalone_cluster import java_options

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

master, folder = sys.argv[1], Path(sys.argv[2])
payloads = [b"%d" % number for number in range(9)]
settings = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": java_options(),
}
with spark_session(SparkSettings(master, settings)) as spark:
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
    listening = {
        one.laddr.ip.removeprefix("::ffff:")
        for process in psutil.Process().children(recursive=True)
        for one in process.net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    }
    print("listening", *sorted(listening))
"""


@pytest.fixture(scope="module")
def said(cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program says."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-c", PROGRAM),
            cluster.url,
            tmp_path_factory.mktemp("said"),
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines()[-2:])


def test_tasks_on_a_cluster(said: dict[str, str]) -> None:
    assert said["tasks"] == "all was right"


def test_the_page_of_a_session_on_a_cluster_is_on_the_loopback_address(
    said: dict[str, str],
) -> None:
    assert said["listening"] == "127.0.0.1"
