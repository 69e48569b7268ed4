"""A killed `olr-pg prove` leaves nothing but what its next run removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.proving.kills import campaign
from tests.proving.served import served_source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on_and_leaves_nothing(tmp_path: Path, postgres_database: str) -> None:
    patterns = ("ddl/other_tables_come_and_go",)
    with served_source(tmp_path / "source") as served:
        found = campaign(served, postgres_database, tmp_path / "out", 1, 1, patterns)
    assert found.wrong == []
    assert found.kills == 1
