"""Broadcasts on a real local Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from olr_pg.spark.jobs import KEPT, Broadcasts

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession


def path_of(broadcast: Broadcast[bytes]) -> Path:
    return Path(str(broadcast._path))


def test_the_same_bytes_are_sent_once(spark: SparkSession) -> None:
    broadcasts = Broadcasts()
    with broadcasts.borrow(spark.sparkContext, b"same") as first:
        assert first.value == b"same"
    with broadcasts.borrow(spark.sparkContext, b"same") as second:
        assert second is first


def test_what_was_not_used_for_longest_goes(spark: SparkSession) -> None:
    broadcasts = Broadcasts()
    paths = []
    with broadcasts.borrow(spark.sparkContext, b"in use") as used:
        for number in range(KEPT + 1):
            with broadcasts.borrow(spark.sparkContext, b"%d" % number) as broadcast:
                paths.append(path_of(broadcast))
        assert [path.exists() for path in paths] == [False, False, True]
        assert path_of(used).exists()
