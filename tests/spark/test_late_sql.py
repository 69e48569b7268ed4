"""A session that has the context at once, and SQL with its first use."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.late_sql import LateSqlSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def has_sql(session: SparkSession) -> bool:
    return "_jsparkSession" in vars(session)


def test_tasks_need_no_sql(spark: SparkSession) -> None:
    session = LateSqlSession(spark.sparkContext)
    assert list(run_tasks(session, [b"1"], lambda payload: payload)) == [(0, b"1")]
    assert not has_sql(session)
    assert not hasattr(session, "__deepcopy__")
    assert session.sparkContext is spark.sparkContext


def test_what_needs_it_begins_it_once(spark: SparkSession) -> None:
    session = LateSqlSession(spark.sparkContext)
    found = list[str]()
    threads = [Thread(target=lambda: found.append(session.version)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [spark.sparkContext.version] * 2
    assert has_sql(session)
