"""A session of Spark for as long as a block runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from olr_pg.spark.session import SparkSettings, get_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def spark_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """Hold the process's session, which is stopped at the end."""
    try:
        yield get_session(settings)
    finally:
        stop_session()
