"""Values of the configuration file, one type after the other."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from olr_pg.config.fields import (
    ListedTable,
    SparkMaster,
    Timezone,
    is_secret_property,
    major_version,
)


def accepts(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("value", "major"),
    [(1, 1), ("1.2", 1), ("v3.2.3", 3), ("1.3.0-beta", 1), ("x", None), (True, None), (None, None)],
)
def test_versions(value: object, major: int | None) -> None:
    assert major_version(value) == major


@pytest.mark.parametrize("zone", ["+02:00", "Europe/Berlin", "-11:30"])
def test_zones(zone: str) -> None:
    assert accepts(Timezone, zone)
    assert not accepts(Timezone, "Europe/Nowhere")


def test_masters() -> None:
    assert all(accepts(SparkMaster, one) for one in ("local", "local[2,3]", "spark://h:7077"))
    assert not any(accepts(SparkMaster, one) for one in ("locale", "local[", "mesos"))


def test_properties_with_secrets() -> None:
    assert is_secret_property("spark.hadoop.fs.s3a.secret.key")
    assert not is_secret_property("spark.driver.memory")


def test_a_percent_sign_in_the_name_of_a_table_is_quoted() -> None:
    assert accepts(ListedTable, '"SHOP"."ORD%X"')
    assert not accepts(ListedTable, "SHOP.%")
