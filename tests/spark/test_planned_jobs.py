"""Doing a task, and taking what came out; whole jobs are in `test_jobs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.files.result_files import Kind, ResultFiles, TaskResult
from olr_pg.spark import planned_jobs
from olr_pg.spark.planned_jobs import cells, planned_results
from olr_pg.spark.spark_call import SparkCall, SparkJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.spark.spark_call import Share, Work


class ScriptedJob(SparkJob):
    """A job that the test does."""

    def __init__(self, work: Work, shares: Sequence[Share], description: str) -> None:
        self.work = work
        self.shares = shares
        self.description = description
        self.ended: list[Any] | None = None

    def done(self) -> bool:
        return self.ended is not None

    def result(self) -> list[Any]:
        assert self.ended is not None
        return self.ended


class ScriptedCall(SparkCall):
    """A call whose jobs end when the test says so, or at once."""

    cores = 2

    def __init__(self, ended: list[Any] | None = None) -> None:
        self.submitted: list[ScriptedJob] = []
        self._ended = ended

    @property
    def task(self) -> Callable[[], Callable[..., None]]:
        return lambda: lambda payload, result: result.write(payload)

    def submit(self, work: Work, shares: Sequence[Share], description: str) -> SparkJob:
        job = ScriptedJob(work, shares, description)
        job.ended = self._ended
        self.submitted.append(job)
        return job


@pytest.fixture
def files(tmp_path: Path) -> Iterator[ResultFiles]:
    files = ResultFiles(str(tmp_path), kept=8)
    yield files
    files.remove()


def test_a_result_in_a_file_is_taken_before_its_job_ends(files: ResultFiles) -> None:
    call = ScriptedCall()
    jobs = [[[0], [1]], [[2]], [[3]]]
    results = planned_results(call, [b"a", b"b", b"c", b"d"], jobs, files, "decode")
    list(cells(0, lambda result: result.write(b"a"), str(files.directory)))
    assert next(results) == (0, b"a")
    first, second = call.submitted
    assert first.description == "decode (2 of 4 parts)"
    assert second.description == "decode (3 of 4 parts)"
    assert list(first.work(first.shares[1:])) == []
    assert next(results) == (1, b"b")
    assert not first.done()
    assert len(call.submitted) == 2, "what was taken last is still being worked on"
    list(second.work(second.shares))
    assert next(results) == (2, b"c")
    assert len(call.submitted) == 3


def test_a_job_that_ends_without_all_results_is_an_error(files: ResultFiles) -> None:
    results = planned_results(ScriptedCall([]), [b"a"], [[[0]]], None, "decode")
    with pytest.raises(OlrPgError, match="parts of the result are missing") as raised:
        next(results)
    assert raised.value.code == 6006


def test_a_file_that_vanished_is_an_error(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_jobs, "_VISIBLE_SECONDS", 0.02)
    with pytest.raises(OlrPgError, match="its file is missing") as raised:
        next(planned_results(ScriptedCall([]), [b"a"], [[[0]]], files, "decode"))
    assert raised.value.code == 6006


def test_an_error_for_which_there_was_no_room_comes_with_the_jobs_end(files: ResultFiles) -> None:
    directory = str(files.directory) + "-gone"
    (cell,) = cells(1, lambda result: result.write(b"a"), directory)
    list(cells(0, lambda result: result.write(b"a"), str(files.directory)))
    results = planned_results(ScriptedCall([cell]), [b"a", b"b"], [[[0, 1]]], files, "decode")
    assert next(results) == (0, b"a")
    with pytest.raises(OlrPgError) as raised:
        next(results)
    assert raised.value.code == 6006


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
    (files.directory.parent / "spare-results" / "0").symlink_to("/dev/full")
    (cell,) = cells(0, lambda result: result.write(bytes(1 << 20)), str(files.directory))
    assert cell.kind is Kind.ERROR
    assert b"No space left" in cell.data
    assert files.take(0) is None
