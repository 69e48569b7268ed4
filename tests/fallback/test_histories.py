"""A slice of the random histories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fallback.histories import campaign

if TYPE_CHECKING:
    from pathlib import Path


def test_oracle_has_the_rows_of_postgresql_at_the_end_of_each_history(tmp_path: Path) -> None:
    found = list(campaign(tmp_path, [3, 4], steps=5))
    assert [one.wrong for one in found] == ["", ""]
    assert all(one.struck for one in found)
