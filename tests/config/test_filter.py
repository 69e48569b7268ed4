"""The `filter` section: what fits its patterns, and what no condition is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from olr_pg.config.filter import Filter


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
