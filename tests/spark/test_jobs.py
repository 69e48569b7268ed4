"""Tasks on a real local Spark session. Tasks are closures, so that workers need not import this."""

from __future__ import annotations

import gc
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.files.result_files import Kind, ResultFiles, TaskResult
from olr_pg.spark import jobs
from olr_pg.spark.jobs import (
    FIRST_JOB_BYTES,
    JOB_BYTES,
    SparkCall,
    SparkJob,
    cells,
    job_bytes,
    plan_jobs,
    planned_results,
    run_tasks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.spark.jobs import Share, Work


MIB = 1024 * 1024

both_ways = pytest.mark.parametrize("inline_only", [False, True], ids=["files", "Java"])
"""Results in files, and through Java."""


def numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


@both_ways
def test_results_come_in_the_order_of_the_payloads(spark: SparkSession, inline_only: bool) -> None:
    def later_ones_are_faster(payload: bytes) -> bytes:
        import time

        time.sleep((5 - int(payload) % 5) / 50)
        return b"<" + payload + b">"

    results = run_tasks(
        spark,
        numbered(11),
        lambda p: later_ones_are_faster(p),
        max_parallel=4,
        inline_only=inline_only,
    )
    assert list(results) == [(number, b"<%d>" % number) for number in range(11)]


def test_no_payloads_no_job(spark: SparkSession) -> None:
    assert list(run_tasks(spark, [], lambda p: p)) == []


@both_ways
def test_payloads_and_results_are_any_bytes(spark: SparkSession, inline_only: bool) -> None:
    payloads = [b"", b"\0", bytes(range(256)), b"\xff" * 70_000]
    results = run_tasks(spark, payloads, lambda p: p[::-1], inline_only=inline_only)
    assert [result for _, result in results] == [payload[::-1] for payload in payloads]


@both_ways
def test_a_broadcast_reaches_every_task(spark: SparkSession, inline_only: bool) -> None:
    common = bytes(range(256)) * 8192
    results = run_tasks(
        spark,
        numbered(4),
        lambda p, b: p + b[-1:] + b"%d" % len(b),
        broadcast=common,
        inline_only=inline_only,
    )
    assert [result for _, result in results] == [
        b"%d\xff%d" % (number, len(common)) for number in range(4)
    ]


@pytest.mark.parametrize("inline_only", [False, True])
def test_large_results_come_back_whole(spark: SparkSession, inline_only: bool) -> None:
    def grow(payload: bytes) -> bytes:
        return payload * (40 * MIB // len(payload)) + b"end"

    payloads = [b"ab", b"small", bytes(range(256))]
    seen = 0
    for index, result in run_tasks(spark, payloads, lambda p: grow(p), inline_only=inline_only):
        assert result == grow(payloads[index])
        seen += 1
    assert seen == 3


def test_no_file_is_left(spark: SparkSession) -> None:
    scratch = Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
    assert list(run_tasks(spark, [b""], lambda p: p))
    before = set(scratch.iterdir())
    for _ in run_tasks(spark, numbered(3), lambda _: bytes(MIB)):
        assert set(scratch.iterdir()) > before
    assert set(scratch.iterdir()) == before


def test_a_call_leaves_nothing_to_the_garbage_collector(spark: SparkSession) -> None:
    gc.collect()
    gc.disable()
    try:
        assert len(list(run_tasks(spark, numbered(9), lambda p: p))) == 9
        left = [one for one in gc.get_objects() if type(one) in (SparkCall, ResultFiles)]
    finally:
        gc.enable()
    assert not left


@both_ways
def test_an_error_of_a_task_arrives_after_the_results_before_it(
    spark: SparkSession, inline_only: bool
) -> None:
    def fail_on_two(payload: bytes) -> bytes:
        if payload == b"2":
            raise OlrPgError(2006, "bad length", thread=1, sequence=42, block=7, offset=16)
        return payload

    results = run_tasks(
        spark, numbered(6), lambda p: fail_on_two(p), max_parallel=4, inline_only=inline_only
    )
    assert [next(results), next(results)] == [(0, b"0"), (1, b"1")]
    with pytest.raises(OlrPgError) as raised:
        next(results)
    assert raised.value.code == 2006
    assert raised.value.where == {"thread": 1, "sequence": 42, "block": 7, "offset": 16}


@both_ways
def test_another_exception_arrives_with_the_tasks_traceback(
    spark: SparkSession, inline_only: bool
) -> None:
    def deep_inside(payload: bytes) -> bytes:
        return bytes([256 + len(payload)])

    with pytest.raises(OlrPgError) as raised:
        list(run_tasks(spark, [b"x"], lambda p: deep_inside(p), inline_only=inline_only))
    assert raised.value.code == 6004
    assert "ValueError" in raised.value.detail
    assert any("deep_inside" in note for note in raised.value.__notes__)


@both_ways
def test_a_task_whose_worker_is_killed_is_repeated(
    spark: SparkSession, inline_only: bool, tmp_path: Path
) -> None:
    def die_once(payload: bytes, mark: Path) -> bytes:
        import os
        import signal

        if payload == b"1" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return payload * 300_000

    mark = tmp_path / "died"
    results = run_tasks(spark, numbered(4), lambda p: die_once(p, mark), inline_only=inline_only)
    assert next(results) == (0, b"0" * 300_000)
    rest = list(results)
    assert mark.exists()
    assert rest == [(number, b"%d" % number * 300_000) for number in range(1, 4)]


@both_ways
def test_a_worker_that_always_dies_is_an_error_and_the_session_lives_on(
    spark: SparkSession, inline_only: bool
) -> None:
    def die(payload: bytes) -> bytes:
        import os

        os._exit(len(payload))

    with pytest.raises(OlrPgError) as raised:
        list(run_tasks(spark, [b"xyz"], lambda p: die(p), inline_only=inline_only))
    assert raised.value.code == 6005
    assert "worker" in raised.value.detail
    assert list(run_tasks(spark, [b"x"], lambda p: p)) == [(0, b"x")]


@both_ways
def test_tasks_are_done_as_results_are_taken(
    spark: SparkSession, tmp_path: Path, inline_only: bool
) -> None:
    def leave_a_mark(payload: bytes) -> bytes:
        (tmp_path / payload.decode()).touch()
        return payload

    results = run_tasks(
        spark, numbered(8), lambda p: leave_a_mark(p), max_parallel=2, inline_only=inline_only
    )
    assert not any(tmp_path.iterdir())
    assert next(results) == (0, b"0")
    assert next(results) == (1, b"1")
    # Of four that may be under way, the first was taken, and the second is just being taken.
    assert {int(file.name) for file in tmp_path.iterdir()} <= {0, 1, 2, 3, 4}
    assert [index for index, _ in results] == [2, 3, 4, 5, 6, 7]


@both_ways
def test_closing_cancels_what_is_under_way(
    spark: SparkSession, tmp_path: Path, inline_only: bool
) -> None:
    def first_or_wait(payload: bytes) -> bytes:
        import time

        if payload != b"0":
            time.sleep(600)
        return payload

    results = run_tasks(
        spark, numbered(2), lambda p: first_or_wait(p), max_parallel=1, inline_only=inline_only
    )
    assert next(results) == (0, b"0")
    results.close()
    tracker = spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds():  # it hears of the end from another thread
        time.sleep(0.01)
    assert list(run_tasks(spark, [b"x"], lambda p: p)) == [(0, b"x")]


def test_a_spool_that_cannot_be_made_is_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(OlrPgError) as raised:
        list(run_tasks(spark, [b"x"], lambda p: p))
    assert raised.value.code == 6006


@both_ways
def test_another_version_of_the_package_is_an_error(
    spark: SparkSession, inline_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.installed_version.cache_clear()
    monkeypatch.setattr(jobs, "version", lambda _: "0.0")
    try:
        with pytest.raises(OlrPgError, match=r"the driver has version 0\.0") as raised:
            list(run_tasks(spark, [b""], lambda p: p, inline_only=inline_only))
    finally:
        jobs.installed_version.cache_clear()
    assert raised.value.code == 6008


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
    monkeypatch.setattr("olr_pg.spark.jobs._VISIBLE_SECONDS", 0.02)
    with pytest.raises(OlrPgError, match="the file with the result is missing") as raised:
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


SIZES = st.lists(st.integers(0, 3 * JOB_BYTES), min_size=1, max_size=30)


@given(sizes=SIZES, width=st.integers(1, 4), growing=st.booleans())
def test_small_tasks_share_jobs(sizes: list[int], width: int, growing: bool) -> None:
    planned = plan_jobs(len(sizes), width, sizes, growing=growing)
    jobs = [sorted(task for share in job for task in share) for job in planned]

    assert [task for job in jobs for task in job] == list(range(len(sizes)))
    for number, (job, following) in enumerate(pairwise(jobs)):
        held = sum(sizes[task] for task in job)
        room = width * job_bytes(number, growing=growing)
        assert len(job) >= width
        assert len(job) == width or held <= room
        assert held + sizes[following[0]] > room
    room = width * job_bytes(len(jobs) - 1, growing=growing)
    assert len(jobs[-1]) <= width or sum(sizes[task] for task in jobs[-1]) <= 1.5 * room


@given(sizes=SIZES, width=st.integers(1, 4))
def test_each_core_has_one_share_of_a_job_about_as_large_as_others(
    sizes: list[int], width: int
) -> None:
    for job in plan_jobs(len(sizes), width, sizes, growing=False):
        tasks = [task for share in job for task in share]
        assert len(job) == min(width, len(tasks))
        amounts = [sum(sizes[task] for task in share) for share in job]
        assert max(amounts) - min(amounts) <= max(sizes[task] for task in tasks) + len(tasks)
        assert all(share == sorted(share) for share in job)


def test_tasks_are_dealt_out_in_turn() -> None:
    assert plan_jobs(5, 2, [16 * MIB] * 5, growing=False) == [[[0, 2, 4], [1, 3]]]
    large = [JOB_BYTES, 1, 1, 1]
    assert plan_jobs(4, 2, large, growing=False) == [[[0], [1, 2, 3]]]


def test_a_rest_is_no_job_of_its_own() -> None:
    assert len(plan_jobs(24, 2, [16 * MIB] * 24, growing=False)) == 1
    assert len(plan_jobs(25, 2, [16 * MIB] * 25, growing=False)) == 2


def test_jobs_grow_where_results_come_with_their_end() -> None:
    jobs = plan_jobs(204, 2, [4 * MIB] * 204, growing=True)
    assert [sum(map(len, job)) for job in jobs] == [8, 16, 32, 64, 84]
    assert [len(share) for share in jobs[0]] == [4, 4], "each core has something to do"
    assert job_bytes(0, growing=True) == FIRST_JOB_BYTES
    assert job_bytes(10_000, growing=True) == JOB_BYTES


@pytest.mark.parametrize("growing", [False, True])
def test_tasks_of_unknown_size_go_out_by_their_number(growing: bool) -> None:
    assert plan_jobs(5, 2, (), growing=growing) == [[[0], [1]], [[2], [3]], [[4]]]
