"""What makes a target slow or full, brought about in real servers: each kind, and its SQL."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target_health import HealthProblem, Limits, TargetHealth, look
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_N = Column("N", 2, 2, 2, OracleType.NUMBER, 22, 9, 0, nullable=False)
_TABLE = Table("S", "R", 1, 1, (_ID, _N), key_kind=KeyKind.PRIMARY, key=(1, 2))
_ROWS = 20_000
_LIMITS = Limits(rows=10_000, dead_rows=10_000)
_PARTITIONED = """
CREATE TABLE s.r (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE s.r_low PARTITION OF s.r FOR VALUES FROM (MINVALUE) TO (10000);
CREATE TABLE s.r_high PARTITION OF s.r FOR VALUES FROM (10000) TO (MAXVALUE);
"""
_FLUSH = "SELECT pg_stat_force_next_flush()"
_FILL = f"INSERT INTO s.r SELECT id, 1 FROM generate_series(1, {_ROWS}) id"


class Target:
    """A database with a schema `s`; statements of its own session."""

    def __init__(self, connect_string: str) -> None:
        self.settings = ApplierSettings(connect_string, "127.0.0.1", 0, "")
        self.connection = psycopg.connect(connect_string, autocommit=True)
        self.execute("CREATE SCHEMA IF NOT EXISTS s")

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement.encode())

    def look(self, limits: Limits = _LIMITS) -> list[HealthProblem]:
        self.execute(_FLUSH)
        with psycopg.connect(self.settings.connect_string, autocommit=True) as connection:
            return look(connection, self.settings, [_TABLE], limits)

    def one(self, code: Code, limits: Limits = _LIMITS) -> HealthProblem:
        """The only problem that there is."""
        (found,) = self.look(limits)
        assert found.error.code == code, str(found.error)
        return found

    def run_advised(self, problem: HealthProblem) -> None:
        """Execute the first statement of the advice."""
        text = problem.error.action
        words = ("ALTER", "ANALYZE", "VACUUM", "SELECT pg_")
        start = min(text.find(word) for word in words if word in text)
        self.execute(text[start : text.index(";", start)])


@pytest.fixture
def target(postgres_database: str) -> Iterator[Target]:
    made = Target(postgres_database)
    yield made
    made.connection.close()


@pytest.fixture
def filled(target: Target) -> Target:
    target.execute(
        "CREATE TABLE s.r (id int, n int, PRIMARY KEY (id, n))", _FILL, _FLUSH, "ANALYZE s.r"
    )
    return target


@pytest.fixture
def own_server() -> Iterator[Target]:
    """A server that counts transactions from early on."""
    settings = "autovacuum_freeze_max_age = 100000", "autovacuum_naptime = '20d'"
    with own_cluster(*settings) as cluster:
        made = Target(cluster.connect_string)
        yield made
        made.connection.close()


def test_a_healthy_target(filled: Target) -> None:
    assert filled.look() == []


def test_a_target_table_that_is_not_there_yet(target: Target) -> None:
    assert target.look() == []


@pytest.mark.parametrize(
    ("indexes", "is_found"),
    [
        ([], True),
        (["CREATE INDEX ON s.r (n)"], True),
        (["CREATE INDEX ON s.r (id)"], True),
        (["CREATE INDEX ON s.r (id, n) WHERE n = 1"], True),
        (["CREATE INDEX ON s.r ((id + 1), n)"], True),
        (["CREATE INDEX ON s.r (id) INCLUDE (n)"], True),
        (["CREATE INDEX ON s.r (n, id)"], False),
        (["CREATE UNIQUE INDEX ON s.r (id)"], False),
        (["ALTER TABLE s.r ADD PRIMARY KEY (id, n)"], False),
        (["CREATE UNIQUE INDEX ON s.r (id, n)"], False),
    ],
)
@pytest.mark.parametrize("make", ["CREATE TABLE s.r (id int, n int)", _PARTITIONED])
def test_a_key_without_an_index(
    target: Target, make: str, indexes: Sequence[str], is_found: bool
) -> None:
    target.execute(*make.strip().rstrip(";").split(";"), _FILL, *indexes, _FLUSH, "ANALYZE s.r")
    if not is_found:
        assert target.look() == []
        return
    problem = target.one(Code.TARGET_KEY_UNINDEXED)
    assert problem.table == "S.R"
    target.run_advised(problem)
    assert target.look() == []


def test_a_small_table_needs_no_index(target: Target) -> None:
    target.execute(
        "CREATE TABLE s.r (id int, n int)", "INSERT INTO s.r VALUES (1, 1)", "ANALYZE s.r"
    )
    assert target.look() == []


@pytest.mark.parametrize("state", ["ALWAYS", "REPLICA"])
def test_a_trigger_that_fires(filled: Target, state: str) -> None:
    filled.execute(
        "CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        'CREATE TRIGGER "T 1" BEFORE INSERT ON s.r FOR EACH ROW EXECUTE FUNCTION s.f()',
    )
    assert filled.look() == []
    filled.execute(f'ALTER TABLE s.r ENABLE {state} TRIGGER "T 1"')
    problem = filled.one(Code.TARGET_TRIGGER_FIRES)
    assert '"T 1"' in problem.error.detail
    filled.run_advised(problem)
    assert filled.look() == []


def test_autovacuum_that_leaves_a_table_out(filled: Target) -> None:
    filled.execute("ALTER TABLE s.r SET (autovacuum_enabled = off)")
    filled.run_advised(filled.one(Code.AUTOVACUUM_UNFIT))
    assert filled.look() == []


def test_autovacuum_that_begins_late_on_a_table_that_changes(filled: Target) -> None:
    limits = _LIMITS._replace(vacuum_at=3_000)
    assert filled.look(limits) == []  # nothing was updated yet
    filled.execute("UPDATE s.r SET n = 2 WHERE id < 100")
    filled.run_advised(filled.one(Code.AUTOVACUUM_UNFIT, limits))
    assert filled.look(limits) == []


def test_autovacuum_that_is_off_for_all(own_server: Target) -> None:
    own_server.execute("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
    wait_until(lambda: len(own_server.look()) == 1)
    own_server.execute(*own_server.one(Code.AUTOVACUUM_UNFIT).error.action.rstrip(";").split(";"))
    wait_until(lambda: own_server.look() == [])


def test_changes_that_a_setting_hides_from_autovacuum(filled: Target) -> None:
    name = filled.connection.info.dbname
    for place in (
        f'DATABASE "{name}"',
        "ROLE CURRENT_USER",
        f'ROLE CURRENT_USER IN DATABASE "{name}"',
    ):
        filled.execute(f"ALTER {place} SET track_counts = off")
        problem = filled.one(Code.AUTOVACUUM_UNFIT)
        assert "track_counts is off for the role or the database" in problem.error.detail
        filled.run_advised(problem)
        assert filled.look() == []


def test_dead_rows_and_what_keeps_them(filled: Target) -> None:
    filled.execute("UPDATE s.r SET n = n + 1")
    problem = filled.one(Code.DEAD_ROWS)
    assert "20,000 dead rows and 20,000 live rows" in problem.error.detail
    filled.run_advised(problem)
    assert filled.look() == []


def test_a_table_that_was_never_analyzed(target: Target) -> None:
    target.execute("CREATE TABLE s.r (id int, n int, PRIMARY KEY (id, n))", _FILL)
    target.run_advised(target.one(Code.STATISTICS_MISSING))
    assert target.look() == []


def test_each_partition_has_statistics_of_its_own(target: Target) -> None:
    target.execute(
        *_PARTITIONED.strip().rstrip(";").split(";"), "ALTER TABLE s.r ADD PRIMARY KEY (id, n)"
    )
    target.execute(_FILL, _FLUSH, "ANALYZE s.r")
    target.execute("UPDATE s.r SET n = n + 1 WHERE id >= 10000")
    problem = target.one(Code.DEAD_ROWS, _LIMITS._replace(dead_rows=5_000))
    assert (problem.table, "s.r_high" in problem.error.detail) == ("S.R", True)


def test_a_look_locks_no_partition(target: Target) -> None:
    """A database can have more partitions than PostgreSQL can lock at a time."""
    target.execute(*_PARTITIONED.strip().rstrip(";").split(";"))
    with psycopg.connect(target.settings.connect_string) as other:
        other.execute("LOCK TABLE ONLY s.r, s.r_low, s.r_high")
        assert target.look() == []


def test_transaction_ids_that_run_out(own_server: Target) -> None:
    assert own_server.look() == []
    own_server.execute(
        "CREATE TABLE s.t (i int)",
        # Each block is a subtransaction with an ID of its own.
        "DO $$BEGIN FOR i IN 1..160000 LOOP BEGIN INSERT INTO s.t VALUES (i);"
        " EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END$$",
    )
    problem = own_server.one(Code.WRAPAROUND_NEAR)
    assert "transaction ID" in problem.error.detail
    own_server.execute("VACUUM (FREEZE)")
    assert own_server.look() == []


def test_a_slot_that_keeps_wal(own_server: Target) -> None:
    limits = _LIMITS._replace(slot_bytes=1 << 20)
    own_server.execute("SELECT pg_create_physical_replication_slot('left_behind', true)")
    assert own_server.look(limits) == []
    own_server.execute(
        "CREATE TABLE s.t (i int)", "INSERT INTO s.t SELECT generate_series(1, 50000)"
    )
    own_server.run_advised(own_server.one(Code.SLOT_KEEPS_WAL, limits))
    assert own_server.look(limits) == []


def test_a_transaction_that_is_open_for_long(filled: Target) -> None:
    limits = _LIMITS._replace(transaction_seconds=0.0)
    assert filled.look(limits) == []
    other = psycopg.connect(filled.settings.connect_string, application_name="report")
    other.execute("DELETE FROM s.r WHERE id = 1")
    assert filled.look() == []
    problem = filled.one(Code.TRANSACTION_KEEPS_ROWS, limits)
    assert f"pid {other.info.backend_pid} ('report'" in problem.error.detail
    assert "idle in transaction" in problem.error.detail
    filled.run_advised(problem)
    wait_until(lambda: filled.look(limits) == [])
    other.close()


def test_a_role_without_rights_finds_what_it_may_see(filled: Target) -> None:
    filled.execute(
        "DROP ROLE IF EXISTS olr_health_role",
        "CREATE ROLE olr_health_role LOGIN PASSWORD 'p'",
        "UPDATE s.r SET n = n + 1",
        _FLUSH,
    )
    own = psycopg.conninfo.make_conninfo(
        filled.settings.connect_string, user="olr_health_role", password="p"
    )
    with psycopg.connect(own, autocommit=True) as connection:
        (found,) = look(connection, filled.settings, [_TABLE], _LIMITS)
    assert found.error.code == Code.DEAD_ROWS
    filled.execute("DROP ROLE olr_health_role")


def test_the_watch_waits_for_what_may_pass_by_itself(target: Target) -> None:
    target.execute("CREATE TABLE s.r (id int, n int)", _FILL, _FLUSH)
    health = TargetHealth(target.settings, lambda: [_TABLE], seconds=0.05, limits=_LIMITS)
    health._look()
    assert [one.error.code for one in health.problems] == [Code.TARGET_KEY_UNINDEXED]
    health.start()
    try:
        wait_until(
            lambda: (
                {one.error.code for one in health.problems}
                == {Code.TARGET_KEY_UNINDEXED, Code.STATISTICS_MISSING}
            )
        )
        target.execute("ALTER TABLE s.r ADD PRIMARY KEY (id, n)", "ANALYZE s.r")
        wait_until(lambda: not health.problems)
    finally:
        health.stop()


def test_an_outage_leaves_what_is_known(target: Target) -> None:
    settings = ApplierSettings("host=127.0.0.1 port=1 dbname=x", "127.0.0.1", 0, "")
    health = TargetHealth(settings, lambda: [_TABLE])
    known: Any = (HealthProblem("S.R", None),)  # type: ignore[arg-type]
    health.problems = known
    health._look()
    assert health.problems is known


def test_an_applier_at_work_tells_it(replication: Any) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int, n int)")
    r.execute(_FILL)
    applier = Applier(r.settings(), source_tables=[_TABLE])
    working = threading.Thread(target=applier.run)
    working.start()
    try:
        wait_until(lambda: bool(applier.health))
        assert [str(one.error.label) for one in applier.health] == ["OLR-05161"]
    finally:
        applier.stop()
        working.join(120)
    assert not working.is_alive()
