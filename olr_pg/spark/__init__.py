"""The Spark session, the Java that it runs on, and the jobs that decode."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA_SOURCE: Final = "olr_pg.datasource.source"
"""Given by name, because it depends on decoding, which this room must not import."""


def register(spark: SparkSession) -> None:
    """Register the format "olr_pg" in a session: ``spark.read.format("olr_pg")``."""
    importlib.import_module(_DATA_SOURCE).register(spark)
