"""The registry: what Prometheus reads, and what goes into PostgreSQL."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from olr_pg.appliance.status_observer import (
    PAUSED,
    STARTING,
    STOPPING,
    TARGET_BEHIND,
    WAITING_FOR_DISK,
    WAITING_FOR_TARGET,
)
from olr_pg.capture.capture_state import CapturePhase
from olr_pg.load.load_page import LOADING
from olr_pg.monitor.lag import Lag
from olr_pg.monitor.metrics import STATES, TABLES_MAX, make_registry
from olr_pg.monitor.status_values import Status, TableStatus
from tests.monitor.recorded_states import read_state


def test_every_state_of_capture_has_a_metric() -> None:
    assert set(STATES) == {
        *(phase.value for phase in CapturePhase),
        *(LOADING, PAUSED, STARTING, STOPPING, TARGET_BEHIND, WAITING_FOR_TARGET),
        WAITING_FOR_DISK,
    }


def test_prometheus_reads_it(status: Status) -> None:
    text = generate_latest(make_registry(lambda: status)).decode()
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["olr_pg_decoded_scn",] == 2_266_400
    assert values["olr_pg_redo_bytes_total",] == 5 << 30
    assert values["olr_pg_rows_filtered_total",] == 17
    assert values["olr_pg_transactions_filtered_total",] == 5
    assert values["olr_pg_lob_unavailable_total",] == 3
    assert values["olr_pg_lob_unclaimed_total",] == 1
    assert values["olr_pg_state", "WAITING_FOR_REDO"] == 1
    assert sum(value for name, value in values.items() if name[0] == "olr_pg_state") == 1
    assert values["olr_pg_table_lag_seconds", "SHOP.ORDERS"] == 7.5
    assert values["olr_pg_table_lag_cause_seconds", "queue", "SHOP.ORDERS"] == 2.0
    assert values["olr_pg_table_stopped", status.tables[1].name] == 1
    assert values["olr_pg_table_held_scn", status.tables[1].name] == 2_266_301
    assert values["olr_pg_refused_total", "OLR-04033"] == 7
    assert values["olr_pg_thread_archived_scn", "2"] == 2_266_400
    assert values["olr_pg_thread_redo_seconds", "2"] == 90
    assert values["olr_pg_thread_holds_back", "2"] == 0
    assert values["process_resident_memory_bytes",] > 0
    assert values["process_open_fds",] > 0
    helps = [line for line in text.splitlines() if line.startswith("# HELP olr_pg_")]
    assert len(helps) == len(set(helps))


def test_what_is_not_known_has_no_sample(status: Status) -> None:
    def names(one: Status) -> set[str]:
        text = generate_latest(make_registry(lambda: one)).decode()
        families = text_string_to_metric_families(text)
        return {sample.name for family in families for sample in family.samples}

    starting = names(read_state("starting"))
    assert not any("scn" in name or "lag" in name for name in starting)
    assert {"olr_pg_state", "olr_pg_table_stopped", "olr_pg_queue_ready"} <= starting
    unknown = names(status) - starting
    assert unknown >= {
        *("olr_pg_decoded_scn", "olr_pg_taken_scn", "olr_pg_confirmed_scn", "olr_pg_saved_scn"),
        *("olr_pg_table_applied_scn", "olr_pg_table_held_scn", "olr_pg_table_lag_seconds"),
        *("olr_pg_table_lag_cause_seconds", "olr_pg_thread_decoded_scn"),
    }
    quiet = replace(status, tables=tuple(replace(table, held_scn=None) for table in status.tables))
    assert "olr_pg_table_held_scn" not in names(quiet)


def test_what_nothing_interprets_is_counted_by_kind(status: Status) -> None:
    source = replace(status.source, not_interpreted={"4.1 block cleanout": 19, "99.1 unknown": 2})
    text = generate_latest(make_registry(lambda: replace(status, source=source))).decode()
    values = {
        sample.labels["opcode"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "olr_pg_vectors_not_interpreted_total"
    }
    assert values == source.not_interpreted


SHOWN: dict[str, Any] = {
    "transactions": 1, "inserted": 1, "updated": 1, "deleted": 1, "conflicts": 1, "waiting": 1,
    "altered": 1, "incomplete": 1, "stopped": "OLR-05030", "paused": True, "blocked": "a session",
    "behind": "S.OTHER", "differences": 1, "held_scn": 7, "held_since": 1.0, "error_id": 3,
}  # fmt: skip
"""Fields that show a change of this run, or a problem."""
NOT_SHOWN: dict[str, Any] = {
    "name": "S.T", "applied_scn": 7, "lag": Lag(apply=1.0), "lag_seconds": 1.0, "verified_scn": 7,
    "verified_at": 1.0,
}  # fmt: skip
"""Fields that every table has after a while."""


def test_each_field_of_a_table_is_a_change_or_is_not() -> None:
    assert {one.name for one in fields(TableStatus)} == SHOWN.keys() | NOT_SHOWN.keys()


@pytest.mark.parametrize("field", [*SHOWN, *NOT_SHOWN])
def test_only_tables_with_a_change_or_a_problem_may_have_metrics(
    status: Status, field: str
) -> None:
    value = {**SHOWN, **NOT_SHOWN}[field]
    table = replace(TableStatus("S.T"), **{field: value})
    shown = replace(status, tables=(TableStatus("S.LAST", lag_seconds=2.0), table))
    for only_changed in (False, True):
        registry = make_registry(lambda: shown, only_changed=only_changed)
        has_own = b'table="S.T"' in generate_latest(registry)
        assert has_own == (field in SHOWN or not only_changed)


def test_the_table_with_the_largest_lag_always_has_metrics(status: Status) -> None:
    """Else an alert would not notice the lag of a run in which no table has changed yet."""
    tables = tuple(TableStatus(f"S.T{n}", lag_seconds=float(n % 3)) for n in range(9))
    shown = replace(status, tables=tables)
    text = generate_latest(make_registry(lambda: shown, only_changed=True)).decode()
    assert 'olr_pg_table_lag_seconds{table="S.T2"} 2.0' in text
    assert text.count("olr_pg_table_lag_seconds{") == 1


def test_of_many_tables_only_the_changed_ones_have_metrics(status: Status) -> None:
    changed = TableStatus("A.CHANGED", inserted=1)
    sizes = []
    for count in (TABLES_MAX - 1, 5 * TABLES_MAX):
        tables = (changed, *(TableStatus(f"A.T{number:05}") for number in range(count)))
        shown = replace(status, tables=tables)
        text = generate_latest(make_registry(lambda shown=shown: shown))  # type: ignore[misc]
        assert b'olr_pg_table_inserted_total{table="A.CHANGED"} 1.0' in text
        sizes.append(len(text))
    assert sizes[1] < 20_000 < sizes[0]
