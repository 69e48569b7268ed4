"""The data source in a real Spark session, against the truth.

The stream in a real Spark session, with a checkpoint, over restarts.
"""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructType

from olr_pg.datasource.source import RedoSource
from olr_pg.errors import OlrPgError
from olr_pg.proving.scenario import parse_scenario
from olr_pg.scalars import MAX_SCN
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.sql.scripts import simulate_script
from tests.datasource.source_rows import as_in_truth, order, true_changes, typed_difference
from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from olr_pg.capture.archived_log import ArchivedLog

SIZE = 200_000
SPLIT_BYTES = 20_000


def frame(spark: SparkSession, source: Source, **options: Any) -> DataFrame:
    reader = spark.read.format("olr_pg").option("splitBytes", SPLIT_BYTES)
    reader = reader.option("dictionary", str(source.folder / "dictionary.json"))
    logs = options.pop("logs", str(source.folder / "logs"))
    return reader.options(**options).load(logs)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(7, SIZE).simulated(tmp_path_factory.mktemp("source"))


@pytest.mark.parametrize("seed", [3, 7])
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


@pytest.mark.parametrize("seed", [12])
def test_values_of_a_table_are_those_of_the_truth(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    source = SimulatedSeed(seed, SIZE).simulated(tmp_path)
    truth = true_changes(source)
    for table in {change["table"] for change in truth}:
        changes = frame(spark, source, table=table)
        rows = (row.asDict(recursive=True) for row in changes.collect())
        wanted = [one for one in truth if one["table"] == table]
        assert typed_difference(rows, wanted) is None


def test_a_query_gets_the_commits_that_it_asks_for(spark: SparkSession, source: Source) -> None:
    truth = true_changes(source)
    scns = sorted({change["commit_scn"] for change in truth})
    low, high = scns[len(scns) // 3], scns[len(scns) // 2]
    some = frame(spark, source, startScn=low, endScn=high)
    wanted = [change for change in truth if low <= change["commit_scn"] <= high]
    assert sorted(map(as_in_truth, some.collect()), key=order) == sorted(wanted, key=order)
    assert some.rdd.getNumPartitions() < frame(spark, source).rdd.getNumPartitions()


@pytest.mark.parametrize("pushed", ["false", "true"])
def test_a_condition_of_one_query_restricts_no_other_query_of_the_same_frame(
    spark: SparkSession, source: Source, pushed: str
) -> None:
    """Spark 4 stores what a pushed condition leaves in the frame, for all queries of it."""
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, pushed)
    try:
        changes = frame(spark, source)
        scns = sorted(change["commit_scn"] for change in true_changes(source))
        middle = scns[len(scns) // 2]
        early = changes.where(f"commit_scn < {middle}")
        late = changes.where(f"commit_scn >= {middle}")
        count = sum(scn < middle for scn in scns)
        assert early.union(late).count() == len(scns)
        assert (early.count(), late.count()) == (count, len(scns) - count)
        assert changes.count() == len(scns)
    finally:
        spark.conf.unset(setting)


def test_columns_that_are_asked_for_are_those_that_come(
    spark: SparkSession, source: Source
) -> None:
    reader = spark.read.format("olr_pg").schema("position bigint, op string")
    reader = reader.option("dictionary", str(source.folder / "dictionary.json"))
    rows = reader.load(str(source.folder / "logs")).collect()
    wanted = [(change["position"], change["op"]) for change in true_changes(source)]
    assert sorted(map(tuple, rows)) == sorted(wanted)


ORDERS = """
-- purpose: rows of which updates set a part
CREATE TABLE orders (id NUMBER(10) PRIMARY KEY, status VARCHAR2(9), total NUMBER(12, 2));
ALTER TABLE orders ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
INSERT INTO orders VALUES (1, 'new', 9999999999.99);
INSERT INTO orders VALUES (2, 'new', 2);
INSERT INTO orders VALUES (3, 'new', 3);
COMMIT;
UPDATE orders SET status = 'paid' WHERE id = 1;
UPDATE orders SET status = NULL WHERE id = 3;
UPDATE orders SET id = 4 WHERE id = 3;
DELETE FROM orders WHERE id = 2;
COMMIT;
"""


def test_the_pages_query_of_a_table_as_of_an_scn_finds_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    scenario = parse_scenario(ORDERS, "script")
    simulate_script(7, tmp_path, demo_shape(), scenario.steps, scenario.start)
    page = (Path(__file__).parents[2] / "docs/data-source.md").read_text()
    query = page.split("What did the table contain at an SCN?")[1].split("```")[1]
    for name, own in (
        ("python\n", ""), ("SHOP.", "APP."), ("/archive", str(tmp_path / "logs")),
        ("dictionary.json", str(tmp_path / "dictionary.json")),
    ):  # fmt: skip
        query = query.replace(name, own)
    found: dict[str, Any] = {"spark": spark}
    exec(query, found)
    rows = [tuple(row) for row in found["as_of"].orderBy("ID").collect()]
    assert rows == [(1, "paid", Decimal("9999999999.99")), (4, None, Decimal("3.00"))]


def test_what_is_no_option_is_refused(spark: SparkSession, source: Source) -> None:
    with pytest.raises(PySparkException, match=r"OLR-06040.*tabel"):
        frame(spark, source, tabel="A.B")


def test_a_column_that_there_is_not_is_refused(source: Source) -> None:
    options = {"path": str(source.folder / "logs"), "dictionary": "unread"}
    columns = StructType().add("op", StringType()).add("scm", StringType())
    for reader in (RedoSource(options).reader, RedoSource(options).streamReader):
        with pytest.raises(OlrPgError, match="no column scm"):
            reader(columns)


def test_a_column_of_a_struct_that_differs_in_case_is_refused(
    spark: SparkSession, source: Source
) -> None:
    table = source.snapshot.tables[0].full_name
    column = source.snapshot.tables[0].columns[0].name
    reader = spark.read.format("olr_pg").schema(f"after struct<{column.lower()}: string>")
    reader = reader.option("dictionary", str(source.folder / "dictionary.json"))
    with pytest.raises(PySparkException, match=rf"OLR-06040.*did you mean after\.{column}"):
        reader.option("table", table).load(str(source.folder / "logs")).count()


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


def test_both_limits_are_refused() -> None:
    limits = {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"}
    source = RedoSource({"path": "unread", "dictionary": "unread", **limits})
    with pytest.raises(OlrPgError, match=r"OLR-06040.*only one of"):
        source.streamReader(StructType().add("op", StringType()))
