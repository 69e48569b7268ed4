"""The map of SYS columns is that of the rows, and of the tables that queries read."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from olr_pg.dictionary.sys_columns import SYS_COLUMNS, absent
from olr_pg.dictionary.sys_rows import DATABASE_LEVELS, SysRows


def row_type(section: str) -> Any:
    """The class of a section's rows."""
    return SysRows.model_fields[section].annotation.__args__[0]  # type: ignore[union-attr]


def test_every_section_is_mapped() -> None:
    assert SYS_COLUMNS.keys() == SysRows.model_fields.keys() - set(DATABASE_LEVELS)


@pytest.mark.parametrize("section", SYS_COLUMNS)
def test_the_fields_of_a_section_are_those_of_its_rows(section: str) -> None:
    found = {field.name: field for field in fields(row_type(section))}
    mapped = SYS_COLUMNS[section]
    assert mapped.keys() <= found.keys()
    needed = {name for name, field in found.items() if field.default is MISSING}
    assert needed <= mapped.keys()
    assert len(set(mapped.values())) == len(mapped)


def test_null_of_a_number_is_told_apart_where_zero_means_something() -> None:
    assert [absent(name) for name in ("precision", "scale", "guard_id")] == [-1, -1, -1]
    assert absent("default") is None
    assert absent("flags") == 0
