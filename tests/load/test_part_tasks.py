"""Parts of loads: little is done here, much on Spark; errors are the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.load.part_tasks import HERE_BYTES, part_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def no_session() -> NoReturn:
    raise AssertionError("a session was asked for")


def of_process(payload: bytes, job: bytes) -> bytes:
    return b"%d %s %s" % (os.getpid(), payload, job)


def failing(payload: bytes, _: bytes) -> bytes:
    if payload == b"2":
        raise OlrPgError(Code.TABLE_DATA_REFUSED, "no", table="S.T")
    if payload == b"3":
        raise ValueError("what is that")
    return payload


def test_little_is_done_in_this_process_in_order() -> None:
    sizes = [HERE_BYTES // 2, HERE_BYTES - HERE_BYTES // 2]
    found = list(part_results(no_session, [b"a", b"b"], of_process, b"job", sizes, "two"))
    assert found == [(0, b"%d a job" % os.getpid()), (1, b"%d b job" % os.getpid())]


def test_much_is_done_on_spark(spark: SparkSession) -> None:
    sizes = [HERE_BYTES, 1]
    # By value: the workers know nothing of this module.
    tasks = part_results(
        lambda: spark, [b"a", b"b"], lambda *of: of_process(*of), b"job", sizes, ""
    )
    found = [(index, bytes(result).split(b" ", 1)) for index, result in tasks]
    assert [(index, words) for index, (_, words) in found] == [(0, b"a job"), (1, b"b job")]
    assert all(int(pid) != os.getpid() for _, (pid, _) in found)


@pytest.mark.parametrize("size", [1, HERE_BYTES])
@pytest.mark.parametrize(
    ("payload", "code"), [(b"2", Code.TABLE_DATA_REFUSED), (b"3", Code.TASK_FAILED)]
)
def test_an_error_comes_after_the_results_before_it(
    spark: SparkSession, payload: bytes, code: Code, size: int
) -> None:
    payloads = [b"0", b"1", payload, b"4"]
    tasks = part_results(
        lambda: spark, payloads, lambda *of: failing(*of), b"", [size] * len(payloads), ""
    )
    assert [bytes(next(tasks)[1]) for _ in range(2)] == [b"0", b"1"]
    with pytest.raises(OlrPgError) as caught:
        next(tasks)
    assert caught.value.code == code
    assert ("no" if code == Code.TABLE_DATA_REFUSED else "what is that") in caught.value.detail
