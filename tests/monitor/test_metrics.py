"""The registry: what Prometheus reads, and what goes into PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import structlog
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.conninfo import make_conninfo

from olr_pg.capture.state import CapturePhase
from olr_pg.monitor.exporter import MetricsTable, PostgresExporter
from olr_pg.monitor.metrics import STATES, make_registry
from olr_pg.monitor.status import Status


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


def test_every_state_of_capture_has_a_metric() -> None:
    assert set(STATES) == {phase.value for phase in CapturePhase}


def test_prometheus_reads_it(status: Status) -> None:
    text = generate_latest(make_registry(lambda: status)).decode()
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["olr_pg_decoded_scn",] == 2_266_400
    assert values["olr_pg_redo_bytes_total",] == 5 << 30
    assert values["olr_pg_rows_filtered_total",] == 17
    assert values["olr_pg_transactions_filtered_total",] == 5
    assert values["olr_pg_lob_unavailable_total",] == 3
    assert values["olr_pg_lob_unclaimed_total",] == 1
    assert values["olr_pg_state", "WAITING_FOR_REDO"] == 1
    assert sum(value for name, value in values.items() if name[0] == "olr_pg_state") == 1
    assert values["olr_pg_table_lag_seconds", "SHOP.ORDERS"] == 7.5
    assert values["olr_pg_table_lag_cause_seconds", "queue", "SHOP.ORDERS"] == 2.0
    assert values["olr_pg_table_stopped", status.tables[1].name] == 1
    assert values["olr_pg_table_held_scn", status.tables[1].name] == 2_266_301
    assert values["olr_pg_refused_total", "OLR-04033"] == 7
    assert values["olr_pg_thread_archived_scn", "2"] == 2_266_400
    assert values["process_resident_memory_bytes",] > 0
    assert values["process_open_fds",] > 0
    helps = [line for line in text.splitlines() if line.startswith("# HELP olr_pg_")]
    assert len(helps) == len(set(helps))


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
