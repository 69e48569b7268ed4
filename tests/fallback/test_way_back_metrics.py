"""The metrics of a way back are served, and each of its alerts fires for what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry, generate_latest

from olr_pg.fallback.fallback_run import Status
from olr_pg.fallback.oracle_ledger import ROW_MISSING, LedgerState, Record, TableStop
from olr_pg.fallback.preparation import Slot
from olr_pg.fallback.way_back_page import WayBackCollector
from tests.configs.promql_subset import Alert, Recording, firing, names

RULES: Final = Path(__file__).parents[2] / "configs/prometheus/olr-pg-fallback.rules.yml"
MIB: Final = 1 << 20
LIMIT_MB: Final = 100
TARGET: Final = {"job": "olr_pg_fallback", "instance": "a:9702"}
QUIET: Final = Status(
    begun="olr_pg: way back",
    slot=Slot(100, is_active=True, wal_status="reserved", wal_bytes=16 * MIB),
    ledger=LedgerState("slot", "1", 1, 100, 7, {}),
    lag_bytes=0,
    set_aside=[],
)
assert QUIET.slot is not None
assert QUIET.ledger is not None
STOPPED: Final = {"SHOP.ORDERS": TableStop(90, is_stopped=True, reason="OLR-07350")}
CASES: Final[dict[str, Status | None]] = {
    "OlrPgFallbackSlotKeepsTooMuch": QUIET._replace(slot=QUIET.slot._replace(wal_bytes=90 * MIB)),
    "OlrPgFallbackSlotLost": QUIET._replace(
        slot=QUIET.slot._replace(wal_status="lost", wal_bytes=None)
    ),
    "OlrPgFallbackUnreachable": None,
    "OlrPgFallbackTableStopped": QUIET._replace(ledger=QUIET.ledger._replace(stops=STOPPED)),
    "OlrPgFallbackLag": QUIET._replace(lag_bytes=2 << 30),
}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return list(group["rules"])


def alerts() -> list[Alert]:
    return [
        Alert(rule["alert"], rule["expr"], 60 * int(rule.get("for", "0m").removesuffix("m")))
        for rule in rules()
    ]


def fired(found: Status | None, *, runs: bool = True, since: int = 0) -> set[str]:
    """The alerts of half an hour; all was well before `since`."""
    recording, times = Recording(), range(0, 1800, 15)
    for at in times:
        recording.add("up", TARGET, at, float(runs))
        now = found if at >= since else QUIET
        collector = WayBackCollector(lambda now=now: now, LIMIT_MB)  # type: ignore[misc]
        for family in collector.collect() if runs else ():
            for sample in family.samples:
                recording.add(sample.name, {**sample.labels, **TARGET}, at, float(sample.value))
    return {name for found in firing(alerts(), recording, times).values() for name in found}


def test_nothing_fires_while_all_is_well() -> None:
    assert fired(QUIET) == set()
    catching_up = {name: one._replace(is_stopped=False) for name, one in STOPPED.items()}
    assert QUIET.ledger is not None
    assert fired(QUIET._replace(ledger=QUIET.ledger._replace(stops=catching_up))) == set()


@pytest.mark.parametrize("name", CASES)
def test_each_alert_fires_for_what_it_is_for(name: str) -> None:
    assert fired(CASES[name]) == {name}


def test_one_that_does_not_run_is_told_of() -> None:
    assert fired(QUIET, runs=False) == {"OlrPgFallbackDown"}
    others = {"OlrPgFallbackDown", "OlrPgFallbackConflicts"}
    assert {rule["alert"] for rule in rules()} == {*CASES, *others}


def test_a_conflict_is_told_of_and_a_changed_value_is_none() -> None:
    conflict = Record("SHOP.ORDERS", "UPDATE", ROW_MISSING, "overwrite")
    value = Record("SHOP.ORDERS", "NOTE", "empty-text", "null")
    assert fired(QUIET._replace(records={conflict: 1}), since=900) == {"OlrPgFallbackConflicts"}
    assert fired(QUIET._replace(records={value: 1}), since=900) == set()


def test_a_slot_that_is_missing_is_lost() -> None:
    assert fired(QUIET._replace(slot=None)) == {"OlrPgFallbackSlotLost"}


def test_every_metric_of_the_rules_is_served() -> None:
    assert QUIET.ledger is not None
    full = QUIET._replace(ledger=QUIET.ledger._replace(stops=STOPPED))
    registry = CollectorRegistry()
    registry.register(WayBackCollector(lambda: full, LIMIT_MB))
    text = generate_latest(registry).decode()
    for rule in rules():
        for name in names(rule["expr"]) - {"up"}:
            assert f"\n{name}" in f"\n{text}", name
    assert "olr_pg_fallback_transactions_total 7.0" in text
