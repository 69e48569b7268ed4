"""Choices of types and names in the configuration, as the datatypes take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.reading import ConfigError
from olr_pg.datatypes.choices import DEFAULT_CHOICES, Choices, ColumnChoice
from tests.config.test_model import APPLY, parse

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Apply


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
