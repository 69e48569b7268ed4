"""The latency from redo to visible rows in PostgreSQL, for archived logs and online logs, in a
running appliance.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.bench.clusters import running
from olr_pg.bench.end_to_end import start_run, write_config
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, cpu_of_process_tree, peak_mib, python_processes
from olr_pg.bench.online_latency import online_latency

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.bench.suite import Options

_LOGS: Final = 8
_WARM_LOGS: Final = 3
_LOG_BYTES: Final = 1_000_000
_POLL_SECONDS: Final = 0.002
_WAIT_SECONDS: Final = 300.0


def latency(options: Options) -> Iterator[Result]:
    """Measure milliseconds from redo to the visibility of its changes."""
    yield from _archived(options)
    yield from online_latency(options)


def _archived(options: Options) -> Iterator[Result]:
    """Yield the time that a small log takes, measured from its renaming into the log directory."""
    logs = log_set(options.cache, "orders", _LOGS * _LOG_BYTES)
    if len(logs.logs) <= _WARM_LOGS:
        return
    place = options.folder / "logs"
    place.mkdir()
    with running([options.folder / "postgres"]) as (cluster,):
        target = cluster.new_database()
        config = write_config(options.folder, place, logs.folder / "dictionary.json", target)
        process = start_run(config)
        try:
            seconds = _measure(process, target, logs.logs, logs.folder / "truth.jsonl", place)
            cpu = cpu_of_process_tree(process.pid)
            peak = peak_mib(python_processes(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    value = 1000 * median(seconds)
    yield Result("latency of a 1 MB log, warm", value, "ms", "", None, None, cpu, peak)


def _measure(
    process: subprocess.Popen[bytes], target: str, logs: tuple[Path, ...], truth: Path, place: Path
) -> list[float]:
    commits = _commit_scns(truth)
    seconds = []
    with psycopg.connect(target, autocommit=True) as connection:
        for number, log in enumerate(logs):
            # Rename the log to its final name, so that it appears in one step, as an archiver
            # should do it.
            shutil.copy(log, place.parent / log.name)
            start = time.perf_counter()
            os.replace(place.parent / log.name, place / log.name)  # noqa: PTH105 - atomic
            _await(process, connection, _last_commit(log, commits))
            if number >= _WARM_LOGS:
                seconds.append(time.perf_counter() - start)
    return seconds


def _commit_scns(truth: Path) -> list[int]:
    with truth.open("rb") as lines:
        return [json.loads(line)["commit_scn"] for line in lines if b'"commit"' in line]


def _last_commit(log: Path, commits: list[int]) -> int:
    from olr_pg.capture.logs import open_log

    next_scn = open_log(str(log)).next_scn
    return max((scn for scn in commits if scn < next_scn), default=0)


def _await(process: subprocess.Popen[bytes], connection: Connection[Any], scn: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            row = connection.execute("SELECT max(commit_scn) FROM olr_pg.ledger").fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        if row is not None and row[0] is not None and row[0] >= scn:
            return
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"the appliance did not reach SCN {scn}")
