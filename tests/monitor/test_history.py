"""The history on disk: its resolutions, its bounds, and what damages it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from olr_pg.monitor.history import (
    LEVELS,
    TABLES_MAX,
    WHOLE,
    HistoryRecorder,
    HistoryStore,
    Reading,
    level_of,
    series_document,
    summed_up,
)
from olr_pg.monitor.status_values import Status
from olr_pg.observability.logging_setup import recent_events
from tests.monitor.conftest import NOW

START = 1_800_000_000 // 600 * 600
"""Begins a slot of each level."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[HistoryStore]:
    one = HistoryStore(path)
    yield one
    one.close()


def fill(store: HistoryStore, start: int, end: int, **values: float) -> None:
    for at in range(start, end, LEVELS[0].step):
        store.add(at, "", {WHOLE: Reading(**values), "A.B": Reading(**values)})


def kept(store: HistoryStore, now: int, level: int, table: str = WHOLE) -> list[Reading]:
    series = store.read(now, "", table, level)
    return [reading for reading in series.readings if reading is not None]


def test_minutes_and_ten_minutes_are_made_of_seconds(store: HistoryStore) -> None:
    fill(store, START, START + 60, rows=60.0, apply=1.0)
    store.add(START + 60, "", {WHOLE: Reading(rows=12.0, decoding=9.0, queued_bytes=7.0)})
    fill(store, START + 65, START + 605, rows=0.0)
    assert len(kept(store, START + 600, 0)) == 121
    minutes = kept(store, START + 600, 1)
    assert len(minutes) == 10
    assert (minutes[0].rows, minutes[0].apply) == (60.0, 1.0)
    assert (minutes[1].rows, minutes[1].decoding, minutes[1].queued_bytes) == (1.0, 9.0, 7.0)
    (ten,) = kept(store, START + 600, 2)
    assert (round(ten.rows, 6), ten.decoding, ten.apply) == (6.1, 9.0, 0.0)


def test_a_table_at_rest_takes_no_room_and_reads_as_zero(store: HistoryStore, path: Path) -> None:
    store.add(START, "", {WHOLE: Reading(rows=1.0), "A.B": Reading(), "A.C": Reading(changes=2.0)})
    store.add(START + 5, "", {WHOLE: Reading(), "A.B": Reading(), "A.C": Reading(changes=4.0)})
    assert kept(store, START + 5, 0, "A.B") == [Reading(), Reading()]
    assert [one.changes for one in kept(store, START + 5, 0, "A.C")] == [2.0, 4.0]
    store.close()
    with sqlite3.connect(path) as file:
        names = file.execute("SELECT DISTINCT name FROM reading ORDER BY name").fetchall()
    file.close()
    assert names == [("",), ("A.C",)]


def test_the_mean_of_a_table_counts_its_rest() -> None:
    peak = summed_up([Reading(changes=60.0, queue=5.0), Reading(changes=0.0, apply=6.0)], 12)
    assert peak == Reading(changes=5.0, apply=6.0)


def test_it_is_bounded(store: HistoryStore, path: Path) -> None:
    busy = {f"A.T{n}": Reading(changes=float(n + 1)) for n in range(2 * TABLES_MAX)}
    store.add(START, "", {WHOLE: Reading(rows=1.0), **busy, "A.LATE": Reading(apply=1.0)})
    assert kept(store, START, 0, "A.LATE") == [Reading(apply=1.0)]
    assert kept(store, START, 0, f"A.T{2 * TABLES_MAX - 1}")[0].changes == 2 * TABLES_MAX
    assert kept(store, START, 0, "A.T0") == [Reading()]  # the least busy ones are left out
    # What is older than its level is forgotten, as soon as a slot of a coarser one is over.
    for level in LEVELS:
        store.add(START + level.span + 600, "", {WHOLE: Reading()})
    store.close()
    with sqlite3.connect(path) as file:
        ages = dict(file.execute("SELECT level, max(?) - min(slot) FROM reading GROUP BY level",
                                 (START + LEVELS[-1].span + 600,)).fetchall())  # fmt: skip
    file.close()
    assert all(ages[number] <= LEVELS[number].span for number in ages), ages


def test_it_goes_on_after_a_restart(store: HistoryStore, path: Path) -> None:
    fill(store, START, START + 30, rows=10.0)
    store.close()
    again = HistoryStore(path)
    fill(again, START + 30, START + 65, rows=20.0)
    assert len(kept(again, START + 60, 0)) == 13
    (minute,) = kept(again, START + 60, 1)
    assert minute.rows == 15.0
    again.close()


def test_a_clock_that_was_an_hour_ahead_stops_no_summing_up(store: HistoryStore) -> None:
    fill(store, START, START + 60, rows=1.0)
    fill(store, START + 3600, START + 3660, rows=2.0)
    fill(store, START + 60, START + 665, rows=3.0)
    assert [one.rows for one in kept(store, START + 660, 1)] == [1.0, *[3.0] * 10]
    assert [round(one.rows, 6) for one in kept(store, START + 660, 2)] == [2.8]


def test_a_pause_is_a_gap(store: HistoryStore) -> None:
    store.add(START, "", {WHOLE: Reading(rows=1.0)})
    store.add(START + 600, "", {WHOLE: Reading(rows=2.0)})
    document = series_document(store.read(START + 600, "", WHOLE, 0), ["throughput"])
    rows = document["series"]["rows"]
    assert len(rows) == 720
    assert rows[-1] == 2.0
    assert rows[-121] == 1.0
    assert set(rows[-120:-1]) == {None}
    assert document["series"].keys() == {"redo_bytes", "rows", "changes"}


def test_targets_do_not_mix(store: HistoryStore) -> None:
    store.add(START, "one", {WHOLE: Reading(rows=1.0)})
    store.add(START, "two", {WHOLE: Reading(rows=2.0)})
    series = store.read(START, "two", WHOLE, 0)
    assert [one.rows for one in series.readings if one] == [2.0]


def told() -> int:
    return sum(event.get("code") == "OLR-08011" for event in recent_events())


@pytest.mark.usefixtures("remembered")
def test_a_damaged_file_is_told_once_and_begun_anew(store: HistoryStore, path: Path) -> None:
    fill(store, START, START + 300, rows=1.0)
    store.close()
    before = told()
    path.write_bytes(b"no database" * 1000)
    store.add(START + 300, "", {WHOLE: Reading(rows=2.0)})  # finds it
    store.add(START + 305, "", {WHOLE: Reading(rows=3.0)})
    store.add(START + 310, "", {WHOLE: Reading(rows=4.0)})
    assert [one.rows for one in kept(store, START + 310, 0)] == [3.0, 4.0]
    assert told() == before + 1


@pytest.mark.usefixtures("remembered")
def test_pages_that_are_damaged(store: HistoryStore, path: Path) -> None:
    fill(store, START, START + 3000, rows=1.0)
    store.close()
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    for at in range(START + 3000, START + 3060, 5):
        store.add(at, "", {WHOLE: Reading(rows=2.0)})
    assert [one.rows for one in kept(store, START + 3055, 0)][-3:] == [2.0] * 3


def test_a_file_of_another_release_is_begun_anew(store: HistoryStore, path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE reading (other TEXT)")
        file.execute("PRAGMA user_version = 99")
    file.close()
    store.add(START, "", {WHOLE: Reading(rows=2.0)})
    assert [one.rows for one in kept(store, START, 0)] == [2.0]


@pytest.mark.usefixtures("remembered")
def test_a_place_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    store = HistoryStore(folder / "history.sqlite")
    before = told()
    for at in range(START, START + 50, 5):
        store.add(at, "", {WHOLE: Reading()})
        assert kept(store, at, 0) == []
    assert told() == before + 1
    folder.mkdir()
    store.add(START + 50, "", {WHOLE: Reading(rows=1.0)})
    assert [one.rows for one in kept(store, START + 50, 0)] == [1.0]
    store.close()


@pytest.mark.usefixtures("remembered")
def test_a_full_disk_is_told_once_and_waited_for(store: HistoryStore) -> None:
    store.add(START, "", {WHOLE: Reading(rows=1.0)})
    before = told()
    assert store._connection is not None
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")  # as a full disk answers
    many = {WHOLE: Reading(), **{f"A.T{n}": Reading(*[n + 0.1] * 8) for n in range(TABLES_MAX)}}
    store.add(START + 5, "", many)
    assert told() == before + 1
    store.add(START + 10, "", many)  # another connection: there is room again
    assert len(kept(store, START + 10, 0)) == 2
    assert told() == before + 1


def test_a_disk_that_takes_one_write_and_refuses_the_next_is_told_of_once(
    store: HistoryStore,
) -> None:
    with capture_logs() as said:
        for number in range(5):
            store.add(START + 10 * number, "", {WHOLE: Reading(rows=1.0)})
            assert store._connection is not None
            (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
            store._connection.execute(f"PRAGMA max_page_count = {pages}")
            tables = {f"A.T{number}_{n}": Reading(*[n + 0.1] * 8) for n in range(TABLES_MAX)}
            store.add(START + 10 * number + 5, "", {WHOLE: Reading(), **tables})
        assert [line["event"] for line in said] == [
            "could not write the history of the status page"
        ]
        for number in range(10, 30):
            store.add(START + 10 * number, "", {WHOLE: Reading(rows=1.0)})
    assert [line["event"] for line in said] == [
        "could not write the history of the status page",
        "the history of the status page can be written again",
    ]


def test_ranges() -> None:
    assert [level_of(level.name) for level in LEVELS] == [0, 1, 2]
    assert level_of("1y") is None


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
