"""Splits decoded by several processes give what one process gives, and errors are told at their
places.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pytest

from olr_pg.decoding.split import decode_whole, plan_splits
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.replicator.process_decoding import ProcessDecoding
from olr_pg.wire.encoder import Form
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.decoded_seeds import SimulatedSeed, Source
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.decoding.split import Decode, Subscription
    from olr_pg.dictionary.model import Snapshot


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
        for run in decoding.runs(DecodingOptions(decode=decode, sessions=sessions)):
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


def test_splits_that_are_not_needed_are_given_up(
    processes: ProcessDecoding, source: Source
) -> None:
    folder = source.folder / "logs"
    for _ in range(3):
        decoding = LogDecoding(source.snapshot, [str(folder)], packed=True)
        runs = decoding.runs(DecodingOptions(decode=processes.decode))
        next(iter(runs))
        del runs
    assert lines(source.snapshot, folder, processes.decode)[0] == source.truth


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
    with pytest.raises(OlrPgError) as caught:
        next(processes.decode(nothing(source), [split]))
    assert caught.value.code == Code.LOG_UNREADABLE


def test_no_process_is_left_after_an_error(source: Source) -> None:
    threads = set(threading.enumerate())
    splits = plan_splits(source.logs[0], 4_000)
    splits[3] = splits[3]._replace(path=str(source.folder / "gone"))
    with ProcessDecoding(2) as processes:
        assert len(multiprocessing.active_children()) == 2
        results = processes.decode(nothing(source), splits)
        assert [next(results).blocks for _ in range(3)] == [
            decode_whole(nothing(source), split).blocks for split in splits[:3]
        ]
        with pytest.raises(OlrPgError) as caught:
            next(results)
    assert caught.value.code == Code.LOG_UNREADABLE
    assert set(threading.enumerate()) == threads
    assert multiprocessing.active_children() == []


def test_a_lost_process_is_told(source: Source) -> None:
    splits = plan_splits(source.logs[0], 4_000)
    with ProcessDecoding(1) as processes:
        results = processes.decode(nothing(source), splits)
        next(results)
        (process,) = multiprocessing.active_children()
        process.kill()
        with pytest.raises(OlrPgError) as caught:
            list(results)
    assert caught.value.code == Code.DECODING_PROCESS_LOST
    assert "SIGKILL" in caught.value.detail
    assert caught.value.where["file"] == splits[0].path


def test_a_process_that_is_lost_when_its_file_arrives_is_told(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.replicator.process_decoding.recv_handle", lambda *_: os._exit(9))
    split = plan_splits(source.logs[0], 4_000)[0]
    with ProcessDecoding(1) as processes, pytest.raises(OlrPgError) as caught:
        next(processes.decode(nothing(source), [split]))
    assert caught.value.code == Code.DECODING_PROCESS_LOST
    assert "exit code 9" in caught.value.detail


@contextmanager
def few_files(count: int) -> Iterator[None]:
    """This process can open only so many more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened, hard))
    holes = []
    try:
        with suppress(OSError):
            while True:
                holes.append(os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 1 + count, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for hole in holes:
            os.close(hole)


@pytest.mark.timeout(60)
def test_a_limit_of_open_files_is_no_lost_process_that_is_waited_for(source: Source) -> None:
    split = plan_splits(source.logs[0], 4_000)[0]
    subscription = nothing(source)
    with ProcessDecoding(1) as processes, few_files(0), pytest.raises(OlrPgError) as caught:
        next(processes.decode(subscription, [split]))
    assert caught.value.code == Code.DECODING_PROCESS_LOST
    assert "cannot be received" in caught.value.detail
    assert "ulimit -n" in caught.value.action


@pytest.mark.parametrize("are_lines", [True, False])
def test_a_limit_of_the_size_of_files_is_named(source: Source, are_lines: bool) -> None:
    """It counts for files in memory, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    logs = source.folder / "logs"
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        lines_of = source.snapshot.database if are_lines else None
        processes = stack.enter_context(ProcessDecoding(1, lines_of=lines_of))
        with pytest.raises(OlrPgError) as caught:
            lines(source.snapshot, logs, processes.decode)
    assert caught.value.code == Code.DECODING_PROCESS_LOST
    assert "its result cannot be written: File too large" in caught.value.detail
    assert "ulimit -f" in caught.value.action
    assert multiprocessing.active_children() == []


def test_processes_that_cannot_be_started_leave_none() -> None:
    with few_files(8), pytest.raises(OlrPgError) as caught, ProcessDecoding(16):
        pass
    assert caught.value.code == Code.DECODING_PROCESS_LOST
    assert "cannot be started: Too many open files" in caught.value.detail
    assert multiprocessing.active_children() == []


def test_processes_leave_no_file_open(source: Source) -> None:
    with ProcessDecoding(1):
        pass
    gc.collect()  # of what other tests have caught
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ProcessDecoding(4) as processes:
        kept = list(processes.decode(nothing(source), plan_splits(source.logs[0], 4_000)))
        assert len(kept) > 8
    del kept
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_defect_is_told_with_its_place_in_the_other_process(source: Source) -> None:
    first: Any = "first"
    wrong = plan_splits(source.logs[0])[0]._replace(first_block=first)
    with ProcessDecoding(1) as processes, pytest.raises(TypeError) as caught:
        next(processes.decode(nothing(source), [wrong]))
    assert "open_split" in "".join(caught.value.__notes__)


def test_processes_end_with_the_process_that_started_them(source: Source) -> None:
    files = [str(source.folder / "dictionary.json"), str(source.folder / "logs")]
    with subprocess.Popen(
        [sys.executable, "-c", HALF_DECODED, *files], stdout=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        started = next(line.split()[1:] for line in command.stdout if line.startswith("started"))
        command.kill()
    assert len(started) == 2
    wait_until(lambda: not any(map(is_alive, started)))


HALF_DECODED: Final = """
import multiprocessing, sys, time
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.replicator.process_decoding import ProcessDecoding

with ProcessDecoding(2) as processes:
    decoding = LogDecoding(load_dictionary([sys.argv[1]]), [sys.argv[2]], packed=True)
    for run in decoding.runs(DecodingOptions(decode=processes.decode)):
        print("started", *(one.pid for one in multiprocessing.active_children()), flush=True)
        time.sleep(60)
"""


def is_alive(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def nothing(source: Source) -> Subscription:
    """A subscription of no table."""
    decoding = LogDecoding(source.snapshot, [str(source.folder / "logs")])
    return decoding.follower.subscribe(())
