"""The section `spark` of the configuration becomes a session's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from olr_pg.appliance.spark_settings import spark_settings
from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.files.sealed import NO_PLAIN_FILES
from olr_pg.spark.session import RESULTS_PROPERTY, SparkSettings, default_properties


def config(**sections: Any) -> Config:
    source = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
    return parse_config({"source": source, **sections}, Path("/"))


def test_all_of_the_section_arrives() -> None:
    section = {"master": "spark://host:7077", "conf": {"spark.a": "b"}, "results": "/mnt/shared"}
    expected = SparkSettings("spark://host:7077", {"spark.a": "b"}, ("module",), "/mnt/shared")
    assert spark_settings(config(spark=section), ("module",)) == expected
    assert spark_settings(config(), ()).results is None


def test_with_a_key_spark_encrypts_and_results_are_no_files() -> None:
    settings = spark_settings(config(context={"encryption-key": "x"}), ())
    properties = default_properties(settings, Path("/scratch"))
    assert properties["spark.io.encryption.enabled"] == "true"
    assert RESULTS_PROPERTY not in properties
    assert f"spark.executorEnv.{NO_PLAIN_FILES}" in properties
    plain = default_properties(spark_settings(config(), ()), Path("/scratch"))
    assert plain[RESULTS_PROPERTY] == "/scratch"
    assert "spark.io.encryption.enabled" not in plain
