"""What does not fit about a database or its server is named, with SQL that mends it."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.settings import TriggerHandling
from olr_pg.applier.target import database_kind
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.database_kind import refuse_database
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target_checks import check_target
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity
from olr_pg.postgres.embedded import EmbeddedPostgres
from tests.applier.target.test_table_kinds import _TABLE
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

Replication = Any  # tests/applier/conftest.py


@contextmanager
def encoded(postgres: str, encoding: str) -> Iterator[str]:
    """A database of that encoding."""
    name = f"encoded_{encoding.lower()}_{os.getpid()}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"
            " LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )
        try:
            yield make_conninfo(postgres, dbname=name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.parametrize("encoding", ["LATIN1", "LATIN9", "WIN1252", "WIN1251", "EUC_JP", "KOI8R"])
def test_another_encoding_is_named_and_takes_what_it_has(
    postgres: str, replicate: Any, encoding: str
) -> None:
    with encoded(postgres, encoding) as database:
        r = replicate(database)
        r.execute("CREATE SCHEMA s; CREATE TABLE s.r (id int PRIMARY KEY);"
                  "CREATE TABLE s.t (id bigint PRIMARY KEY, n numeric, v varchar(20))")  # fmt: skip
        (found,) = check_target(r.settings(), [_TABLE])
        assert (found.check, found.severity) == ("postgres.database", Severity.WARNING)
        assert encoding in found.what
        known, unknown = ("ж", "ü") if encoding in ("WIN1251", "KOI8R") else ("ü", "ж")
        if encoding == "EUC_JP":
            known, unknown = "語", "😀"
        r.transaction(r.insert({"ID": 1, "V": known}), r.insert({"ID": 2, "V": "a" * 20}))
        r.apply()
        with psycopg.connect(database, client_encoding="UTF8") as connection:
            assert connection.execute("SELECT v FROM s.t ORDER BY id").fetchall() == [
                (known,),
                ("a" * 20,),
            ]
        r.transaction(r.insert({"ID": 3, "V": unknown}))
        with pytest.raises(OlrPgError) as stopped:
            r.apply()
        assert stopped.value.code == Code.TABLES_STOPPED
        ((message,),) = r.rows("SELECT message FROM olr_pg.error")
        assert f'has no equivalent in encoding "{encoding}"' in message


def test_sql_ascii_is_refused(postgres: str, replicate: Any) -> None:
    with encoded(postgres, "SQL_ASCII") as database:
        r = replicate(database)
        r.execute("CREATE SCHEMA s; CREATE TABLE s.r (id int PRIMARY KEY)")
        (found,) = check_target(r.settings(), [_TABLE])
        assert (found.check, found.severity) == ("postgres.database", Severity.ERROR)
        with pytest.raises(OlrPgError) as refused:
            r.apply([_TABLE])
        assert refused.value.code == Code.TARGET_DATABASE_UNFIT
        assert r.rows("SELECT to_regclass('olr_pg.ledger')") == [(None,)]


def test_a_read_only_database(replication: Replication) -> None:
    r = replication
    database = conninfo_to_dict(r.target)["dbname"]
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY)")
    r.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    (found,) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.database", Severity.ERROR)
    with psycopg.connect(r.target, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(found.mend[0].encode())
    assert check_target(r.settings(), [_TABLE]) == []


@pytest.mark.parametrize(
    ("setting", "value"), [("lock_timeout", "'300ms'"), ("temp_file_limit", "'64kB'")]
)
def test_limits_of_statements(replication: Replication, setting: str, value: str) -> None:
    r = replication
    database = conninfo_to_dict(r.target)["dbname"]
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY)")
    r.execute(f"ALTER DATABASE {database} SET {setting} = {value}")
    (found,) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.database", Severity.WARNING)
    assert setting in found.what
    r.execute(found.mend[0])
    assert check_target(r.settings(), [_TABLE]) == []


@pytest.mark.parametrize(
    ("options", "by"), [("-c default_transaction_read_only=on", "connection string")]
)
def test_read_only_by_the_connection_string(
    replication: Replication, options: str, by: str
) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY)")
    settings = r.settings(connect_string=make_conninfo(r.target, options=options))
    (found,) = check_target(settings, [_TABLE])
    assert by in found.mend[-1]


def test_fewer_connections_than_workers(replication: Replication) -> None:
    r = replication
    database = conninfo_to_dict(r.target)["dbname"]
    role = f"few_{database}"
    r.execute(
        f"CREATE TABLE s.r (id int PRIMARY KEY); CREATE ROLE {role} LOGIN PASSWORD 'x'"
        f" CONNECTION LIMIT 3; GRANT ALL ON SCHEMA s TO {role}; GRANT ALL ON s.r TO {role};"
        f"GRANT CREATE ON DATABASE {database} TO {role};"
        f"GRANT SET ON PARAMETER session_replication_role TO {role};"
    )
    string = make_conninfo(r.target, user=role, password="x")
    try:
        settings = r.settings(connect_string=string, workers=4)
        (found,) = check_target(settings, [_TABLE])
        assert (found.check, found.severity) == ("postgres.connections", Severity.ERROR)
        assert "need 5 connections" in found.what
        assert found.mend[1] == "or set `apply.workers` to 2"
        with pytest.raises(OlrPgError) as refused:
            r.apply([_TABLE], connect_string=string, workers=4)
        assert refused.value.code == Code.TARGET_CONNECTIONS_TOO_FEW
        assert r.rows("SELECT to_regclass('olr_pg.ledger')") == [(None,)]
        r.apply([_TABLE], connect_string=string, workers=2)
        r.execute(found.mend[0])
        assert check_target(settings, [_TABLE]) == []
        r.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 4")
        (found,) = check_target(settings, [_TABLE])
        assert f"of the database {database} is 4" in found.what
        with psycopg.connect(r.target), psycopg.connect(r.target):
            r.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 6")
            (found,) = check_target(settings, [_TABLE])
            assert found.severity is Severity.WARNING
            assert "other sessions use 2 of them now" in found.what
    finally:
        r.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_event_triggers_that_fire_on_our_ddl(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY); CREATE FUNCTION s.f() RETURNS event_trigger"
        " LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER \"E 1\" ON ddl_command_end EXECUTE"
        " FUNCTION s.f()"
    )
    assert check_target(r.settings(), [_TABLE]) == []
    (found,) = check_target(r.settings(triggers=TriggerHandling.DISABLE), [_TABLE])
    assert found.mend == ('ALTER EVENT TRIGGER "E 1" DISABLE;',)
    r.execute('ALTER EVENT TRIGGER "E 1" ENABLE ALWAYS')
    (found,) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.event-triggers", Severity.WARNING)
    r.execute(found.mend[0])
    assert check_target(r.settings(), [_TABLE]) == []


def test_more_partitions_than_locks(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE TABLE s.a PARTITION OF s.r FOR VALUES IN (1);"
        "CREATE TABLE s.b PARTITION OF s.r FOR VALUES IN (2)"
    )
    assert check_target(r.settings(), [_TABLE]) == []
    # A server with as few locks cannot be had: the lowest setting is 10 for each connection.
    real = database_kind._read
    monkeypatch.setattr(
        database_kind,
        "_read",
        lambda connection: real(connection)._replace(locks_each=1, lock_holders=5),
    )
    (found,) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.locks", Severity.WARNING)
    assert "s.r is 6 tables and indexes" in found.what
    assert "max_locks_per_transaction = 3" in found.mend[0]


def test_the_ledger_under_a_publication_of_all_tables(replication: Replication) -> None:
    r = replication
    r.execute("CREATE PUBLICATION p FOR ALL TABLES; CREATE TABLE s.r (id int PRIMARY KEY)")
    with connect(r.target) as connection:
        ensure_ledger(connection)
        connection.execute("UPDATE olr_pg.version SET version = 0")
        ensure_ledger(connection)
        tables = connection.execute(
            "SELECT c.relname, c.relreplident::text, EXISTS (SELECT FROM pg_index i"
            " WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident))"
            " FROM pg_class c WHERE c.relnamespace = 'olr_pg'::regnamespace AND c.relkind = 'r'"
        ).fetchall()
    assert [name for name, identity, has_key in tables if identity != "f" and not has_key] == []
    r.transaction(r.insert({"ID": 1, "V": "x"}), r.update({"ID": 1}, {"V": "y"}))
    r.transaction(r.delete({"ID": 9}))
    with pytest.raises(OlrPgError):
        r.apply()
    r.execute("UPDATE olr_pg.error SET attempts = 2")
    assert r.rows("SELECT v FROM s.t") == [("y",)]


def test_a_usual_database_is_not_refused(replication: Replication) -> None:
    with connect(replication.target) as connection:
        refuse_database(connection, replication.settings())


@pytest.fixture
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster with settings of its own."""
    with own_cluster("max_prepared_transactions = 4") as started:
        yield started


def restart(cluster: EmbeddedPostgres) -> None:
    """Stop it in order and start it again."""
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, signal.SIGINT)
    wait_until(cluster.is_gone)
    cluster.revive()


def test_a_limit_of_the_server_is_mended_as_printed(
    cluster: EmbeddedPostgres, replicate: Any
) -> None:
    """Each line by itself: PostgreSQL refuses ALTER SYSTEM in one message with other statements."""
    r = replicate(cluster.connect_string)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.r (id int PRIMARY KEY)")
    r.execute("ALTER SYSTEM SET lock_timeout = '300ms'")
    r.execute("SELECT pg_reload_conf()")
    wait_until(lambda: check_target(r.settings(), [_TABLE]) != [])
    (found,) = check_target(r.settings(), [_TABLE])
    statements = [line for line in found.mend if not line.startswith("--")]
    with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    wait_until(lambda: check_target(r.settings(), [_TABLE]) == [])
    r.execute("DROP SCHEMA s CASCADE")


def test_a_forgotten_prepared_transaction(cluster: EmbeddedPostgres, replicate: Any) -> None:
    r = replicate(cluster.connect_string)
    r.execute(
        "CREATE SCHEMA s; CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE TABLE s.a PARTITION OF s.r DEFAULT; CREATE TABLE s.other (id int)"
    )
    with psycopg.connect(r.target) as connection:
        for number, table in enumerate(("a", "other")):
            connection.execute(f"INSERT INTO s.{table} VALUES (1)".encode())
            connection.execute(f"PREPARE TRANSACTION 'it''s {number}'".encode())
    (found,) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.prepared-transactions", Severity.WARNING)
    assert "it's 0" in found.what
    assert "s.r" in found.what
    r.execute(found.mend[0])
    assert check_target(r.settings(), [_TABLE]) == []
    r.execute("ROLLBACK PREPARED 'it''s 1'")


def test_a_standby(cluster: EmbeddedPostgres, replicate: Any) -> None:
    """A server in recovery; whose primary it follows does not matter."""
    r = replicate(cluster.connect_string)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.r (id int PRIMARY KEY)")
    (cluster.directory / "data" / "standby.signal").touch()
    restart(cluster)
    (found, *_) = check_target(r.settings(), [_TABLE])
    assert (found.check, found.severity) == ("postgres.database", Severity.ERROR)
    assert "standby" in found.what
    r.execute("SELECT pg_promote()")
    assert check_target(r.settings(), [_TABLE]) == []
