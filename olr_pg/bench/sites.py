"""Benchmarks with inputs like those of real databases: rows of other widths, small logs, one large
transaction, ten targets.

All changes in the inputs are drawn at random, and are not copies of a small amount of redo. Only
the small logs are copies, because their cost depends on their number and not on their contents.

`outputs` is the benchmark of ``olr-pg decode``: it converts redo to JSON Lines and to Parquet
files, on one core and on two.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.decoding import MB, decoding
from olr_pg.bench.end_to_end import Peak, run_once
from olr_pg.bench.inputs import ONE_TRANSACTION, SITES, Cluster, LogSet, log_set, running
from olr_pg.bench.measure import Result, Sample, compared, measured, measured_by_cpu
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.rendering.parquet_files import ParquetFiles
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, decode_splits
from olr_pg.replicator.process_decoding import ProcessDecoding
from olr_pg.wire.encoder import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.bench.suite import Options
    from olr_pg.decoding.split import Decode

_JOBS: Final = 2
_WORKLOADS: Final = ("orders", "bulk", "lobs")


def outputs(options: Options) -> Iterator[Result]:
    """Write each output format to files, and compare it with a cheaper format; then measure with
    two cores.
    """
    keep_freed_memory()
    for workload in _WORKLOADS:
        yield from on_one_core(
            f"decode {workload} to", log_set(options.cache, workload, options.size), options
        )
    logs = log_set(options.cache, "orders", options.size)
    with ProcessDecoding(_JOBS, lines_of=logs.snapshot.database) as processes:
        lines = lines_of(logs, options, decode_splits)
        yield _by_two("JSON Lines", lines_of(logs, options, processes.decode), lines, options)
    with ProcessDecoding(_JOBS) as processes:
        files = files_of(logs, options, decode_splits, 0)
        by_two = files_of(logs, options, processes.decode, _JOBS)
        yield _by_two("Parquet files", by_two, files, options)


def on_one_core(name: str, logs: LogSet, options: Options) -> Iterator[Result]:
    """Measure both output formats in CPU seconds, so that other load on the machine does not count.

    Args:
        name: prefix of the results' names.
    """
    messages = decoding(logs)
    lines = lines_of(logs, options, decode_splits)
    files = files_of(logs, options, decode_splits, 0)
    for form, work, anchor, anchor_work in (
        ("JSON Lines", lines, "messages", messages),
        ("Parquet files", files, "JSON Lines", lines),
    ):
        for one in (anchor_work, work):
            one()
        yield compared(
            f"{name} {form}, one core", "MB/CPU s", partial(measured_by_cpu, work), anchor=anchor,
            anchor_run=partial(measured_by_cpu, anchor_work), runs=options.runs, scale=MB,
        )  # fmt: skip


def _by_two(
    form: str, work: Callable[[], float], alone: Callable[[], float], options: Options
) -> Result:
    for one in (work, alone):
        one()
    return compared(
        f"decode orders to {form}, two processes", "MB/s", partial(measured, work),
        anchor="one core", anchor_run=partial(measured, alone), runs=options.runs, scale=MB,
    )  # fmt: skip


def lines_of(logs: LogSet, options: Options, decode: Decode) -> Callable[[], float]:
    """Return a function that decodes logs to a file of JSON Lines, and returns the number of bytes
    of the logs.
    """
    lines = PackedLines(logs.snapshot.database)
    path = options.folder / "lines.jsonl"

    def work() -> float:
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            decoded = _decoding_of(logs)
            for run in decoded.runs(DecodingOptions(decode=decode)):
                if run.batch.form is Form.LINES:
                    file.write(run.blob)
                    continue
                for piece in lines.pieces(run.blob, decoded.tables):
                    file.write(piece)
            file.truncate()
        return logs.size

    return work


def files_of(logs: LogSet, options: Options, decode: Decode, threads: int) -> Callable[[], float]:
    """Return a function that decodes logs to Parquet files, and returns the number of bytes of the
    logs.
    """
    folder = options.folder / "parquet"

    def work() -> float:
        shutil.rmtree(folder, ignore_errors=True)
        decoded, sessions = _decoding_of(logs), SessionDirectory()
        with ParquetFiles(folder, decoded, sessions, threads=threads) as files:
            for run in decoded.runs(DecodingOptions(decode=decode, sessions=sessions)):
                files.take(run)
        return logs.size

    return work


def _decoding_of(logs: LogSet) -> LogDecoding:
    return LogDecoding(logs.snapshot, [str(log) for log in logs.logs], packed=True)


_SMALL_LOGS: Final = 2_000
_LARGE_LOGS: Final = 10
_TARGETS: Final = 10


def wide(options: Options) -> Iterator[Result]:
    """Decode rows of each shape to both output formats."""
    keep_freed_memory()
    for name, rows in SITES.items():
        logs = log_set(options.cache, "wide", options.size, rows=rows)
        yield from on_one_core(f"wide, {name}:", logs, options)


def small_logs(options: Options) -> Iterator[Result]:
    """Replicate thousands of small logs with ``olr-pg run``, and compare with the same redo in a
    few logs.
    """
    sizes = (options.size // _SMALL_LOGS, options.size // _LARGE_LOGS)
    small, large = (
        log_set(options.cache, "orders", options.size, size, copies=True) for size in sizes
    )
    with running([options.folder / "postgres"]) as (cluster,):
        yield _runs(
            f"run of {len(small.logs):,} logs", small, f"{len(large.logs)} logs", large, cluster,
            options,
        )  # fmt: skip


def targets(options: Options) -> Iterator[Result]:
    """Replicate into ten targets with one process, and compare with a single target."""
    logs = log_set(options.cache, "orders", options.size)
    with running([options.folder / "postgres"]) as (cluster,):
        yield _runs(
            f"run with {_TARGETS} targets", logs, "1 target", logs, cluster, options, _TARGETS
        )


def transaction(options: Options) -> Iterator[Result]:
    """Measure the memory of a run that replicates one large transaction. The anchor is a
    transaction of a tenth of the size.
    """
    with running([options.folder / "postgres"]) as (cluster,):
        sizes = (options.size // 10, options.size)
        less, most = (
            run_once(
                cluster, log_set(options.cache, "wide", size, rows=ONE_TRANSACTION),
                options.folder / f"transaction-{size}",
            )
            for size in sizes
        )  # fmt: skip
    yield Result(
        f"run of one transaction of {options.size / MB:,.0f} MB: largest Python process",
        most.anonymous, "MiB", "1/10 of it", less.anonymous, less.anonymous / most.anonymous,
        most.cpu_seconds, most.resident,
    )  # fmt: skip


def _runs(
    name: str,
    logs: LogSet,
    anchor: str,
    anchor_logs: LogSet,
    cluster: Cluster,
    options: Options,
    targets: int = 1,
) -> Result:
    """Compare runs by the redo that they replicate per CPU second."""
    count = iter(range(1 << 30))

    def run(of: LogSet, targets: int) -> Sample:
        folder = options.folder / f"run-{next(count)}"
        peak: Peak = run_once(cluster, of, folder, targets)
        return Sample(of.size * targets, peak.cpu_seconds, peak.cpu_seconds, peak.resident, {})

    return compared(
        name, "MB/CPU s", partial(run, logs, targets), anchor=anchor,
        anchor_run=partial(run, anchor_logs, 1), runs=options.runs, scale=MB,
    )  # fmt: skip
