"""What the tests of locks share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.applier.batches.locks import UPDATES

Replication = Any  # tests/applier/conftest.py


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
