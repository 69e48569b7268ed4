"""Latency of online redo: from the flush of a commit's LWN to its rows seen in PostgreSQL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg

from olr_pg.bench.clusters import running
from olr_pg.bench.end_to_end import start_run, write_config
from olr_pg.bench.measure import Result, cpu_of_process_tree, peak_mib, python_processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.bench.suite import Options

RATES: Final = (("1 MB/s", "1MB"), ("10 MB/s", "10MB"))
_SECONDS: Final = 30
_WARM_SECONDS: Final = 8.0
"""After the first rows: connections are made, kernels loaded, tables created."""

_POLL_SECONDS: Final = 0.002
_PATIENCE_SECONDS: Final = 120.0
_COMMAND: Final = "from olr_pg.cli.main import run; run()"


class Seen(NamedTuple):
    """A commit SCN that was seen in the target, and when (Unix time)."""

    at: float
    scn: int


class Flushed(NamedTuple):
    """A flush: when it was done (Unix time), and the SCN above everything in it."""

    at: float
    scn: int


def online_latency(options: Options) -> Iterator[Result]:
    """Milliseconds from flush to visibility, of each commit of `orders` at fixed rates."""
    for name, rate in RATES:
        folder = options.folder / rate
        folder.mkdir()
        yield from _at_rate(folder, name, rate)


def _at_rate(folder: Path, name: str, rate: str) -> Iterator[Result]:
    source = folder / "source"
    with running([folder / "postgres"]) as (cluster,):
        target = cluster.new_database()
        writer = _start_source(source, rate)
        try:
            _await_files(writer, source)
            config = write_config(folder, source / "logs", source / "dictionary.json", target)
            _read_online(config, source / "online")
            process = start_run(config)
            try:
                seen = _watch(process, writer, target)
                cpu = cpu_of_process_tree(process.pid)
                peak = peak_mib(python_processes(process.pid))
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()
        finally:
            writer.kill()
            writer.wait()
    seconds = latencies(_commits(source), _flushes(source), seen, _WARM_SECONDS)
    for what, share in (("median", 0.5), ("99 %", 0.99)):
        value = 1000 * seconds[int(share * (len(seconds) - 1))]
        yield Result(f"online, {name}: {what}", value, "ms", "", None, None, cpu, peak)


def latencies(
    commits: Sequence[int], flushes: Sequence[Flushed], seen: Sequence[Seen], warm: float
) -> list[float]:
    """Return the seconds from flush to visibility of each commit, ascending.

    Args:
        commits: SCNs.
        flushes, seen: in the order of time.
        warm: commits that are flushed within so many seconds after the first was seen do not count.

    Raises:
        ValueError: nothing counts.
    """
    ends = [one.scn for one in flushes]
    reached = list(accumulate((one.scn for one in seen), max))
    found = []
    for scn in commits:
        flush, sight = bisect_right(ends, scn), bisect_left(reached, scn)
        if flush < len(flushes) and sight < len(seen):
            at = flushes[flush].at
            if at >= seen[0].at + warm:
                found.append(seen[sight].at - at)
    if not found:
        message = "no commit was seen"
        raise ValueError(message)
    return sorted(found)


def _start_source(folder: Path, rate: str) -> subprocess.Popen[bytes]:
    """Start a simulated database that writes online logs; its redo is made before it begins."""
    options = ("--live", "--workload", "orders", "--rate", rate, "--for", str(_SECONDS), "--ahead")
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _COMMAND, "simulate", "--seed", "3", "--out", folder, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _await_files(writer: subprocess.Popen[bytes], source: Path) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not (source / "flushes.jsonl").exists() or not (source / "dictionary.json").exists():
        if writer.poll() is not None or time.monotonic() > end:
            message = "the simulated database did not begin"
            raise TimeoutError(message)
        time.sleep(_POLL_SECONDS)


def _read_online(config: Path, folder: Path) -> None:
    document = json.loads(config.read_bytes())
    document["source"] |= {"redo": "online", "online-logs": str(folder)}
    config.write_text(json.dumps(document), encoding="utf-8")


def _watch(
    process: subprocess.Popen[bytes], writer: subprocess.Popen[bytes], target: str
) -> list[Seen]:
    """Watch the target until the source has ended and nothing more comes."""
    seen: list[Seen] = []
    quiet_at = time.time() + _PATIENCE_SECONDS
    with psycopg.connect(target, autocommit=True) as connection:
        while process.poll() is None and time.time() < quiet_at:
            try:
                row = connection.execute("SELECT max(commit_scn) FROM olr_pg.ledger").fetchone()
            except psycopg.errors.UndefinedTable:
                row = None
            now = time.time()
            if row is not None and row[0] is not None and (not seen or row[0] > seen[-1].scn):
                seen.append(Seen(now, row[0]))
                ended = writer.poll() is not None
                quiet_at = now + (3.0 if ended else _PATIENCE_SECONDS)
            elif writer.poll() is not None:
                quiet_at = min(quiet_at, now + 3.0)
            time.sleep(_POLL_SECONDS)
    return seen


def _commits(source: Path) -> list[int]:
    with (source / "truth.jsonl").open("rb") as lines:
        return [json.loads(line)["commit_scn"] for line in lines if b'"commit"' in line]


def _flushes(source: Path) -> list[Flushed]:
    with (source / "flushes.jsonl").open("rb") as lines:
        found = [json.loads(line) for line in lines]
    return [Flushed(one["time"], one["scn"]) for one in found]
