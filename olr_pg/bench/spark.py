"""Decoding through Spark on two cores: a backlog in many logs and in one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.bench.decoding import MB, decoding
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.capture.logs import open_log
from olr_pg.replicator.decode import chosen_tables
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.replicator.split import plan_splits, subscribe
from olr_pg.spark.session import SparkSettings, stop_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options

_LOGS: Final = 8


def spark(options: Options) -> Iterator[Result]:
    """A backlog of the given size, as the decoder of `olr-pg run` takes it."""
    logs = {
        f"{_LOGS} logs": log_set(options.cache, "orders", options.size, options.size // _LOGS),
        "one log": log_set(options.cache, "orders", options.size, 2 * options.size),
    }
    try:
        for name, one in logs.items():
            work, one_core = _through_spark(one), decoding(one)
            work()
            one_core()
            yield compared(
                f"decode orders, Spark local[2], {name}", "MB/s",
                partial(measured, work, tree=True), anchor="one core without Spark",
                anchor_run=partial(measured, one_core), runs=options.runs, scale=MB,
            )  # fmt: skip
    finally:
        stop_session()


def _through_spark(logs: LogSet) -> Callable[[], float]:
    subscription = subscribe(chosen_tables(logs.snapshot, None), logs.snapshot.database.con_id)
    splits = [split for path in logs.logs for split in plan_splits(open_log(str(path)))]
    decoder = SparkDecoding(SparkSettings("local[2]", {}, PRELOAD))

    def work() -> float:
        for result in decoder.decode(subscription, splits):
            if result.failure is not None:
                raise result.failure
        return logs.size

    return work
