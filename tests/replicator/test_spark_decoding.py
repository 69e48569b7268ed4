"""Where splits are decoded, and what Spark's page says of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.archived_log import FoundLog, LogPosition
from olr_pg.capture.logs import open_log
from olr_pg.decoding.split import Split, plan_splits, subscribe
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.replicator import spark_decoding
from olr_pg.replicator.kernel_warmup import unpack_logs
from olr_pg.replicator.spark_decoding import SparkDecoding, SplitCounts, describe
from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from olr_pg.decoding.split import Subscription

NO_SPARK = SparkSettings("local[1]")


@pytest.fixture
def source(tmp_path: Path) -> tuple[Subscription, list[Split]]:
    """A subscription, and splits of the package's small logs."""
    unpack_logs(tmp_path)
    snapshot = load_snapshot(str(tmp_path / "dictionary.json"))
    logs = sorted(path for path in (tmp_path / "logs").iterdir() if path.is_file())
    splits = [
        split for path in logs for split in plan_splits(open_log(str(path)), split_bytes=64 * 1024)
    ]
    return subscribe(snapshot.tables, snapshot.database.con_id), splits


@pytest.mark.usefixtures("one_session")
def test_here_and_on_spark_the_results_are_the_same(
    source: tuple[Subscription, list[Split]],
) -> None:
    subscription, splits = source
    size = sum(split.size for split in splits)
    here = SparkDecoding(NO_SPARK, here_bytes=size)
    on_spark = SparkDecoding(NO_SPARK, here_bytes=size - 1)

    for one, other in zip(
        here.decode(subscription, splits), on_spark.decode(subscription, splits), strict=True
    ):
        assert one.account == other.account
        assert one.watermark == other.watermark
        for mine, its in zip(one.encoded, other.encoded, strict=True):
            assert mine.messages.blob.tobytes() == its.messages.blob.tobytes()
    assert here.counts == SplitCounts(here=len(splits))
    assert on_spark.counts == SplitCounts(by_spark=len(splits))


def test_little_redo_needs_no_session(
    source: tuple[Subscription, list[Split]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(spark_decoding, "get_session")
    subscription, splits = source
    results = SparkDecoding(NO_SPARK).decode(subscription, splits)
    assert all(result.failure is None for result in results)


@pytest.mark.usefixtures("one_session")
def test_while_the_session_starts_a_backlog_is_decoded_here(
    source: tuple[Subscription, list[Split]], monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, splits = source
    starts = threading.Event()
    at_once: Callable[[SparkSettings], SparkSession] = vars(spark_decoding)["get_session"]

    def start(settings: SparkSettings) -> SparkSession:
        starts.wait()
        return at_once(settings)

    monkeypatch.setattr(spark_decoding, "get_session", start)
    decoding = SparkDecoding(NO_SPARK, here_bytes=0, waits=False)
    results = decoding.decode(subscription, splits)
    first = [next(results), next(results)]
    starts.set()
    for thread in threading.enumerate():
        if thread.name == "olr-spark-start":
            thread.join()
    rest = list(results)
    assert decoding.counts == SplitCounts(here=2, by_spark=len(splits) - 2)
    expected = list(SparkDecoding(NO_SPARK).decode(subscription, splits))
    assert [one.account for one in first + rest] == [one.account for one in expected]


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("here_bytes", [0, 1 << 20])
def test_what_a_split_raises_is_the_same_error(
    source: tuple[Subscription, list[Split]], here_bytes: int
) -> None:
    subscription, splits = source
    gone = splits[0]._replace(path=splits[0].path + "-gone")
    with pytest.raises(OlrPgError) as raised:
        list(SparkDecoding(NO_SPARK, here_bytes).decode(subscription, [gone]))
    assert raised.value.code == 2002


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("here_bytes", [0, 1 << 20])
def test_what_nobody_foresaw_has_a_code(
    source: tuple[Subscription, list[Split]], here_bytes: int
) -> None:
    subscription, splits = source
    place: Any = "nowhere"
    no_place = splits[0]._replace(first_block=place)
    with pytest.raises(OlrPgError, match="TypeError") as raised:
        list(SparkDecoding(NO_SPARK, here_bytes).decode(subscription, [no_place]))
    assert raised.value.code == 6004


# The session is there before the folder is changed.
@pytest.mark.usefixtures("spark", "one_session")
def test_a_log_that_only_the_appliance_has_is_a_missing_mount(
    source: tuple[Subscription, list[Split]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # The workers' folder is another one, so that they do not find it.
    monkeypatch.chdir(tmp_path)
    subscription, splits = source
    near = splits[0]._replace(path=str(Path(splits[0].path).relative_to(tmp_path)))
    cluster = SparkDecoding(SparkSettings("spark://a-cluster:7077"), here_bytes=0)
    with pytest.raises(OlrPgError) as raised:
        list(cluster.decode(subscription, [near]))
    assert raised.value.code == 6008
    assert raised.value.where["file"] == near.path
    gone = splits[0]._replace(path="nowhere")
    with pytest.raises(OlrPgError) as raised:
        list(cluster.decode(subscription, [gone]))
    assert raised.value.code == 2002


def test_a_description_names_threads_logs_and_the_amount() -> None:
    def part(thread: int, sequence: int, size: int) -> Split:
        log = FoundLog(LogPosition(1, thread, sequence, 1), 1, None)
        return Split("log", 1, 2, size, 0, log)

    some = [part(1, number, 262_500_000) for number in range(118, 126)]
    assert describe(some) == "decode thread 1, logs 118–125, 2.1 GB"
    assert describe([part(2, 7, 15_700_000)]) == "decode thread 2, log 7, 16 MB"
    both = [part(2, 9, 1_000_000), part(1, 5, 1_000_000), part(1, 6, 0)]
    assert describe(both) == "decode thread 1, logs 5–6; thread 2, log 9, 2 MB"
