"""What the workloads beside order entry do, as their truth tells it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from olr_pg.simulator.sessions.order_entry import ARRAY_ROWS, BULK_COMMIT
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path


def changes(folder: Path, workload: str, size: int, *, prefilled: bool = False) -> list[Any]:
    simulate(2, folder, workload=workload, size=size, prefilled=prefilled)
    return [json.loads(line) for line in (folder / "truth.jsonl").read_bytes().splitlines()]


def test_a_bulk_load_commits_after_some_arrays(tmp_path: Path) -> None:
    found = Counter[str]()
    for line in changes(tmp_path, "bulk", 1_500_000):
        found[line["xid"]] += line["op"] == "insert"
    assert ARRAY_ROWS * BULK_COMMIT in found.values()
    assert all(count % ARRAY_ROWS == 0 for count in found.values())


def test_wide_rows_are_changed_in_few_columns(tmp_path: Path) -> None:
    lines = changes(tmp_path, "wide", 1_000_000, prefilled=True)
    updates = [line for line in lines if line["op"] == "update"]
    assert len(updates) > 50
    assert all(1 <= len(line["after"]) <= RowShape().set_max for line in updates)
    assert all(len(line["before"]) == 200 for line in updates)
    assert any(line["op"] == "insert" for line in lines)
