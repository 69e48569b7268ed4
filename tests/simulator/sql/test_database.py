"""Sessions wait for each other's rows and keys, as Oracle's Concepts say (Data Concurrency)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.sql_session import SqlSession
from tests.simulator.sql.databases import Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Client:
    """A session in a thread of its own, which may wait."""

    def __init__(self, recorded: Recorded) -> None:
        self.sql = SqlSession(recorded.database)
        self._lock = recorded.database.lock
        self._thread: threading.Thread | None = None
        self.code: int | None = None

    def start(self, statement: str) -> None:
        """Begin a statement; return once it has ended, or waits."""
        done = threading.Event()

        def work() -> None:
            self.code = None
            try:
                self.sql.execute(statement)
            except OraError as error:
                self.code = error.code
            finally:
                done.set()
                with self._lock:
                    self._lock.notify_all()

        self._thread = threading.Thread(target=work)
        self._thread.start()
        with self._lock:
            self._lock.wait_for(lambda: done.is_set() or self.waits)

    @property
    def waits(self) -> bool:
        transaction = self.sql.transaction
        return transaction is not None and transaction.waits_for is not None

    def end(self) -> int | None:
        """Wait for the statement's end; its error."""
        assert self._thread is not None
        self._thread.join()
        return self.code


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    made.run(
        "CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v NUMBER(4))",
        "CREATE TABLE child (id NUMBER(4) PRIMARY KEY, t NUMBER(4) REFERENCES t)",
        "INSERT INTO t SELECT LEVEL, 0 FROM dual CONNECT BY LEVEL <= 3",
        "COMMIT",
    )
    made.start()
    yield made
    made.check_replay()


def test_an_update_waits_for_the_row_and_then_sees_what_was_committed(recorded: Recorded) -> None:
    other = Client(recorded)
    recorded.run("UPDATE t SET v = v + 1 WHERE id = 1")
    other.start("UPDATE t SET v = v + 10 WHERE id = 1")
    assert other.waits
    recorded.run("COMMIT")
    assert other.end() is None
    other.sql.commit()
    assert recorded.rows("SELECT v FROM t WHERE id = 1") == [(11,)]


def test_a_row_that_does_not_fit_any_more_is_left_out_behind_the_wait(recorded: Recorded) -> None:
    other = Client(recorded)
    recorded.run("UPDATE t SET v = 5 WHERE id = 1")
    other.start("DELETE FROM t WHERE v = 0")
    assert other.waits
    recorded.run("COMMIT")
    assert other.end() is None
    other.sql.commit()
    assert recorded.rows("SELECT id, v FROM t") == [(1, 5)]


def test_nowait_wait_and_skip_locked(recorded: Recorded) -> None:
    other = SqlSession(recorded.database)
    recorded.run("SELECT * FROM t WHERE id = 1 FOR UPDATE")
    for clause, code in (("NOWAIT", 54), ("WAIT 1", 30006)):
        with pytest.raises(OraError) as caught:
            other.execute(f"SELECT * FROM t FOR UPDATE {clause}")
        assert caught.value.code == code
    assert other.execute("SELECT * FROM t FOR UPDATE SKIP LOCKED").count == 2
    recorded.run("ROLLBACK")
    assert other.execute("SELECT * FROM t FOR UPDATE NOWAIT").count == 3
    other.rollback()


def test_of_two_that_wait_for_each_other_the_first_fails(recorded: Recorded) -> None:
    one, two = Client(recorded), Client(recorded)
    one.start("UPDATE t SET v = 1 WHERE id = 1")
    two.start("UPDATE t SET v = 2 WHERE id = 2")
    one.start("UPDATE t SET v = 1 WHERE id = 2")
    two.start("UPDATE t SET v = 2 WHERE id = 1")
    assert one.end() == 60
    assert two.waits
    one.sql.commit()
    assert two.end() is None
    two.sql.commit()
    assert recorded.rows("SELECT id, v FROM t WHERE id < 3 ORDER BY id") == [(1, 2), (2, 2)]


@pytest.mark.parametrize(("commits", "code"), [(True, 1), (False, None)])
def test_a_key_that_another_session_has_inserted_is_waited_for(
    recorded: Recorded, code: int | None, *, commits: bool
) -> None:
    other = Client(recorded)
    recorded.run("INSERT INTO t VALUES (9, 0)")
    other.start("INSERT INTO t VALUES (9, 1)")
    assert other.waits
    recorded.run("COMMIT" if commits else "ROLLBACK")
    assert other.end() == code
    other.sql.commit()


@pytest.mark.parametrize(("commits", "code"), [(True, 2291), (False, None)])
def test_a_parent_that_another_session_deletes_is_waited_for(
    recorded: Recorded, code: int | None, *, commits: bool
) -> None:
    other = Client(recorded)
    recorded.run("DELETE FROM t WHERE id = 3")
    other.start("INSERT INTO child VALUES (1, 3)")
    assert other.waits
    recorded.run("COMMIT" if commits else "ROLLBACK")
    assert other.end() == code
    other.sql.commit()


@pytest.mark.parametrize(("commits", "code"), [(True, 2292), (False, None)])
def test_a_child_that_another_session_inserts_is_waited_for(
    recorded: Recorded, code: int | None, *, commits: bool
) -> None:
    other = Client(recorded)
    recorded.run("INSERT INTO child VALUES (1, 3)")
    other.start("DELETE FROM t WHERE id = 3")
    assert other.waits
    recorded.run("COMMIT" if commits else "ROLLBACK")
    assert other.end() == code
    other.sql.commit()


def test_a_rollback_to_a_savepoint_gives_its_locks_up(recorded: Recorded) -> None:
    other = Client(recorded)
    recorded.run("SAVEPOINT before", "UPDATE t SET v = 1")
    other.start("UPDATE t SET v = 2 WHERE id = 2")
    assert other.waits
    recorded.run("ROLLBACK TO before")
    assert other.end() is None
    other.sql.commit()
    recorded.run("COMMIT")


def test_ddl_commits_and_does_not_wait(recorded: Recorded) -> None:
    other = SqlSession(recorded.database)
    other.execute("UPDATE t SET v = 1 WHERE id = 1")
    recorded.run("UPDATE child SET t = NULL", "INSERT INTO t VALUES (8, 0)")
    with pytest.raises(OraError) as caught:
        recorded.run("ALTER TABLE t ADD (w NUMBER(3))")
    assert caught.value.code == 54
    recorded.run("ROLLBACK")
    assert recorded.rows("SELECT id FROM t WHERE id = 8") == [(8,)]
    other.commit()


def test_the_current_scn_is_below_every_later_commit(recorded: Recorded) -> None:
    for number in range(50):
        recorded.run(f"UPDATE t SET v = {number}")
        scn = recorded.database.current_scn()
        recorded.run("COMMIT")
        assert recorded.rows(f"SELECT MAX(v) FROM t AS OF SCN {scn}") == [(max(number - 1, 0),)]
