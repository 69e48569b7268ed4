"""The latency of online redo: from the flush of a commit's LWN until its rows are visible in
PostgreSQL.

The benchmark also measures the lag (the highest of these latencies) at a high rate of redo, and the
CPU time of the appliance while the source is idle.

Another benchmark measures the latency from redo to visible rows in PostgreSQL, for archived logs
and online logs, in a running appliance.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.bench.end_to_end import start_run, write_config
from olr_pg.bench.inputs import log_set, running
from olr_pg.bench.measure import (
    Result,
    cpu_of_process_tree,
    descendants,
    peak_mib,
    python_processes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.bench.suite import Options

LOW: Final = ("1 MB/s", "1MB")
"""A rate of redo: its name in results, and the rate of `olr-pg simulate`."""

_HIGH: Final = ("10 MB/s", "10MB")
_WARM_SECONDS: Final = 8.0
"""Warm-up time after the first rows; during this time connections are opened, kernels loaded and
tables created.
"""

_WARMING_SECONDS: Final = _WARM_SECONDS + 2.0
_FIRST_FLUSHES: Final = 30
"""Number of flushes after which the source is stopped until the first of their changes is
visible.
"""

_IDLE_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.004
_PATIENCE_SECONDS: Final = 120.0
_QUIET_SECONDS: Final = 15.0
"""When the source has ended, the run is complete if no change has arrived for this time."""

_COMMAND: Final = "from olr_pg.cli.main import run; run()"
_LEDGER: Final = "SELECT source_table, commit_scn FROM olr_pg.ledger"
CONFIG: Final = "olr-pg.json"
"""Name of the configuration file in the folder of a simulated database that answers queries; it
configures an appliance that reads the database.
"""

FLUSHES: Final = "flushes.jsonl"
"""Name of the file in which a simulated database records its flushes."""

_TABLE: Final = b'"table":"'


class Seen(NamedTuple):
    """A commit SCN that was visible in a table's ledger row, and the time when it was seen (Unix
    time).
    """

    at: float
    scn: int


class Flushed(NamedTuple):
    """A flush of redo: its time (Unix time), and an SCN above all SCNs in it."""

    at: float
    scn: int


class Committed(NamedTuple):
    """A committed transaction: its commit SCN, and the tables that it changed."""

    scn: int
    tables: frozenset[str]


class _Watched(NamedTuple):
    """The measurements of a run.

    Attributes:
        seen: for each table, the SCNs that were seen, in the order of time.
        idle_share: share of a core that the appliance uses after the last change has arrived.
        verifying_share: the part of `idle_share` that continuous verification uses.
    """

    seen: Mapping[str, Sequence[Seen]]
    cpu_seconds: float
    peak_rss_mib: float
    idle_share: float
    verifying_share: float


def online_latency(options: Options) -> Iterator[Result]:
    """Measure milliseconds from flush to visibility for each transaction of the workload `orders`,
    at fixed rates.
    """
    for name, rate in (LOW, _HIGH):
        folder = options.folder / rate
        folder.mkdir()
        watched = replicated(folder, rate, options.seconds)
        source = folder / "source"
        found = latencies(commits(source / "truth.jsonl"), flushes_of(source), watched.seen)
        beside = "", None, None, watched.cpu_seconds, watched.peak_rss_mib
        for what, share in (("median", 0.5), ("99 %", 0.99), ("highest", 1.0)):
            value = 1000 * found[int(share * (len(found) - 1))]
            yield Result(f"online redo, {name}: {what}", value, "ms", *beside)
        if rate == LOW[1]:
            idle = 100 * watched.idle_share
            yield Result("online redo, idle: CPU", idle, "% of a core", *beside)


def replicated(
    folder: Path,
    rate: str,
    seconds: float,
    read_source: Callable[[Path], Mapping[str, object]] | None = None,
    more: Mapping[str, object] | None = None,
) -> _Watched:
    """Replicate a source that writes for `seconds` after the warm-up and is then idle.

    Args:
        more: further sections of the configuration.
        read_source: called with the source's folder when the source works. This function returns
            the section `source` of the configuration, for a simulated database that answers
            queries. None to read the source's files in place.
    """
    source = folder / "source"
    with running([folder / "postgres"]) as (cluster,):
        target = cluster.new_database()
        served = ("--serve", "0") if read_source else ()
        writer = _start_source(source, rate, seconds + _WARMING_SECONDS, *served)
        try:
            _await_flushes(writer, source)
            if read_source is None:
                writer.send_signal(signal.SIGSTOP)
            config = write_config(folder, source / "logs", source / "dictionary.json", target)
            _read_online(config, source, read_source, more or {})
            process = start_run(config)
            try:
                seen = _watch(process, writer, source, target, _PATIENCE_SECONDS + seconds)
                cpu, verifying = cpu_of_process_tree(process.pid), _verifying(process.pid)
                time.sleep(_IDLE_SECONDS)
                idle = (cpu_of_process_tree(process.pid) - cpu) / _IDLE_SECONDS
                share = (_verifying(process.pid) - verifying) / _IDLE_SECONDS
                peak = peak_mib(python_processes(process.pid))
                return _Watched(seen, cpu, peak, idle, share)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()
        finally:
            writer.kill()
            writer.wait()


def _verifying(pid: int) -> float:
    """Return the CPU seconds of an appliance's continuous verification."""
    return sum(
        cpu_of_process_tree(one)
        for one in descendants(pid)
        if b"--continuous" in Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
    )


def latencies(
    transactions: Iterable[Committed],
    flushes: Sequence[Flushed],
    seen: Mapping[str, Sequence[Seen]],
    warm: float = _WARM_SECONDS,
) -> list[float]:
    """Return for each commit the seconds from its flush until it is visible in all its tables, in
    ascending order.

    Args:
        flushes: the flushes in the order of time.
        seen: for each table, the SCNs that were seen, in the order of time.
        warm: commits that are flushed within this number of seconds after the first visible commit
            are ignored.

    Raises:
        ValueError: all commits are ignored.
    """
    ends = [one.scn for one in flushes]
    reached = {name: list(accumulate((one.scn for one in of), max)) for name, of in seen.items()}
    first = min((of[0].at for of in seen.values() if of), default=0.0) + warm
    found = []
    for scn, tables in transactions:
        flush = bisect_right(ends, scn)
        sights = [(name, bisect_left(reached.get(name, []), scn)) for name in tables]
        whole = all(sight < len(seen.get(name, ())) for name, sight in sights)
        if flush < len(flushes) and flushes[flush].at >= first and sights and whole:
            found.append(max(seen[name][at].at for name, at in sights) - flushes[flush].at)
    if not found:
        message = "no commit was seen"
        raise ValueError(message)
    return sorted(found)


def _start_source(folder: Path, rate: str, seconds: float, *more: str) -> subprocess.Popen[bytes]:
    """Start a simulated database that writes online logs. The redo is generated before the database
    starts to write.
    """
    options = (
        "--live",
        "--workload",
        "orders",
        "--rate",
        rate,
        "--for",
        str(seconds),
        "--ahead",
        *more,
    )
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _COMMAND, "simulate", "--seed", "3", "--out", folder, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _await_flushes(writer: subprocess.Popen[bytes], source: Path) -> None:
    flushes = source / FLUSHES
    while not flushes.exists() or flushes.read_bytes().count(b"\n") < _FIRST_FLUSHES:
        if writer.poll() is not None:
            message = "the simulated database did not begin"
            raise TimeoutError(message)
        time.sleep(_POLL_SECONDS)


def _read_online(
    config: Path,
    folder: Path,
    read_source: Callable[[Path], Mapping[str, object]] | None,
    more: Mapping[str, object],
) -> None:
    document = json.loads(config.read_bytes()) | more
    if read_source is None:
        document["source"] |= {"redo": "online", "online-logs": str(folder / "online")}
    else:
        document |= {"source": read_source(folder)}
        document["apply"] |= {
            "tables": json.loads((folder / CONFIG).read_bytes())["apply"]["tables"]
        }
    config.write_text(json.dumps(document), encoding="utf-8")


def _watch(
    process: subprocess.Popen[bytes],
    writer: subprocess.Popen[bytes],
    source: Path,
    target: str,
    patience: float,
) -> dict[str, list[Seen]]:
    """Let the source continue when its first rows have arrived. Watch the target until the source
    writes no more and all changes have arrived.
    """
    seen = defaultdict[str, list[Seen]](list)
    quiet_at = time.time() + patience
    with psycopg.connect(target, autocommit=True) as connection:
        while process.poll() is None and time.time() < quiet_at:
            try:
                rows = connection.execute(_LEDGER).fetchall()
            except psycopg.errors.UndefinedTable:
                rows = []
            now = time.time()
            # A source that answers queries does not end when it has written all of its redo.
            is_idle = bool(seen) and now - (source / FLUSHES).stat().st_mtime > _QUIET_SECONDS
            ended = writer.poll() is not None or is_idle
            news = [(name, scn) for name, scn in rows if not seen[name] or scn > seen[name][-1].scn]
            for name, scn in news:
                seen[name].append(Seen(now, scn))
            if news:
                writer.send_signal(signal.SIGCONT)
                quiet_at = now + (_QUIET_SECONDS if ended else patience)
            elif ended:
                quiet_at = min(quiet_at, now + _QUIET_SECONDS)
            time.sleep(_POLL_SECONDS)
    return seen


def commits(truth: Path) -> Iterator[Committed]:
    """Yield the transactions of a ``truth.jsonl``."""
    tables = set[str]()
    with truth.open("rb") as lines:
        for line in lines:
            if line.startswith(b'{"op":"commit"'):
                yield Committed(json.loads(line)["commit_scn"], frozenset(tables))
                tables = set()
            elif (at := line.find(_TABLE)) >= 0:
                at += len(_TABLE)
                tables.add(line[at : line.index(b'"', at)].decode())


def flushes_of(source: Path) -> list[Flushed]:
    """Return the flushes that a simulated database has recorded."""
    with (source / FLUSHES).open("rb") as lines:
        found = [json.loads(line) for line in lines]
    return [Flushed(one["time"], one["scn"]) for one in found]


_LOGS: Final = 8
_WARM_LOGS: Final = 3
_LOG_BYTES: Final = 1_000_000
_LOOK_SECONDS: Final = 0.002
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
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"the appliance did not reach SCN {scn}")
