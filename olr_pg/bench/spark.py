"""Decoding through Spark on two cores: a backlog in many logs and in one."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.decoding import MB, decode_unkept, decoding, splits_of, subscription_to
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.replicator.heap import keep_freed_memory
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.spark.session import SparkSettings, stop_session
from olr_pg.wire.output import Unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options
    from olr_pg.replicator.split import Split, Subscription

_WORKLOADS: Final = ("orders", "bulk")
_LOGS: Final = 8
_CORES: Final = 2


def spark(options: Options) -> Iterator[Result]:
    """Backlogs of the given size, as the decoder of `olr-pg run` takes them."""
    try:
        for workload in _WORKLOADS:
            one_log = log_set(options.cache, workload, options.size, 2 * options.size)
            yield _without_spark(workload, one_log, options)
            yield _with_spark(workload, "in one log", one_log, options)
            logs = log_set(options.cache, workload, options.size, options.size // _LOGS)
            yield _with_spark(workload, f"in {_LOGS} logs", logs, options)
    finally:
        stop_session()


def _with_spark(workload: str, shape: str, logs: LogSet, options: Options) -> Result:
    name = f"decode {_amount(workload, options)} {shape}, Spark local[{_CORES}]"
    work = _through_spark(logs)
    work()
    return _beside_one_core(name, work, "one core without Spark", logs, options)


def _beside_one_core(
    name: str, work: Callable[[], float], anchor: str, logs: LogSet, options: Options
) -> Result:
    """Warm work on all cores against decoding the same logs on one, in this process."""
    one_core = decoding(logs)
    one_core()
    return compared(
        name, "MB/s", partial(measured, work, tree=True), anchor=anchor,
        anchor_run=partial(measured, one_core), runs=options.runs, scale=MB,
    )  # fmt: skip


def _amount(workload: str, options: Options) -> str:
    return f"{options.size / 1e9:g} GB of {workload}"


def _without_spark(workload: str, logs: LogSet, options: Options) -> Result:
    """What the machine gives: two processes, each with half of the splits, and nothing else."""
    subscription, splits = subscription_to(logs), splits_of(logs)
    with ProcessPoolExecutor(_CORES, multiprocessing.get_context("spawn")) as processes:
        shares = [splits[number::_CORES] for number in range(_CORES)]

        def work() -> float:
            for _ in processes.map(_decode_share, [subscription] * _CORES, shares):
                pass
            return logs.size

        for _ in range(_CORES):  # a process may have taken both shares
            work()
        name = f"decode {_amount(workload, options)}, two processes without Spark"
        return _beside_one_core(name, work, "one core", logs, options)


def _decode_share(subscription: Subscription, splits: Sequence[Split]) -> None:
    """What a process does; its results go nowhere."""
    keep_freed_memory()
    decode_unkept(subscription, splits, Unkept())


def _through_spark(logs: LogSet) -> Callable[[], float]:
    subscription, splits = subscription_to(logs), splits_of(logs)
    decoder = SparkDecoding(SparkSettings(f"local[{_CORES}]", {}, PRELOAD))

    def work() -> float:
        for result in decoder.decode(subscription, splits):
            if result.failure is not None:
                raise result.failure
        return logs.size

    return work
