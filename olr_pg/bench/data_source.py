"""The benchmark of redo as data frames: reads changes of the workload `orders` into record batches,
and writes them to Parquet with Spark.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from olr_pg.bench.decoding import decoding
from olr_pg.bench.inputs import log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.datasource.ownership import Bounds
from olr_pg.datasource.parquet_writing import write_parquet
from olr_pg.datasource.source import arrow_schema, changes_schema
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.datasource.survey import survey
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.spark.session import SparkSettings, get_session, stop_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.bench.inputs import LogSet
    from olr_pg.bench.suite import Options

_CORES: Final = 2
_TABLES: Final = {"all tables, images as JSON": None, "ORDER_LINES, typed": "SHOP.ORDER_LINES"}
_SETTINGS: Final = SparkSettings(
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
            get_session(_SETTINGS), str(logs.folder / "logs"), options.folder / "files",
            mode="overwrite", dictionary=str(logs.folder / "dictionary.json"), **chosen,
        )  # fmt: skip
        assert done.rows == changes
        return changes

    return work


def _by_spark(
    options: Options, logs: LogSet, table: str | None, changes: float
) -> Callable[[], float]:
    """Write the changes with Spark's `DataFrame.write`."""
    reader = get_session(_SETTINGS).read.format("olr_pg")
    reader = reader.option("dictionary", str(logs.folder / "dictionary.json"))
    if table is not None:
        reader = reader.option("table", table)

    def work() -> float:
        found = reader.load(str(logs.folder / "logs"))
        found.write.mode("overwrite").parquet(str(options.folder / "changes"))
        return changes

    return work


_WRITERS: Final = {"tasks": _by_tasks, "Spark's writer": _by_spark}
