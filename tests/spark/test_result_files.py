"""Result files that are used again: nobody writes into one that somebody has."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from olr_pg.spark.result_files import Spool, take_file


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(str(tmp_path), kept=8)
    yield spool
    spool.remove()


def write(spool: Spool, data: bytes) -> str:
    name, file = take_file(str(spool.directory))
    with file:
        file.write(data)
    return name


def test_a_file_is_used_again_once_nobody_has_its_result(spool: Spool) -> None:
    name = write(spool, b"first")
    result = spool.mapped(name, 5)
    part = np.frombuffer(result[1:], np.uint8)
    del result
    other = write(spool, b"second")
    assert other != name
    assert part.tobytes() == b"irst"
    del part
    assert write(spool, b"third") == name
    assert bytes(spool.mapped(name, 5)) == b"third"


def test_no_more_files_are_kept_than_wanted(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), kept=2)
    results = [spool.mapped(write(spool, b"data"), 4) for _ in range(5)]
    assert len(list(spool.directory.iterdir())) == 5
    results.clear()
    assert len(list(spool.directory.iterdir())) == 2
    spool.remove()


def test_a_result_outlives_the_directory(spool: Spool) -> None:
    result = spool.mapped(write(spool, b"data"), 4)
    spool.remove()
    assert not spool.directory.exists()
    assert bytes(result) == b"data"
    del result
    assert not spool.directory.exists()


def test_one_of_several_tasks_gets_a_free_file(spool: Spool) -> None:
    for _ in range(20):
        results = [spool.mapped(write(spool, b"data"), 4) for _ in range(4)]
        results.clear()
        with ThreadPoolExecutor(8) as tasks:
            names = list(tasks.map(write, [spool] * 8, [b"data"] * 8))
        assert len(set(names)) == 8


class Tasks(RuleBasedStateMachine):
    """Tasks write, are lost, or are repeated; results are taken and dropped; in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.spool = Spool(None, kept=3)
        self.number = 0
        self.finished: list[tuple[str, bytes]] = []
        self.lost: list[tuple[str, bytes]] = []
        self.held: list[tuple[memoryview, bytes]] = []

    def teardown(self) -> None:
        self.spool.remove()

    def _written(self, size: int) -> tuple[str, bytes]:
        self.number += 1
        data = b"%d," % self.number * size
        return write(self.spool, data), data

    @rule(size=st.integers(1, 9))
    def finish(self, size: int) -> None:
        self.finished.append(self._written(size))

    @rule(size=st.integers(1, 9))
    def lose(self, size: int) -> None:
        """A worker that Spark gave up, but that still writes."""
        self.lost.append(self._written(size))

    @rule()
    def lost_ones_write(self) -> None:
        for name, data in self.lost:
            (self.spool.directory / name).write_bytes(data)

    @rule()
    def take(self) -> None:
        if self.finished:
            name, data = self.finished.pop(0)
            self.held.append((self.spool.mapped(name, len(data)), data))

    @rule(at=st.integers(0, 9))
    def drop(self, at: int) -> None:
        if self.held:
            self.held.pop(at % len(self.held))

    @rule()
    def results_are_whole(self) -> None:
        for result, data in self.held:
            assert bytes(result) == data
        for name, data in self.finished:
            assert (self.spool.directory / name).read_bytes().startswith(data)


TestTasks = Tasks.TestCase
TestTasks.settings = settings(max_examples=40, stateful_step_count=30)
