"""A real cluster of Spark's own on the loopback address: a master and workers, each a process.

Workers run the Python that the driver names, so the package is on them as docs/operations.md says.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

from olr_pg.java.runtime import archive_options, find_java
from olr_pg.spark.session import spark_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def java_options() -> str:
    """Of each Java of it, as of a local session: half of its life here is its start."""
    archived = archive_options(find_java(), spark_home())
    return " ".join(("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archived))


def conf() -> dict[str, str]:
    """Properties of a session on it."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": java_options(),
    }


_HERE = ("--host", "127.0.0.1", "--webui-port", "0")


class StandaloneCluster:
    """A cluster; workers come and go.

    Args:
        folder: for what its workers write.

    Attributes:
        url: of the master, for `SparkSettings.master`.
        workers: by the numbers of their processes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ending = ExitStack()
        self._numbers = count(1)
        master = ("master.Master", r"Starting Spark master at (\S+)", *_HERE, "--port", "0")
        self.url = self._deploy(*master)[1]
        self.workers: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def add_worker(self, cores: int = 1) -> int:
        """Let a worker join; the number of its process."""
        folder = str(self._folder / f"worker-{next(self._numbers)}")
        room = ("--cores", str(cores), "--memory", "1g", "--work-dir", folder)
        says = r"(Successfully registered)"
        process, _ = self._deploy("worker.Worker", says, *_HERE, *room, self.url)
        self.workers[process.pid] = process
        return process.pid

    def lost_worker(self, seconds_max: float = 300) -> int:
        """Wait for the end of a worker that somebody kills; the number of its process."""
        ends = select.poll()
        with ExitStack() as opened:
            numbers = {}
            for pid in self.workers:
                descriptor = os.pidfd_open(pid)
                opened.callback(os.close, descriptor)
                numbers[descriptor] = pid
                ends.register(descriptor, select.POLLIN)
            ended = ends.poll(seconds_max * 1_000)
        assert ended
        pid = numbers[ended[0][0]]
        assert self.workers.pop(pid).wait() == -signal.SIGKILL
        return pid

    def _deploy(self, name: str, says: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
        return self._ending.enter_context(_deployed(name, says, *arguments))


@contextmanager
def _deployed(name: str, says: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of the cluster, and what it says once it is ready."""
    home = spark_home()
    process = subprocess.Popen(
        [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
        env=os.environ | _environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(says, line):
                yield process, found[1]
                break
        else:
            raise AssertionError("".join(said))
    finally:
        process.terminate()
        process.communicate()


def _environment(home: Path) -> Mapping[str, str]:
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
    }
