"""Metrics that are written into PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import structlog
from psycopg.conninfo import make_conninfo

from olr_pg.monitor.exporter import MetricsTable, PostgresExporter
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.status_values import Status


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


def target(connect_string: str, keep: float = 3600.0) -> MetricsTable:
    return MetricsTable(connect_string, "public", "Olr Metrics", 0.02, keep)


def test_the_exporter_fills_its_table(status: Status, postgres_database: str) -> None:
    registry = make_registry(lambda: status)
    query = (
        'SELECT value, count(*) OVER () FROM public."Olr Metrics"'
        " WHERE metric = 'olr_pg_table_lag_cause_seconds'"
        """ AND labels = '{"table": "SHOP.ORDERS", "cause": "apply"}'"""
    )
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        with PostgresExporter(target(postgres_database), registry):
            await_true(lambda: bool(exists(connection) and connection.execute(query).fetchone()))
            row = connection.execute(query).fetchone()
        assert row is not None
        assert row[0] == 1.5
        # A second life finds its table, and deletes what is old.
        connection.execute("""UPDATE "Olr Metrics" SET at = now() - interval '2 hours'""")
        old = "SELECT count(*) FROM \"Olr Metrics\" WHERE at < now() - interval '1 hour'"
        with PostgresExporter(target(postgres_database), registry):
            await_true(lambda: connection.execute(old).fetchone() == (0,))


def exists(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    found = connection.execute("""SELECT to_regclass('public."Olr Metrics"')""").fetchone()
    return found != (None,)


def test_a_role_that_may_only_insert_is_enough(status: Status, postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            'CREATE TABLE "Olr Metrics" (at timestamptz DEFAULT now(), metric text,'
            " labels jsonb, value double precision)"
        )
        connection.execute("CREATE ROLE metrics_writer LOGIN PASSWORD 'w'")
        try:
            connection.execute('GRANT SELECT, INSERT, DELETE ON "Olr Metrics" TO metrics_writer')
            as_writer = make_conninfo(postgres_database, user="metrics_writer", password="w")
            with PostgresExporter(target(as_writer), make_registry(lambda: status)):
                await_true(
                    lambda: (
                        connection.execute('SELECT 1 FROM "Olr Metrics" LIMIT 1').fetchone()
                        is not None
                    )
                )
        finally:
            connection.execute("DROP OWNED BY metrics_writer")
            connection.execute("DROP ROLE metrics_writer")


def test_a_database_out_of_reach_is_told_once(status: Status) -> None:
    asked = threading.Semaphore(0)
    nowhere = "host=127.0.0.1 port=1 password=hunter22 connect_timeout=2"

    class Counting(PostgresExporter):
        def _try(self) -> None:
            super()._try()
            asked.release()

    with structlog.testing.capture_logs() as logs:
        exporter = Counting(target(nowhere), make_registry(lambda: status))
        with exporter:
            for _ in range(3):
                assert asked.acquire(timeout=60)
    (entry,) = logs
    assert entry["error"].code == 9012
    assert "hunter22" not in str(entry)
