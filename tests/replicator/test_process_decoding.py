"""Splits decoded by processes give what one process gives, and their ends are told."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import psutil
import pytest

from olr_pg.decoding.split import plan_splits
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.shared_rooms import SharedRooms
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator import process_decoding
from olr_pg.replicator.decode_once import LogDecoding
from olr_pg.replicator.process_decoding import ProcessDecoding
from olr_pg.wire.room_filling import Form
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.decoded_seeds import SimulatedSeed, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.decoding.split import Decode
    from olr_pg.dictionary.model import Snapshot

pytestmark = pytest.mark.filterwarnings(
    # This process has threads of other tests, which hold no lock that a child needs.
    "ignore:This process.* is multi-threaded:DeprecationWarning"
)


def lines(
    snapshot: Snapshot, logs: Path, decode: Decode | None, *, with_sessions: bool = False
) -> tuple[bytes, set[Form]]:
    """What ``olr-pg decode`` prints, and in which forms it came."""
    sessions = SessionDirectory() if with_sessions else None
    renderer, found, forms = PackedLines(snapshot.database, sessions), list[bytes](), set()
    with patch(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=20_000)
    ):
        decoding = LogDecoding(snapshot, [str(logs)], packed=True)
        for run in decoding.runs(decode=decode, sessions=sessions):
            forms.add(run.batch.form)
            is_text = run.batch.form is Form.LINES
            found += map(
                bytes, [run.blob] if is_text else renderer.pieces(run.blob, decoding.tables)
            )
    return b"".join(found), forms


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(6, 400_000).simulated(tmp_path_factory.mktemp("s"))


@pytest.fixture
def processes(source: Source) -> Iterator[ProcessDecoding]:
    with ProcessDecoding(2, lines_of=source.snapshot.database) as started:
        yield started


def test_lines_of_processes_are_the_truth(processes: ProcessDecoding, source: Source) -> None:
    found, forms = lines(source.snapshot, source.folder / "logs", processes.decode)
    assert found == source.truth
    assert forms == {Form.LINES, Form.PACKED}


@pytest.mark.parametrize("size", [1, 12_000])
def test_results_that_no_room_holds_are_the_same(
    source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int
) -> None:
    monkeypatch.setattr(process_decoding, "SharedRooms", partial(SharedRooms, size=size))
    with ProcessDecoding(2, lines_of=source.snapshot.database, parent=str(tmp_path)) as processes:
        found, _ = lines(source.snapshot, source.folder / "logs", processes.decode)
        assert list(tmp_path.rglob("spare-results/*")), "no result went into a file"
    assert found == source.truth


def test_rooms_and_files_are_free_again(processes: ProcessDecoding, source: Source) -> None:
    folder = source.folder / "logs"
    for _ in range(3):  # more results than there are rooms, in each
        decoding = LogDecoding(source.snapshot, [str(folder)], packed=True)
        results = decoding.runs(decode=processes.decode)
        next(iter(results))
        del results
    assert lines(source.snapshot, folder, processes.decode)[0] == source.truth


def test_results_that_rooms_hold_make_no_files(source: Source, tmp_path: Path) -> None:
    splits = [split for log in source.logs for split in plan_splits(log)]
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        ()
    )
    with ProcessDecoding(2, parent=str(tmp_path)) as processes:
        for _ in processes.decode(subscription, splits * 10):
            assert not list(tmp_path.rglob("new-*"))
        assert not list(tmp_path.rglob("spare-results/*"))


def test_lines_of_processes_have_their_sessions(source: Source) -> None:
    one, _ = lines(source.snapshot, source.folder / "logs", None, with_sessions=True)
    with ProcessDecoding(2, with_names=True) as processes:
        found, forms = lines(
            source.snapshot, source.folder / "logs", processes.decode, with_sessions=True
        )
    assert (found, forms) == (one, {Form.PACKED})
    assert b'"session":{' in found


def test_a_ddl_has_splits_decoded_again(tmp_path: Path) -> None:
    made = DdlSource(tmp_path / "s")
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = made.take_snapshot()
    made.insert("A", 1, "one")
    made.add_column("A", "EXTRA", NUMBER)
    made.insert("A", 2, "two", 22)
    made.finish()
    with ProcessDecoding(2, lines_of=snapshot.database) as processes:
        found, _ = lines(snapshot, made.directory / "logs", processes.decode)
    assert found == lines(snapshot, made.directory / "logs", None)[0]
    assert b'"EXTRA":22' in found


def test_a_log_that_cannot_be_read_is_told(processes: ProcessDecoding, source: Source) -> None:
    split = plan_splits(source.logs[0])[0]._replace(path=str(source.folder / "gone"))
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        ()
    )
    with pytest.raises(OlrPgError) as caught:
        next(processes.decode(subscription, [split]))
    assert caught.value.code == Code.LOG_UNREADABLE


def test_a_killed_process_is_told_and_nothing_is_left(source: Source, tmp_path: Path) -> None:
    # Far more than the processes hold at once, so that there is work left when one is killed.
    splits = plan_splits(source.logs[0], 4_000) * 200
    subscription = LogDecoding(source.snapshot, [str(source.folder / "logs")]).follower.subscribe(
        ()
    )
    before = {child.pid for child in psutil.Process().children()}
    with ProcessDecoding(2, parent=str(tmp_path)) as processes:
        started = [child for child in psutil.Process().children() if child.pid not in before]
        assert len(started) == 2
        results = processes.decode(subscription, splits)
        next(results)
        started[0].send_signal(signal.SIGKILL)
        with pytest.raises(OlrPgError) as caught:
            list(results)
    assert caught.value.code == Code.DECODING_PROCESS_ENDED
    assert not list(tmp_path.iterdir())
    psutil.wait_procs(started, timeout=60)
    assert not any(child.is_running() for child in started)


def test_processes_end_with_their_parent(source: Source, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:  # pragma: no cover - another process
        with ProcessDecoding(2, parent=str(tmp_path)):
            pids = [child.pid for child in psutil.Process().children()]
            os.write(writing, " ".join(map(str, pids)).encode())
            os.kill(os.getpid(), signal.SIGKILL)
    children = [psutil.Process(int(pid)) for pid in os.read(reading, 1_000).split()]
    os.waitpid(parent, 0)
    os.close(reading)
    os.close(writing)
    assert len(children) == 2
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert not list(tmp_path.iterdir())
