"""`metrics`: where metrics are written to."""

from __future__ import annotations

from pydantic import Field

from olr_pg.config.connect_string import PostgresServer
from olr_pg.config.section import Section


class PostgresMetrics(Section):
    """`metrics.postgres`: the table that metrics are written to."""

    connect_string: PostgresServer = Field(description="how to connect to the metrics database")
    table_scheme: str = Field(default="public", min_length=1, description="the schema of the table")
    table_name: str = Field(min_length=1, description="the name of the table")
    interval_seconds: float = Field(
        default=10.0, ge=1, le=86_400, description="seconds between two writes"
    )
    keep_hours: float = Field(
        default=168.0, gt=0, description="hours after which a line is deleted"
    )


class Metrics(Section):
    """`metrics`: exporters."""

    postgres: PostgresMetrics | None = Field(
        default=None, description="an object: the metrics table"
    )
