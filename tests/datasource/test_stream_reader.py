"""The stream in a real Spark session, with a checkpoint, over restarts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.scalars import MAX_SCN
from tests.datasource.source_rows import as_in_truth, order, true_changes
from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from olr_pg.capture.archived_log import ArchivedLog


def run(spark: SparkSession, source: Source, folder: Path, **options: Any) -> int:
    """Run a query on what is there now; how many batches it made."""
    stream = spark.readStream.format("olr_pg").option("splitBytes", 100_000)
    stream = stream.option("dictionary", str(source.folder / "dictionary.json"))
    query = (
        stream.options(**options).load(str(folder / "logs"))
        .writeStream.format("parquet").trigger(availableNow=True)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "rows"))
    )  # fmt: skip
    query.awaitTermination()
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def forget_last(batches: Path) -> None:
    last = max(int(file.name) for file in batches.iterdir() if file.name.isdigit())
    (batches / str(last)).unlink()
    (batches / f".{last}.crc").unlink()


def count_with_commits(source: Source, logs: list[ArchivedLog]) -> int:
    """In how many of some logs row changes commit."""
    commits = {change["commit_scn"] for change in true_changes(source)}
    ranges = [range(log.header.first_scn, log.header.next_scn or MAX_SCN) for log in logs]
    return sum(any(scn in one for scn in commits) for one in ranges)


def test_every_change_comes_once_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    source = SimulatedSeed(11, 200_000).simulated(tmp_path / "source")
    logs = source.logs
    (tmp_path / "logs").mkdir()
    half = len(logs) // 2
    # Of two logs each: a database that commits nothing there would tell nothing.
    assert count_with_commits(source, logs[:half]) > 2, "take another seed"
    for log in logs[:half]:
        shutil.copy(log.path, tmp_path / "logs")
    assert run(spark, source, tmp_path, maxFilesPerTrigger=2) > 1
    for log in logs[half:]:
        shutil.copy(log.path, tmp_path / "logs")
    # As after a crash in the last batch, of which the offsets were noted and nothing else.
    forget_last(tmp_path / "checkpoint" / "commits")
    forget_last(tmp_path / "rows" / "_spark_metadata")
    run(spark, source, tmp_path)
    assert run(spark, source, tmp_path) == 0
    rows = [as_in_truth(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(rows, key=order) == sorted(true_changes(source), key=order)


def test_both_limits_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = SimulatedSeed(3, 50_000).simulated(tmp_path / "source")
    shutil.copytree(source.folder / "logs", tmp_path / "logs")
    with pytest.raises(Exception, match=r"OLR-06040.*only one of"):
        run(spark, source, tmp_path, maxFilesPerTrigger=1, maxBytesPerTrigger=1)
