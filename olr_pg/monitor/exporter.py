"""The metrics exporter of OLR: periodically writes every metric to a table in a PostgreSQL
database.

The configuration of OLR defines the schema and the table. This project defines the columns: each
row contains a metric at a time, with its labels as JSON. If the table is missing, it is created.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import sql
from psycopg.types.json import Jsonb

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import Periodic
from olr_pg.observability.redaction import mask
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.postgres.keepalive import with_timeouts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS {} (
    at timestamptz NOT NULL DEFAULT now(),
    metric text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{{}}',
    value double precision NOT NULL
)
"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS {} ON {} (metric, at)"
_INSERT: Final = "INSERT INTO {} (metric, labels, value) VALUES (%s, %s, %s)"
_DELETE: Final = "DELETE FROM {} WHERE at < now() - make_interval(secs => %s)"
_ANSWER_SECONDS: Final = 30.0
_DELETE_SECONDS: Final = 3600.0

_log = structlog.get_logger(__name__)


class MetricsTable(NamedTuple):
    """The table for the metrics.

    Attributes:
        interval: seconds between two writes.
        keep: seconds after which a row is deleted.
    """

    connect_string: str
    schema: str
    table: str
    interval: float
    keep: float


class PostgresExporter:
    """Writes the metrics of a registry in a thread, while the context is active.

    If the database is unreachable, the exporter logs this once and retries at the next interval. No
    other thread waits for it.
    """

    def __init__(self, target: MetricsTable, registry: CollectorRegistry) -> None:
        self._target = target
        self._registry = registry
        self._name = sql.Identifier(target.schema, target.table)
        self._connection: BoundedConnection | None = None
        self._deleted_at: float | None = None
        self._failing = False
        self._writing = Periodic("olr-metrics", target.interval, self._try, at_once=True)

    def __enter__(self) -> PostgresExporter:
        self._writing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._writing.stop()
        self._disconnect()

    def _try(self) -> None:
        try:
            self._write()
        except psycopg.Error as error:
            self._disconnect()
            if not self._failing:
                self._failing = True
                reason = mask(error.diag.message_primary or str(error).strip())
                failure = OlrPgError(
                    Code.METRICS_UNWRITABLE,
                    reason,
                    table=f"{self._target.schema}.{self._target.table}",
                )
                _log.warning("could not write metrics", error=failure)
        else:
            if self._failing:
                self._failing = False
                _log.info("metrics can be written again")

    def _write(self) -> None:
        connection = self._connected()
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(sql.SQL(_INSERT).format(self._name), self._samples())
        now = time.monotonic()
        if self._deleted_at is None or now - self._deleted_at >= _DELETE_SECONDS:
            connection.execute(sql.SQL(_DELETE).format(self._name), (self._target.keep,))
            self._deleted_at = now

    def _samples(self) -> list[tuple[str, Jsonb, float]]:
        return [
            (sample.name, Jsonb(sample.labels), float(sample.value))
            for metric in self._registry.collect()
            for sample in metric.samples
        ]

    def _connected(self) -> BoundedConnection:
        if self._connection is None:
            self._connection = BoundedConnection.connect(
                with_timeouts(self._target.connect_string),
                autocommit=True,
                application_name="olr_pg metrics",
            )
            self._connection.answer_seconds = _ANSWER_SECONDS
            self._create(self._connection)
        return self._connection

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        found = connection.execute(
            "SELECT to_regclass(%s)", (self._name.as_string(connection),)
        ).fetchone()
        if found != (None,):
            return  # no CREATE privilege is needed
        index = sql.Identifier(f"{self._target.table}_metric_at")
        with connection.transaction():
            connection.execute(sql.SQL(_CREATE).format(self._name))
            connection.execute(sql.SQL(_INDEX).format(index, self._name))

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
