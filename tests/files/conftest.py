"""What the tests of files share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.files.result_files import ResultFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> Iterator[ResultFiles]:
    files = ResultFiles(str(tmp_path), kept=8)
    yield files
    files.remove()
