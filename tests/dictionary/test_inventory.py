"""The types of an inventory's columns are those that the mapping to PostgreSQL knows."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.datatypes.mapping import pg_type, refusal
from olr_pg.dictionary.inventory import (
    InventoryColumn,
    named_version,
    oracle_type_text,
    release_name,
    typed_column,
)


@pytest.mark.parametrize(
    ("column", "declared", "expected"),
    [
        ({"data_type": "NUMBER", "precision": 9, "scale": 0}, "NUMBER(9,0)", "integer"),
        ({"data_type": "NUMBER", "scale": 0}, "NUMBER(*,0)", "numeric(38,0)"),
        ({"data_type": "FLOAT", "precision": 126}, "FLOAT", "numeric"),
        (
            {"data_type": "NVARCHAR2", "length": 40, "char_length": 20},
            "NVARCHAR2(20 CHAR)",
            "varchar(20)",
        ),
        (
            {"data_type": "TIMESTAMP(3) WITH TIME ZONE", "scale": 3},
            "TIMESTAMP(3) WITH TIME ZONE",
            "timestamptz(3)",
        ),
        (
            {"data_type": "INTERVAL DAY(2) TO SECOND(6)", "scale": 6},
            "INTERVAL DAY(2) TO SECOND(6)",
            "interval day to second(6)",
        ),
        ({"data_type": "RAW", "length": 16}, "RAW(16)", "bytea"),
        ({"data_type": "LONG RAW"}, "LONG RAW", "bytea"),
        ({"data_type": "XMLTYPE", "type_owner": "PUBLIC"}, "XMLTYPE", "xml"),
        ({"data_type": "NCLOB"}, "NCLOB", "text"),
    ],
)
def test_a_type(column: dict[str, Any], declared: str, expected: str) -> None:
    found = InventoryColumn(name="C", **column)
    assert oracle_type_text(found) == declared
    assert pg_type(typed_column(found)).name == expected


def test_types_of_users_and_unknown_ones_have_a_reason() -> None:
    for data_type, owner in (("ADDRESS_T", "SHOP"), ("SOMETHING", ""), ("BFILE", "")):
        column = InventoryColumn(name="C", data_type=data_type, type_owner=owner)
        assert refusal(typed_column(column))


VERSIONS = {
    "11g Release 2": [f"11.2.0.{patch}.0" for patch in range(1, 5)],
    "12c Release 1": ["12.1.0.1.0", "12.1.0.2.0"],
    "12c Release 2": ["12.2.0.1.0"],
    "18c": ["18.0.0.0.0", *(f"18.{update}.0.0.0" for update in range(3, 15))],
    "19c": ["19.0.0.0.0", *(f"19.{update}.0.0.0" for update in range(3, 31))],
    "21c": ["21.0.0.0.0", *(f"21.{update}.0.0.0" for update in range(3, 21))],
    "23ai": [f"23.{update}.0.0.0" for update in range(2, 10)] + ["23.4.0.24.5", "23.9.0.25.7"],
    # V$INSTANCE.VERSION, which an inventory of an older version has, is the same of both.
    "23ai or 26ai": ["23.0.0.0.0"],
    "26ai": ["23.26.0.0.0", "23.26.1.0.0", "23.26.2.1.0", "23.27.1.0.0"],
}
"""VERSION_FULL of every release that is supported, since 18 with its release updates."""


@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for name, versions in VERSIONS.items() for version in versions],
)
def test_every_version_has_the_name_of_its_release(version: str, name: str) -> None:
    assert release_name(version) == name
    assert named_version(version) == f"{name} ({version})"


@pytest.mark.parametrize(
    "version", ["", "10.2.0.5.0", "11.1.0.7.0", "12.3.0.0.0", "20.2.0.0.0", "22.1.0.0.0", "27.1.0"]
)
def test_other_versions_have_none(version: str) -> None:
    assert release_name(version) is None
    assert named_version(version) == version
