"""Doing a task, and taking what came out; whole jobs are in `test_jobs`."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.spark import planned_jobs
from olr_pg.spark.call import SparkCall
from olr_pg.spark.planned_jobs import cells, planned_results
from olr_pg.spark.result_cells import Cell, Kind, TaskResult
from olr_pg.spark.result_files import ResultFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ScriptedCall(SparkCall):
    """A call whose jobs end when the test says so."""

    cores = 2

    def __init__(self) -> None:
        self.submitted: list[tuple[Callable[..., Iterator[Cell]], Future[list[Any]], str]] = []

    @property
    def task(self) -> Callable[[], Callable[..., None]]:
        return lambda: lambda payload, result: result.write(payload)

    def submit(self, work: Any, count: int, description: str) -> Future[list[Any]]:
        job: Future[list[Any]] = Future()
        self.submitted.append((work, job, description))
        return job


@pytest.fixture
def files(tmp_path: Path) -> Iterator[ResultFiles]:
    files = ResultFiles(str(tmp_path), kept=8)
    yield files
    files.remove()


def test_a_result_in_a_file_is_taken_before_its_job_ends(files: ResultFiles) -> None:
    call = ScriptedCall()
    jobs = [[range(1), range(1, 2)], [range(2, 3)], [range(3, 4)]]
    results = planned_results(call, [b"a", b"b", b"c", b"d"], jobs, files, "decode")
    list(cells(0, lambda result: result.write(b"a"), str(files.directory)))
    assert next(results) == (0, b"a")
    assert [says for *_, says in call.submitted] == [
        "decode (2 of 4 parts)",
        "decode (3 of 4 parts)",
    ]
    work, job, _ = call.submitted[0]
    said = list(work([1]))
    assert said == [Cell(1, Kind.IN_FILE)]
    assert next(results) == (1, b"b")
    assert not job.done()
    assert len(call.submitted) == 2, "what was taken last is still being worked on"
    list(call.submitted[1][0]([0]))
    assert next(results) == (2, b"c")
    assert len(call.submitted) == 3


def test_a_job_that_ends_without_all_results_is_an_error(files: ResultFiles) -> None:
    for wanted in (files, None):
        call = ScriptedCall()
        results = planned_results(call, [b"a"], [[range(1)]], wanted, "decode")
        call.submit = lambda *_: _ended([])  # type: ignore[method-assign]
        with pytest.raises(OlrPgError, match="Java ended before") as raised:
            next(results)
        assert raised.value.code == 6005


def test_a_file_that_vanished_is_an_error(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_jobs, "_VISIBLE_SECONDS", 0.02)
    call = ScriptedCall()
    call.submit = lambda *_: _ended([Cell(0, Kind.IN_FILE)])  # type: ignore[method-assign]
    with pytest.raises(OlrPgError, match="not there") as raised:
        next(planned_results(call, [b"a"], [[range(1)]], files, "decode"))
    assert raised.value.code == 6006


def _ended(said: list[Any]) -> Future[list[Any]]:
    job: Future[list[Any]] = Future()
    job.set_result(said)
    return job


def test_an_error_is_seen_in_the_file_and_in_a_cell(files: ResultFiles) -> None:
    def fail(_: TaskResult) -> None:
        raise OlrPgError(2006, "bad length", block=7)

    (cell,) = cells(0, fail, str(files.directory))
    found = files.take(0)
    assert found is not None
    assert (found[0], bytes(found[1])) == (Kind.ERROR, cell.data)


def test_an_error_has_a_cell_where_no_file_can_be_written(files: ResultFiles) -> None:
    directory = str(files.directory)
    files.remove()
    (cell,) = cells(0, lambda result: result.write(b"a"), directory)
    assert cell.kind is Kind.ERROR
    assert b"6006" in cell.data


def test_a_full_disk_is_an_error_of_the_task(files: ResultFiles) -> None:
    # A device that is always full stands for the file.
    (files.directory / "free-0").symlink_to("/dev/full")
    (cell,) = cells(0, lambda result: result.write(bytes(1 << 20)), str(files.directory))
    assert cell.kind is Kind.ERROR
    assert b"No space left" in cell.data
    assert files.take(0) is None
