"""Parquet that Spark's tasks write: the rows of the truth, or nothing that is seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from olr_pg.datasource import parquet_writing
from olr_pg.datasource.parquet_writing import write_parquet
from olr_pg.errors import Code, OlrPgError
from tests.datasource.source_rows import as_in_truth, order, true_changes, typed_difference
from tests.replicator.ddl_source import write_invalid_date
from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPLIT_BYTES = 20_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(7, 200_000).simulated(tmp_path_factory.mktemp("source"))


def options(source: Source, **more: Any) -> dict[str, Any]:
    dictionary = str(source.folder / "dictionary.json")
    return {"dictionary": dictionary, "splitBytes": SPLIT_BYTES} | more


def logs(source: Source) -> str:
    return str(source.folder / "logs")


def seen(folder: Path) -> list[str]:
    """The files that readers see."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(str(file) for file in files if not file.parts[0].startswith("_"))


def test_the_files_have_the_rows_and_columns_of_a_query(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    done = write_parquet(spark, logs(source), tmp_path / "lake", **options(source))
    rows = pq.read_table(tmp_path / "lake").to_pylist()
    truth = true_changes(source)
    assert sorted(map(as_in_truth, rows), key=order) == sorted(truth, key=order)
    found = seen(tmp_path / "lake")
    assert (done.files, done.rows) == (len(found), len(truth))
    assert done.files > 1
    assert done.size == sum((tmp_path / "lake" / name).stat().st_size for name in found)
    assert (tmp_path / "lake" / "_SUCCESS").exists()
    assert not (tmp_path / "lake" / "_temporary").exists()
    query = spark.read.format("olr_pg").options(**options(source)).load(logs(source))
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert lake.schema.simpleString() == query.schema.simpleString()
    assert lake.exceptAll(query).isEmpty()


def test_values_of_a_table_are_those_of_the_truth(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    truth = true_changes(source)
    for table in {change["table"] for change in truth}:
        write_parquet(spark, logs(source), tmp_path / table, **options(source, table=table))
        rows = pq.read_table(tmp_path / table).to_pylist()
        wanted = [one for one in truth if one["table"] == table]
        assert typed_difference(rows, wanted) is None


def test_each_day_has_a_folder(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    write_parquet(spark, logs(source), tmp_path / "lake", by_day=True, **options(source))
    for name in seen(tmp_path / "lake"):
        days = pq.read_table(tmp_path / "lake" / name, partitioning=None)["commit_time"].to_pylist()
        assert {f"commit_date={day:%Y-%m-%d}" for day in days} == {name.partition("/")[0]}
    rows = pq.read_table(tmp_path / "lake").to_pylist()
    assert sorted(map(as_in_truth, rows), key=order) == sorted(true_changes(source), key=order)


def test_commits_and_columns_are_those_that_are_asked_for(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    truth = true_changes(source)
    scns = sorted({change["commit_scn"] for change in truth})
    low, high = scns[len(scns) // 3], scns[len(scns) // 2]
    chosen = options(source, startScn=low, endScn=high)
    schema = "position bigint, op string"
    write_parquet(spark, [logs(source)], tmp_path / "lake", schema=schema, **chosen)
    rows = pq.read_table(tmp_path / "lake").to_pylist()
    wanted = [change for change in truth if low <= change["commit_scn"] <= high]
    assert sorted((row["position"], row["op"]) for row in rows) == sorted(
        (change["position"], change["op"]) for change in wanted
    )
    nothing = write_parquet(
        spark, logs(source), tmp_path / "none", **options(source, startScn=scns[-1] + 1)
    )
    assert nothing == (0, 0, 0, 0)
    assert "before" in pq.read_table(tmp_path / "none").column_names


def test_invalid_dates_are_errors_or_become_null(spark: SparkSession, tmp_path: Path) -> None:
    write_invalid_date(tmp_path)
    logs, lake = str(tmp_path / "logs"), tmp_path / "lake"
    dictionary = str(tmp_path / "dictionary.json")
    chosen: dict[str, Any] = {"dictionary": dictionary, "table": "SHOP.DATES"}
    with pytest.raises(Exception, match="OLR-02050"):
        write_parquet(spark, logs, lake, **chosen)
    written = write_parquet(spark, logs, lake, **chosen, invalidDate="null")
    assert (written.rows, written.invalid_dates) == (1, 1)
    of_table = spark.read.format("olr_pg").options(**chosen, invalidDate="null").load(logs)
    assert [tuple(row) for row in of_table.select("after.ID", "after.DAY").collect()] == [
        ("1", None)
    ]
    schema = "op string, after string"
    texts = spark.read.format("olr_pg").options(**chosen, invalidDate="null").schema(schema)
    assert [row.after for row in texts.load(logs).collect()] == ['{"ID":1,"DAY":null}']
    with pytest.raises(OlrPgError, match="expected error or null"):
        write_parquet(spark, logs, lake, **chosen, invalidDate="skip")


def test_files_that_are_there_are_kept_unless_it_is_said(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    def write(mode: str) -> None:
        write_parquet(spark, logs(source), tmp_path, mode=mode, **options(source, table=table))

    table = true_changes(source)[0]["table"]
    (tmp_path / "older.parquet").touch()
    with pytest.raises(OlrPgError) as refused:
        write("error")
    assert refused.value.code == 6010
    assert seen(tmp_path) == ["older.parquet"]
    write("overwrite")
    once = seen(tmp_path)
    assert "older.parquet" not in once
    write("append")
    assert len(seen(tmp_path)) == 2 * len(once)
    assert set(once) < set(seen(tmp_path))
    with pytest.raises(OlrPgError, match="ignore"):
        write("ignore")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"mode": "replace"}, "mode is 'replace', expected error, append, overwrite"),
        ({"compression": "zip"}, "compression is 'zip', expected snappy"),
        ({"schema": "op string, scm bigint"}, "no column scm"),
        ({"schema": "op string", "by_day": True}, "files by day need the column"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession, source: Source, tmp_path: Path, wrong: dict[str, Any], reason: str
) -> None:
    with pytest.raises(OlrPgError, match=reason) as caught:
        write_parquet(spark, logs(source), tmp_path / "rows", **options(source, **wrong))
    assert caught.value.code == Code.DATA_SOURCE_OPTION
    assert not (tmp_path / "rows").exists()


def test_of_what_fails_nothing_is_seen(
    spark: SparkSession, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The driver accepts what the tasks cannot write.
    monkeypatch.setattr(parquet_writing, "_COMPRESSIONS", ("none such",))
    with pytest.raises(OlrPgError) as raised:
        write_parquet(
            spark, logs(source), tmp_path / "lake", compression="none such", **options(source)
        )
    assert raised.value.code == 1210
    assert list((tmp_path / "lake").iterdir()) == []
    monkeypatch.undo()
    (tmp_path / "file").touch()
    with pytest.raises(OlrPgError) as raised:
        write_parquet(spark, logs(source), tmp_path / "file" / "lake", **options(source))
    assert raised.value.code == 1210


def test_files_are_as_open_to_others_as_the_driver_says(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        write_parquet(spark, logs(source), tmp_path / "lake", **options(source))
    finally:
        assert os.umask(before) == 0o027
    assert {
        (tmp_path / "lake" / name).stat().st_mode & 0o777 for name in seen(tmp_path / "lake")
    } == {0o640}
