"""Measures the memory of the Python processes of ``olr-pg run`` (the driver and the workers) while
it catches up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg

from olr_pg.bench.clusters import running
from olr_pg.bench.end_to_end import start_run, write_config
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, cpu_of_process_tree, memory_mib, python_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.clusters import Cluster
    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options

_WORKLOADS: Final = ("orders", "bulk")
_SMALLER: Final = 10
_POLL_SECONDS: Final = 0.02


class Peak(NamedTuple):
    """The largest process: its own memory in MiB (without mapped files), its resident memory in
    MiB, and the CPU seconds of all processes.
    """

    anonymous: float
    resident: float
    cpu_seconds: float


def memory(options: Options) -> Iterator[Result]:
    """Measure the peak memory of the largest process, without mapped files. Compare it with the
    peak for a tenth of the redo.

    Pages of mapped files (logs and spooled results) belong to the page cache, and the kernel
    reclaims them when it needs memory. The result's field `peak_rss_mib` includes them.
    """
    with running([options.folder / "postgres"]) as (cluster,):
        for workload in _WORKLOADS:
            sizes = (options.size // _SMALLER, options.size)
            less, most = (
                run_once(
                    cluster,
                    log_set(options.cache, workload, size),
                    options.folder / f"{workload}-{size}",
                )
                for size in sizes
            )
            yield Result(
                f"memory of run, {workload}: largest Python process", most.anonymous, "MiB",
                f"1/{_SMALLER} of the redo", less.anonymous, less.anonymous / most.anonymous,
                most.cpu_seconds, most.resident,
            )  # fmt: skip


def run_once(cluster: Cluster, logs: LogSet, folder: Path, targets: int = 1) -> Peak:
    """Replicate logs into new databases with ``olr-pg run --once``."""
    folder.mkdir()
    databases = cluster.new_databases(targets)
    config = write_config(folder, logs.folder / "logs", logs.folder / "dictionary.json", *databases)
    process = start_run(config, "--once")
    anonymous = resident = cpu = 0.0
    while process.poll() is None:
        cpu = max(cpu, cpu_of_process_tree(process.pid))
        for pid in python_processes(process.pid):
            anonymous = max(anonymous, memory_mib(pid, "RssAnon"))
            resident = max(resident, memory_mib(pid, "VmHWM"))
        time.sleep(_POLL_SECONDS)
    if process.returncode != 0:
        raise RuntimeError(f"olr-pg run ended with {process.returncode}")
    for target in databases:
        with psycopg.connect(target) as connection:
            row = connection.execute("SELECT count(*) FROM olr_pg.ledger").fetchone()
        assert row is not None
        assert row[0], "no table has received changes"
    return Peak(anonymous, resident, cpu)
