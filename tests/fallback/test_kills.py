"""A slice of the campaign: the appliance and PostgreSQL are killed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fallback.kills import campaign

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", [3])
def test_nothing_is_lost_and_nothing_is_applied_twice(tmp_path: Path, seed: int) -> None:
    found = campaign(tmp_path, 2, seed)
    assert found.kills == 2
    assert found.wrong == ""
