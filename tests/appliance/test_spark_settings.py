"""The section `spark` of the configuration becomes a session's settings."""

from __future__ import annotations

from pathlib import Path

from olr_pg.appliance.spark_settings import spark_settings
from olr_pg.config.process_sections import Spark
from olr_pg.spark.session import SparkSettings


def test_all_of_the_section_arrives() -> None:
    section = Spark(master="spark://host:7077", conf={"spark.a": "b"}, results=Path("/mnt/shared"))
    expected = SparkSettings("spark://host:7077", {"spark.a": "b"}, ("module",), "/mnt/shared")
    assert spark_settings(section, ("module",)) == expected
    assert spark_settings(Spark(), ()).results is None
