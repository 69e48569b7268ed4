"""What a configuration says about Spark, as its session takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from olr_pg.config.process_sections import Spark


def spark_settings(config: Spark, preload: tuple[str, ...]) -> SparkSettings:
    """Make the settings of a session.

    Args:
        preload: what its workers are warmed with.
    """
    results = None if config.results is None else str(config.results)
    return SparkSettings(config.master, dict(config.conf), preload, results)
