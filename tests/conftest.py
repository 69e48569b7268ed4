"""Fixtures that every test folder may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with the real logs and vectors; absent in a user's clone."""
    folder = Path(os.environ.get("OLR_PG_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real redo here: {folder} (set OLR_PG_SHARED to its folder)")
    return folder


@pytest.fixture(scope="session")
def real_log_dir(shared_dir: Path) -> Path:
    """The two real archived logs of 23ai with their dictionary."""
    return shared_dir / "real" / "oracle-free-23ai"
