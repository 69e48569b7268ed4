"""Runs the Spark session, and the jobs in it that decode redo."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA_SOURCE: Final = "olr_pg.datasource.source"
"""The data source is given by its name, because it depends on decoding, which this folder must not
import.
"""


def register(spark: SparkSession) -> None:
    """Register the format "olr_pg" in a session: ``spark.read.format("olr_pg")``."""
    importlib.import_module(_DATA_SOURCE).register(spark)
