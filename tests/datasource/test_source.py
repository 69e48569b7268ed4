"""The data source in a real Spark session, against the truth."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import pytest
from numpy import float32
from pyspark.errors import PySparkException

from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SIZE = 200_000
SPLIT_BYTES = 20_000


def frame(spark: SparkSession, source: Source, **options: Any) -> DataFrame:
    reader = spark.read.format("olr_pg").option("splitBytes", SPLIT_BYTES)
    reader = reader.option("dictionary", str(source.folder / "dictionary.json"))
    logs = options.pop("logs", str(source.folder / "logs"))
    return reader.options(**options).load(logs)


def parsed(text: str | bytes) -> Any:
    """JSON with exact numbers."""
    return json.loads(text, parse_float=Decimal)


def true_changes(source: Source) -> list[dict[str, Any]]:
    """The rows of the truth, each with its place in its transaction."""
    found, position = [], 0
    for element in map(parsed, source.truth.splitlines()):
        if element["op"] == "begin":
            position = 0
        elif element["op"] != "commit":
            found.append(element | {"position": position})
            position += 1
    return found


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["commit_scn"], row["xid"], row["position"], row["scn"], row["rowid"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(7, SIZE).simulated(tmp_path_factory.mktemp("source"))


def as_in_truth(row: Any) -> dict[str, Any]:
    """A row of the data frame as a line of the truth."""
    found = {name: row[name] for name in ("op", "scn", "commit_scn", "xid", "rowid", "position")}
    found["table"] = f"{row['owner']}.{row['table']}"
    images = {name: row[name] for name in ("before", "after") if row[name] is not None}
    return found | {name: parsed(image) for name, image in images.items()}


@pytest.mark.parametrize("seed", [3, 7, 10])
def test_the_rows_are_those_of_the_truth(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    rows = [as_in_truth(row) for row in frame(spark, source).collect()]
    assert sorted(rows, key=order) == sorted(true_changes(source), key=order)
    assert rows


def test_logs_behind_a_url_are_read_by_the_tasks(spark: SparkSession, source: Source) -> None:
    stored = frame(spark, source, logs=f"file://{source.folder}/logs/*")
    assert sorted(map(as_in_truth, stored.collect()), key=order) == sorted(
        true_changes(source), key=order
    )


def as_json(value: Any, like: Any) -> Any:
    """A typed value as ``olr-pg decode`` prints it."""
    match value:
        case bytes() | bytearray():
            return value.hex()
        case datetime():
            # Of a time with its zone only the moment stays, which Spark shows as local time.
            shown = datetime.fromisoformat(like)
            return like if shown == (value.astimezone() if shown.tzinfo else value) else value
        case Decimal():
            return like if like == value else value
        case float() if isinstance(like, str):
            return like if isnan(value) or isinf(value) else value
        case float():
            return like if float32(like) == float32(value) else value
        case str() if not isinstance(like, str):
            return parsed(value)
    return value


@pytest.mark.parametrize("seed", [7, 12])
def test_values_of_a_table_are_those_of_the_truth(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    truth = true_changes(source)
    for table in {change["table"] for change in truth}:
        changes = frame(spark, source, table=table)
        rows = sorted(map(dict, (row.asDict() for row in changes.collect())), key=order)
        wanted = sorted((one for one in truth if one["table"] == table), key=order)
        assert len(rows) == len(wanted)
        for row, change in zip(rows, wanted, strict=True):
            for image in ("before", "after"):
                values = {} if row[image] is None else row[image].asDict()
                known = change.get(image, {})
                shown = {name: as_json(values[name], value) for name, value in known.items()}
                assert shown == known
                assert all(values[name] is None for name in values.keys() - known.keys())


def test_a_query_gets_the_commits_that_it_asks_for(spark: SparkSession, source: Source) -> None:
    truth = true_changes(source)
    scns = sorted({change["commit_scn"] for change in truth})
    low, high = scns[len(scns) // 3], scns[len(scns) // 2]
    changes = frame(spark, source).where(f"commit_scn between {low} and {high}")
    rows = [as_in_truth(row) for row in changes.collect()]
    wanted = [change for change in truth if low <= change["commit_scn"] <= high]
    assert sorted(rows, key=order) == sorted(wanted, key=order)
    same = frame(spark, source, startScn=low, endScn=high)
    assert sorted(map(as_in_truth, same.collect()), key=order) == sorted(wanted, key=order)
    assert changes.rdd.getNumPartitions() < frame(spark, source).rdd.getNumPartitions()
    late = changes.selectExpr("max(commit_time) + interval 1 day as day").first()
    assert late is not None
    assert frame(spark, source).where(f"commit_time > timestamp_ntz'{late.day}'").count() == 0


def test_columns_that_are_asked_for_are_those_that_come(
    spark: SparkSession, source: Source
) -> None:
    reader = spark.read.format("olr_pg").schema("position bigint, op string")
    reader = reader.option("dictionary", str(source.folder / "dictionary.json"))
    rows = reader.load(str(source.folder / "logs")).collect()
    wanted = [(change["position"], change["op"]) for change in true_changes(source)]
    assert sorted(map(tuple, rows)) == sorted(wanted)


def test_what_is_no_option_is_refused(spark: SparkSession, source: Source) -> None:
    with pytest.raises(PySparkException, match=r"OLR-06040.*tabel"):
        frame(spark, source, tabel="A.B")
