"""Measures how the cost and the memory of decoding grow with the backlog; decoding runs through
Spark and the merger.

The CPU seconds of all processes are counted, so that other work on the machine does not affect the
figures. The memory is that of the largest Python process, which is the driver or a worker.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.bench.decoding import MB
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, measured
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.spark.session import SparkSettings, stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options

_SMALLEST: Final = 100_000_000
"""Approximate bytes of the smallest backlog, if the largest one is large enough."""

_STEPS_PER_DECADE: Final = 2
_LOGS_OF_SMALLEST: Final = 4


class _Cost(NamedTuple):
    """The cost of decoding one backlog: its bytes, the CPU seconds, and the peak memory in MiB."""

    size: int
    cpu_seconds: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """MB for each CPU second."""
        return self.size / self.cpu_seconds / MB


def growth(options: Options) -> Iterator[Result]:
    """Decode backlogs up to the given size. Each backlog is the beginning of the next one; the
    smallest is the anchor.
    """
    sizes = backlog_sizes(options.size)
    logs = log_set(
        options.cache, "orders", options.size, sizes[0] // _LOGS_OF_SMALLEST, copies=True
    )
    try:
        _decoded(logs, logs.logs[:_LOGS_OF_SMALLEST])
        first: _Cost | None = None
        for size in sizes:
            cost = _cost(logs, _beginning(logs, size), options.runs)
            first = first or cost
            yield Result(
                f"decode {cost.size / MB:,.0f} MB of orders, merged; memory of the largest process",
                cost.rate, "MB/CPU s", f"{first.size / MB:,.0f} MB", first.rate,
                cost.rate / first.rate, cost.cpu_seconds, cost.peak_mib,
            )  # fmt: skip
    finally:
        stop_session()


def backlog_sizes(most: int) -> list[int]:
    """Return the sizes of the backlogs in bytes, in ascending order, up to `most`. The smallest is
    about `_SMALLEST`, or less.
    """
    steps = max(1, round(_STEPS_PER_DECADE * math.log10(most / _SMALLEST)))
    return [round(most / 10 ** (step / _STEPS_PER_DECADE)) for step in range(steps, -1, -1)]


def _beginning(logs: LogSet, size: int) -> Sequence[Path]:
    """Return the first logs, with about `size` bytes in total."""
    count = max(1, round(len(logs.logs) * size / logs.size))
    return logs.logs[:count]


def _cost(logs: LogSet, chosen: Sequence[Path], runs: int) -> _Cost:
    """Return the median run's CPU seconds, and the highest memory."""
    costs = [_decoded(logs, chosen) for _ in range(runs)]
    return costs[0]._replace(
        cpu_seconds=median(cost.cpu_seconds for cost in costs),
        peak_mib=max(cost.peak_mib for cost in costs),
    )


def _decoded(logs: LogSet, chosen: Sequence[Path]) -> _Cost:
    decoder = SparkDecoding(SparkSettings("local[2]", {}, PRELOAD))

    def work() -> float:
        messages = decode_logs(
            logs.snapshot,
            [str(log) for log in chosen],
            options=DecodingOptions(decode=decoder.decode),
        )
        return sum(blob.nbytes for blob in messages)

    sample = measured(work, tree=True)
    assert sample.amount, "nothing was decoded"
    return _Cost(sum(log.stat().st_size for log in chosen), sample.cpu_seconds, sample.peak_rss_mib)
