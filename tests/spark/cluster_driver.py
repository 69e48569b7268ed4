"""The driver of a test on a cluster, in a process of its own, which may be killed.

``python -m tests.spark.cluster_driver STEP JSON``; workers take what is here by value.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from olr_pg.appliance import appliance
from olr_pg.errors import OlrPgError
from olr_pg.load import copy_task
from olr_pg.replicator import decoder, spark_decoding
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import get_session, spark_settings, stop_session
from tests.load.conftest import Loads
from tests.spark.standalone_cluster import conf

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


class ClusterLoads(Loads):
    """A configuration whose work is done on a cluster."""

    def __init__(self, said: dict[str, Any]) -> None:
        folder = Path(said["folder"])
        source = Path(said["source"])
        super().__init__(folder, source, said["names"], said["database"], self._on_cluster)
        self._master: str = said["master"]
        self.tables = Path(said["tables"])

    def write(self, **apply: Any) -> Path:
        path = super().write(**apply)
        document = json.loads(path.read_text("utf-8"))
        document["spark"] = {"master": self._master, "conf": conf()}
        path.write_text(json.dumps(document), "utf-8")
        return path

    def _on_cluster(self) -> SparkSession:
        return get_session(spark_settings(self.config(), PRELOAD))


def kills_once(mark: Path, kill: Callable[[], None]) -> Callable[..., None]:
    """A task of decoding that kills something first, once."""
    decode = spark_decoding.decode_task

    def task(payload: bytes, subscription: bytes, result: Any) -> None:
        if not mark.exists():
            mark.touch()
            kill()
        decode(payload, subscription, result)

    return task


def kill_machine() -> None:
    """End the worker that this is on, its executor, and this, as if the machine were gone."""
    for process in psutil.Process().parents():
        name = " ".join(process.cmdline())
        if "org.apache.spark" in name:
            process.kill()
        if "deploy.worker.Worker" in name:
            break
    os.kill(os.getpid(), signal.SIGKILL)


def worker_here(_: bytes) -> bytes:
    """The number of the worker that a task is on."""
    for process in psutil.Process().parents():
        if "deploy.worker.Worker" in " ".join(process.cmdline()):
            return str(process.pid).encode()
    return b""


def catch_up(loads: ClusterLoads, task: Callable[..., None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_decoding, "decode_task", task)
        patch.setattr(decoder, "SparkDecoding", partial(SparkDecoding, here_bytes=0))
        patch.setattr(appliance, "stop_session", lambda: None)
        loads.run()


def await_worker(spark: SparkSession, joined: Path) -> None:
    """Wait until a worker that joined does tasks."""
    pids: set[bytes] = set()
    while not joined.exists() or joined.read_bytes() not in pids:
        time.sleep(0.2)
        pids = {bytes(pid) for _, pid in run_tasks(spark, [b""] * 4, lambda p: worker_here(p))}


def lacking(spark: SparkSession) -> dict[str, Any]:
    """What is said of machines that lack something."""
    context = spark.sparkContext
    said = {}
    for what, (python, version) in {
        "python": ("/nowhere/python", context.pythonVer),
        "package": (sys._base_executable, context.pythonVer),  # type: ignore[attr-defined]
        "version": (context.pythonExec, "3.7"),
    }.items():
        before = context.pythonExec, context.pythonVer
        context.pythonExec, context.pythonVer = python, version
        try:
            list(run_tasks(spark, [b""], lambda p: p))
        except OlrPgError as error:
            said[what] = [error.code, error.detail]
        finally:
            context.pythonExec, context.pythonVer = before
    return said


def main() -> None:
    step, said = sys.argv[1], json.loads(sys.argv[2])
    folder = Path(said["folder"])
    loads = ClusterLoads(said)
    driver = os.getpid()
    copy_task.HERE_BYTES = 0  # type: ignore[misc]
    if step == "first":
        assert sum(one.rows for one in loads.load()) == said["rows"]
        catch_up(
            loads, kills_once(folder / "driver-killed", lambda: os.kill(driver, signal.SIGKILL))
        )
        return
    catch_up(loads, kills_once(folder / "worker-killed", kill_machine))
    spark = loads.session()
    await_worker(spark, folder / "joined")
    verified = loads.verify()
    changes = spark.read.format("olr_pg").option("dictionary", f"{said['source']}/dictionary.json")
    answer = {
        "identical": [one.identical for one in verified],
        "changes": changes.option("splitBytes", 20_000).load(f"{said['source']}/logs").count(),
        "lacking": lacking(spark),
    }
    stop_session()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
