"""Defines settings of the appliance's network ports: `tls`, `limits`, `allow`."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from olr_pg.config.fields import ConfigPath, Secret
from olr_pg.config.section import Section

_MIB: Final = 1024 * 1024

ALLOW: Final = (
    "a list of the addresses and networks of clients that may connect, in addition to"
    " this machine itself; without it, all clients may connect"
)


class Tls(Section):
    """`tls` of a port: the server's certificate, and whether clients need certificates."""

    certificate: ConfigPath = Field(description="the PEM file of the certificate and its chain")
    key: ConfigPath = Field(description="the PEM file of the certificate's private key")
    key_password: Secret | None = Field(default=None, description="the private key's password")
    client_ca: ConfigPath | None = Field(
        default=None,
        description="a PEM file of the authorities that sign the certificates of clients",
    )


class Limits(Section):
    """`target.limits`: limits on the resources that clients of the port may use."""

    clients: int = Field(
        default=64,
        ge=1,
        le=4096,
        description="maximum number of connections; a new one replaces the one that has been idle"
        " longest",
    )
    idle_seconds: float = Field(
        default=60.0, gt=0, le=86_400, description="seconds within which a client must subscribe"
    )
    request_seconds: float = Field(
        default=20.0,
        gt=0,
        le=3_600,
        description="seconds within which a client must send one request, or complete the TLS"
        " handshake",
    )
    silent_seconds: float | None = Field(
        default=3_600.0,
        gt=0,
        le=86_400 * 7,
        description="seconds for which the replicating client may stay silent: it requests nothing,"
        " or does not read its answers. After that, another client that sends TableList"
        " replaces it: the server closes the connection of the silent client, and"
        " delivers the unconfirmed transactions to the new client. Without another"
        " client there is no limit. null: a silent client is never replaced",
    )
    request_bytes: int = Field(
        default=_MIB, ge=1024, le=64 * _MIB, description="maximum bytes of a request"
    )
