"""Benchmarks with inputs like those of real databases: rows of other widths, small logs, one large
transaction, ten targets.

All changes in the inputs are drawn at random, and are not copies of a small amount of redo. Only
the small logs are copies, because their cost depends on their number and not on their contents.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.clusters import running
from olr_pg.bench.decoding import MB
from olr_pg.bench.inputs import ONE_TRANSACTION, SITES, log_set
from olr_pg.bench.measure import Result, Sample, compared
from olr_pg.bench.outputs import on_one_core
from olr_pg.bench.process_memory import Peak, run_once
from olr_pg.decoding.heap import keep_freed_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.bench.clusters import Cluster
    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options

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
    """Measure the memory of a run that replicates one large transaction. Compare it with a
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
