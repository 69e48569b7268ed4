"""What the tests of large transactions watch, and two tables of which one is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.batches.spool import SpoolFiles
from tests.applier.batches.locks import UPDATES

if TYPE_CHECKING:
    from collections.abc import Callable

Replication = Any  # tests/applier/conftest.py


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


@pytest.fixture
def two(replication: Replication) -> Replication:
    """A replication of two tables that one worker has, with updates that follow each other."""
    r = replication
    r.execute("CREATE TABLE s.u (id bigint PRIMARY KEY, n numeric)")
    for table in ("T", "U"):
        r.transaction(r.insert({"ID": 1, "N": 0}, table))
    r.apply()
    for i in range(UPDATES):
        for table in ("T", "U"):
            r.transaction(r.update({"ID": 1, "N": i}, {"N": i + 1}, table))
    r.serve()
    return r
