"""What order entry does, as its truth tells it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.named_simulation import load_tables
from olr_pg.simulator.sessions.order_entry import (
    ARRAY_ROWS,
    BULK_COMMIT,
    DrawnValues,
    date_at,
    scaled,
    timestamp_at,
    units,
)
from olr_pg.simulator.sessions.placement import place_table
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    simulate(2, folder, workload="orders", size=1_000_000, prefilled=True)
    return folder


@pytest.fixture(scope="module")
def changes(shop: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shop / "truth.jsonl").read_bytes().splitlines()]


def test_orders_are_entered_paid_delivered_and_cancelled(changes: list[dict[str, Any]]) -> None:
    done = Counter(
        (change["op"], change["table"].removeprefix("SHOP."))
        for change in changes
        if "table" in change
    )
    assert done["insert", "ORDERS"] == done["insert", "NEW_ORDERS"] > 20
    assert 5 <= done["insert", "ORDER_LINES"] / done["insert", "ORDERS"] <= 15
    # What is open in the end is committed as it is: the last payment of each of four sessions.
    assert 0 <= done["update", "WAREHOUSES"] - done["insert", "PAYMENTS"] <= 4
    assert done["insert", "PAYMENTS"] > 20
    assert done["update", "ORDERS"] > 0
    assert done["delete", "NEW_ORDERS"] == done["update", "ORDERS"] + done["delete", "ORDERS"]
    assert done["update", "CUSTOMERS"] > done["insert", "PAYMENTS"]
    assert not any(table == "SETTINGS" for _, table in done)


def test_sessions_work_at_the_same_time(changes: list[dict[str, Any]]) -> None:
    spans = [(line["scn"], line["commit_scn"]) for line in changes if line["op"] == "begin"]
    assert any(
        begin < other < end for begin, end in spans for other, _ in spans if (other, _) != begin
    )


def test_rows_refer_to_rows_that_are_there(shop: Path) -> None:
    def keys(name: str, column: str) -> set[Any]:
        table = pq.read_table(shop / "final" / f"SHOP.{name}.parquet")
        return set(table.column(column).to_pylist())

    for child, column, parent in (
        ("ORDER_LINES", "ORDER_ID", "ORDERS"),
        ("NEW_ORDERS", "ORDER_ID", "ORDERS"),
        ("ORDERS", "CUSTOMER_ID", "CUSTOMERS"),
        ("PAYMENTS", "CUSTOMER_ID", "CUSTOMERS"),
        ("CUSTOMERS", "WAREHOUSE_ID", "WAREHOUSES"),
        ("STOCK", "WAREHOUSE_ID", "WAREHOUSES"),
    ):
        assert keys(child, column) <= keys(parent, column)


def test_bills_add_up(shop: Path) -> None:
    customers = pq.read_table(shop / "final" / "SHOP.CUSTOMERS.parquet").to_pylist()
    assert all(row["BALANCE"] == -row["PAID"] for row in customers)
    warehouses = pq.read_table(shop / "final" / "SHOP.WAREHOUSES.parquet").to_pylist()
    paid, taken = (sum(row["PAID"] for row in rows) for rows in (customers, warehouses))
    assert 0 < paid <= taken < paid + 4 * 5_000


def truth_of(folder: Path, workload: str, size: int, *, prefilled: bool = False) -> list[Any]:
    simulate(2, folder, workload=workload, size=size, prefilled=prefilled)
    return [json.loads(line) for line in (folder / "truth.jsonl").read_bytes().splitlines()]


def test_a_bulk_load_commits_after_some_arrays(tmp_path: Path) -> None:
    found = Counter[str]()
    for line in truth_of(tmp_path, "bulk", 1_500_000):
        found[line["xid"]] += line["op"] == "insert"
    assert ARRAY_ROWS * BULK_COMMIT in found.values()
    assert all(count % ARRAY_ROWS == 0 for count in found.values())


def test_wide_rows_are_changed_in_few_columns(tmp_path: Path) -> None:
    lines = truth_of(tmp_path, "wide", 1_000_000, prefilled=True)
    updates = [line for line in lines if line["op"] == "update"]
    assert len(updates) > 50
    assert all(1 <= len(line["after"]) <= RowShape().set_max for line in updates)
    assert all(len(line["before"]) == 200 for line in updates)
    assert any(line["op"] == "insert" for line in lines)


NOW = int(datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC).timestamp()) * 1_000_000


def test_numbers_in_units_of_their_last_place() -> None:
    assert scaled(-1250, 2).json == "-12.5"
    assert scaled(7).json == "7"
    assert units(scaled(-1250, 2), 2) == -1250
    assert Decimal(scaled(10**14, 2).json) == 10**12


def test_times() -> None:
    assert date_at(NOW + 999_999).json == '"2026-03-01T12:30:15"'
    assert timestamp_at(NOW + 50).json == '"2026-03-01T12:30:15.00005"'


def test_values_are_those_of_their_columns() -> None:
    (spec,) = load_tables(Logging.ALL, RowShape())
    table = place_table(0, spec, 100)
    values = DrawnValues(Random(1), table, lambda: NOW)
    rows = [values.row() for _ in range(200)]
    for at, column in enumerate(table.columns):
        drawn = [row[at] for row in rows]
        nulls = sum(cell is None for cell in drawn)
        assert 5 < nulls < 80 if column.nullable else nulls == 0
        assert len({cell.raw for cell in drawn if cell}) > 50
    times = [cell.json for row in rows if (cell := row[8])]
    assert all('"2016' <= time < '"2026-03-01T12:30:16' for time in times)
