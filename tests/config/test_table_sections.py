"""The `filter` section: what fits its patterns, and what no condition is.

Choices of types and names in the configuration, as the datatypes take them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from olr_pg.config.reading import ConfigError
from olr_pg.config.table_sections import Filter
from olr_pg.datatypes.choices import DEFAULT_CHOICES, Choices, ColumnChoice
from tests.config.test_model import APPLY, parse

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Apply


def test_nothing_is_left_out_by_default() -> None:
    empty = Filter.model_validate({})
    assert empty.tables.include == empty.tables.exclude == ()
    assert (empty.columns, empty.operations, empty.rows) == ({}, {}, ())
    assert not any(dict(empty.transactions).values())


@pytest.mark.parametrize(
    "section",
    [
        {"tables": {"include": [""]}},
        {"operations": {"SHOP.*": []}},
        {"operations": {"SHOP.*": ["truncate"]}},
        {"transactions": {"xids": ["1.2"]}},
        {"rows": [{"table": "SHOP.*", "where": "ID >"}]},
        {"rows": [{"table": "SHOP.*", "where": "ID > (SELECT 1 FROM DUAL)"}]},
    ],
)
def test_what_cannot_be_meant_is_refused(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Filter.model_validate(section)


def test_what_is_said_is_kept() -> None:
    section = {
        "operations": {"SHOP.*": ["delete"]},
        "rows": [{"table": "SHOP.*", "where": "ID > 5"}],
        "transactions": {"xids": ["1.2.3"], "os-users": ["batch*"]},
    }
    read = Filter.model_validate(section)
    assert read.operations == {"SHOP.*": ("delete",)}
    assert read.rows[0].where == "ID > 5"
    assert (read.transactions.xids, read.transactions.os_users) == (("1.2.3",), ("batch*",))


def apply_of(folder: Path, **keys: Any) -> Apply:
    found = parse(folder, apply=APPLY | keys).apply
    assert found is not None
    return found


def test_without_a_choice_the_default_loses_nothing(tmp_path: Path) -> None:
    assert apply_of(tmp_path).choices == DEFAULT_CHOICES


def test_every_choice(tmp_path: Path) -> None:
    found = apply_of(
        tmp_path,
        names="kept",
        types={
            "integers": "bigint", "number": "bigint", "date": "date", "raw-16": "uuid",
            "boolean": ["NUMBER(1)", "CHAR(1)"], "boolean-values": ["J/N", "1/0"],
        },
        columns={
            "SHOP.ORDERS.TOTAL": {"type": "numeric(12,2)", "name": "amount"},
            "*.IS_*": {"type": "boolean", "boolean-values": ["X/ "]},
        },
    )  # fmt: skip
    assert found.choices == Choices(
        integers="bigint",
        number="bigint",
        flags=("NUMBER(1)", "CHAR(1)"),
        date="date",
        raw_16="uuid",
        keep_names=True,
        columns={
            "SHOP.ORDERS.TOTAL": ColumnChoice("numeric(12,2)", "amount"),
            "*.IS_*": ColumnChoice("boolean", "", (("X", " "),)),
        },
    )
    assert found.value_policies.boolean_pairs == (("J", "N"), ("1", "0"))


@pytest.mark.parametrize(
    "keys",
    [
        {"types": {"integers": "small"}},
        {"types": {"boolean": ["NUMBER(2)"]}},
        {"types": {"boolean-values": ["Y"]}},
        {"types": {"boolean-values": ["Y/N/X"]}},
        {"types": {"boolean-values": ["Y/N", "N/Y"]}},
        {"types": {"boolean-values": ["Y/Y"]}},
        {"columns": {"A.B.C": {"type": "money"}}},
        {"columns": {"A.B.C": {"type": "interval; DROP TABLE t"}}},
        {"columns": {"A.B.C": {"type": ""}}},
        {"columns": {"A.B.C": {"name": ""}}},
        {"columns": {"A.B.C": {"name": "x" * 64}}},
        {"columns": {"A.B.C": {"kind": "text"}}},
        {"names": "lower"},
    ],
)
def test_what_is_no_choice_is_refused(tmp_path: Path, keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        apply_of(tmp_path, **keys)
