"""Defines the sections `status` and `metrics`: the status page, its commands, and the exporters of
metrics.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from olr_pg.config.connect_string import PostgresServer
from olr_pg.config.fields import ConfigAddress, ConfigNetworks, PlainText, Secret
from olr_pg.config.port_sections import ALLOW, Tls
from olr_pg.config.section import Section


class PostgresMetrics(Section):
    """`metrics.postgres`: the table to which metrics are written."""

    connect_string: PostgresServer = Field(description="connect string of the metrics database")
    table_scheme: str = Field(default="public", min_length=1, description="the schema of the table")
    table_name: str = Field(min_length=1, description="the name of the table")
    interval_seconds: float = Field(
        default=10.0, ge=1, le=86_400, description="seconds between two writes"
    )
    keep_hours: float = Field(default=168.0, gt=0, description="hours after which a row is deleted")


class Otlp(Section):
    """`metrics.otlp`: the OpenTelemetry collector to which metrics or spans are sent; needs `pip
    install 'olr-pg[otel]'`.
    """

    endpoint: str = Field(
        pattern=r"^https?://[^\s/?#]+[^\s?#]*$",
        description='URL of the collector, "http://127.0.0.1:4318" for example; metrics go to'
        " `/v1/metrics` below it, spans to `/v1/traces`",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict,
        description='an object: names and values of HTTP headers for each request; "${ENV_NAME}" or'
        ' {"file": "PATH"} for a secret',
    )
    interval_seconds: float = Field(
        default=15.0, ge=1, le=86_400, description="seconds between two exports of the metrics"
    )
    traces: bool = Field(
        default=True, description="true: also send spans; false: send only metrics"
    )


class Metrics(Section):
    """`metrics`: the exporters of metrics."""

    postgres: PostgresMetrics | None = Field(
        default=None, description="an object: the metrics table"
    )
    otlp: Otlp | None = Field(
        default=None, description="an object: an OpenTelemetry collector for metrics and spans"
    )


TOKEN_LENGTH_MIN: Final = 16
"""Minimum number of characters of a token."""


class Control(Section):
    """`status.control`: commands that clients with a token can send over HTTP."""

    tokens: dict[str, Secret] = Field(
        min_length=1,
        description="an object: for the name of a person or program, the token with which it may"
        ' run commands. A token has 16 characters or more; write "${ENV_NAME}" or'
        ' {"file": "PATH"}',
    )


class Status(Section):
    """`status`: the status page, `/metrics` and `/healthz`."""

    enabled: bool = Field(default=True, description="false: serve no status page")
    name: PlainText | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="the name of the appliance on the page; default: the name of the machine",
    )
    address: ConfigAddress | None = Field(
        default=None,
        description='the address of the page, "host:port"; default: 127.0.0.1:9701, or another free'
        " port if 9701 is in use",
    )
    tls: Tls | None = Field(default=None, description="an object: TLS settings of the page")
    allow: ConfigNetworks | None = Field(default=None, description=ALLOW)
    control: Control | None = Field(
        default=None,
        description="an object: commands over HTTP (control.md); without it, no commands are"
        " accepted",
    )
