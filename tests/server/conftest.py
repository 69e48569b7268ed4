"""What tests of the server share: the checkpoint of its one client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.server.checkpoint import FILE_NAME, Checkpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / FILE_NAME, "test")
