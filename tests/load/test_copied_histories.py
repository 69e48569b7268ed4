"""Rows that another tool copies, in drawn orders of commands; more: ``OLR_PG_SEEDS=50``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from olr_pg.load import copy_task
from tests.load.copied_histories import history

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("OLR_PG_SEEDS", "2"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_at_last_the_target_has_the_rows_of_the_source(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)  # without Spark
    wrong, said = history(seed, tmp_path / "source", postgres_database)
    assert wrong == [], "\n".join(said)
