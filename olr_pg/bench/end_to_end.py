"""The end-to-end benchmark: from log files on disk to rows that are durable in PostgreSQL.

`memory` measures the memory of the Python processes of ``olr-pg run`` (the driver and the workers)
while it catches up.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.session.server_side import ServerSide
from olr_pg.applier.settings import ApplierSettings
from olr_pg.bench.inputs import Cluster, LogSet, copy_from, copy_to, log_set, running
from olr_pg.bench.measure import (
    Result,
    Sample,
    compared,
    cpu_of_process_tree,
    measured,
    memory_mib,
    python_processes,
)
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.config.model import Apply
from olr_pg.decoding.heap import give_back_large_memory
from olr_pg.dictionary.table_list import query_tables
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.replicator.spark_decoding import PRELOAD
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.spark.session import SparkSettings, stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.bench.suite import Options

_SPARK: Final = SparkSettings("local[2]", {}, PRELOAD)
_WORKERS: Final = Apply.model_fields["workers"].default
_COMMAND: Final = "from olr_pg.cli.main import run; run()"
_TABLES: Final = "SELECT OWNER, TABLE_NAME FROM USER_TABLES"


def end_to_end(options: Options) -> Iterator[Result]:
    """Measure row changes per second of a whole run without the start of Spark; compare them with a
    COPY of the same rows.
    """
    logs = log_set(options.cache, "orders", options.size)
    give_back_large_memory()
    with ExitStack() as stack:
        (cluster,) = stack.enter_context(running([options.folder / "postgres"]))
        stack.callback(stop_session)
        samples: list[Sample] = []

        def run() -> Sample:
            samples.append(_replicate(cluster, logs, options.folder))
            return samples[-1]

        run()
        yield compared(
            "end to end, orders", "changes/s", run, anchor="COPY of the changed rows",
            anchor_run=lambda: _copy(cluster, options.folder), runs=options.runs,
        )  # fmt: skip
        last = samples[-1]
        for part, seconds in last.parts.items():
            yield Result(
                f"end to end, orders: CPU of {part}", seconds, "s", "", None, None, seconds,
                last.peak_rss_mib,
            )  # fmt: skip


def write_config(folder: Path, logs: Path, dictionary: Path, *targets: str) -> Path:
    """Write the configuration of an appliance whose data and configuration file are in `folder`.

    Args:
        targets: one or several connection strings.
    """
    address = {"address": "127.0.0.1:0"}
    applied = [
        {"connect-string": target, "tables": _TABLES, "create-tables": True} for target in targets
    ]
    document: dict[str, Any] = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": str(dictionary), "logs": str(logs)},
        "spark": {"master": "local[2]"},
    }
    if len(applied) == 1:
        document |= {"target": address, "apply": applied[0]}
    else:
        document["target"] = [
            {"name": f"target{number}", **address, "apply": apply}
            for number, apply in enumerate(applied)
        ]
    path = folder / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def start_run(config: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start ``olr-pg run`` in a separate process."""
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _COMMAND, "run", *options, "-c", config],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _replicate(cluster: Cluster, logs: LogSet, folder: Path) -> Sample:
    """Replicate with decoder, server and applier, as `olr-pg run --once` does."""
    target = cluster.new_database()
    checkpoint = folder / "checkpoint.json"
    checkpoint.unlink(missing_ok=True)
    decoder = Decoder(
        OfflineDatabase(logs.snapshot, [str(logs.folder / "logs")]), _SPARK, once=True
    )
    delivery = Delivery(decoder)
    with Listener(delivery, Checkpoint(checkpoint, "bench"), PortSettings(port=0)) as listener:
        host, port = listener.address
        settings = ApplierSettings(
            target, host, port, _TABLES, create_tables=True, workers=_WORKERS
        )
        tables = query_tables(logs.snapshot, _TABLES)
        applier = Applier(settings, tables, ServerSide(listener.connect))

        def work() -> float:
            applier.run(once=True, drained=delivery.drained.is_set)
            accounting = delivery.accounting()
            assert accounting is not None  # the run has ended
            # Count the changes of the source, because the applier merges changes of the same row in
            # a batch.
            return sum(sum(kinds.values()) for kinds in accounting.tables.values())

        sample = measured(work, [cluster.pid], tree=True)
    if delivery.failure is not None:
        raise delivery.failure
    return sample


def _copy(cluster: Cluster, folder: Path) -> Sample:
    """COPY the rows of the last run, table by table, into empty tables with the same columns."""
    with psycopg.connect(cluster.last_database, autocommit=True) as connection:
        names = connection.execute("SELECT target_table FROM olr_pg.ledger").fetchall()
        tables = [sql.Identifier(*name.split(".")) for (name,) in names]
        for number, table in enumerate(tables):
            connection.execute(
                sql.SQL("CREATE TABLE copy_{} (LIKE {} INCLUDING ALL)").format(
                    sql.SQL(str(number)), table
                )
            )
            copy_to(folder / f"copy-{number}", connection, table)

        def work() -> float:
            return sum(
                copy_from(folder / f"copy-{number}", connection, sql.Identifier(f"copy_{number}"))
                for number in range(len(tables))
            )

        return measured(work, [cluster.pid])


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
    """Measure the peak memory of the largest process, without mapped files. The anchor is the peak
    for a tenth of the redo.

    Pages of mapped files (logs and spooled results) belong to the page cache, and the kernel
    reclaims them when it needs memory. The result's field `peak_rss_mib` includes pages of mapped
    files.
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
