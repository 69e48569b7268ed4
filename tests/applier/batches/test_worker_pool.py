"""Several workers: tables share them, and none holds the others back."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def test_several_workers(replication: Replication) -> None:
    r = replication
    for table in "abcde":
        r.execute(f"CREATE TABLE s.{table} (id int PRIMARY KEY, v text)")
    for i in range(50):
        r.transaction(*(r.insert({"ID": i, "V": table}, table.upper()) for table in "abcde"))
    report = r.apply(workers=3, batch_changes=7)
    assert {name: c.inserted for name, c in report.tables.items()} == {
        f"S.{table}": 50 for table in "ABCDE"
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_table_with_few_changes_does_not_hold_the_others_back(
    replication: Replication, workers: int
) -> None:
    """It would wait for more, and the server keep all that came since, more than it may have."""
    r = replication
    r.execute("CREATE TABLE s.u (LIKE s.t INCLUDING ALL)")
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}, table="U"))
    for number in range(4000):
        r.transaction(r.insert({"ID": number, "N": 1, "V": "x"}))
    r.script.queue_bytes = 800_000
    with capture_logs() as entries:
        r.apply(
            workers=workers, batch_milliseconds=600_000, batch_changes=100, queue_bytes=400_000
        )  # fmt: skip
    assert len(_table(r)) == 4000
    assert len(_table(r, "s.u")) == 1
    assert not [
        entry
        for entry in entries
        if entry["event"] == "the client does not confirm the transactions it received"
    ]
