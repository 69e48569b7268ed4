"""Result files that are used again: nobody writes into one that somebody has."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from olr_pg.errors import OlrPgError
from olr_pg.files import result_files
from olr_pg.files.result_files import Kind, ResultFile, ResultFiles

if TYPE_CHECKING:
    from pathlib import Path


def write(files: ResultFiles, task: int, data: bytes) -> None:
    file = ResultFile(str(files.directory), task)
    file.write(data[: len(data) // 3])
    file.write(data[len(data) // 3 :])
    file.finish()


@pytest.fixture(autouse=True)
def all_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones too, but for an empty one."""
    monkeypatch.setattr(result_files, "_MAPPED_MIN", 0)


def taken(files: ResultFiles, task: int) -> Any:
    found = files.take(task)
    assert found is not None
    kind, data = found
    assert kind is Kind.RESULT
    return data


def spare(files: ResultFiles) -> list[Path]:
    return list((files.directory.parent / "spare-results").iterdir())


def test_a_result_is_there_when_it_is_whole(files: ResultFiles) -> None:
    assert files.take(3) is None
    file = ResultFile(str(files.directory), 3)
    file.write(b"whole")
    assert files.take(3) is None
    file.finish()
    data = taken(files, 3)
    assert bytes(data) == b"whole"
    assert np.frombuffer(data, np.uint8).ctypes.data % 64 == 0


def test_an_empty_result_is_one(files: ResultFiles) -> None:
    write(files, 0, b"")
    assert bytes(taken(files, 0)) == b""


def test_a_small_result_leaves_its_file_at_once(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_files, "_MAPPED_MIN", 4)
    write(files, 0, b"data")
    assert taken(files, 0) == b"data"
    assert not list(files.directory.iterdir())
    assert len(spare(files)) == 1
    write(files, 1, b"data")
    with (files.directory / "1").open("r+b") as file:
        file.truncate(66)
    with pytest.raises(OlrPgError) as raised:
        files.take(1)
    assert raised.value.code == 6006


def test_the_first_attempt_that_is_whole_wins(files: ResultFiles) -> None:
    slow = ResultFile(str(files.directory), 3)
    slow.write(b"same")
    write(files, 3, b"same")
    data = taken(files, 3)
    slow.finish()
    assert [file.name for file in files.directory.iterdir()] == ["3"]
    assert bytes(data) == b"same"


def test_an_error_takes_the_place_of_what_was_written(files: ResultFiles) -> None:
    file = ResultFile(str(files.directory), 3)
    file.write(b"x" * 100_000)
    file.fail(Kind.CRASH, b"why")
    file.close()
    found = files.take(3)
    assert found is not None
    assert (found[0], bytes(found[1])) == (Kind.CRASH, b"why")


def test_a_file_is_used_again_once_nobody_has_its_result(files: ResultFiles) -> None:
    write(files, 0, b"first and long")
    result = taken(files, 0)
    (first,) = files.directory.iterdir()
    number = first.stat().st_ino
    part = np.frombuffer(result[1:], np.uint8)
    del result
    write(files, 1, b"second")
    assert (files.directory / "1").stat().st_ino != number
    assert part.tobytes() == b"irst and long"
    del part
    write(files, 2, b"third")
    assert (files.directory / "2").stat().st_ino == number
    assert bytes(taken(files, 2)) == b"third", "and nothing of what was behind it"


def test_no_more_files_are_kept_than_wanted(tmp_path: Path) -> None:
    files = ResultFiles(str(tmp_path), kept=2)
    for task in range(5):
        write(files, task, b"data")
    results = [taken(files, task) for task in range(5)]
    assert len(list(files.directory.iterdir())) == 5
    results.clear()
    assert len(spare(files)) == 2
    assert not list(files.directory.iterdir())
    files.remove()


def test_the_next_call_uses_the_files_of_the_last(tmp_path: Path) -> None:
    first = ResultFiles(str(tmp_path), kept=8)
    write(first, 0, b"data of the first")
    taken(first, 0)
    first.remove()
    (left,) = spare(first)
    number = left.stat().st_ino
    second = ResultFiles(str(tmp_path), kept=8)
    write(second, 0, b"second")
    assert (second.directory / "0").stat().st_ino == number
    assert bytes(taken(second, 0)) == b"second"
    second.remove()


def test_a_result_outlives_the_directory(files: ResultFiles) -> None:
    write(files, 0, b"data")
    result = taken(files, 0)
    files.remove()
    assert not files.directory.exists()
    assert bytes(result) == b"data"
    del result
    assert not files.directory.exists()


def test_one_of_several_tasks_gets_a_free_file(files: ResultFiles) -> None:
    for turn in range(0, 200, 20):
        for task in range(turn, turn + 4):
            write(files, task, b"data")
        results = [taken(files, task) for task in range(turn, turn + 4)]
        results.clear()
        numbers = range(turn + 10, turn + 18)
        with ThreadPoolExecutor(8) as tasks:
            list(tasks.map(lambda task: write(files, task, b"%d" % task), numbers))
        assert [bytes(taken(files, task)) for task in numbers] == [b"%d" % n for n in numbers]


def test_a_file_that_was_cut_is_an_error(files: ResultFiles) -> None:
    write(files, 0, b"data")
    for size in (67, 10):
        with (files.directory / "0").open("r+b") as file:
            file.truncate(size)
        with pytest.raises(OlrPgError) as raised:
            files.take(0)
        assert (raised.value.code, raised.value.where["task"]) == (6006, 0)


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as raised:
        ResultFile(str(tmp_path / "gone"), 0)
    assert raised.value.code == 6006
    with pytest.raises(OlrPgError) as raised:
        ResultFiles(str(tmp_path / "gone"), 1)
    assert raised.value.code == 6006


class Tasks(RuleBasedStateMachine):
    """Tasks write, are lost, or are repeated; results are taken and dropped; in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.parent = tempfile.TemporaryDirectory()
        self.files = ResultFiles(self.parent.name, kept=3)
        self.number = 0
        self.finished: list[tuple[int, bytes]] = []
        self.lost: list[ResultFile] = []
        self.held: list[tuple[memoryview, bytes]] = []

    def teardown(self) -> None:
        self.lost_ones_finish()
        self.files.remove()
        self.parent.cleanup()

    def _data(self, size: int) -> tuple[int, bytes]:
        self.number += 1
        return self.number, b"%d," % self.number * size

    @rule(size=st.integers(1, 9))
    def finish(self, size: int) -> None:
        task, data = self._data(size)
        write(self.files, task, data)
        self.finished.append((task, data))

    @rule(size=st.integers(1, 9))
    def lose(self, size: int) -> None:
        """A worker that Spark gave up, but that still writes; another does its task."""
        task, data = self._data(size)
        lost = ResultFile(str(self.files.directory), task)
        lost.write(data)
        self.lost.append(lost)
        write(self.files, task, data)
        self.finished.append((task, data))

    @rule()
    def lost_ones_write_on(self) -> None:
        self.lost_ones_finish()

    def lost_ones_finish(self) -> None:
        while self.lost:
            self.lost.pop().finish()

    @rule()
    def take(self) -> None:
        if self.finished:
            task, data = self.finished.pop(0)
            self.held.append((taken(self.files, task), data))

    @rule(at=st.integers(0, 9))
    def drop(self, at: int) -> None:
        if self.held:
            self.held.pop(at % len(self.held))

    @rule()
    def results_are_whole(self) -> None:
        for result, data in self.held:
            assert bytes(result) == data


TestTasks = Tasks.TestCase
TestTasks.settings = settings(max_examples=40, stateful_step_count=30)
