"""What every port of the appliance has: `tls`, `limits`, `allow`."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from olr_pg.config.fields import ConfigPath, Secret
from olr_pg.config.section import Section

_MIB: Final = 1024 * 1024

ALLOW: Final = "a list of client addresses and networks, beside loopback; without it all may"


class Tls(Section):
    """`tls` of a port: encryption, and certificates of clients."""

    certificate: ConfigPath = Field(description="the PEM file of the certificate and its chain")
    key: ConfigPath = Field(description="the PEM file of the certificate's private key")
    key_password: Secret | None = Field(default=None, description="the private key's password")
    client_ca: ConfigPath | None = Field(
        default=None,
        description="a PEM file of the authorities that sign the certificates of clients",
    )


class Limits(Section):
    """`target.limits`: what clients of the port may take up."""

    clients: int = Field(
        default=64,
        ge=1,
        le=4096,
        description="connections at once; the idlest gives way to a new one",
    )
    idle_seconds: float = Field(
        default=60.0, gt=0, le=86_400, description="seconds that a client may wait to subscribe"
    )
    request_seconds: float = Field(
        default=20.0,
        gt=0,
        le=3_600,
        description="seconds that one request may take to come in, or TLS to be agreed on",
    )
    silent_seconds: float | None = Field(
        default=3_600.0,
        gt=0,
        le=86_400 * 7,
        description="seconds that the client that replicates may ask for nothing, or read nothing,"
        " before another client that asks for its place gets it; its connection is closed then, and"
        " what it has not confirmed is delivered again. Without another client it may be silent for"
        " as long as it likes. null: nobody else gets its place",
    )
    request_bytes: int = Field(
        default=_MIB, ge=1024, le=64 * _MIB, description="bytes of the largest request"
    )
