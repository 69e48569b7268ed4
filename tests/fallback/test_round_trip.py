"""A slice of the round trips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fallback.round_trip import campaign

if TYPE_CHECKING:
    from pathlib import Path


def test_all_three_databases_end_with_the_same_rows(tmp_path: Path) -> None:
    (found,) = campaign(tmp_path, [6])
    assert found.wrong == ""
    assert found.rows > 50
