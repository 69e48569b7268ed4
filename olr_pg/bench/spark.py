"""Benchmarks with Spark on two cores: decoding, with a backlog in many logs and in one log; and
redo as data frames, read into record batches and written to Parquet.
"""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final

from olr_pg.bench.decoding import MB, decode_all, decoding, splits_of, subscription_to
from olr_pg.bench.inputs import LogSet, log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.datasource.parquet_writing import write_parquet
from olr_pg.datasource.source import arrow_schema, changes_schema
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.datasource.survey import Bounds, survey
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.decoding.split_results import WrittenMessages
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session, stop_session
from olr_pg.wire.output import MessageOutput, Unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.bench.suite import Options
    from olr_pg.decoding.split import Split, Subscription


_WORKLOADS: Final = ("orders", "bulk")
_LOGS: Final = 8
_CORES: Final = 2

_ANCHORS: Final = {False: "one core", True: "one core that writes them"}
"""The names of the anchors, which decode on one core, by whether the messages are kept."""

_SETTINGS: Final = SparkSettings(f"local[{_CORES}]", {}, PRELOAD)


def spark(options: Options) -> Iterator[Result]:
    """Decode backlogs of the given size, as the decoder of `olr-pg run` does.

    The workers pass all messages to the decoder in files. So each rate is compared with two rates
    of one core: with messages that are made and dropped, as in the benchmark `decode`, and with
    messages that are written to a file. If Spark's workers also drop the messages, the difference
    is the cost of Spark.
    """
    try:
        for workload in _WORKLOADS:
            one_log = log_set(options.cache, workload, options.size, 2 * options.size, copies=True)
            yield from _without_spark(workload, one_log, options)
            yield from _with_spark(workload, "in one log", one_log, options)
            logs = log_set(
                options.cache, workload, options.size, options.size // _LOGS, copies=True
            )
            yield from _with_spark(workload, f"in {_LOGS} logs", logs, options)
    finally:
        stop_session()


def _with_spark(workload: str, shape: str, logs: LogSet, options: Options) -> Iterator[Result]:
    name = f"decode {_amount(workload, options)} {shape}, Spark local[{_CORES}]"
    work = _through_spark(logs)
    dropping = _dropped_by_spark(logs)
    work()
    dropping()
    for keep in _ANCHORS:
        yield _beside_one_core(name, work, keep, logs, options)
    yield _beside_one_core(f"{name}, messages dropped", dropping, False, logs, options)


def _beside_one_core(
    name: str,
    work: Callable[[], float],
    keep: bool,
    logs: LogSet,
    options: Options,
) -> Result:
    """Compare work on all cores, after a warm-up, with decoding the same logs on one core in this
    process.
    """
    with _messages(keep) as output:
        one_core = decoding(logs, output=output)
        one_core()
        return compared(
            name, "MB/s", partial(measured, work, tree=True), anchor=_ANCHORS[keep],
            anchor_run=partial(measured, one_core), runs=options.runs, scale=MB,
        )  # fmt: skip


def _amount(workload: str, options: Options) -> str:
    return f"{options.size / 1e9:g} GB of {workload}"


def _without_spark(workload: str, logs: LogSet, options: Options) -> Iterator[Result]:
    """Measure the capacity of the machine without Spark: two processes decode half of the splits
    each.
    """
    subscription, splits = subscription_to(logs), splits_of(logs)
    with ProcessPoolExecutor(_CORES, multiprocessing.get_context("spawn")) as processes:
        shares = [splits[number::_CORES] for number in range(_CORES)]

        def work(keep: bool) -> float:
            for _ in processes.map(_decode_share, [subscription] * _CORES, shares, [keep] * _CORES):
                pass
            return logs.size

        for _ in range(_CORES):  # repeat it, because one process may have done both shares
            work(False)
        name = f"decode {_amount(workload, options)}, two processes without Spark"
        for keep in _ANCHORS:
            yield _beside_one_core(name, partial(work, keep), keep, logs, options)


def _decode_share(subscription: Subscription, splits: Sequence[Split], keep: bool) -> None:
    """Decode the share of one process."""
    keep_freed_memory()
    with _messages(keep) as output:
        decode_all(subscription, splits, output)


@contextmanager
def _messages(keep: bool) -> Iterator[Callable[[], MessageOutput]]:
    """Yield a function that returns the output for the messages of a split. The output drops them,
    or writes them to a file over the messages of the last split.
    """
    if not keep:
        yield Unkept
        return
    with TemporaryFile() as file:

        def output() -> MessageOutput:
            file.seek(0)
            return WrittenMessages(file.write)

        yield output


def _through_spark(logs: LogSet) -> Callable[[], float]:
    subscription, splits = subscription_to(logs), splits_of(logs)
    decoder = SparkDecoding(_SETTINGS, here_bytes=0)

    def work() -> float:
        for result in decoder.decode(subscription, splits):
            if result.failure is not None:
                raise result.failure
        return logs.size

    return work


def _dropped_by_spark(logs: LogSet) -> Callable[[], float]:
    subscription, splits = pickle.dumps(subscription_to(logs)), splits_of(logs)

    def work() -> float:
        tasks = run_tasks(
            get_session(_SETTINGS),
            [pickle.dumps(split) for split in splits],
            _dropping_task,
            broadcast=subscription,
            sizes=[split.size for split in splits],
        )
        for _ in tasks:
            pass
        return logs.size

    return work


def _dropping_task(split: bytes, subscription: bytes) -> bytes:
    """Decode a split as a Spark task does, but drop the results."""
    decode_all(pickle.loads(subscription), [pickle.loads(split)], Unkept)  # noqa: S301 - ours
    return b""


_TABLES: Final = {"all tables, images as JSON": None, "ORDER_LINES, typed": "SHOP.ORDER_LINES"}
_USERS_SETTINGS: Final = SparkSettings(
    f"local[{_CORES}]",
    preload=("olr_pg.datasource.source",),
    java_options=("-XX:TieredStopAtLevel=4",),
)
"""The settings of users' sessions: Java's compiler works with all its levels, unlike in sessions of
the appliance.
"""


def data_source(options: Options) -> Iterator[Result]:
    """Measure changes per second, including the survey of the logs.

    The record batches are compared with decoding alone, in which the messages are dropped. Parquet
    files, written by tasks or by Spark's writer, are compared with record batches on one core.
    """
    logs = log_set(options.cache, "orders", options.size)
    keep_freed_memory()
    try:
        for name, table in _TABLES.items():
            batches = _batches(logs, table)
            changes = batches()
            plain = decoding(logs)
            plain()
            yield compared(
                f"data source, {name}: batches, one core", "changes/s", partial(measured, batches),
                anchor="decoding alone",
                anchor_run=partial(measured, partial(_counted, plain, changes)),
                runs=options.runs,
            )  # fmt: skip
            for writer, write in _WRITERS.items():
                parquet = write(options, logs, table, changes)
                parquet()
                yield compared(
                    f"data source, {name}: Parquet by {writer}, Spark local[{_CORES}]", "changes/s",
                    partial(measured, parquet, tree=True),
                    anchor="batches, one core", anchor_run=partial(measured, batches),
                    runs=options.runs,
                )  # fmt: skip
    finally:
        stop_session()


def _counted(work: Callable[[], float], changes: float) -> float:
    work()
    return changes


def _batches(logs: LogSet, table: str | None) -> Callable[[], float]:
    paths = [str(path) for path in logs.logs]

    def work() -> float:
        found = survey(logs.snapshot, paths, tables=None if table is None else [table])
        schema = arrow_schema(changes_schema(found.decoding, table))
        reader = SplitReader(found.decoding, schema, Bounds())
        return sum(batch.num_rows for split in found.splits for batch in reader.read(split))

    return work


def _by_tasks(
    options: Options, logs: LogSet, table: str | None, changes: float
) -> Callable[[], float]:
    """Write the changes with `write_parquet`."""
    chosen: dict[str, Any] = {} if table is None else {"table": table}

    def work() -> float:
        done = write_parquet(
            get_session(_USERS_SETTINGS), str(logs.folder / "logs"), options.folder / "files",
            mode="overwrite", dictionary=str(logs.folder / "dictionary.json"), **chosen,
        )  # fmt: skip
        assert done.rows == changes
        return changes

    return work


def _by_spark(
    options: Options, logs: LogSet, table: str | None, changes: float
) -> Callable[[], float]:
    """Write the changes with Spark's `DataFrame.write`."""
    reader = get_session(_USERS_SETTINGS).read.format("olr_pg")
    reader = reader.option("dictionary", str(logs.folder / "dictionary.json"))
    if table is not None:
        reader = reader.option("table", table)

    def work() -> float:
        found = reader.load(str(logs.folder / "logs"))
        found.write.mode("overwrite").parquet(str(options.folder / "changes"))
        return changes

    return work


_WRITERS: Final = {"tasks": _by_tasks, "Spark's writer": _by_spark}
