"""The Spark session, the Java it runs on, and the decode job."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA_SOURCE: Final = "olr_pg.datasource.source"
"""By its name, since it stands on decoding, which this room knows nothing of."""


def register(spark: SparkSession) -> None:
    """Let a session know the format "olr_pg": ``spark.read.format("olr_pg")``."""
    importlib.import_module(_DATA_SOURCE).register(spark)
