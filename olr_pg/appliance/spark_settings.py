"""Makes the settings of a Spark session from the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from olr_pg.config.model import Config


def spark_settings(config: Config, preload: tuple[str, ...]) -> SparkSettings:
    """Return the settings of a session.

    Args:
        preload: the modules, or functions as ``module:function``, with which the workers warm up.
    """
    spark = config.spark
    return SparkSettings(
        spark.master,
        dict(spark.conf),
        preload,
        None if spark.results is None else str(spark.results),
        encrypted=config.context.is_encrypted,
    )
