"""Two PDBs with equal tables, object numbers and XIDs in one data frame: the truth of both."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.writer.instance import Pace
from tests.datasource.source_rows import as_in_truth, order, true_changes, typed_difference
from tests.replicator.test_containers import dictionaries, twins

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPLIT_BYTES = 20_000


def in_order(row: dict[str, Any]) -> tuple[Any, ...]:
    return *order(row), row["table"]


def test_a_stream_has_the_truth_of_both(spark: SparkSession, tmp_path: Path) -> None:
    """Log by log, with DDL in both."""
    twins(tmp_path, size=60_000, ddl=DdlUse.ANY, pace=Pace(log_blocks=50))
    assert len(list((tmp_path / "logs").iterdir())) > 1
    source: Any = SimpleNamespace(truth=(tmp_path / "truth.jsonl").read_bytes())
    stream = spark.readStream.format("olr_pg").option("splitBytes", SPLIT_BYTES)
    stream = stream.option("dictionary", json.dumps(dictionaries(tmp_path)))
    (
        stream.load(str(tmp_path / "logs"), maxFilesPerTrigger=1)
        .writeStream.format("parquet").trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "rows"))
        .awaitTermination()
    )  # fmt: skip
    rows = [as_in_truth(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(rows, key=in_order) == sorted(true_changes(source), key=in_order)
    names = {row["table"].partition(".")[0] for row in rows}
    assert {"SIMPDB", "OTHERPDB"} <= names


def test_both_are_their_truth(spark: SparkSession, tmp_path: Path) -> None:
    twins(tmp_path, size=100_000)
    truth: Any = SimpleNamespace(truth=(tmp_path / "truth.jsonl").read_bytes())
    wanted = true_changes(truth)
    reader = spark.read.format("olr_pg").option("splitBytes", SPLIT_BYTES)
    reader = reader.option("dictionary", json.dumps(dictionaries(tmp_path)))
    logs = str(tmp_path / "logs")
    rows = [as_in_truth(row) for row in reader.load(logs).collect()]
    assert sorted(rows, key=in_order) == sorted(wanted, key=in_order)
    names = {row["table"] for row in rows}
    assert {name.partition(".")[0] for name in names} == {"SIMPDB", "OTHERPDB"}
    # A table by its container's name, of those whose name both have.
    (name, *_) = sorted(
        one for one in names if one.replace("SIMPDB.", "OTHERPDB.") in names - {one}
    )
    for table in (name, name.replace("SIMPDB.", "OTHERPDB.")):
        found = (row.asDict(recursive=True) for row in reader.load(logs, table=table).collect())
        own = [one for one in wanted if one["table"] == table]
        assert typed_difference(found, own) is None
