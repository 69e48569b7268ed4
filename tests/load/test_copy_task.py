"""A partition in the target: every row that was sent, or none.

Work is repeated where the connection to the source was lost, and only there.

Parts of loads: little is done here, much on Spark; errors are the same.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NoReturn

import psycopg
import pytest

from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.copy_task import ATTEMPTS, HERE_BYTES, part_results, prefetched, retried
from tests.load.conftest import Project
from tests.load.test_initial import target_rows

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.load.table_data import Source

DISCARDS = """
CREATE FUNCTION discarded() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER discards BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION discarded();
ALTER TABLE {0} ENABLE ALWAYS TRIGGER discards
"""


def test_rows_that_a_trigger_discards_are_missed(
    tmp_path: Path, source: Source, postgres_database: str
) -> None:
    project = Project(tmp_path, source, postgres_database)
    scn = source.scn(0.4)
    project.tables = source.write_tables(tmp_path / "tables", scn)
    wanted = {name: len(rows) for name, rows in source.rows(scn).items()}
    name = max(wanted, key=lambda one: wanted[one])
    config = project.config()
    snapshot = sources.read_dictionary(config)
    (table,) = (t for t in sources.choose_tables(config, snapshot, ()) if t.full_name == name)
    settings = sources.target_settings(config, snapshot, postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        plan_table(connection, settings, table, table)
        connection.execute(DISCARDS.format(name).encode())
        with pytest.raises(OlrPgError) as caught:
            project.load()
        assert (caught.value.code, caught.value.where["table"]) == (5109, name)
        assert "but only 0 inserted" in caught.value.detail
        assert target_rows(project) == {**wanted, name: 0}  # the others are loaded

        connection.execute(f"DROP TRIGGER discards ON {name}".encode())
        project.load(resume=True)
    assert target_rows(project) == wanted


PATIENCE_SECONDS = 60


def test_the_next_one_is_made_meanwhile() -> None:
    second = threading.Event()

    def items() -> Generator[int, None, None]:
        yield 1
        second.set()
        yield 2

    made = prefetched(items())
    assert next(made) == 1
    assert second.wait(PATIENCE_SECONDS)
    assert list(made) == [2]


def test_what_fails_fails_in_its_place() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("the second")

    made = prefetched(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="the second"):
        next(made)


def test_it_ends_where_no_more_is_wanted() -> None:
    ended = list[str]()

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            ended.append("closed")

    made = prefetched(items())
    next(made)
    made.close()
    assert ended == ["closed"]
    assert not [one for one in threading.enumerate() if one.name.startswith("load-ahead")]


def test_a_lost_connection_is_tried_again() -> None:
    calls = []

    def work() -> str:
        calls.append(1)
        if len(calls) < 2:
            raise OlrPgError(Code.ORACLE_CONNECTION_LOST, "gone")
        return "done"

    assert retried(work) == "done"
    assert len(calls) == 2


def test_it_ends_with_the_error_of_the_last_attempt() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise OlrPgError(Code.ORACLE_UNREACHABLE, f"attempt {len(calls)}")

    with pytest.raises(OlrPgError, match=f"attempt {ATTEMPTS}"):
        retried(work)
    assert len(calls) == ATTEMPTS


def test_another_error_is_not_tried_again() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise OlrPgError(Code.ORACLE_PRIVILEGE, "no")

    with pytest.raises(OlrPgError, match="no"):
        retried(work)
    assert len(calls) == 1


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
