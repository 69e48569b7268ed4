"""Readings of a status, and when they are taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from olr_pg.monitor.history import WHOLE, HistoryRecorder, HistoryStore
from olr_pg.monitor.status_values import Status
from tests.monitor.conftest import NOW


def test_a_reading_for_each_slot_of_time(status: Status, tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history.sqlite")
    shown = [status]
    passed = [0.0]
    recorder = HistoryRecorder(
        store, {"": lambda: shown[0]}, clock=lambda: shown[0].at, steady=lambda: passed[0]
    )
    recorder.look()  # the first one has nothing to compare with

    def pass_time(seconds: float, rows: int, inserted: int) -> None:
        passed[0] += seconds
        before = shown[0]
        orders, other = before.tables
        shown[0] = replace(
            before,
            at=before.at + seconds,
            source=replace(before.source, rows=before.source.rows + rows),
            tables=(replace(orders, inserted=orders.inserted + inserted), other),
        )
        recorder.look()

    pass_time(2.0, 1000, 1000)  # the same slot of time
    pass_time(3.0, 500, 250)
    pass_time(5.0, -50_000, 0)  # a run begins anew
    series = store.read(NOW + 10, "", WHOLE, 0)
    readings = [one for one in series.readings if one is not None]
    assert [one.rows for one in readings] == [300.0, 0.0]
    assert [one.changes for one in readings] == [250.0, 0.0]
    assert readings[0].queued_bytes == status.port.queued_bytes
    table = [one for one in store.read(NOW + 10, "", "SHOP.ORDERS", 0).readings if one]
    assert (table[0].changes, table[0].waiting, table[0].queue) == (250.0, 120.0, 2.0)
    store.close()
