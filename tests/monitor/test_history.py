"""The history on disk: its resolutions, its bounds, and what damages it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from olr_pg.monitor.history import (
    LEVELS,
    TABLES_MAX,
    WHOLE,
    HistoryStore,
    Reading,
    level_of,
    series_document,
    summed_up,
)
from olr_pg.observability.logging_setup import recent_events

NOW = 1_800_000_000 // 600 * 600
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
    fill(store, NOW, NOW + 60, rows=60.0, apply=1.0)
    store.add(NOW + 60, "", {WHOLE: Reading(rows=12.0, decoding=9.0, queued_bytes=7.0)})
    fill(store, NOW + 65, NOW + 605, rows=0.0)
    assert len(kept(store, NOW + 600, 0)) == 121
    minutes = kept(store, NOW + 600, 1)
    assert len(minutes) == 10
    assert (minutes[0].rows, minutes[0].apply) == (60.0, 1.0)
    assert (minutes[1].rows, minutes[1].decoding, minutes[1].queued_bytes) == (1.0, 9.0, 7.0)
    (ten,) = kept(store, NOW + 600, 2)
    assert (round(ten.rows, 6), ten.decoding, ten.apply) == (6.1, 9.0, 0.0)


def test_a_table_at_rest_takes_no_room_and_reads_as_zero(store: HistoryStore, path: Path) -> None:
    store.add(NOW, "", {WHOLE: Reading(rows=1.0), "A.B": Reading(), "A.C": Reading(changes=2.0)})
    store.add(NOW + 5, "", {WHOLE: Reading(), "A.B": Reading(), "A.C": Reading(changes=4.0)})
    assert kept(store, NOW + 5, 0, "A.B") == [Reading(), Reading()]
    assert [one.changes for one in kept(store, NOW + 5, 0, "A.C")] == [2.0, 4.0]
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
    store.add(NOW, "", {WHOLE: Reading(rows=1.0), **busy, "A.LATE": Reading(apply=1.0)})
    assert kept(store, NOW, 0, "A.LATE") == [Reading(apply=1.0)]
    assert kept(store, NOW, 0, f"A.T{2 * TABLES_MAX - 1}")[0].changes == 2 * TABLES_MAX
    assert kept(store, NOW, 0, "A.T0") == [Reading()]  # the least busy ones are left out
    # What is older than its level is forgotten, as soon as a slot of a coarser one is over.
    for level in LEVELS:
        store.add(NOW + level.span + 600, "", {WHOLE: Reading()})
    store.close()
    with sqlite3.connect(path) as file:
        ages = dict(file.execute("SELECT level, max(?) - min(slot) FROM reading GROUP BY level",
                                 (NOW + LEVELS[-1].span + 600,)).fetchall())  # fmt: skip
    file.close()
    assert all(ages[number] <= LEVELS[number].span for number in ages), ages


def test_it_goes_on_after_a_restart(store: HistoryStore, path: Path) -> None:
    fill(store, NOW, NOW + 30, rows=10.0)
    store.close()
    again = HistoryStore(path)
    fill(again, NOW + 30, NOW + 65, rows=20.0)
    assert len(kept(again, NOW + 60, 0)) == 13
    (minute,) = kept(again, NOW + 60, 1)
    assert minute.rows == 15.0
    again.close()


def test_a_clock_that_was_an_hour_ahead_stops_no_summing_up(store: HistoryStore) -> None:
    fill(store, NOW, NOW + 60, rows=1.0)
    fill(store, NOW + 3600, NOW + 3660, rows=2.0)
    fill(store, NOW + 60, NOW + 665, rows=3.0)
    assert [one.rows for one in kept(store, NOW + 660, 1)] == [1.0, *[3.0] * 10]
    assert [round(one.rows, 6) for one in kept(store, NOW + 660, 2)] == [2.8]


def test_a_pause_is_a_gap(store: HistoryStore) -> None:
    store.add(NOW, "", {WHOLE: Reading(rows=1.0)})
    store.add(NOW + 600, "", {WHOLE: Reading(rows=2.0)})
    document = series_document(store.read(NOW + 600, "", WHOLE, 0), ["throughput"])
    rows = document["series"]["rows"]
    assert len(rows) == 720
    assert rows[-1] == 2.0
    assert rows[-121] == 1.0
    assert set(rows[-120:-1]) == {None}
    assert document["series"].keys() == {"redo_bytes", "rows", "changes"}


def test_targets_do_not_mix(store: HistoryStore) -> None:
    store.add(NOW, "one", {WHOLE: Reading(rows=1.0)})
    store.add(NOW, "two", {WHOLE: Reading(rows=2.0)})
    series = store.read(NOW, "two", WHOLE, 0)
    assert [one.rows for one in series.readings if one] == [2.0]


def told() -> int:
    return sum(event.get("code") == "OLR-08011" for event in recent_events())


@pytest.mark.usefixtures("remembered")
def test_a_damaged_file_is_told_once_and_begun_anew(store: HistoryStore, path: Path) -> None:
    fill(store, NOW, NOW + 300, rows=1.0)
    store.close()
    before = told()
    path.write_bytes(b"no database" * 1000)
    store.add(NOW + 300, "", {WHOLE: Reading(rows=2.0)})  # finds it
    store.add(NOW + 305, "", {WHOLE: Reading(rows=3.0)})
    store.add(NOW + 310, "", {WHOLE: Reading(rows=4.0)})
    assert [one.rows for one in kept(store, NOW + 310, 0)] == [3.0, 4.0]
    assert told() == before + 1


@pytest.mark.usefixtures("remembered")
def test_pages_that_are_damaged(store: HistoryStore, path: Path) -> None:
    fill(store, NOW, NOW + 3000, rows=1.0)
    store.close()
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    for at in range(NOW + 3000, NOW + 3060, 5):
        store.add(at, "", {WHOLE: Reading(rows=2.0)})
    assert [one.rows for one in kept(store, NOW + 3055, 0)][-3:] == [2.0] * 3


def test_a_file_of_another_release_is_begun_anew(store: HistoryStore, path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE reading (other TEXT)")
        file.execute("PRAGMA user_version = 99")
    file.close()
    store.add(NOW, "", {WHOLE: Reading(rows=2.0)})
    assert [one.rows for one in kept(store, NOW, 0)] == [2.0]


@pytest.mark.usefixtures("remembered")
def test_a_place_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    store = HistoryStore(folder / "history.sqlite")
    before = told()
    for at in range(NOW, NOW + 50, 5):
        store.add(at, "", {WHOLE: Reading()})
        assert kept(store, at, 0) == []
    assert told() == before + 1
    folder.mkdir()
    store.add(NOW + 50, "", {WHOLE: Reading(rows=1.0)})
    assert [one.rows for one in kept(store, NOW + 50, 0)] == [1.0]
    store.close()


@pytest.mark.usefixtures("remembered")
def test_a_full_disk_is_told_once_and_waited_for(store: HistoryStore) -> None:
    store.add(NOW, "", {WHOLE: Reading(rows=1.0)})
    before = told()
    assert store._connection is not None
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")  # as a full disk answers
    many = {WHOLE: Reading(), **{f"A.T{n}": Reading(*[n + 0.1] * 8) for n in range(TABLES_MAX)}}
    store.add(NOW + 5, "", many)
    assert told() == before + 1
    store.add(NOW + 10, "", many)  # another connection: there is room again
    assert len(kept(store, NOW + 10, 0)) == 2
    assert told() == before + 1


def test_a_disk_that_takes_one_write_and_refuses_the_next_is_told_of_once(
    store: HistoryStore,
) -> None:
    with capture_logs() as said:
        for number in range(5):
            store.add(NOW + 10 * number, "", {WHOLE: Reading(rows=1.0)})
            assert store._connection is not None
            (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
            store._connection.execute(f"PRAGMA max_page_count = {pages}")
            tables = {f"A.T{number}_{n}": Reading(*[n + 0.1] * 8) for n in range(TABLES_MAX)}
            store.add(NOW + 10 * number + 5, "", {WHOLE: Reading(), **tables})
        assert [line["event"] for line in said] == [
            "could not write the history of the status page"
        ]
        for number in range(10, 30):
            store.add(NOW + 10 * number, "", {WHOLE: Reading(rows=1.0)})
    assert [line["event"] for line in said] == [
        "could not write the history of the status page",
        "the history of the status page can be written again",
    ]


def test_ranges() -> None:
    assert [level_of(level.name) for level in LEVELS] == [0, 1, 2]
    assert level_of("1y") is None
