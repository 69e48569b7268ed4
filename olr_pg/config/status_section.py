"""`status` and `metrics`: what is shown of the appliance, where, and who may command it there."""

from __future__ import annotations

from pydantic import Field

from olr_pg.config.connect_string import PostgresServer
from olr_pg.config.fields import ConfigAddress, ConfigNetworks, Secret
from olr_pg.config.port_sections import ALLOW, Tls
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


class Otlp(Section):
    """`metrics.otlp`: an OpenTelemetry collector; needs `pip install 'olr-pg[otel]'`."""

    endpoint: str = Field(
        pattern=r"^https?://[^\s/?#]+[^\s?#]*$",
        description='URL of the collector, "http://127.0.0.1:4318" for example; metrics go to'
        " `/v1/metrics` below it, spans to `/v1/traces`",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict,
        description='an object: header of each request to its value; "${ENV_NAME}" or {"file":'
        ' "PATH"} for a secret',
    )
    interval_seconds: float = Field(
        default=15.0, ge=1, le=86_400, description="seconds between two exports of the metrics"
    )
    traces: bool = Field(default=True, description="false: no spans are sent")


class Metrics(Section):
    """`metrics`: exporters."""

    postgres: PostgresMetrics | None = Field(
        default=None, description="an object: the metrics table"
    )
    otlp: Otlp | None = Field(
        default=None, description="an object: an OpenTelemetry collector for metrics and spans"
    )


class Control(Section):
    """`status.control`: commands over HTTP, for who has a token."""

    tokens: dict[str, Secret] = Field(
        min_length=1,
        description="an object: name of somebody to the token that lets this one command, 16"
        ' characters or more: "${ENV_NAME}" or {"file": "PATH"}',
    )


class Status(Section):
    """`status`: the status page, `/metrics` and `/healthz`."""

    enabled: bool = Field(default=True, description="false: no status page is served")
    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="how the appliance calls itself on the page; by default the machine's name",
    )
    address: ConfigAddress | None = Field(
        default=None,
        description='where to serve it, "host:port"; by default 127.0.0.1:9701, or any free port',
    )
    tls: Tls | None = Field(default=None, description="an object: encryption of the page")
    allow: ConfigNetworks | None = Field(default=None, description=ALLOW)
    control: Control | None = Field(
        default=None,
        description="an object: commands over HTTP; without it there are none (control.md)",
    )
