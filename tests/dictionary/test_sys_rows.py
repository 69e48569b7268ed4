"""Rows of SYS tables as JSON: large bit masks in two halves, hyphens in keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from olr_pg.dictionary.sys_rows import EcolRow, ObjectRow, SysRows, TabRow

EMPTY: dict[str, list[Any]] = {
    name.replace("_", "-"): []
    for name, field in SysRows.model_fields.items()
    if field.is_required()
}


def test_a_mask_of_more_than_64_bits_comes_in_halves() -> None:
    row = {"obj": 7, "data-obj": 7, "clu-cols": 0, "flags": [3, 1], "property": 5}
    made = TabRow.model_validate(row)
    assert (made.flags, made.property) == (3 | 1 << 64, 5)
    rows = SysRows.model_validate({**EMPTY, "sys-tab": [row]})
    written = json.loads(json.dumps(rows.as_json()))
    assert written["sys-tab"][0]["flags"] == [3, 1]
    assert SysRows.model_validate(written) == rows


@pytest.mark.parametrize("halves", [[1], [1, 2, 3], ["1", 0], [-1, 0], -1, "7"])
def test_other_masks_are_refused(halves: object) -> None:
    with pytest.raises(ValidationError):
        ObjectRow.model_validate({"owner": 1, "obj": 1, "name": "T", "type": 2, "flags": halves})


def test_what_nobody_told_is_absent() -> None:
    rows = SysRows.model_validate(EMPTY)
    assert (rows.sys_lob, rows.sys_icol) == ([], [])
    assert ObjectRow(owner=1, obj=2, name="T", type=2, flags=0).row_id == ""


def test_a_default_is_hexadecimal() -> None:
    assert EcolRow.model_validate({"tab-obj": 1, "col-num": 2, "default": "c102"}).guard_id == -1
    with pytest.raises(ValidationError):
        EcolRow.model_validate({"tab-obj": 1, "col-num": 2, "default": "c10"})
