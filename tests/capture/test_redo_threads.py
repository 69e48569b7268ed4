"""A redo thread that turns up late is an error, not a loss."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.redo_threads import KnownThreads
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decode_once import thread_starts
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.spark.session import SparkSettings

if TYPE_CHECKING:
    from pathlib import Path


QUERY = "SELECT owner, table_name FROM all_tables"


def test_known_threads_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "threads.json"
    KnownThreads(path).add([2, 1])
    assert KnownThreads(path).known == {1, 2}
    KnownThreads(path).forget()
    assert KnownThreads(path).known == frozenset()


def test_runs_that_note_their_threads_at_once_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "threads.json"
    threads, begin = KnownThreads(path), threading.Barrier(8)

    def note(first: int) -> None:
        begin.wait(timeout=120)
        for thread in range(first, 80, 8):
            threads.add([thread])

    with ThreadPoolExecutor(8) as runs:
        list(runs.map(note, range(8)))
    assert KnownThreads(path).known == threads.known == frozenset(range(80))


def test_a_thread_that_could_not_be_written_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "threads.json"
    threads = KnownThreads(path)
    threads.add([1])
    obstacle = tmp_path / "threads.json.new"
    obstacle.mkdir()
    with pytest.raises(OlrPgError) as caught:
        threads.add([2])
    assert caught.value.code == 1092
    obstacle.rmdir()
    threads.add([2])
    assert KnownThreads(path).known == {1, 2}


@pytest.mark.parametrize("content", ["", "[]", '{"threads": "x"}', '{"other": []}'])
def test_a_file_that_is_not_ours(tmp_path: Path, content: str) -> None:
    path = tmp_path / "threads.json"
    path.write_text(content, "utf-8")
    with pytest.raises(OlrPgError) as caught:
        KnownThreads(path)
    assert caught.value.code == 4036


def test_files_of_other_versions(tmp_path: Path) -> None:
    path = tmp_path / "threads.json"
    path.write_text('{"threads": [1, 2]}')  # before there were versions
    assert KnownThreads(path).known == {1, 2}
    path.write_text('{"version": 2, "threads": [1]}')
    with pytest.raises(OlrPgError, match="version 2") as caught:
        KnownThreads(path)
    assert caught.value.code == 4035


@pytest.mark.timeout(900)  # the first test with Spark may compile the kernels
@pytest.mark.usefixtures("one_session")
def test_a_thread_that_comes_after_others_were_delivered(tmp_path: Path) -> None:
    shape = choose_shape(5, "random", threads=2)
    simulate(5, tmp_path / "source", size=60_000, shape=shape)
    snapshot = load_snapshot(str(tmp_path / "source" / "dictionary.json"))
    logs = discover_logs([str(tmp_path / "source" / "logs")])
    first = min(logs, key=lambda log: log.header.first_scn).header.thread
    folder = tmp_path / "logs"
    folder.mkdir()
    for log in logs:
        if log.header.thread == first:
            shutil.copy(log.path, folder)

    def run(scn: int) -> OlrPgError | None:
        decoder = Decoder(
            OfflineDatabase(snapshot, [str(folder)]),
            SparkSettings(),
            once=True,
            threads_file=tmp_path / "threads.json",
        )
        delivery = Delivery(decoder)
        delivery.resolve(QUERY)
        queue = delivery.start(scn)
        end = time.monotonic() + 600
        while not delivery.drained.wait(0.05) and delivery.failure is None:
            assert time.monotonic() < end
        queue.close()
        delivery.stop()
        return delivery.failure

    assert run(0) is None
    for log in logs:
        shutil.copy(log.path, folder)
    resumed = max(log.next_scn for log in logs if log.header.thread == first)
    failure = run(resumed)
    assert failure is not None
    assert failure.code == 2014
    assert failure.where["thread"] != first
    # From the oldest log on, with all threads in place, nothing is late.
    assert run(0) is None


@pytest.mark.timeout(900)  # the first test with Spark may compile the kernels
@pytest.mark.usefixtures("one_session")
def test_a_log_that_comes_after_later_ones_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(5, tmp_path / "source", size=60_000)
    snapshot = load_snapshot(str(tmp_path / "source" / "dictionary.json"))
    early, late, *_ = discover_logs([str(tmp_path / "source" / "logs")])
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(late.path, folder)
    failed = threading.Event()
    snapshot = replace(snapshot, scn=late.header.first_scn)  # so nothing seems to be missing
    decoder = Decoder(OfflineDatabase(snapshot, [str(folder)]), SparkSettings())
    delivery = Delivery(decoder)
    delivery.resolve(QUERY)
    queue = delivery.start(0)
    monkeypatch.setattr(queue, "fail", lambda _: failed.set())
    monkeypatch.setattr(
        decoder.threads, "add", lambda _: shutil.copy(early.path, folder / "early.arc")
    )
    assert failed.wait(600)
    queue.close()
    delivery.stop()
    assert delivery.failure is not None
    assert delivery.failure.code == 2014
    assert delivery.failure.where["sequence"] == early.header.sequence


def test_a_thread_is_read_from_where_the_wanted_redo_begins(real_log_dir: Path) -> None:
    logs = discover_logs([str(real_log_dir / "*.dbf")])
    assert [log.header.sequence for log in logs] == [15, 16]
    assert thread_starts(logs) == {1: 2266630}
    assert thread_starts(logs, 2267716) == {1: 2266630}
    # A restart skips what ended before; the thread counts as read up to there.
    assert thread_starts(logs, 2267717) == {1: 2267717}
    assert thread_starts(logs, 2267723) == {1: 2267723}
