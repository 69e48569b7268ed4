"""Who holds a session up, asked in a real server: sessions, a prepared transaction, a standby."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.blockers import is_blocked, statement_kind, who_blocks
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITS = "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that knows prepared transactions."""
    with own_cluster("max_prepared_transactions = 2") as cluster:
        with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
            connection.execute("INSERT INTO t VALUES (1)")
        yield cluster.connect_string


class Held:
    """A statement in a session of its own that is held up."""

    def __init__(self, server: str, statement: str) -> None:
        self.connection = psycopg.connect(server, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self._thread = threading.Thread(target=self._run, args=(statement,), daemon=True)
        self._thread.start()

    def _run(self, statement: str) -> None:
        self.connection.execute(statement.encode())

    def reason(self, asking: psycopg.Connection[Any]) -> str:
        """Who holds it up, once somebody does."""

        def waits() -> tuple[str | None, str | None]:
            found = asking.execute(WAITS, (self.pid,)).fetchone()
            assert found is not None
            return found[0], found[1]

        wait_until(lambda: is_blocked(*waits()))
        error = who_blocks(asking, self.pid, waits()[1])
        assert error.label == "OLR-05098"
        return str(error)

    def end(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive()
        self.connection.close()


def test_a_session_with_its_name_and_the_kind_of_its_statement(server: str) -> None:
    with (
        psycopg.connect(server, autocommit=True) as asking,
        psycopg.connect(server, application_name="night job") as other,
    ):
        other.execute("/* secret */ UPDATE t SET id = id WHERE id = 1")
        held = Held(server, "DELETE FROM t WHERE id = 7 OR id = 1 AND false OR id = 1")
        text = held.reason(asking)
        pid = other.info.backend_pid
        assert f"blocked by pid {pid} ('night job', user postgres, idle in transaction" in text
        assert "last statement UPDATE" in text
        assert "secret" not in text
        asking.execute("SELECT pg_cancel_backend(%s)", (pid,))
        other.rollback()
        held.end()
        asking.execute("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING")


@pytest.mark.parametrize("statement", ["LOCK TABLE t", "UPDATE t SET id = id WHERE id = 1"])
def test_a_prepared_transaction_that_somebody_forgot(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as asking:
        with psycopg.connect(server) as other:
            other.execute(statement.encode())
            other.execute("PREPARE TRANSACTION 'forgotten'")
        held = Held(server, "UPDATE t SET id = 1 WHERE id = 1")
        text = held.reason(asking)
        assert "blocked by the prepared transaction 'forgotten' of user postgres" in text
        asking.execute("ROLLBACK PREPARED 'forgotten'")
        held.end()


def test_a_standby_that_is_not_there(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as asking:
        try:
            asking.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            asking.execute("SELECT pg_reload_conf()")
            held = Held(server, "INSERT INTO t VALUES (2)")
            text = held.reason(asking)
            assert "no standby confirms the commit" in text
            assert "synchronous_standby_names is 'nobody'" in text
        finally:
            asking.execute("ALTER SYSTEM RESET synchronous_standby_names")
            asking.execute("SELECT pg_reload_conf()")
        held.end()


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("lock table s.t in exclusive mode", "LOCK TABLE"),
        ("-- a comment\n  UPDATE t SET a = 'x'", "UPDATE"),
        ("/* c */ /* d */\nalter  table t add b int", "ALTER TABLE"),
        ("CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX"),
        ("VACUUM FULL t", "VACUUM"),
        ("<insufficient privilege>", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_kind_of_a_statement_and_nothing_that_is_in_it(query: str | None, kind: str) -> None:
    assert statement_kind(query) == kind
