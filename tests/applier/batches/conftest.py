"""What the tests of large transactions watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.applier.batches.spool import SpoolFiles

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def spooled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what went to the spool so far."""
    sizes: list[int] = []
    reserve = SpoolFiles.reserve

    def watched(files: SpoolFiles, size: int, own: int, has_stopped: Callable[[], bool]) -> None:
        reserve(files, size, own, has_stopped)
        sizes.append(size)

    monkeypatch.setattr(SpoolFiles, "reserve", watched)
    return sizes
