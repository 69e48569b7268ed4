"""Real logs for the tests of this folder; their shared parts are found by path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from olr_pg.redo.window import Log
from tests.redo.log_builder import open_log


@pytest.fixture(scope="session")
def real_logs(real_log_dir: Path) -> tuple[Log, Log]:
    """L23a and L23b of redo-format §10, in memory."""
    paths = sorted(real_log_dir.glob("*.dbf"))
    first, second = (open_log(np.fromfile(path, np.uint8), path.name) for path in paths)
    return first, second
