"""Metrics that are written into PostgreSQL.

Metrics and spans at a collector, which reads them with the library of the protocol.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from psycopg.conninfo import make_conninfo

from olr_pg.errors import OlrPgError
from olr_pg.monitor.exporter import Collector, MetricsTable, PostgresExporter, exported
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.status_values import Status
from olr_pg.observability.tracing import span
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


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


KINDS: Any = {
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/traces": ExportTraceServiceRequest,
}


class Received:
    """What a collector has received, by its path; it refuses all while `is_refusing`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.is_refusing = False
        self.url = ""

    def of(self, path: str) -> list[Any]:
        return [message for found, message, _ in self.requests.copy() if found == path]

    def points(self, name: str) -> list[dict[str, Any]]:
        """The samples of a metric in the last export, each with its labels and value."""
        found = []
        for resource in self.of("/v1/metrics")[-1].resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        kind = metric.WhichOneof("data")
                        for point in getattr(metric, kind).data_points:
                            labels = {a.key: a.value.string_value for a in point.attributes}
                            found.append({**labels, "kind": kind, "value": point.as_double})
        return found


@contextmanager
def collector() -> Iterator[Received]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if not received.is_refusing:
                message = KINDS[self.path].FromString(body)
                received.requests.append((self.path, message, dict(self.headers)))
            self.send_response(401 if received.is_refusing else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    try:
        yield received
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def sending_to(received: Received, **changed: Any) -> Collector:
    settings: dict[str, Any] = {
        "endpoint": received.url, "headers": {}, "interval": 0.05, "traces": True, "name": "a",
        **changed,
    }  # fmt: skip
    return Collector(**settings)


def test_the_metrics_are_those_of_the_registry(status: Status) -> None:
    registry = make_registry(lambda: status)
    samples = [
        (sample.name, sample.labels, sample.value)
        for family in registry.collect()
        if not family.name.startswith("process_")
        for sample in family.samples
    ]
    with collector() as received, exported(sending_to(received), registry):
        wait_until(lambda: bool(received.of("/v1/metrics")))
        for name, labels, value in samples:
            found = [
                point["value"]
                for point in received.points(name)
                if {k: v for k, v in point.items() if k not in ("kind", "value")} == labels
            ]
            assert found == [value], name
        assert {p["kind"] for p in received.points("olr_pg_rows_total")} == {"sum"}
        assert {p["kind"] for p in received.points("olr_pg_decoded_scn")} == {"gauge"}
        (resource, *_) = received.of("/v1/metrics")[-1].resource_metrics
        named = {one.key: one.value.string_value for one in resource.resource.attributes}
        assert (named["service.name"], named["service.instance.id"]) == ("olr_pg", "a")


def test_headers_go_along(status: Status) -> None:
    with collector() as received:
        with exported(
            sending_to(received, headers={"x-token": "s3cret"}), make_registry(lambda: status)
        ):
            wait_until(lambda: bool(received.requests))
        assert {headers["x-token"] for _, _, headers in received.requests} == {"s3cret"}


def test_spans_are_sent_with_their_failures(status: Status) -> None:
    registry = make_registry(lambda: status)
    with span("apply", table="S.T"):
        pass  # nobody collects yet
    with collector() as received:
        with exported(sending_to(received), registry):
            with span("apply", table="S.T", changes=3):
                pass
            with pytest.raises(ValueError, match="no"), span("decode", log="a.arc"):
                raise ValueError("no")
        # What is left is sent at the end.
        spans = [
            one
            for message in received.of("/v1/traces")
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for one in scope.spans
        ]
        with span("apply", table="S.T"):
            pass  # nobody collects any more
    assert [one.name for one in spans] == ["olr_pg.apply", "olr_pg.decode"]
    attributes = {one.key: one.value for one in spans[0].attributes}
    assert attributes["olr_pg.table"].string_value == "S.T"
    assert attributes["olr_pg.changes"].int_value == 3
    assert [one.status.code for one in spans] == [0, 2]


def test_spans_may_be_left_out(status: Status) -> None:
    with collector() as received:
        with exported(sending_to(received, traces=False), make_registry(lambda: status)):
            with span("apply", table="S.T"):
                pass
            wait_until(lambda: bool(received.requests))
        assert received.of("/v1/traces") == []


def test_a_collector_that_refuses_is_told_of_once(status: Status) -> None:
    with collector() as received, structlog.testing.capture_logs() as logs:
        received.is_refusing = True
        with exported(sending_to(received, traces=False), make_registry(lambda: status)):
            wait_until(lambda: len(logs) > 0)
            received.is_refusing = False
            wait_until(lambda: len(logs) > 1)
    assert [entry["event"] for entry in logs] == [
        "could not send metrics to the collector",
        "metrics are being sent to the collector again",
    ]
    assert isinstance(logs[0]["error"], OlrPgError)
    assert logs[0]["error"].label == "OLR-09013"


def test_without_the_library_the_configuration_is_refused(
    status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    settings = Collector("http://127.0.0.1:1", {}, 1.0, traces=False, name="")
    with (
        pytest.raises(OlrPgError, match="OLR-01180"),
        exported(settings, make_registry(lambda: status)),
    ):
        pass
